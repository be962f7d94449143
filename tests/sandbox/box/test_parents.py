"""The name of a program's parent: as it is now, of that process and no other, whatever it calls itself."""

import contextlib
import ctypes
import os
import signal

from ringfence.sandbox.inner import parents
from ringfence.sandbox.inner.parents import Parents


def own_name():
    with open("/proc/self/comm", encoding="ascii") as file:
        return file.read().strip().encode()


@contextlib.contextmanager
def child():
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_it_is_the_name_of_now_whatever_that_is():
    watched, before, libc = Parents(), own_name(), ctypes.CDLL(None)
    try:
        with child() as pid:
            for name in (b"one", b"two words", b"\xff) R 1 (\n", b""):
                libc.prctl(15, name, 0, 0, 0)
                assert watched.name(pid) == name
            assert list(watched.names) == [os.getpid()]
        assert watched.name(pid) is None
    finally:
        libc.prctl(15, before, 0, 0, 0)
        watched.close()


def test_a_child_that_calls_itself_like_a_line_of_the_kernel_misleads_nobody():
    watched = Parents()
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(15, b") S 1 1 1", 0, 0, 0)
        os.write(told, b"x")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(ready, 1) == b"x"
        assert watched.name(pid) == own_name()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready), os.close(told)
        watched.close()


def test_what_was_kept_of_one_that_has_gone_names_nobody():
    watched = Parents()
    with child() as ended:
        watched._name(ended)
    watched.names[os.getpid()] = watched.names.pop(ended)  # as if its number were another one's now
    with child() as pid:
        assert watched.name(pid) == own_name()
    watched.close()


def test_few_are_kept_open_and_none_in_the_end():
    watched, before = Parents(), len(os.listdir("/proc/self/fd"))
    with contextlib.ExitStack() as several:
        for _number in range(parents.KNOWN + 3):
            watched._name(several.enter_context(child()))
        assert len(os.listdir("/proc/self/fd")) == before + parents.KNOWN
    watched.close()
    assert len(os.listdir("/proc/self/fd")) == before
