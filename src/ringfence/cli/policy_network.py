"""``ringfence policy presets | suggest | reload``: network presets and their pinned hosts, rules from a learning mission."""

import argparse
import datetime as dt
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator

from ringfence.cli.text import escape
from ringfence.egress.record import ConnectionLog, from_body
from ringfence.model.entry import EntryKind
from ringfence.model.errors import RingfenceError
from ringfence.supervisor.paths import Paths, make_private


def configure(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The parsers of these verbs."""
    presets = verbs.add_parser("presets", help="list the presets, show one, or pin the file hosts of package indexes")
    presets.add_argument("name", nargs="?", default="list", help="a preset, `list` (the default), or `lock`")
    presets.add_argument("--accept-new", action="store_true", help="with `lock`: pin hosts that appeared since as well")
    presets.add_argument("--json", action="store_true", help="print JSON")
    suggest = verbs.add_parser("suggest", help="the narrowest rules for what missions tried, as a diff to review")
    suggest.add_argument("--network", action="store_true", required=True, help="from the egress log")
    suggest.add_argument("--mission", metavar="ID", help="the learning mission (the newest one with tries otherwise)")
    suggest.add_argument("--warm", metavar="ID", help="a second mission, with warm caches, to compare with")
    suggest.add_argument("--json", action="store_true", help="print JSON")
    reload = verbs.add_parser("reload", help="put the policy as it is now into force in a running mission; recorded")
    reload.add_argument("--mission", metavar="ID", help="the mission (the one that runs in this repository otherwise)")


def run_presets(args: argparse.Namespace, paths: Paths) -> int:
    """List, show or lock."""
    if args.name == "lock":
        return _lock(args, paths)
    if args.name == "list":
        return _list(as_json=args.json)
    from ringfence.policy.presets import NAMES, preset_text

    if args.name in NAMES:
        text = preset_text(args.name)
        print(json.dumps({"name": args.name, "text": text}, indent=2) if args.json else text.rstrip("\n"))
        return 0
    return _show(args.name, paths, as_json=args.json)


def run_suggest(args: argparse.Namespace, paths: Paths) -> int:
    """Print the proposal as a diff of the policy; what was left out, and why, goes to standard error."""
    from ringfence.egress.learning import suggest_network
    from ringfence.egress.presets.clients import read_indexes
    from ringfence.policy.in_force import find_policy

    logs = _by_mission(paths.ledger)
    mission = args.mission or (list(logs)[-1] if logs else None)
    if mission is None or mission not in logs:
        raise RingfenceError(
            "nothing-learned", "no mission has tried to reach the network", remedy="ringfence mission start --learn 1h"
        )
    proposal = suggest_network(logs[mission], logs.get(args.warm or "", ()), indexes=read_indexes())
    if args.json:
        rules = [{"preset": r.preset, "host": r.host, "ports": list(r.ports), "tries": r.tries} for r in proposal.rules]
        print(
            json.dumps(
                {"mission": mission, "rules": rules, "left_out": proposal.left_out, "notes": proposal.notes}, indent=2
            )
        )
        return 0
    with open(find_policy(os.getcwd()), encoding="utf-8") as file:
        print(escape(proposal.diff(file.read())), end="")
    for what, why in proposal.left_out:
        print(escape(f"left out: {what}: {why}"), file=sys.stderr)
    for note in proposal.notes:
        print(escape(f"note: {note}"), file=sys.stderr)
    return 0


def run_reload(args: argparse.Namespace, paths: Paths) -> int:
    """Ask the supervisor; the repository's policy must be trusted as it is now."""
    from ringfence.supervisor import client

    payload: dict[str, object] = {"action": "reload", "cwd": os.path.realpath(os.getcwd())}
    if args.mission:
        payload["id"] = args.mission
    answer = client.request(paths, "mission", payload)
    print(f"mission {answer['id']}: policy {str(answer['before'])[:16]} -> {str(answer['policy_digest'])[:16]}")
    return 0


def host_findings(hosts: Iterable[tuple[str, tuple[int, ...]]]) -> tuple[str, ...]:
    """What is wrong with the hosts that a policy allows: dangerous classes, odd ports, moved names, too many."""
    from ringfence.egress.learning import lint_rules
    from ringfence.egress.presets import HostRule
    from ringfence.model.tier import Tier

    return lint_rules(HostRule(preset="", tier=Tier.ALLOW, host=host, ports=ports or (443,)) for host, ports in hosts)


def _list(*, as_json: bool) -> int:
    from ringfence.egress.presets import presets_list
    from ringfence.policy.presets import NAMES, load_preset

    commands = [(name, load_preset(name)) for name in NAMES]
    if as_json:
        rows = [
            {"name": p.name, "title": p.title, "version": p.version, "reviewed": str(p.reviewed)}
            for p in presets_list()
        ]
        print(json.dumps({"commands": [name for name, _ in commands], "network": rows}, indent=2))
        return 0
    print("for `extends:` (commands, files)")
    for name, document in commands:
        print(f"  {name:18} version {document.file.partition('@')[2]:>2}   {len(document.commands)} command rules")
    print("for `network: {allow: [{preset: …}]}`")
    for preset in presets_list():
        print(f"  {preset.name:18} version {preset.version:>2}   reviewed {preset.reviewed}   {preset.title}")
    return 0


def _show(name: str, paths: Paths, *, as_json: bool) -> int:
    from ringfence.egress.presets import expand, find
    from ringfence.egress.presets.clients import read_indexes
    from ringfence.egress.presets.lock import read_lock

    preset = find(name)
    expansion = expand(name, read_indexes() if preset.client else (), pinned=read_lock(_lock_file(paths)).pinned)
    rows = [
        {"tier": r.tier.word, "host": r.host, "ports": list(r.ports), "because": r.because} for r in expansion.rules
    ]
    if as_json:
        print(
            json.dumps(
                {"name": name, "title": preset.title, "risk": preset.risk, "rules": rows, "notes": expansion.notes},
                indent=2,
            )
        )
        return 0
    print(f"{name}: {preset.title}\nrisk: {preset.risk}")
    for row in rows:
        print(escape(f"  {row['tier']:5} {row['host']}  {row['ports']}  {row['because']}"))
    for note in expansion.notes:
        print(escape(f"  note: {note}"))
    return 0


def _lock(args: argparse.Namespace, paths: Paths) -> int:
    from ringfence.egress.presets.clients import read_indexes
    from ringfence.egress.presets.lock import presets_lock, read_lock, write_lock

    path = _lock_file(paths)
    make_private(paths.state)
    today = dt.datetime.fromtimestamp(time.time(), dt.UTC).date().isoformat()
    lock, told = presets_lock(read_indexes(), today=today, before=read_lock(path), accept_new=args.accept_new)
    write_lock(path, lock)
    if args.json:
        pins = [{"preset": p.preset, "index": p.index, "hosts": list(p.hosts), "date": p.date} for p in lock.pinned]
        print(json.dumps({"pinned": pins}, indent=2))
    for pin in () if args.json else lock.pinned:
        print(escape(f"{pin.preset:6} {pin.index}: {', '.join(pin.hosts)}  (pinned {pin.date})"))
    for line in told:
        print(escape(line), file=sys.stderr)
    return 1 if told else 0


def _lock_file(paths: Paths) -> str:
    return f"{paths.state}/presets.lock"


def _by_mission(directory: str) -> dict[str, list[ConnectionLog]]:
    found: dict[str, list[ConnectionLog]] = {}
    for line in _tries(directory):
        found.setdefault(line.mission, []).append(line)
    return found


def _tries(directory: str) -> Iterator[ConnectionLog]:
    from ringfence.ledger import scan

    for stored in scan.records(directory, 0):
        value = stored.value
        if value.get("kind") == EntryKind.EGRESS.value:
            body = value.get("body")
            yield from_body(
                body if isinstance(body, dict) else {},
                time=int(str(value.get("time", 0))),
                mission=str(value.get("mission", "")),
                call=str(value.get("call", "")),
            )
