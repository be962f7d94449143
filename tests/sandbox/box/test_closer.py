"""The process that lets go of a box's mounts: everything handed over is closed, and nothing of it stays."""

import os
import select

from ringfence.sandbox.inner.closer import MANY, Closer


def closed(end, seconds=5.0):
    poll = select.poll()
    poll.register(end, 0)
    return bool(poll.poll(seconds * 1000))


def test_what_is_handed_over_is_closed_here_and_there():
    closer = Closer()
    pipes = [os.pipe() for _ in range(MANY)]
    closer.take(reader for reader, _writer in pipes)
    assert all(closed(writer) for _reader, writer in pipes)
    for _reader, writer in pipes:
        os.close(writer)
    closer.take([])
    closer.close()


def test_one_that_is_gone_or_busy_keeps_nothing_open():
    closer = Closer()
    closer.close()
    reader, writer = os.pipe()
    closer.take([reader])
    assert closed(writer)
    os.close(writer)


def test_it_ends_when_nobody_can_hand_anything_over_any_more():
    closer = Closer()
    closer.socket.close()
    assert os.waitpid(closer.pid, 0)[1] == 0
