"""``ringfence teardown``: remove everything that boxes left; refuses to lose uncommitted work that was not named."""

import argparse
import json

from ringfence.cli.text import one_line
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths


def configure(parser: argparse.ArgumentParser) -> None:
    """``--discard MISSION``, ``--dry-run``, ``--json``."""
    parser.add_argument(
        "--discard", action="append", default=[], metavar="MISSION", help="give up this mission's uncommitted work"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be removed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace, paths: Paths) -> int:
    """0 when nothing of any box is left; 1 when something was refused or resisted."""
    wanted: dict[str, object] = {"discard": list(args.discard), "dry_run": bool(args.dry_run)}
    answer = client.request(paths, "teardown", wanted, seconds=300)
    if args.json:
        print(json.dumps(answer))
    else:
        _show(answer, dry_run=args.dry_run)
    return 1 if answer.get("left") or answer.get("refused") else 0


def _show(answer: dict[str, object], *, dry_run: bool) -> None:
    for key, word in (
        ("removed", "would remove" if dry_run else "removed"),
        ("left", "still there"),
        ("refused", "kept"),
    ):
        things = answer.get(key)
        for thing in things if isinstance(things, list) else []:
            print(f"{word}: {one_line(str(thing))}")
    if answer.get("refused"):
        print(
            "to give up that work: ringfence teardown --discard MISSION (or commit it first: ringfence mission commit)"
        )
    elif not answer.get("left"):
        print("nothing of any box is left" if not dry_run else "nothing else would be left")
