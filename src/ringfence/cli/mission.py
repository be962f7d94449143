"""``ringfence mission``: start, list, show, diff, commit, discard, end. Asks the supervisor; prints what it says."""

import argparse
import datetime as dt
import json
import os
import re
import sys
import time

from ringfence.cli.text import escape, one_line
from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths

UNITS = {"m": 60, "h": 3600, "d": 86400}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest="action", metavar="VERB", required=True)
    start = verbs.add_parser("start", help="start a mission in this repository; prints its id")
    start.add_argument("--task", default="", help="what it is for, in words")
    start.add_argument("--agent", default="", help="which agent works on it; `when: {agent: …}` compares with this")
    start.add_argument("--commit", choices=("call", "end", "never"), default="call", help="when the commit gate opens")
    start.add_argument("--until", metavar="SPAN", help="no command runs in it after this: 30m, 4h, 2d")
    start.add_argument("--learn", metavar="SPAN", help="so long, let pass and log what only a default refuses")
    start.add_argument(
        "--host-port",
        type=int,
        action="append",
        default=[],
        metavar="N",
        help="a port of this host that boxes may reach",
    )
    start.add_argument(
        "--expose", type=int, action="append", default=[], metavar="N", help="a port of boxes that this host may reach"
    )
    for name, text in (
        ("list", "every mission"),
        ("show", "one mission"),
        ("end", "end it; held changes stay"),
        ("diff", "what it changed and did not reach the tree"),
    ):
        verb = verbs.add_parser(name, help=text)
        if name != "list":
            verb.add_argument("id", nargs="?", help="the mission (the one that runs in this repository otherwise)")
        if name == "diff":
            verb.add_argument("--stat", action="store_true", help="the paths alone")
    for name, text in (
        ("commit", "apply changes to the tree; named paths count as approved"),
        ("discard", "drop changes: the named paths, or all"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("id", help="the mission, or `-` for the one that runs in this repository")
        verb.add_argument("paths", nargs="*", default=[], help="paths below the repository's root")
        if name == "discard":
            verb.add_argument("--all", action="store_true", help="all of them")
    for verb in verbs.choices.values():
        verb.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """Carry out one verb. ``commit`` exits 10 when something is still held, 1 when something was refused."""
    payload: dict[str, object] = {"action": args.action, "cwd": os.path.realpath(os.getcwd())}
    if getattr(args, "id", None) not in {None, "-"}:
        payload["id"] = args.id
    if args.action == "start":
        payload |= {"task": args.task, "agent": args.agent, "commit": args.commit, "until": _until(args.until)}
        payload |= {"learning_until": _until(args.learn), "host_ports": args.host_port, "inbound": args.expose}
    if args.action == "discard" and not args.paths and not args.all:
        raise _usage("name the paths to drop, or say --all")
    if args.action in {"commit", "discard"}:
        payload["paths"] = args.paths
    answer = client.request(paths, "mission", payload, seconds=600, say=_say)
    if args.json:
        print(json.dumps(answer, indent=2))
    else:
        _print(args, answer)
    return _code(answer)


def _say(text: str) -> None:
    print(f"ringfence: {one_line(text)}", file=sys.stderr, flush=True)


def _print(args: argparse.Namespace, answer: dict[str, object]) -> None:
    if args.action == "start":
        print(answer["id"])
    elif args.action == "list":
        missions = answer["missions"]
        assert isinstance(missions, list)
        for one in missions:
            note = "  older than 7 days" if one["old"] else ""
            print(one_line(f"{one['id']}  {one['state']:10} {one['root']}  {one['task'] or one['agent']}{note}"))
    elif args.action == "diff":
        changes = answer["changes"]
        assert isinstance(changes, list)
        if args.stat:
            for change in changes:
                print(one_line(f"{change['kind']:9} {change['path']}"))
        else:
            print(escape(str(answer["text"])), end="")
    elif args.action == "discard":
        dropped = answer["discarded"]
        assert isinstance(dropped, list)
        for path in dropped:
            print(one_line(f"discarded {path}"))
    elif args.action == "commit":
        _print_gate(answer.get("gate"))
    else:
        for name, value in answer.items():
            if name != "gate":
                print(one_line(f"{name:14} {_shown(name, value)}"))
        _print_gate(answer.get("gate"))


def _shown(name: str, value: object) -> object:
    """An instant as a date, a flag as a word, a list without brackets, and nothing for what is not set."""
    if name in {"started", "until", "learning_until", "ended"} and isinstance(value, int):
        return dt.datetime.fromtimestamp(value / 1_000_000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _print_gate(gate: object) -> None:
    if not isinstance(gate, dict):
        return
    for word in ("committed", "held", "refused", "conflicts"):
        for item in gate[word]:
            because = f": {item['reason']}" if word != "committed" else ""
            print(one_line(f"{word:9} {item['path']}{because}"))
    history = gate.get("history")
    if isinstance(history, dict):
        for word in ("moved", "held", "refused", "conflicts"):
            for item in history[word]:
                because = f": {item['reason']}" if word != "moved" else ""
                print(one_line(f"{word:9} {item['name']}{because}"))


def _code(answer: dict[str, object]) -> int:
    gate = answer.get("gate")
    if not isinstance(gate, dict):
        return 0
    history = gate.get("history")
    both = (gate, history if isinstance(history, dict) else {})
    if any(part.get("refused") or part.get("conflicts") for part in both):
        return 1
    return 10 if any(part.get("held") for part in both) else 0


def _until(span: str | None) -> int:
    """The instant a span from now ends, in microseconds since the epoch; 0 for none."""
    if span is None:
        return 0
    match = re.fullmatch(r"([1-9][0-9]{0,4})([mhd])", span)
    if match is None:
        raise _usage(f"{span!r} is not a span; write 30m, 4h or 2d")
    return time.time_ns() // 1000 + int(match[1]) * UNITS[match[2]] * 1_000_000


def _usage(text: str) -> RingfenceError:
    error = RingfenceError("usage", text, remedy="see `ringfence mission --help`")
    error.exit = 2  # type: ignore[attr-defined]  # read by cli/main.py
    return error
