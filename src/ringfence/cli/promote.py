"""``ringfence promote``: the gate before an agent's change is reviewed. Parses, calls the promotion room, prints."""

import argparse
import json
import sys

from ringfence.model.ports import Recorder
from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """Subcommands of ``promote``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser("check", help="decide whether a change may go to review")
    _change_arguments(check)
    check.add_argument("--trust", metavar="DIR", help="issuers and keys, given out of band")
    check.add_argument(
        "--evidence", metavar="DIR", help="what the runs left behind; without it a dry run, never exit 0"
    )
    check.add_argument("--at", type=int, metavar="UNIX_TIME", help="verify as of that time instead of now")
    check.add_argument("--live", action="store_true", help="the token must also be unexpired")
    check.add_argument("--once", metavar="DIR", help="remember tokens there: one token vouches for one head")
    check.add_argument("--objects", action="append", default=[], metavar="DIR", help="a further object folder")
    check.add_argument("--sarif", metavar="FILE", help="also write the reasons as SARIF")
    check.add_argument("--annotations", action="store_true", help="print GitHub annotations")
    check.add_argument("--json", action="store_true", help="print the verdict as JSON")


def _change_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repo", default=".", metavar="R", help="the repository (default: here)")
    parser.add_argument("--base", required=True, metavar="B", help="target: a ref or full id")
    parser.add_argument("--head", required=True, metavar="H", help="the change: a ref or full id")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Exit code of the chosen action."""
    return {"check": _check}[args.action](args, paths)


def _check(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.promotion.check import check
    from ringfence.promotion.render import one_screen, to_annotations, to_sarif
    from ringfence.promotion.seen import TokenLog

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
    if args.annotations:
        print(to_annotations(verdict))
    print(json.dumps(verdict.to_json(), indent=2) if args.json else one_screen(verdict))
    return exit_code(verdict.outcome)


def exit_code(outcome: int) -> int:
    """The exit code of a verdict; a fault has none of these."""
    from ringfence.cli.main import ASKED, CLEAN, REFUSED, ROTATE

    return (CLEAN, ASKED, REFUSED, ROTATE)[outcome]


def recorder(paths: Paths) -> Recorder | None:
    """Where verdicts are recorded: nowhere until the supervisor offers its ledger to this command."""
    del paths
    return None


if __name__ == "__main__":
    sys.exit("run: ringfence promote")
