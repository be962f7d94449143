"""A stream that ends at a person's terminal is filtered though the box has no terminal of its own."""

import os
import pty

from ringfence.sandbox.inner.loop import Loop
from ringfence.sandbox.inner.pump import Capped, Output, is_one


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
    output.begin()
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


def test_two_streams_at_one_place_are_one(tmp_path):
    master, slave = pty.openpty()
    other_master, other = pty.openpty()
    inner, source = os.pipe()
    how = os.O_WRONLY | os.O_CREAT
    file, opened_anew = os.open(tmp_path / "out", how), os.open(tmp_path / "out", how)
    named = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY)
    copies = [os.dup(each) for each in (slave, source, file)]
    assert all(is_one(*pair) for pair in zip((slave, source, file), copies, strict=True))
    assert is_one(slave, named)
    assert not any(is_one(*pair) for pair in ((file, opened_anew), (slave, other), (slave, source), (source, file)))
    for descriptor in (master, slave, other_master, other, inner, source, file, opened_anew, named, *copies):
        os.close(descriptor)


def test_a_sequence_left_open_does_not_hide_what_was_left_out():
    master, slave = pty.openpty()
    loop = Loop()
    inner, source = os.pipe()
    output = Output(loop, [inner], [slave], Capped(8), lambda: setattr(loop, "running", False))
    output.begin()
    os.write(source, b"abcd\x1b]0" + b";" * 100)
    os.close(source)
    loop.after(10, lambda: setattr(loop, "running", False))
    loop.run()
    shown = b""
    while b"\n[ringfence: 99 bytes of output not shown]" not in shown.replace(b"\r", b""):
        shown += os.read(master, 65536)
    output.close()
    os.close(master)


def test_the_end_comes_after_every_piece_that_was_kept_back(tmp_path):
    # A file takes each piece at once; whoever hears of the end lets go of the descriptors.
    sink = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    inner, source = os.pipe()
    loop = Loop()

    def over():
        output.close()
        loop.running = False

    output = Output(loop, [inner], [sink], Capped(8), over)
    output.begin()
    for piece in (b"abcdef", b"g", b"h"):
        os.write(source, piece)
        output._read(0)
    os.close(source)
    loop.after(10, over)
    loop.run()
    assert (tmp_path / "out").read_bytes() == b"abcdefgh"
