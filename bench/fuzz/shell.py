"""Fuzz the reading of lines with atheris: python bench/fuzz/shell.py [-max_total_time=600] [CORPUS]

atheris is not installed by default (`pip install atheris`). Any exception is a finding: a line must end in an answer.
"""

import sys

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: pip install atheris")

with atheris.instrument_imports(include=["ringfence.shell"]):
    from ringfence.shell.parse import parse_argv, parse_line
    from ringfence.shell.programs import read_arguments


def one(data: bytes) -> None:
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        line = parse_line(provider.ConsumeUnicode(4000))
    else:
        line = parse_argv(tuple(provider.ConsumeUnicode(100) for _ in range(provider.ConsumeIntInRange(0, 12))))
    for command in line.commands:
        read_arguments(command)
    if len(line.redirections) != len(line.directories):
        raise AssertionError("a redirection without its directory")


atheris.Setup(sys.argv, one)
atheris.Fuzz()
