"""Score the command evaluator on a case file: python bench/commands_score.py CASES.json [--list] [--json]

A case file holds small neutral policies, the workspace they speak about, and commands with their right answers
(``allow``, ``ask`` and ``deny`` are exact, ``not_allow`` takes ask or deny). The workspace is built on disk for every
distinct set-up, the policies are put into our YAML, and each command is judged as an agent's call would be.
"""

import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

from ringfence import Policy, ToolCall


def as_yaml(policy: dict) -> str:
    """Our policy text for a neutral one. JSON values are YAML values."""
    value = {
        "version": 1,
        "fail_closed": True,
        "working_tree": {"allowed_roots": policy["roots"]},
        "network": {"allow": policy["network"] != "off" and []},
        "process": {"env": {"assign": policy["safe_env"]}},
        "commands": {
            "default": "ask",
            **{tier: [{"argv_prefix": prefix} for prefix in policy[tier]] for tier in ("allow", "ask", "deny")},
            "aliases": policy["aliases"],
            "toolchains": policy["trusted_bin_dirs"],
        },
        "files": {"write": {"deny": policy["protected"]}},
    }
    return json.dumps(value)


def build(base: str, names: list[str], setup: list[dict]) -> str:
    """A workspace with every named file, a git repository and the set-up facts; returns its root."""
    root = os.path.join(base, "ws")
    os.makedirs(root)
    for name in names:
        name = name.split(" ")[0]
        if name.startswith(".git"):
            continue
        path = name.replace("{ROOT}", root) if name.startswith("{") else os.path.join(root, name)
        path = os.path.normpath(path) + ("/" if name.endswith("/") else "")
        os.makedirs(path if path.endswith("/") else os.path.dirname(path), exist_ok=True)
        if not path.endswith("/"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"content of {name}\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "one")
    for fact in setup:
        arrange(root, fact)
    return root


def arrange(root: str, fact: dict) -> None:
    if "symlink" in fact:
        path = os.path.join(root, fact["symlink"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(fact["to"], path)
    elif "file" in fact:
        path = os.path.join(root, fact["file"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("content\n")
    elif "bare_repo" in fact:
        git(root, "init", "-q", "--bare", fact["bare_repo"])
        for key, value in fact.get("config", {}).items():
            subprocess.run(
                ["git", "config", "-f", os.path.join(root, fact["bare_repo"], "config"), key, value], check=True
            )
    else:
        raise SystemExit(f"unknown set-up fact: {fact}")


def git(root: str, *words: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": root,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    subprocess.run(["git", "-C", root, *words], check=True, env=environment, stdout=subprocess.DEVNULL)


def right(expected: str, got: str) -> bool:
    return got in ("ask", "deny") if expected == "not_allow" else got == expected


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases")
    parser.add_argument("--list", action="store_true", help="show every wrong answer with its reasons")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with open(args.cases, encoding="utf-8") as file:
        data = json.load(file)
    table = collections.Counter()
    wrong = []
    base = tempfile.mkdtemp(prefix="score-", dir=os.path.expanduser("~"))
    try:
        for number, group in enumerate(grouped(data["cases"])):
            root = build(os.path.join(base, str(number)), data["workspace"], group[0].get("setup", []))
            for case in group:
                policy = Policy.parse(as_yaml(data["policies"][case["policy"]]), root=root)
                command = case["command"].replace("{ROOT}", root)
                decision = policy.decide(ToolCall.shell(command, cwd=case["cwd"]))
                got = decision.tier.word
                good = right(case["expect"], got)
                table[case["tier"], case["class"], good] += 1
                if not good:
                    reasons = [f"{r.rule}@{r.place.line}: {r.because}" for r in decision.deciding]
                    wrong.append({**case, "got": got, "reasons": reasons})
    finally:
        shutil.rmtree(base)
    show(table, wrong, args)
    return 1 if any(w["tier"] == "core" and w["class"] == "bypass" for w in wrong) else 0


def grouped(cases: list[dict]) -> list[list[dict]]:
    groups: dict[str, list[dict]] = {}
    for case in cases:
        groups.setdefault(json.dumps(case.get("setup", []), sort_keys=True), []).append(case)
    return list(groups.values())


def show(table: collections.Counter, wrong: list[dict], args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps({"wrong": wrong}, indent=1))
        return
    for tier in ("core", "stretch"):
        for kind in ("bypass", "false_denial"):
            good, bad = table[tier, kind, True], table[tier, kind, False]
            total = good + bad
            print(f"{tier:8} {kind:13} right {good:3} of {total:3}  {100 * good / total if total else 100:5.1f} %")
    let_through = [w for w in wrong if w["expect"] != "allow" and w["got"] == "allow"]
    print(
        f"let through {len(let_through)}, too soft or too strict a tier {sum(w['class'] == 'bypass' for w in wrong) - len(let_through)}"
    )
    if args.list:
        for w in wrong:
            print(f"\n{w['id']} {w['kind']} {w['tier']} {w['policy']}: expected {w['expect']}, got {w['got']}")
            print(f"  {w['command'][:300]!r}")
            for reason in w["reasons"]:
                print(f"    {reason[:200]}")


if __name__ == "__main__":
    sys.exit(main())
