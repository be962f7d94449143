"""``ringfence ledger``: look at the ledger, verify it, export it, and ask the supervisor for what needs its one writer.

What only reads works without a supervisor and on a copy (``--ledger DIR``). What appends goes to the running
supervisor; where none runs, the ledger is opened here for as long as the verb takes.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringfence.cli import ledger_show, ledger_verify
from ringfence.cli.text import escape
from ringfence.model.errors import LedgerError, RingfenceError
from ringfence.model.ids import Micros
from ringfence.supervisor.paths import Paths

if TYPE_CHECKING:
    from ringfence.ledger.note import Checkpoint

CLEAN, ALTERED, NOT_PROVEN = 0, 12, 14
APPENDING = ("checkpoint", "anchor", "archive", "purge", "hold", "erase", "rotate-key", "retention")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of every verb."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="one JSON object, or one a line")
    common.add_argument("--ledger", metavar="DIR", help="another ledger's folder, for example an unpacked export")
    ledger_show.configure(verbs.add_parser("show", parents=[common], help="search and list entries"))
    _configure_reading(verbs, common)
    _configure_appending(verbs, common)


def _configure_reading(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    ledger_verify.configure(
        verbs.add_parser("verify", parents=[common], help="check that nothing was changed, and what proves it")
    )
    export = verbs.add_parser("export", parents=[common], help="take evidence elsewhere")
    export.add_argument(
        "--format",
        choices=("bundle", "ocsf", "cef", "csv", "in-toto"),
        default="bundle",
        help="bundle (the default) is the evidence, with its verifier; the others are views of it",
    )
    export.add_argument("--out", metavar="PATH", help="a new folder for a bundle; else a file, or standard output")
    export.add_argument("--mission", help="only this mission's entries")
    proof = verbs.add_parser("proof", parents=[common], help="inclusion or consistency proof")
    what = proof.add_mutually_exclusive_group(required=True)
    what.add_argument("--entry", type=int, metavar="N", help="that entry N is in the log")
    what.add_argument("--from", dest="old", type=int, metavar="SIZE", help="that the log of SIZE entries is a prefix")
    proof.add_argument("--size", type=int, help="of the log of so many entries; the whole log if not given")
    verbs.add_parser("lag", parents=[common], help="how far each anchor is behind")
    verbs.add_parser("rebuild-index", parents=[common], help="drop the search index and read the log again")


def _configure_appending(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    verbs.add_parser("checkpoint", parents=[common], help="sign the head now")
    anchor = verbs.add_parser("anchor", parents=[common], help="tell every anchor the head; or change the list")
    anchor.add_argument(
        "--add", action="append", default=[], metavar="ANCHOR", help="copy:DIR, git:LOCATION#REF, rfc3161:URL#ROOTS"
    )
    anchor.add_argument(
        "--remove",
        action="append",
        default=[],
        metavar="ANCHOR",
        help="no more this one; it is not asked, and that is recorded",
    )
    for name, text in (
        ("archive", "compress what is older than the operational class"),
        ("purge", "remove what is older than the compliance class"),
    ):
        verb = verbs.add_parser(name, parents=[common], help=text)
        verb.add_argument("--dry-run", action="store_true", help="only say what would go")
    hold = verbs.add_parser("hold", parents=[common], help="legal holds: nothing they cover is purged or erased")
    hold.add_argument("action", choices=("place", "list", "lift"), help="lifting needs two people")
    hold.add_argument("--id", help="the hold to lift")
    hold.add_argument("--mission", metavar="ID", help="every record of this mission")
    hold.add_argument("--subject", metavar="NAME", help="every record with personal data of this subject")
    hold.add_argument(
        "--since", type=ledger_show.instant, metavar="TIME", help="every record from then on, with --until"
    )
    hold.add_argument("--until", type=ledger_show.instant, metavar="TIME", help="every record up to then")
    hold.add_argument("--because", metavar="TEXT", help="the reason, as the case's number")
    erase = verbs.add_parser("erase", parents=[common], help="destroy personal data, and record that")
    erase.add_argument("--mission", metavar="ID", help="what this mission's records keep apart")
    erase.add_argument("--subject", metavar="NAME", help="what is kept apart of this subject")
    erase.add_argument("--ground", metavar="TEXT", help="the legal ground, as 'GDPR 17(1)(b)'")
    verbs.add_parser("rotate-key", parents=[common], help="change the signing key, destroy the old one")
    retention = verbs.add_parser("retention", parents=[common], help="days of the two classes, and who says so")
    retention.add_argument(
        "--operational-days", type=int, metavar="N", help="keep at hand longer than the organisation asks"
    )
    retention.add_argument(
        "--compliance-days", type=int, metavar="N", help="keep at all longer than the organisation asks"
    )


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Carry out one verb. Exit 12 where the ledger was altered, 14 where nothing outside proves it."""
    try:
        return _run(args, paths)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise LedgerError(
            "ledger-unreadable",
            f"a file cannot be read or written: {os.strerror(error.errno or 0)}",
            where=str(error.filename or ""),
            remedy="look at its permissions and at the disk",
        ) from error


def _run(args: argparse.Namespace, paths: Paths) -> int:
    directory = os.path.realpath(args.ledger) if args.ledger else paths.ledger
    if directory == os.path.realpath(paths.ledger):
        args.ledger = None  # our own, by its name
    if args.verb in APPENDING:
        return _append(args, paths, directory)
    reading: dict[str, Callable[[], int]] = {
        "verify": lambda: ledger_verify.run(args, paths, directory),
        "show": lambda: ledger_show.show(args, directory, trusted=not args.ledger),
        "export": lambda: _export(args, directory),
        "proof": lambda: _proof(args, directory),
        "lag": lambda: _lag(args, directory),
        "rebuild-index": lambda: _rebuild(args, directory),
    }
    return reading[args.verb]()


# -- reading ----------------------------------------------------------------------------------------------------------


def _export(args: argparse.Namespace, directory: str) -> int:
    from ringfence.ledger import export

    if args.format == "bundle":
        if not args.out:
            raise _usage("a bundle needs --out with a new folder", "ringfence ledger export --out DIR")
        if args.mission:
            raise _usage(
                "a bundle is the whole log: of one mission alone nothing could be verified",
                "leave --mission away, or take --format in-toto, which proves each entry of one mission",
            )
        heads, stamps = ({}, {}) if args.ledger else _anchored(directory)
        done = export.bundle(directory, os.path.realpath(args.out), anchored=heads, stamps=stamps)
        check = shlex.join(["python3", "-I", f"{args.out}/verify.py", args.out])
        print(
            json.dumps(done)
            if args.json
            else f"{done['records']} records in {escape(args.out)}; check with: {escape(check)}"
        )
        return CLEAN
    rows = export.rows(directory, args.format, mission=args.mission or "")
    if not args.out:
        for row in rows:
            print(row)
        return CLEAN
    export.write_rows(rows, args.out)
    return CLEAN


def _anchored(directory: str) -> tuple[dict[str, "Checkpoint"], dict[str, bytes]]:
    """Heads of this log and their time stamps by anchor, from the anchors that answer; of others it is told that they do not."""
    from ringfence.ledger import anchors, scan
    from ringfence.ledger.anchor_timestamp import TimestampAnchor

    files = scan.segments(directory)
    log = scan.header(files[-1]).log if files else ""
    found, stamps = {}, {}
    for anchor in anchors.configured(directory):
        try:
            if isinstance(anchor, TimestampAnchor):
                head, stamp = anchor.stamped().get(log, (None, b""))
            else:
                head, stamp = anchor.heads().get(log), b""
        except LedgerError as error:
            print(f"without the head of {escape(error.where or anchor.name)}: {escape(error.what)}", file=sys.stderr)
            continue
        if head is not None:
            found[anchor.name] = head
        if stamp:
            stamps[anchor.name] = stamp
    return found, stamps


def _proof(args: argparse.Namespace, directory: str) -> int:
    from ringfence.ledger import proof

    leaves = proof.leaves_of(directory)
    size = args.size or leaves.size
    found = (
        proof.inclusion(leaves, args.entry, size)
        if args.entry is not None
        else proof.consistency(leaves, args.old, size)
    )
    print(json.dumps(found, indent=None if args.json else 2))
    return CLEAN


def _lag(args: argparse.Namespace, directory: str) -> int:
    from ringfence.ledger import anchors
    from ringfence.ledger.space import space_of

    ledger_show.require(directory)
    rows = anchors.lag(directory, size=ledger_show.size_of(directory), now=_now())
    if args.json:
        print(
            json.dumps(
                [{"name": r.name, "size": r.size, "lag_records": r.lag_records, "lag_us": r.lag_us} for r in rows]
            )
        )
    else:
        for line in ledger_show.lag_lines(rows):
            print(line)
    warning = space_of(directory).warning
    if warning:
        print(f"warning: {warning}", file=sys.stderr if args.json else sys.stdout)
    return CLEAN if rows else NOT_PROVEN


def _rebuild(args: argparse.Namespace, directory: str) -> int:
    from ringfence.ledger.index import Index

    with Index(directory) as index:
        size = index.rebuild()
    print(json.dumps({"records": size}) if args.json else f"{size} records indexed")
    return CLEAN


# -- appending --------------------------------------------------------------------------------------------------------


def _append(args: argparse.Namespace, paths: Paths, directory: str) -> int:
    dropped = {"verb", "command", "json", "ledger", "test_root"}
    arguments = {
        name: value
        for name, value in vars(args).items()
        if name not in dropped and value is not None and value is not False and value != []
    }
    answer = _ask_supervisor(paths, args.verb, arguments) if not args.ledger else None
    if answer is None:
        answer = _perform_here(paths, directory, args.verb, arguments)
    if args.json:
        print(json.dumps(answer))
    else:
        print(escape(json.dumps(answer, indent=2, ensure_ascii=False)))
    return CLEAN


def _ask_supervisor(paths: Paths, verb: str, arguments: dict[str, object]) -> dict[str, object] | None:
    """The supervisor's answer, or None where no supervisor runs."""
    from ringfence.supervisor import client

    try:
        return client.request(paths, "ledger", {"action": verb, "arguments": arguments}, start=False, seconds=600)
    except RingfenceError as error:
        if error.code == "no-supervisor":
            return None
        raise


def _perform_here(paths: Paths, directory: str, verb: str, arguments: dict[str, object]) -> dict[str, object]:
    import pwd

    from ringfence.ledger import admin, anchors
    from ringfence.ledger.log import Ledger
    from ringfence.model.person import Person
    from ringfence.policy.store import PolicyStore
    from ringfence.supervisor.organisation import OrganisationPolicy

    ledger_show.require(directory)
    uid = os.getuid()
    person = Person(name=pwd.getpwuid(uid).pw_name, uid=uid, how="process")
    organisation = admin.NO_ORGANISATION
    if verb in admin.KEEPING:
        organisation = OrganisationPolicy(paths, PolicyStore(paths.policies)).retention()
    removed = arguments.get("remove")
    asked = None
    if isinstance(removed, list):  # an anchor that is to be taken away is not asked: it may be gone
        asked = [anchor for anchor in anchors.configured(directory) if anchor.name not in removed]
    with Ledger.open(directory, anchors=asked) as ledger:
        return dict(admin.perform(ledger, verb, arguments, by=person, organisation=organisation))


def _usage(what: str, remedy: str) -> LedgerError:
    error = LedgerError("usage", what, remedy=remedy)
    error.exit = 2  # type: ignore[attr-defined]  # read by cli/main.py
    return error


def _now() -> Micros:
    return Micros(time.time_ns() // 1000)
