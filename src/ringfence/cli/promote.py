"""``ringfence promote``: the gate before an agent's change is reviewed. Parses, calls the promotion room, prints."""

import argparse
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator

from ringfence.model.errors import PromotionError
from ringfence.model.ports import Recorder
from ringfence.promotion.verdict import Verdict
from ringfence.supervisor.paths import Paths

DEADLINE = 300
"""Seconds that one check may take."""
Action = Callable[[argparse.Namespace, Paths], int]


def configure(parser: argparse.ArgumentParser) -> None:
    """Subcommands of ``promote``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _configure_init(actions.add_parser("init", help="write a starting policy and owners file"))
    _configure_blast(actions.add_parser("blast", help="the numbers alone, against the base's limits"))
    _configure_check(actions.add_parser("check", help="decide whether a change may go to review"))
    _configure_attest(actions.add_parser("attest", help="state and bind what the trusted re-run did"))
    _configure_rehearse(actions.add_parser("rehearse", help="walk the rollback once, and write down how it went"))
    _configure_explain(actions.add_parser("explain", help="show a verdict or a reason; record why a hold is right"))
    _configure_verify(actions.add_parser("verify", help="check a signed verdict, offline"))


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Exit code of the chosen action: 0, 10, 20 or 21 for a verdict."""
    from ringfence.cli import promote_write

    table: dict[str, Action] = {
        "blast": _blast,
        "check": _check,
        "verify": _verify,
        "explain": _explain,
        "init": promote_write.init,
        "attest": promote_write.attest,
        "rehearse": promote_write.rehearse,
    }
    return table[args.action](args, paths)


def recorder(paths: Paths) -> Recorder:
    """Where verdicts are recorded: this user's ledger."""
    from ringfence.supervisor.recording import Recording

    return Recording(paths)


def exit_code(verdict: Verdict) -> int:
    """The exit code of a verdict; a fault has none of these."""
    from ringfence.cli.main import ASKED, CLEAN, REFUSED, ROTATE

    return (CLEAN, ASKED, REFUSED, ROTATE)[verdict.outcome]


def _change_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", default=".", metavar="R", help="the repository (default: here)")
    parser.add_argument("--base", required=True, metavar="B", help="target: a ref or full id")
    parser.add_argument("--head", required=True, metavar="H", help="the change: a ref or full id")


def _configure_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", default=".", metavar="R", help="the work tree to write into")
    parser.add_argument("--service", action="append", default=[], metavar="FOLDER", help="a folder that is a service")
    parser.add_argument("--artifact", default="build.tar", metavar="NAME", help="what both runs build")
    parser.add_argument("--artifact-path", default=".", metavar="FOLDER", help="the folder it is built from")


def _configure_blast(parser: argparse.ArgumentParser) -> None:
    _change_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _configure_check(parser: argparse.ArgumentParser) -> None:
    _change_arguments(parser)
    parser.add_argument("--trust", metavar="DIR", help="issuers and keys, given out of band")
    parser.add_argument(
        "--evidence", metavar="DIR", help="what the runs left behind; without it a dry run, never exit 0"
    )
    parser.add_argument("--at", type=int, metavar="UNIX_TIME", help="verify as of that time instead of now")
    parser.add_argument("--live", action="store_true", help="the token must also be unexpired")
    parser.add_argument("--once", metavar="DIR", help="remember tokens there: one token vouches for one head")
    parser.add_argument("--objects", action="append", default=[], metavar="DIR", help="a further object folder")
    parser.add_argument("--sarif", metavar="FILE", help="also write the reasons as SARIF")
    parser.add_argument("--annotations", action="store_true", help="also print GitHub annotations")
    parser.add_argument("--sign", metavar="KEY", help="sign the verdict with this Ed25519 key (PEM)")
    parser.add_argument("--keyid", metavar="ID", default="gate", help="the key's id in trust/keys.json")
    parser.add_argument("--verifier", metavar="NAME", default="gate", help="the name that keys.json pins the key under")
    parser.add_argument("--resource", metavar="URI", default="", help="git URL with the target branch, for the summary")
    parser.add_argument("--out", metavar="FILE", default="promotion.dsse.jsonl", help="where the signed verdict goes")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")


def _configure_attest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--platform",
        choices=("github", "gitlab", "buildkite", "key"),
        required=True,
        help="who proves the run; key: plain git",
    )
    parser.add_argument("--commit", metavar="SHA", help="the commit that was re-run, full id")
    parser.add_argument("--repository", metavar="URL", default="", help="where that commit lives")
    parser.add_argument("--artifact", metavar="FILE", help="what the re-run built")
    parser.add_argument("--results", metavar="FILE", help='{"results": {"unit": "passed", …}}')
    parser.add_argument("--rehearsal", metavar="FILE", help="what `promote rehearse` wrote")
    parser.add_argument("--evidence", metavar="DIR", required=True, help="folder to write into")
    parser.add_argument(
        "--statements-only", action="store_true", help="GitLab, first half: print the audience to ask for"
    )
    parser.add_argument("--token-variable", metavar="NAME", help="GitLab, second half: the variable of id_tokens")
    parser.add_argument("--key", metavar="KEY", help="plain git: the CI host's Ed25519 key (PEM)")
    parser.add_argument("--keyid", metavar="ID", help="plain git: its id in trust/keys.json")
    parser.add_argument("--run-id", metavar="ID", help="plain git: this run")
    parser.add_argument("--audience-prefix", default="promotion+sha256:", metavar="TEXT", help=argparse.SUPPRESS)
    parser.add_argument("--at", type=int, metavar="UNIX_TIME", help=argparse.SUPPRESS)


def _configure_rehearse(parser: argparse.ArgumentParser) -> None:
    _change_arguments(parser)
    parser.add_argument("--command", dest="rollback", required=True, metavar="TEXT", help="one of the base's commands")
    parser.add_argument(
        "--environment", default="staging", metavar="NAME", help="where this runs (the gate asks staging)"
    )
    parser.add_argument(
        "--state", metavar="COMMAND", help="prints the tree id of what is deployed, run before and after"
    )
    parser.add_argument("--deploy", metavar="COMMAND", help="brings the merged tree into that environment first")
    parser.add_argument("--out", default="rehearsal.json", metavar="FILE", help="what `promote attest` takes")


def _configure_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="FILE|CODE", help="a verdict as JSON, or a reason's code")
    parser.add_argument("--record", metavar="REASON", help="sign why the hold of this verdict is right")
    parser.add_argument(
        "--break-glass", metavar="REASON", help="sign that it must pass all the same (the base must allow it)"
    )
    parser.add_argument("--key", metavar="KEY", help="your Ed25519 key (PEM)")
    parser.add_argument("--keyid", metavar="ID", help="its id in trust/keys.json")
    parser.add_argument("--out", metavar="DIR", help="the evidence folder to write into")


def _configure_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a signed verdict")
    parser.add_argument("--trust", required=True, metavar="DIR", help="keys.json, given out of band")
    parser.add_argument("--head", metavar="SHA", help="the commit it must be about")
    parser.add_argument("--resource", metavar="URI", help="the target it must be for")
    parser.add_argument("--at", type=int, metavar="UNIX_TIME", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _blast(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.promotion.check import blast
    from ringfence.promotion.render import one_screen

    del paths
    verdict = blast(args.repo, args.base, args.head)
    wanted = ("numbers", "limits", "reasons")
    text = (
        json.dumps({name: verdict.to_json()[name] for name in wanted}, indent=2) if args.json else one_screen(verdict)
    )
    print(text)
    return exit_code(verdict)


def _check(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.cli.promote_write import write_signed
    from ringfence.promotion.check import check
    from ringfence.promotion.render import one_screen, to_annotations, to_sarif
    from ringfence.promotion.seen import TokenLog

    with _within(DEADLINE):
        verdict = check(
            args.repo,
            args.base,
            args.head,
            args.trust,
            args.evidence,
            at=args.at,
            live=args.live,
            used_once=TokenLog(args.once) if args.once else None,
            objects=tuple(args.objects),
            record=recorder(paths),
        )
    if args.sarif:
        with open(args.sarif, "w", encoding="utf-8") as file:
            file.write(to_sarif(verdict))
    if args.sign:
        write_signed(verdict, args)
    if args.annotations:
        print(to_annotations(verdict), file=sys.stderr if args.json else sys.stdout)
    print(json.dumps(verdict.to_json(), indent=2) if args.json else one_screen(verdict))
    return exit_code(verdict)


class _Late(Exception):
    """The time is over. A kind of its own, which nothing inside takes for a file that is missing."""


@contextlib.contextmanager
def _within(seconds: int) -> Iterator[None]:
    """A check that takes longer ends as a fault of the gate, which refuses: no change may keep a server busy for ever."""

    def late(number: int, frame: object) -> None:
        del number, frame
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _verify(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.cli.main import CLEAN, REFUSED
    from ringfence.promotion.evidence import read_folder, read_regular
    from ringfence.promotion.strict import Malformed
    from ringfence.promotion.trust import parse_trust
    from ringfence.promotion.vsa import verify_summary

    del paths
    now = int(time.time()) if args.at is None else args.at
    try:
        summary = verify_summary(read_regular(args.file, 1_048_576), parse_trust(read_folder(args.trust)), now)
    except (Malformed, OSError) as error:
        raise refusal(
            "promotion-not-verified", str(error), where=args.file, remedy="do not rely on this file"
        ) from None
    wrong = [
        f"{name} is {found}, wanted {wanted}"
        for name, found, wanted in (("head", summary.head, args.head), ("resource", summary.resource, args.resource))
        if wanted is not None and found != wanted
    ]
    text = {
        name: getattr(summary, name) for name in ("verifier", "result", "head", "resource", "verified", "policy_sha256")
    }
    print(
        json.dumps({**text, "wrong": wrong}, indent=2) if args.json else "\n".join(f"{k}: {v}" for k, v in text.items())
    )
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr if args.json else sys.stdout)
    return CLEAN if summary.result == "PASSED" and not wrong else REFUSED


def _explain(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.cli.promote_write import record_words
    from ringfence.promotion.findings import KINDS

    if args.record or args.break_glass:
        return record_words(args, paths)
    if args.what in KINDS:
        kind = KINDS[args.what]
        print(f"{args.what}  (gate {kind.gate}, {kind.outcome.word})\n  asked: {kind.asked}\n  next:  {kind.next_step}")
        return 0
    for item in stored_verdict(args.what)["reasons"]:
        print("{code}  (gate {gate})\n  asked {asked}\n  found {found}\n  from  {from}\n  next  {next}".format(**item))
    return 0


def stored_verdict(path: str) -> dict[str, list[dict[str, str]]]:
    """A verdict that ``check --json`` printed; raises PromotionError."""
    from ringfence.promotion.evidence import read_regular
    from ringfence.promotion.strict import Malformed, parse_object

    keys = {"code", "gate", "asked", "found", "from", "next"}
    try:
        value = parse_object(read_regular(path, 4_194_304), limit=4_194_304)
        reasons = value.get("reasons")
        if not isinstance(reasons, list) or not all(isinstance(r, dict) and r.keys() == keys for r in reasons):
            raise Malformed("no reasons in it")
    except (Malformed, OSError) as error:
        raise PromotionError(
            "promotion-unreadable",
            f"neither a verdict nor a reason's code: {error}",
            where=path,
            remedy="give the output of `promote check --json`, or a code such as blast.iam",
        ) from None
    return value  # type: ignore[return-value] # the layout was just checked


def refusal(code: str, what: str, *, where: str = "", remedy: str = "") -> PromotionError:
    """A PromotionError that exits like a refused change."""
    from ringfence.cli.main import REFUSED

    error = PromotionError(code, what, where=where, remedy=remedy)
    error.exit = REFUSED  # type: ignore[attr-defined] # main reads it
    return error
