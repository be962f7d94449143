"""``ringfence ledger show``: search, page, follow; one line an entry for people, one JSON object for programs."""

import argparse
import datetime as dt
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ringfence.cli.text import escape
from ringfence.ledger import scan
from ringfence.ledger.described import is_violation, part, readable, request_text, rules_of, told
from ringfence.ledger.verdict import AnchorStatus
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

if TYPE_CHECKING:
    from ringfence.ledger.index import Index, Query

SHOWN_TRIES = 3
"""Of what a box was denied, in one line; `--json` has all of it."""
_KINDS = [kind.value for kind in EntryKind]


def configure(parser: argparse.ArgumentParser) -> None:
    """Filters; everything given must hold."""
    parser.add_argument(
        "--kind", action="append", default=[], choices=_KINDS, metavar="KIND", help="as tool.intent; may be given again"
    )
    parser.add_argument("--mission", metavar="ID", help="of this mission")
    parser.add_argument("--call", metavar="ID", help="of this call")
    parser.add_argument("--tier", choices=("allow", "ask", "deny"), help="decided so")
    parser.add_argument("--rule", metavar="ID", help="decided by this rule")
    parser.add_argument("--program", metavar="NAME", help="of this program")
    parser.add_argument("--path", help="a file, or a folder and all below it; a relative one is below where you are")
    parser.add_argument("--host", metavar="NAME", help="about this destination")
    parser.add_argument("--tool", help="SERVER/TOOL")
    parser.add_argument("--agent", metavar="NAME", help="of missions of this agent")
    parser.add_argument("--text", help="words that must all be there")
    parser.add_argument("--violations", action="store_true", help="only entries that saw a violation")
    parser.add_argument(
        "--since",
        type=instant,
        metavar="TIME",
        help="2026-01-31, 2026-01-31T12:00 (your own time; a Z behind it: UTC, as is shown), 90m, 24h, 7d",
    )
    parser.add_argument("--until", type=instant, metavar="TIME", help="up to that time")
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="at most so many entries (50)")
    parser.add_argument("--before", type=count, metavar="N", help="entries before number N: the next page")
    parser.add_argument("--follow", action="store_true", help="go on with new entries until interrupted")


def count(text: str) -> int:
    """A number of entries, from 1 on."""
    if not re.fullmatch(r"[1-9][0-9]{0,15}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of entries")
    return int(text)


def instant(text: str) -> int:
    """Microseconds of a date, a time, or an age such as 90m, 24h, 7d."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    try:
        if re.fullmatch(r"[0-9]{1,9}[smhd]", text):
            return max(0, time.time_ns() // 1000 - int(text[:-1]) * units[text[-1]] * 1_000_000)
        moment = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 2026-01-31, 2026-01-31T12:00 or 24h") from None
    return int(moment.timestamp() * 1_000_000)


def show(args: argparse.Namespace, directory: str, *, trusted: bool = True) -> int:
    """List what the filters find, newest last; with ``--follow`` go on. ``trusted``: the folder is our own."""
    from ringfence.ledger.index import Query

    query = Query(
        kinds=tuple(args.kind),
        mission=args.mission or "",
        call=args.call or "",
        tier=args.tier or "",
        rule=args.rule or "",
        program=args.program or "",
        path=os.path.abspath(args.path) if args.path else "",  # records hold whole paths
        host=args.host or "",
        tool=args.tool or "",
        agent=args.agent or "",
        since=args.since or 0,
        until=args.until or 0,
        text=args.text or "",
        violations=args.violations,
        before=-1 if args.before is None else args.before,
    )
    require(directory)
    with _index(directory, trusted=trusted) as index:
        last = index.catch_up() - 1
        page = index.search(query, limit=args.limit)
        _print(index.read(tuple(reversed(page.seqs))), as_json=args.json)
        if not page.seqs and not args.json:
            print("-- no entry fits", file=sys.stderr)
        if page.more and not args.json:
            print(f"-- older: --before {page.seqs[-1]}", file=sys.stderr)
        if not args.json:
            _print_lag(directory)
        if args.follow:
            _follow(index, query, last, as_json=args.json)
    return 0


def require(directory: str) -> None:
    """Raise LedgerError where there is no ledger."""
    if not scan.segments(directory):
        raise LedgerError(
            "ledger-missing",
            "there is no ledger here",
            where=directory,
            remedy="run something first: `ringfence run -- true`",
        )


def _index(directory: str, *, trusted: bool = True) -> "Index":
    """The index, with all that the log has; in memory where its file cannot be written (a full disk).

    Also in memory for a folder that came from elsewhere: an index that lies there could hide what the log holds.
    """
    from ringfence.ledger.index import Index

    if not trusted:
        return _caught_up(Index(directory, path=":memory:"))
    try:
        return _caught_up(Index(directory))
    except OSError:
        return _caught_up(Index(directory, path=":memory:"))
    except LedgerError as error:
        if error.code != "index-unusable":
            raise
        return _caught_up(Index(directory, path=":memory:"))


def _caught_up(index: "Index") -> "Index":
    try:
        index.catch_up()
    except BaseException:
        index.close()
        raise
    return index


def _follow(index: "Index", query: "Query", last: int, *, as_json: bool) -> None:
    import dataclasses

    while True:
        time.sleep(0.3)
        if index.catch_up() <= last:  # another ledger was begun in the place of this one
            last = -1
        page = index.search(dataclasses.replace(query, after=last, before=-1, newest_first=False), limit=1000)
        if page.seqs:
            _print(index.read(page.seqs), as_json=as_json)
            last = page.seqs[-1]


def _print(records: Iterable[scan.Stored], *, as_json: bool) -> None:
    spelled = sys.stdout.isatty()
    for record in records:
        stored = record.line.decode("utf-8", "replace").rstrip("\n") if as_json else line(record.value)
        print(_escaped_json(stored) if as_json and spelled else stored, flush=True)


def _escaped_json(text: str) -> str:
    """The same JSON, with what a terminal would obey or hide spelled out."""
    if text.isascii():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def line(record: Mapping[str, Json]) -> str:
    """One entry for a person."""
    moment = dt.datetime.fromtimestamp(int(str(record["time"])) / 1e6, dt.UTC)
    stamp = moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"  # as --since takes it
    body = record.get("body")
    fields = body if isinstance(body, dict) else {}
    parts = [
        f"{record.get('seq'):>7}",
        stamp,
        f"{record.get('kind')!s:<16}",
        str(record.get("mission", "-")),
        _says(fields),
    ]
    return escape("  ".join(parts), keep=frozenset(" "))


def _says(fields: Mapping[str, Json]) -> str:
    decision = fields.get("decision")
    if isinstance(decision, dict):
        rules = ", ".join(dict.fromkeys(rules_of(fields)))
        return f"{str(decision.get('tier')).upper():<5} {_request(fields)}  [{rules}]"
    if "fault" in fields:
        return f"fault {fields['fault']}"
    if "exit" in fields or "signal" in fields or "controls" in fields:
        ended = f", ended by the fence: {fields['ended_by']}" if fields.get("ended_by") else ""
        how = f"signal {fields['signal']}" if fields.get("signal") is not None else f"exit {fields.get('exit')}"
        took = fields.get("duration", 0)
        seen = _seen(fields)
        return f"{how}{ended}, {took / 1e6:.3f} s{seen}" if isinstance(took, int) else f"{how}{ended}{seen}"
    gate = fields.get("gate")
    if isinstance(gate, dict) and isinstance(committed := gate.get("committed"), list):
        return f"committed {len(committed)} in {readable(fields.get('root', '?'))}{_seen(fields)}"
    return _shortened(json.dumps(fields, ensure_ascii=False, sort_keys=True), 200)


def _seen(fields: Mapping[str, Json]) -> str:
    """What was denied, and whether that is a violation; the first few of it."""
    words = told(fields)
    listed = ", ".join(_shortened(word, 160) for word in words[:SHOWN_TRIES])
    more = f" and {len(words) - SHOWN_TRIES} more" if len(words) > SHOWN_TRIES else ""
    return f"{', violation' if is_violation(fields) else ''}{f': {listed}{more}' if words else ''}"


def _request(fields: Mapping[str, Json]) -> str:
    request = part(fields, "request")
    action = f"{request['action']} " if "action" in request else ""
    port = f":{request.get('port')}" if "host" in request else ""
    return _shortened(f"{action}{request_text(fields) or '?'}{port}", 160)


def _shortened(text: str, most: int) -> str:
    """A long text with its end, which may be the part that matters."""
    return text if len(text) <= most else f"{text[: most - 65]} ... {text[-60:]}"


def size_of(directory: str) -> int:
    """Committed records of a log."""
    last = 0
    files = scan.segments(directory)
    for record in scan.records(directory, files[-1].first if files else 0):
        last = record.seq + 1
    return last or (files[-1].first if files else 0)


def _print_lag(directory: str) -> None:
    from ringfence.ledger import anchors

    for text in lag_lines(anchors.lag(directory, size=size_of(directory), now=Micros(time.time_ns() // 1000))):
        print(f"-- {text}", file=sys.stderr)


def standing(directory: str) -> list[str]:
    """How the ledger stands, for a person: how far each anchor is behind, and whether its disk fills up."""
    from ringfence.ledger import anchors
    from ringfence.ledger.space import space_of

    try:
        if not scan.segments(directory):
            return ["there is none yet; the next command makes it"]
        rows = anchors.lag(directory, size=size_of(directory), now=Micros(time.time_ns() // 1000))
        warning = space_of(directory).warning
        return [*lag_lines(rows), *([f"warning: {warning}"] if warning else [])]
    except LedgerError as error:
        return [escape(f"{error.code}: {error.what} ({error.where})")]
    except OSError as error:
        return [escape(f"it cannot be read: {error.strerror} ({error.filename})")]


def lag_lines(rows: Iterable[AnchorStatus]) -> list[str]:
    """How far each anchor is behind, for a person."""
    found = [
        f"anchor {escape(r.name)}: "
        + (
            f"{r.lag_records} records behind, the oldest for {r.lag_us / 1e6:.0f} s"
            if r.lag_records
            else "covers everything"
        )
        for r in rows
    ]
    return found or [
        "no anchor: the end of this log could be cut off unseen; add one with `ringfence ledger anchor --add`"
    ]
