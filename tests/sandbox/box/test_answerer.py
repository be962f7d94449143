"""The process that answers for the roots: what it saw is told at the end, and its death is no one else's."""

import os
import signal
import time

import pytest

from ringfence.model.box import ControlState
from ringfence.sandbox.controls import HIDDEN_LOG
from ringfence.sandbox.inner import root
from ringfence.sandbox.inner.answerer import GONE, Answered, Answerer
from ringfence.sandbox.inner.skeleton import FOLDER
from ringfence.sandbox.inner.watch import Record
from ringfence.sandbox.launcher import Launcher


@pytest.fixture
def answerer():
    one = Answerer()
    yield one
    one.close()


def test_a_root_that_saw_nothing_is_told_as_that(answerer):
    device, other = os.pipe()
    record, one = Record(), answerer.begin(device, [])
    one.hold(os.open("/proc", os.O_PATH), [])
    assert one.end(record) == ""
    assert (record.counts, record.dropped) == ({}, 0)
    for descriptor in (*one.left(), other):
        os.close(descriptor)
    assert one.left() == []


def test_one_that_was_never_served_is_not_known(answerer):
    assert Answered(answerer, 4711).end(Record()) == GONE


def test_when_it_dies_its_boxes_say_so_and_the_next_ones_are_served(answerer):
    pipes = [os.pipe() for _ in range(2)]
    first = answerer.begin(pipes[0][0], [])
    os.kill(answerer.pid, signal.SIGKILL)
    os.waitid(os.P_PID, answerer.pid, os.WEXITED | os.WNOWAIT)
    assert first.end(Record()) == GONE
    second = answerer.begin(pipes[1][0], [])
    assert second.end(Record()) == ""
    for _reader, writer in pipes:
        os.close(writer)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts without a namespace of its own")
def test_whoever_made_the_box_may_look_up_in_its_root_and_waits_for_nobody_but_the_answerer(answerer):
    device = os.open(root.DEVICE, os.O_RDWR | os.O_CLOEXEC)
    mount = root.mount(device)
    answered = answerer.begin(device, [(b"/home", FOLDER, b"", [], None)])
    folder = os.open(".", os.O_RDONLY, dir_fd=mount)
    assert os.listdir(folder) == ["home"]
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            os.stat("root", dir_fd=mount)
    with pytest.raises(FileNotFoundError):
        os.stat("no-such-name", dir_fd=mount)
    record = Record()
    assert answered.end(record) == ""
    assert record.counts == {("hidden-path", "/root"): 3}
    os.close(folder)
    os.close(mount)


@pytest.mark.needs_userns
def test_a_box_whose_answerer_dies_goes_on_and_says_that_tries_went_unseen(bench, tmp_path, wait_for):
    with Launcher.spawn(str(tmp_path / "state")) as launcher:
        children = f"/proc/{launcher.pid}/task/{launcher.pid}/children"
        with open(children, encoding="ascii") as file:
            answering = int(file.read().split()[0])
        bench.launcher = launcher
        running = bench.begin(bench.plan("/bin/sh", "-c", "echo; sleep 4; cat /etc/shadow; ls / /dev; echo end"))
        wait_for(lambda: bool(running.parts[0]))
        os.kill(answering, signal.SIGKILL)
        ran = running.finish()
        assert ran.out.endswith(b"end\n")
        control = next(c for c in ran.execution.controls if c.name == HIDDEN_LOG)
        assert control.state is ControlState.DOWNGRADED
        time.sleep(0.1)
        again = bench.sh("cat /etc/shadow; ls /")
        assert again.execution.exit == 0
        assert os.geteuid() != 0 or any(o.detail == "/etc/shadow" for o in again.execution.observations)


def test_one_that_stands_still_is_begun_anew(answerer):
    pipes = [os.pipe() for _ in range(3)]
    first, second = (answerer.begin(pipes[number][0], []) for number in (0, 1))
    old = answerer.pid
    answerer.process.socket.settimeout(0.1)
    os.kill(old, signal.SIGSTOP)
    assert first.end(Record()) == GONE
    assert answerer.pid != old
    new = answerer.pid
    answerer.process.socket.settimeout(60)
    assert second.end(Record()) == GONE  # without being waited for: it was the old one's
    third = answerer.begin(pipes[2][0], [])
    assert third.end(Record()) == ""
    assert answerer.pid == new
    for _reader, writer in pipes:
        os.close(writer)
