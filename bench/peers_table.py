"""Puts ringfence and its peers through the gauntlet, one after the other, and prints the tables of docs/security-results.md and docs/gauntlet-peers.md.

    python3 bench/peers_table.py --user NAME --at FOLDER --out FOLDER [--python PYTHON] [PEER…]

Started by root; everything runs as NAME. ``--at`` holds ``srt`` (npm) and ``venv`` (sandlock, nono-py); ``--python`` is
an interpreter with ringfence that NAME can read. The controls of the first run are taken for all.
"""

import argparse
import json
import os
import subprocess
import sys

MAIN = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = {"srt": "srt", "sandlock": "venv", "nono": "venv"}
ALL = ("bubblewrap", "firejail", "srt", "sandlock", "nono", "ringfence")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--user", required=True)
    options.add_argument("--at", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("peers", nargs="*", default=ALL)
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    first = None
    results = {}
    for peer in args.peers:
        path = f"{args.out}/{peer}.json"
        if not os.path.exists(path):
            one(peer, path, args, first)
        first = first or path
        with open(path, encoding="utf-8") as file:
            results[peer] = json.load(file)
    print(table(results))


def one(peer, path, args, first):
    words = [args.python, "-c", MAIN, "gauntlet", "--json", "--user", args.user]
    words += ["--controls", first] if first else []
    if peer != "ringfence":
        at = ["--at", f"{args.at}/{FOLDERS[peer]}"] if peer in FOLDERS else []
        words += ["--", "/usr/bin/python3", f"{HERE}/peers.py", peer, *at, "{worktree}", "--"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    if not done.stdout:
        sys.exit(f"{peer}: the gauntlet could not be run, see above")
    with open(f"{path}.new", "wb") as file:
        file.write(done.stdout)
    os.rename(f"{path}.new", path)


def table(results):
    families = list(dict.fromkeys(a["family"] for a in next(iter(results.values()))["attacks"]))
    lines = ["| family | attacks | " + " | ".join(results) + " |", "|---|---|" + "---|" * len(results)]
    for family in families:
        cells = [count(r["attacks"], family) for r in results.values()]
        works = sum(a["family"] == family and a["control"] == "passed" for a in next(iter(results.values()))["attacks"])
        lines.append(f"| {family} | {works} | " + " | ".join(cells) + " |")
    totals = [sum(a["outcome"] == "passed" for a in r["attacks"]) for r in results.values()]
    lines.append("| **passed in all** | | " + " | ".join(f"**{n}**" for n in totals) + " |")
    recorded = [
        sum(a["recorded"] and a["outcome"] in {"blocked", "private"} for a in r["attacks"]) for r in results.values()
    ]
    lines.append("| stopped and recorded | | " + " | ".join(map(str, recorded)) + " |")
    for family in families:
        lines += let_through(results, family)
    return "\n".join(lines)


def let_through(results, family):
    """One row an attack that got through anywhere, for docs/gauntlet-peers.md."""
    passed = {
        peer: {a["name"] for a in result["attacks"] if a["family"] == family and a["outcome"] == "passed"}
        for peer, result in results.items()
    }
    names = sorted(set().union(*passed.values()))
    if not names:
        return []
    rows = [
        f"| `{name}` | " + " | ".join("passed" if name in passed[p] else "-" for p in passed) + " |" for name in names
    ]
    return ["", f"## {family}", "", "| attack | " + " | ".join(passed) + " |", "|---|" + "---|" * len(passed), *rows]


def count(attacks, family):
    own = [a["outcome"] for a in attacks if a["family"] == family]
    passed = own.count("passed")
    return f"{passed} passed" if passed else "-"


if __name__ == "__main__":
    main()
