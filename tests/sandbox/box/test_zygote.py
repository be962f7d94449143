"""Process 1 of each box is forked by a process that does nothing else: it is the launcher's child, and little is its own."""

import contextlib
import errno
import os
import signal
import socket

import pytest

from ringfence.sandbox.inner.zygote import Zygote
from ringfence.sandbox.launcher import Launcher

pytestmark = pytest.mark.needs_userns
ZYGOTE = 2
"""Of the launcher's children, in the order of their making: who answers for the roots, who closes, who forks."""


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def stat(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()


def ended(pid):
    try:
        return stat(pid)[0] == "Z"
    except FileNotFoundError:
        return True


def parent(pid):
    return int(stat(pid)[1])


@pytest.fixture
def launcher(bench, tmp_path):
    with Launcher.spawn(str(tmp_path / "state")) as one:
        bench.launcher = one
        yield one


def test_a_boxs_first_process_is_the_launchers_child(bench, launcher):
    running = bench.begin(bench.plan("/bin/sleep", "5"))
    assert parent(running.box.pid) == launcher.pid
    assert children(children(launcher.pid)[ZYGOTE]) == []
    running.box.kill("enough")
    running.finish()


def test_when_it_dies_running_boxes_go_on_and_the_next_ones_start(bench, launcher, wait_for):
    running = bench.begin(bench.plan("/bin/sh", "-c", "echo; read line; echo end"))
    wait_for(lambda: bool(running.parts[0]))
    forking = children(launcher.pid)[ZYGOTE]
    os.kill(forking, signal.SIGKILL)
    wait_for(lambda: ended(forking))
    for number in range(3):
        assert bench.sh(f"echo {number}").out == f"{number}\n".encode()
    assert forking not in children(launcher.pid)
    assert running.finish().out.endswith(b"end\n")


def test_one_that_does_not_answer_is_ended_so_that_no_late_answer_is_taken_for_another():
    zygote = Zygote()
    hanging = zygote.process.pid
    zygote.process.socket.settimeout(0.2)
    os.kill(hanging, signal.SIGSTOP)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there, pytest.raises(TimeoutError):
        zygote.fork(there, here.fileno(), mapped=None, groups=[], closed=True, folders=None)
    assert zygote.process.pid != hanging
    assert zygote.process.alive()
    zygote.close()


def test_one_that_could_not_be_begun_anew_is_begun_by_the_next_order(monkeypatch):
    zygote = Zygote()
    ended = zygote.process.pid
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = {"mapped": None, "groups": [], "closed": True, "folders": None}

    def refused(*_arguments):
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    os.kill(ended, signal.SIGKILL)
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    with here, there:
        with monkeypatch.context() as patched:
            patched.setattr("ringfence.sandbox.inner.kernel.clone", refused)
            for _attempt in range(2):
                with pytest.raises(BlockingIOError):
                    zygote.fork(there, here.fileno(), **order)
        zygote.process.close()  # what is ended twice is no other process that has its number now
        with contextlib.suppress(OSError):  # an ordinary user may begin none of this kind: it answers all the same
            pid = zygote.fork(there, here.fileno(), **order)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert zygote.process.alive()
    zygote.close()
    assert not zygote.process.alive()
