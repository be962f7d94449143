"""A real terminal for an interactive box: made inside, driven from outside, its output filtered."""

import fcntl
import os
import struct
import termios
from typing import Any

from ringfence.sandbox.inner.loop import READ, Loop

UNLOCK, NUMBER = 0x40045431, 0x80045430
"""TIOCSPTLCK and TIOCGPTN."""


def take_over(size: tuple[int, int]) -> int:
    """In init: make a terminal, control it, put it on 0, 1, 2. Gives the master's descriptor."""
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, UNLOCK, struct.pack("i", 0))
    number = struct.unpack("i", fcntl.ioctl(master, NUMBER, bytes(4)))[0]
    slave = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for stream in (0, 1, 2):
        os.dup2(slave, stream)
    if slave > 2:
        os.close(slave)
    return master


class Terminal:
    """The master side of one box's terminal."""

    def __init__(self, loop: Loop, master: int, keyboard: Any, output: Any) -> None:
        self.loop, self.master = loop, master
        self.output = output

    def resize(self, rows: int, columns: int) -> None:
        """Tell the box's foreground programs the new size."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        """Let go."""
        os.close(self.master)


_ = READ
