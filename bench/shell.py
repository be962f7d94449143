"""Times reading lines, in processor time: python bench/shell.py

Prints the median of reading a line and of reading all arguments with the program tables, and the growth with length.
"""

import functools
import statistics
import time

from ringfence.shell.parse import parse_line
from ringfence.shell.programs import read_arguments
from ringfence.shell.syntax import SimpleCommand

LINES = {
    "git status": "git status",
    "cd and pipe": "cd src && npm test 2>&1 | tail -30",
    "quoted": "rg -n 'a|b' src",
    "ten in a pipe": " | ".join(["grep -n foo src/a.py"] * 10),
    "ten different": "cat f | sort -u | uniq -c | sort -rn | head -5 | awk '{print $1}' | sed -n 1p | tr a b | cut -c1-5 | wc -l",
    "commit message": "git commit -m \"$(cat <<'EOF'\nfix: x\n\nbody\nEOF\n)\"",
    "loop": 'for f in a.py b.py; do echo "== $f"; grep -n x "$f" 2>/dev/null | head -3; done',
}
REPEATED = ("ls;", "a b ", "((", "$(", "{a,b}", "x=$y;", "eval eval ", "<<A\n", "cd a;", "sudo ")


def median(work, rounds: int = 400) -> float:
    times = []
    for _ in range(rounds):
        begin = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - begin)
    return statistics.median(times) / 1000


def read_all(commands: tuple[SimpleCommand, ...]) -> None:
    for command in commands:
        read_arguments(command)


def main() -> None:
    print(f"{'line':16} {'read, µs':>10} {'tables, µs':>11}")
    for name, line in LINES.items():
        commands = parse_line(line).commands
        reading = median(functools.partial(parse_line, line))
        tables = median(functools.partial(read_all, commands))
        print(f"{name:16} {reading:10.1f} {tables:11.1f}")
    print(f"\n{'repeated':14} {'250 kB, s':>10} {'1 MB, s':>10}")
    for unit in REPEATED:
        taken = []
        for size in (250_000, 1_000_000):
            begin = time.process_time()
            parse_line(unit * (size // len(unit)))
            taken.append(time.process_time() - begin)
        print(f"{unit!r:14} {taken[0]:10.2f} {taken[1]:10.2f}")


if __name__ == "__main__":
    main()
