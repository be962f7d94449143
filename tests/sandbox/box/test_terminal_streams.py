"""A stream that ends at a person's terminal is filtered though the box has no terminal of its own."""

import os
import pty

from ringfence.sandbox.inner.loop import Loop
from ringfence.sandbox.inner.pump import Capped, Output


def through(first_is_terminal: bool, data: bytes) -> bytes:
    master, slave = pty.openpty() if first_is_terminal else os.pipe()
    if first_is_terminal:
        import tty

        tty.setraw(slave)
    loop = Loop()
    inner, source = os.pipe()
    other, nothing = os.pipe()
    sink = os.open("/dev/null", os.O_WRONLY)
    output = Output(loop, [inner, other], [slave, sink], Capped(1 << 16), lambda: setattr(loop, "running", False))
    os.write(source, data)
    os.close(source)
    os.close(nothing)
    loop.after(10, lambda: setattr(loop, "running", False))
    loop.run()
    shown = os.read(master, 65536)
    output.close()
    os.close(master)
    return shown


CLIPBOARD = b"a\x1b]52;c;ZXZpbA==\x07b"


def test_the_clipboard_sequence_does_not_reach_a_terminal():
    assert through(True, CLIPBOARD) == b"ab"


def test_a_pipe_gets_every_byte():
    assert through(False, CLIPBOARD) == CLIPBOARD
