"""When a part dies, every box dies with it, at once."""

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from ringfence.model.errors import BoxError
from ringfence.sandbox.launcher import LENGTH, LOOKS, Box, Launcher

pytestmark = pytest.mark.needs_userns


def gone(pids):
    return not [pid for pid in pids if os.path.exists(f"/proc/{pid}") and _state(pid) != "Z"]


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return chr(file.read().rpartition(b")")[2].split()[0][0])
    except OSError:
        return "Z"


def test_kill_9_of_the_launcher_ends_its_boxes(bench, wait_for, tmp_path):
    launcher = Launcher.spawn(str(tmp_path / "state"))
    null = os.open("/dev/null", os.O_RDWR)
    box = launcher.start(bench.plan("/bin/sh", "-c", "sleep 60 & sleep 60"), stdin=null, stdout=null, stderr=null)
    wait_for(lambda: len(box.pids()) >= 3)
    pids = box.pids()
    os.kill(launcher.pid, signal.SIGKILL)
    wait_for(lambda: gone(pids))
    with pytest.raises(BoxError, match="cut short: the launcher went away"):
        box.wait(10)
    with pytest.raises(BoxError):
        launcher.start(bench.plan("true"), stdin=null, stdout=null, stderr=null)
    launcher.close()
    os.close(null)


def test_kill_9_of_the_supervisor_ends_launcher_and_boxes(bench, wait_for, tmp_path):
    program = textwrap.dedent(f"""
        import os, sys, pickle, base64, time
        sys.path[:0] = {sys.path!r}
        from ringfence.sandbox.launcher import Launcher
        launcher = Launcher.spawn({str(tmp_path / "state")!r})
        null = os.open("/dev/null", os.O_RDWR)
        plan = pickle.loads(base64.b64decode(sys.argv[1]))
        box = launcher.start(plan, stdin=null, stdout=null, stderr=null)
        while len(box.pids()) < 3: time.sleep(0.01)
        print(launcher.pid, *box.pids(), flush=True)
        time.sleep(60)
    """)
    import base64
    import pickle

    plan = base64.b64encode(pickle.dumps(bench.plan("/bin/sh", "-c", "setsid sleep 60 & sleep 60"))).decode()
    process = subprocess.Popen([sys.executable, "-c", program, plan], stdout=subprocess.PIPE)
    pids = [int(word) for word in process.stdout.readline().split()]
    assert len(pids) >= 4
    process.kill()
    process.wait()
    process.stdout.close()
    wait_for(lambda: gone(pids))


def test_close_ends_everything(bench, wait_for, tmp_path):
    launcher = Launcher.spawn(str(tmp_path / "state"))
    null = os.open("/dev/null", os.O_RDWR)
    box = launcher.start(bench.plan("sleep", "60"), stdin=null, stdout=null, stderr=null)
    pids = box.pids()
    launcher.close()
    wait_for(lambda: gone(pids))
    os.close(null)


def test_a_launcher_that_stands_still_is_ended_and_its_boxes_with_it(bench, wait_for, tmp_path, monkeypatch):
    monkeypatch.setattr("ringfence.sandbox.launcher.LOOK_SECONDS", 0.0)
    launcher = Launcher.spawn(str(tmp_path / "state"))
    null = os.open("/dev/null", os.O_RDWR)
    box = launcher.start(bench.plan("sleep", "60"), stdin=null, stdout=null, stderr=null)
    pids = box.pids()
    os.kill(launcher.pid, signal.SIGSTOP)
    for _ in range(LOOKS + 5):
        launcher.look()
    wait_for(lambda: gone([launcher.pid, *pids]))
    with pytest.raises(BoxError, match="cut short: the launcher went away"):
        box.wait(10)
    launcher.close()
    os.close(null)


def test_a_launcher_that_answers_is_looked_at_as_often_as_one_likes(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("ringfence.sandbox.launcher.LOOK_SECONDS", 0.0)
    with Launcher.spawn(str(tmp_path / "state")) as launcher:
        for _ in range(3 * LOOKS):
            launcher.look()
            assert select.select([launcher._control], [], [], 60)[0], "no answer"
        bench.launcher = launcher
        assert bench.sh("echo still here").out == b"still here\n"
        monkeypatch.setattr("ringfence.sandbox.launcher.LOOK_SECONDS", 3600.0)
        for _ in range(3 * LOOKS):
            launcher.look()  # not yet due: nothing is counted
        assert not gone([launcher.pid])


def test_a_launcher_that_dies_in_the_middle_of_a_word_is_a_lost_box(bench):
    ours, theirs = socket.socketpair()
    box = Box(bench.plan("true"), ours, (), on_seen=None, on_stop=None, on_network=None)
    with theirs:
        theirs.sendall(LENGTH.pack(100) + b"half")
    with pytest.raises(BoxError, match="the launcher went away"):
        box.wait(10)


class Hasty:
    """The launcher's control socket, over which an order goes only after somebody tried to end all boxes."""

    def __init__(self, launcher):
        self.launcher, self.real = launcher, launcher._control
        self.ending = threading.Thread(target=launcher.kill_all, args=("in a hurry",))

    def sendmsg(self, *message):
        self.ending.start()
        self.ending.join(0.5)
        return self.real.sendmsg(*message)

    def __getattr__(self, name):
        return getattr(self.real, name)


def test_a_box_that_is_ended_while_it_is_begun_is_told_so_and_the_next_one_runs(bench, tmp_path):
    with Launcher.spawn(str(tmp_path / "state")) as launcher:
        null = os.open("/dev/null", os.O_RDWR)
        hasty = launcher._control = Hasty(launcher)
        try:
            box = launcher.start(bench.plan("sleep", "60"), stdin=null, stdout=null, stderr=null)
            told = box.wait(60).ended_by
        except BoxError as fault:
            told = fault.what.removeprefix("the box was ended before its command began: ")
        assert told == "in a hurry"
        hasty.ending.join(60)
        launcher._control = hasty.real
        assert launcher.start(bench.plan("true"), stdin=null, stdout=null, stderr=null).wait(60).exit == 0
        os.close(null)


def test_an_order_whose_descriptors_do_not_all_arrive_is_refused_at_once(bench, tmp_path, at_rest):
    with Launcher.spawn(str(tmp_path / "state")) as launcher:
        bench.launcher = launcher
        assert bench.sh("true").execution.exit == 0
        before = at_rest(launcher.pid)
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(launcher._control, [b"box"], [theirs.fileno()])
        box = Box(bench.plan("true"), ours, (), on_seen=None, on_stop=None, on_network=None)
        with pytest.raises(BoxError, match="EMFILE"):
            box.started()
        assert bench.sh("echo still here").out == b"still here\n"
        assert at_rest(launcher.pid) == before
