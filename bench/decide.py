"""Time of deciding and of loading: python bench/decide.py

Every number is over calls that differ, so that no memory of an earlier line helps; PathFacts are gathered outside the
clock and counted apart. Printed in microseconds (p50 and p95), with the commit and the machine.
"""

import gc
import os
import platform
import statistics
import subprocess
import tempfile
import time

from ringfence import Policy, ToolCall
from ringfence.policy.facts import gather
from ringfence.policy.prepare import _remembered

clock = time.thread_time_ns  # this thread's own time: what a busy machine adds is not ours
SMALL = os.path.join(os.path.dirname(__file__), "..", "examples", "sandbox_policy.yaml")


def policy_text(rules: int) -> str:
    lines = ["version: 1", "fail_closed: true", "commands:", "  default: deny", "  allow:"]
    lines += [
        f'    - argv_prefix: ["{name}"]'
        for name in ("ls", "cat", "grep", "head", "sort", "uniq", "wc", "tail", "cut", "tr")
    ]
    lines += [f'    - argv_prefix: ["prog{n}", "sub{n % 17}"]' for n in range(rules - 10)]
    return "\n".join(lines)


def timed(policy: Policy, lines: list[str], *, cold: bool = True) -> tuple[list[float], list[float]]:
    """Taking apart and judging, both cold; facts gathered between the clocks."""
    deciding, looking = [], []
    gc.collect()
    gc.freeze()
    for line in lines:
        call = ToolCall.shell(line, cwd=policy.root)
        questions = policy.questions(call)
        start = clock()
        facts = gather(questions, call, root=policy.root)
        middle = clock()
        if cold:
            _remembered.cache_clear()
            middle = clock()
        policy.decide_with(call, facts)
        end = clock()
        looking.append((middle - start) / 1000)
        deciding.append((end - middle) / 1000)
    return deciding, looking


def row(name: str, values: list[float]) -> None:
    values = sorted(values)
    print(f"{name:44} p50 {statistics.median(values):9.1f} µs   p95 {values[int(len(values) * 0.95)]:9.1f} µs")


def main() -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    print(f"commit {commit}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder, open(SMALL, encoding="utf-8") as file:
        example = Policy.parse(file.read(), root=folder)
        simple = [f"git status --short dir{n}" for n in range(4000)]
        timed(example, simple[:500])
        decided, looked = timed(example, simple[500:])
        row("simple command, example policy", decided)
        row("  its PathFacts", looked)
        decided, _ = timed(example, simple[500:], cold=False)
        row("  judged alone, the questions just asked", decided)
        simple = [f"ls -la dir{n}" for n in range(3000)]
        pipes = [
            " | ".join(
                [
                    f"cat file{n}",
                    "grep -v x",
                    "sort",
                    "uniq -c",
                    "sort -rn",
                    "head -n 20",
                    "cut -c 1-80",
                    "tr a b",
                    "tail -n 5",
                    "wc -l",
                ]
            )
            for n in range(1000)
        ]
        medians = {}
        for rules in (10, 1000):
            policy = Policy.parse(policy_text(rules), root=folder)
            timed(policy, simple[:300])
            decided, _ = timed(policy, simple[300:])
            medians[rules] = statistics.median(decided)
            row(f"simple command, {rules} rules", decided)
            decided, looked = timed(policy, pipes)
            row(f"ten-part pipeline, {rules} rules", decided)
        print(f"growth from 10 to 1,000 rules: {medians[1000] / medians[10]:.2f} ×")
        text = policy_text(1000)
        loads = []
        for _ in range(30):
            start = clock()
            Policy.parse(text, root=folder)
            loads.append((clock() - start) / 1000)
        row("load a policy with 1,000 rules", loads)
        huge = "ls " + "a" * 1_000_000
        many = "ls; " * 250_000
        for name, line in (
            ("one word of 1 MB", huge),
            ("250,000 commands in 1 MB", many),
            ("1 MB of quotes", '"' * 1_000_000),
        ):
            start = time.perf_counter()
            tier = policy.decide(ToolCall.shell(line)).tier
            print(f"{name:44} {tier.name:5} {time.perf_counter() - start:7.2f} s")


if __name__ == "__main__":
    main()
