"""What a waiting caller points at is read the same by its number and through what is kept open, and never of another one."""

import ctypes
import os
import signal

import pytest

from ringfence.sandbox.inner.callers import KNOWN, WORKING_FOLDER, Callers

pytestmark = pytest.mark.needs_userns  # the calls that read another process


class Caller:
    """A child with this one's memory, that stands in a folder and waits."""

    def __init__(self, folder):
        ready, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.write(told, b"x")
            signal.pause()
            os._exit(0)
        os.read(ready, 1)
        os.close(ready), os.close(told)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def kept(text):
    place = ctypes.create_string_buffer(text)
    return place, ctypes.addressof(place)


@pytest.fixture
def caller(tmp_path):
    caller = Caller(tmp_path)
    yield caller
    caller.end()


FIRST, LATER = range(2), range(2, 6)


def test_it_reads_the_same_the_first_time_and_later(tmp_path):
    folder = os.open("/usr", os.O_PATH)
    reader, writer = os.pipe()
    texts = [kept(text) for text in (b"name", b"/an/absolute/one", b"a/" * 200 + b"end", b"", b"x" * 5000)]
    caller, callers = Caller(tmp_path), Callers()
    here = os.fsencode(tmp_path)
    try:
        for _again in (*FIRST, *LATER):
            ask = [callers.path(caller.pid, address, WORKING_FOLDER) for _text, address in texts]
            assert ask == [
                (b"name", here),
                (b"/an/absolute/one", b""),
                (b"a/" * 200 + b"end", here),
                (b"", b""),
                (None, b""),
            ]
            name = texts[0][1]
            assert callers.path(caller.pid, name, folder) == (b"name", b"/usr")
            assert callers.path(caller.pid, name, reader) == (b"name", b"")
            assert callers.path(caller.pid, name, 9999) == (b"name", b"")
            for address in (0, 1, 4095, 1 << 47, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
                assert callers.path(caller.pid, address, WORKING_FOLDER) == (None, b"")
    finally:
        callers.forget(), caller.end()
        os.close(folder), os.close(reader), os.close(writer)


def test_one_that_is_gone_gives_nothing(tmp_path):
    _text, relative = kept(b"name")
    _text2, absolute = kept(b"/name")
    caller, callers = Caller(tmp_path), Callers()
    for _again in (*FIRST, *LATER):
        assert callers.path(caller.pid, relative, WORKING_FOLDER)[0] == b"name"
    assert caller.pid in callers.known
    caller.end()
    # As if its memory were still there, with another process: what stands for the process itself says that it is gone.
    ours = os.open("/proc/self/mem", os.O_RDONLY)
    os.dup2(ours, callers.known[caller.pid][1])
    os.close(ours)
    assert callers.path(caller.pid, absolute, WORKING_FOLDER) == (None, b"")
    assert caller.pid not in callers.known
    assert callers.path(caller.pid, relative, WORKING_FOLDER) == (None, b"")


def test_few_are_kept_open_and_none_in_the_end(tmp_path):
    _text, address = kept(b"name")
    before = len(os.listdir("/proc/self/fd"))
    several, callers = [Caller(tmp_path) for _ in range(KNOWN + 3)], Callers()
    try:
        for _again in range(3):
            for caller in several:
                assert callers.path(caller.pid, address, WORKING_FOLDER) == (b"name", os.fsencode(tmp_path))
        assert len(callers.known) == KNOWN
        assert len(os.listdir("/proc/self/fd")) == before + 2 * KNOWN
    finally:
        callers.forget()
        for caller in several:
            caller.end()
    assert len(os.listdir("/proc/self/fd")) == before


def test_numbers_are_read_to_the_end_of_the_page(caller):
    place = ctypes.create_string_buffer((0x1122334455667788).to_bytes(8, "little"))
    callers = Callers()
    assert callers.word(caller.pid, 8) == 0
    assert callers.word(os.getpid(), ctypes.addressof(place)) == 0x1122334455667788
