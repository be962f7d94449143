"""A real terminal for an interactive box: made inside it, driven from outside, its output filtered."""

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Callable

from ringfence.sandbox.inner.loop import Loop
from ringfence.sandbox.inner.pump import Input, Output
from ringfence.sandbox.inner.screen import Screen

UNLOCK, NUMBER = 0x40045431, 0x80045430
"""TIOCSPTLCK and TIOCGPTN."""


def take_over(size: tuple[int, int], modes: tuple[int, ...]) -> int:
    """In init: make a terminal like the caller's, control it, put it on 0, 1, 2. Gives the master's descriptor."""
    master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    fcntl.ioctl(master, UNLOCK, struct.pack("i", 0))
    number = struct.unpack("i", fcntl.ioctl(master, NUMBER, bytes(4)))[0]
    slave = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    _set_modes(slave, modes)
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for stream in (0, 1, 2):
        os.dup2(slave, stream)
    if slave > 2:
        os.close(slave)
    return master


def _set_modes(slave: int, modes: tuple[int, ...]) -> None:
    """Which key erases, which interrupts, and whether letters of several bytes are erased as one: as the person has it."""
    own = termios.tcgetattr(slave)
    if len(modes) == 3 + len(own[6]):
        own[0], own[1], own[3] = modes[:3]
        own[6] = [bytes([key & 0xFF]) for key in modes[3:]]
        termios.tcsetattr(slave, termios.TCSANOW, own)


class Uncapped:
    """A terminal's output is never capped; it is filtered, and counted."""

    def __init__(self, screen: Screen, answer: Callable[[bytes], None]) -> None:
        self.screen, self.answer = screen, answer
        self.seen = [0, 0]
        self.dropped = [0, 0]

    def take(self, which: int, data: bytes) -> bytes:
        """What of it may be shown."""
        self.seen[which] += len(data)
        shown = self.screen.feed(data)
        if self.screen.answer:
            self.answer(self.screen.answer)
            self.screen.answer = b""
        return shown

    def finish(self) -> list[tuple[int, bytes]]:
        """Nothing is kept back."""
        return [(0, self.screen.rest())]


class Terminal:
    """The master side of one box's terminal, between the caller's terminal and the box."""

    def __init__(self, loop: Loop, masters: list[int], streams: list[int], on_end: Callable[[], None]) -> None:
        """``masters``: the same three times, for what is set, typed and shown."""
        self.master, typed, shown = masters
        os.set_blocking(self.master, False)
        self.input = Input(loop, streams[0], typed)
        os.close(streams[2])
        self.screen = Screen()
        self.output = Output(loop, [shown], [streams[1]], Uncapped(self.screen, self._type), on_end)
        self.output.begin()

    def _type(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):  # full or gone: then nobody waits for it
            os.write(self.master, answer)

    def stop(self) -> None:
        """The command has no keys: what is typed now is for the person's shell, which shall find its terminal as it was."""
        self.input.hold()
        self.output.say(self.screen.set_aside())

    def go_on(self) -> None:
        """It is about to go on, and has the keys again."""
        self.output.say(self.screen.take_up())
        self.input.begin()

    def resize(self, rows: int, columns: int) -> None:
        """Tell the box's foreground programs the new size."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))

    def close(self) -> None:
        """Let go of the master; what was read of it stays to be handed over."""
        os.close(self.master)
