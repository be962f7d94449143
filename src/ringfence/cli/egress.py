"""``ringfence egress log``: every try to reach the network, from the ledger; one row a destination, or every line."""

import argparse
import datetime as dt
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ringfence.cli.text import escape
from ringfence.egress.record import ConnectionLog, from_body, from_observation
from ringfence.model.entry import EntryKind, Json
from ringfence.model.ids import Micros
from ringfence.model.tier import Tier
from ringfence.supervisor.paths import Paths

POLL_SECONDS = 0.5
HEADINGS = (
    "first seen",
    "verdict",
    "tries",
    "destination",
    "protocol",
    "via",
    "sent",
    "received",
    "rule",
    "how it ended",
    "program",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the subcommand."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    log = actions.add_parser("log", help="every connection tried, allowed or not")
    log.add_argument("--mission", default=None, help="of this mission only")
    log.add_argument("--host", default=None, help="to this host only")
    log.add_argument("--refused", action="store_true", help="only what did not go through")
    log.add_argument("--json", action="store_true", help="every line as one JSON object")
    log.add_argument("--follow", action="store_true", help="stay, and print lines as they come")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Exit 0; 12 where the ledger was altered."""
    lines = (line for line in _lines(paths.ledger, args) if _wanted(line, args))
    if args.json or args.follow:
        for line in lines:
            if args.json:
                print(json.dumps(_fields(line), ensure_ascii=True), flush=args.follow)
            elif line.stage != "decided" or args.follow:
                print("  ".join(_row(line)), flush=args.follow)
        return 0
    rows = [HEADINGS, *(_row(line) for line in summed(lines))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if len(rows) == 1:
        print("-- no connection was tried that fits", file=sys.stderr)
    for number, row in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(f"\x1b[1m{text}\x1b[0m" if color and not number else text)
    return 0


def summed(lines: Iterator[ConnectionLog]) -> list[ConnectionLog]:
    """One line for each destination, verdict and rule, with exact counts; those still open count as no try yet."""
    found: dict[tuple[object, ...], ConnectionLog] = {}
    opened: dict[tuple[object, ...], ConnectionLog] = {}
    for line in lines:
        kind = (line.mission, line.host, line.port, line.entry, line.tier, line.rule)
        if line.stage == "decided":
            opened.setdefault(kind, replace(line, outcome="open"))
            continue
        opened.pop(kind, None)
        key = (*kind, line.protocol, line.outcome)
        before = found.get(key)
        found[key] = (
            line
            if before is None
            else replace(
                before,
                count=before.count + line.count,
                sent=before.sent + line.sent,
                received=before.received + line.received,
                duration=Micros(before.duration + line.duration),
                programs=before.programs or line.programs,
                address=before.address or line.address,
            )
        )
    return sorted([*found.values(), *opened.values()], key=lambda line: line.time)


def _lines(directory: str, args: argparse.Namespace) -> Iterator[ConnectionLog]:
    """Egress records in order; with ``--follow`` it waits for more."""
    from ringfence.ledger import scan

    seq = 0
    while True:
        for stored in scan.records(directory, seq):
            seq = stored.seq + 1
            yield from _of_record(stored.value)
        if not args.follow:
            return
        time.sleep(POLL_SECONDS)


def _of_record(value: Mapping[str, Json]) -> Iterator[ConnectionLog]:
    """The lines of one record: an egress record's own, or the tries that a box without a network was seen to make."""
    body = value.get("body")
    fields = body if isinstance(body, dict) else {}
    time, mission, call = int(str(value.get("time", 0))), str(value.get("mission", "")), str(value.get("call", ""))
    if value.get("kind") == EntryKind.EGRESS.value:
        yield from_body(fields, time=time, mission=mission, call=call)
    elif value.get("kind") == EntryKind.RESULT.value:
        observations = fields.get("observations")
        for seen in observations if isinstance(observations, list) else ():
            if isinstance(seen, dict):
                line = from_observation(
                    str(seen.get("kind")),
                    str(seen.get("detail")),
                    count=int(str(seen.get("count", 1))),
                    time=time,
                    mission=mission,
                    call=call,
                )
                if line is not None:
                    yield line


def _wanted(line: ConnectionLog, args: argparse.Namespace) -> bool:
    if args.mission is not None and line.mission != args.mission:
        return False
    if args.host is not None and line.host != args.host:
        return False
    return not args.refused or (line.stage != "decided" and (line.tier is Tier.DENY or line.outcome == "refused"))


def _fields(line: ConnectionLog) -> dict[str, object]:
    entry = line.entry_of()
    return {"time": line.time, "mission": line.mission, "call": line.call, **entry.body}


def _row(line: ConnectionLog) -> tuple[str, ...]:
    moment = dt.datetime.fromtimestamp(line.time / 1_000_000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    host = f"[{line.host}]" if ":" in line.host else line.host
    address = f" ({line.address})" if line.address and line.address != line.host else ""
    marks = "".join(f" [{flag}]" for flag in line.flags)
    cells = (
        moment,
        line.tier.word + (" (ALERT)" if line.violation else ""),
        str(line.count),
        f"{host}:{line.port}{address}",
        line.protocol,
        line.entry,
        _size(line.sent),
        _size(line.received),
        line.rule,
        (line.outcome or line.stage) + marks,
        " < ".join(line.programs) or "-",
    )
    return tuple(escape(cell, keep=frozenset(" ")) for cell in cells)


def _size(count: int) -> str:
    """Bytes with a binary unit."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
