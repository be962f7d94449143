"""Classic BPF for seccomp: an assembler that counts jumps from labels, and a simulator to prove what it made. Pure.

A jump count wrong by one turns every system call into the wrong answer and shows only as a crash, so counts are never
written by hand.
"""

import struct
from collections.abc import Sequence

LOAD, EQUAL, AT_LEAST, ANY_BIT, AND, GOTO, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x05, 0x06
NUMBER, ARCH, ARGUMENTS = 0, 4, 16
"""Offsets in ``struct seccomp_data``."""

KILL, NOTIFY, ALLOW, ERRNO = 0x80000000, 0x7FC00000, 0x7FFF0000, 0x00050000
FAR = 255

Line = tuple[str, int, str, str]
"""Operation, operand, label if true, label if false; an empty label is the next line."""


class Program:
    """Lines and labels, assembled when complete."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, str, str]] = []
        self.labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """Give the next line a name. A name may be given once."""
        if name in self.labels:
            raise ValueError(f"label {name} twice")
        self.labels[name] = len(self.lines)

    def load(self, offset: int) -> None:
        """Load a 32-bit word of seccomp_data."""
        self.lines.append((LOAD, offset, "", ""))

    def mask(self, bits: int) -> None:
        """Keep these bits of what was loaded."""
        self.lines.append((AND, bits, "", ""))

    def test(self, operation: int, operand: int, *, yes: str = "", no: str = "") -> None:
        """Compare what was loaded and go on at a label; an empty one is the next line."""
        self.lines.append((operation, operand, yes, no))

    def when(self, operation: int, operand: int, name: str) -> None:
        """Where that holds of what was loaded, go on at a label, however far."""
        here = f"line {len(self.lines) + 2}"
        self.test(operation, operand, no=here)
        self.goto(name)
        self.label(here)

    def goto(self, name: str) -> None:
        """Go on at a label, however far."""
        self.lines.append((GOTO, 0, name, ""))

    def answer(self, action: int) -> None:
        """End with this action."""
        self.lines.append((RETURN, action & 0xFFFFFFFF, "", ""))

    def assemble(self) -> bytes:
        """``struct sock_filter`` array. Raises ValueError for a missing label, a jump back, or one too far."""
        out = []
        for index, (operation, operand, yes, no) in enumerate(self.lines):
            if operation == GOTO:
                out.append(struct.pack("=HBBI", operation, 0, 0, self._distance(index, yes)))
                continue
            jumps = (self._distance(index, yes), self._distance(index, no))
            if max(jumps) > FAR:
                raise ValueError(f"line {index}: a conditional jump reaches {FAR} lines at most")
            out.append(struct.pack("=HBBI", operation, *jumps, operand))
        return b"".join(out)

    def _distance(self, index: int, name: str) -> int:
        if not name:
            return 0
        if name not in self.labels:
            raise ValueError(f"no label {name}")
        distance = self.labels[name] - index - 1
        if distance < 0:
            raise ValueError(f"label {name} lies behind line {index}")
        return distance


def simulate(program: bytes, *, number: int, arch: int, arguments: Sequence[int] = ()) -> int:
    """The action the kernel would take for one system call."""
    words = [number & 0xFFFFFFFF, arch, 0, 0]
    for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]:
        words += [value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF]
    lines = list(struct.iter_unpack("=HBBI", program))
    accumulator = position = 0
    while True:
        operation, yes, no, operand = lines[position]
        position += 1
        if operation == RETURN:
            return int(operand)
        if operation == LOAD:
            accumulator = words[operand // 4]
        elif operation == AND:
            accumulator &= operand
        elif operation == GOTO:
            position += operand
        else:
            held = {
                EQUAL: accumulator == operand,
                AT_LEAST: accumulator >= operand,
                ANY_BIT: bool(accumulator & operand),
            }[operation]
            position += yes if held else no
