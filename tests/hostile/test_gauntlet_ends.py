"""A gauntlet that is interrupted leaves nothing, and clears away what one that was killed has left."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ringfence.sandbox.gauntlet import ground, interruption, suite
from ringfence.sandbox.gauntlet.fence import NoFence
from ringfence.sandbox.gauntlet.interruption import Interruption, make_ground
from ringfence.sandbox.gauntlet.servers import Servers

pytestmark = pytest.mark.xdist_group("gauntlet")
HANGS = "(trap '' TERM HUP INT; exec setsid sleep 900) & echo $! $$ > {mark}.new; pwd > {mark}; sleep 900"


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


@pytest.mark.needs_userns
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_gauntlet_leaves_no_folder_and_no_process(here, tmp_path, number, code):
    mark = tmp_path / "mark"
    program = "from ringfence.cli.main import program; program()"
    command = [
        here.prefix[0],
        "-c",
        program,
        "gauntlet",
        "--only",
        "reads-ssh-key",
        "--",
        "sh",
        "-c",
        HANGS.format(mark=mark),
    ]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 300
    while not mark.exists() or not mark.read_text().endswith("\n"):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(300) == code
    process.stderr.close()
    assert not [pid for pid in (tmp_path / "mark.new").read_text().split() if alive(pid)]
    world = mark.read_text().strip()
    assert interruption.GROUND.search(world)
    assert not os.path.lexists(world.partition("/ringfence-gauntlet-")[0] + "/" + interruption.GROUND.search(world)[0])


def test_a_signal_waits_while_something_is_planted():
    stop, done = Interruption(), []

    def plant():
        with stop.held():
            with stop.held():
                os.kill(os.getpid(), signal.SIGTERM)
            done.append("planted")

    before = {number: signal.getsignal(number) for number in interruption.ENDING}
    try:
        stop.listen()
        with pytest.raises(SystemExit, match="143"):
            plant()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert done == ["planted"]


def test_what_a_killed_gauntlet_left_is_removed_and_what_one_uses_is_not(tmp_path):
    names = {name: tmp_path / f"ringfence-gauntlet-{name * 12}" for name in "abc"}
    for folder in names.values():
        (folder / "001" / "deep").mkdir(parents=True)
    held = os.open(names["b"], os.O_RDONLY)
    interruption.fcntl.flock(held, interruption.fcntl.LOCK_SH)
    (tmp_path / "ringfence-gauntlet-mine").mkdir()
    for folder in (names["a"], names["b"], tmp_path / "ringfence-gauntlet-mine"):
        os.utime(folder, (0, 0))
    made = make_ground(str(tmp_path))
    os.close(held)
    left = {os.path.basename(made), names["b"].name, names["c"].name, "ringfence-gauntlet-mine"}
    assert set(os.listdir(tmp_path)) == left


def test_a_sandbox_that_cannot_be_ended_keeps_nothing_from_being_removed(tmp_path, monkeypatch):
    class Stubborn(NoFence):
        def close(self):
            raise PermissionError("as where the user may not start it")

    monkeypatch.setattr(suite.watch, "end_all_below", lambda: None)  # here it would end what other tests use
    base = tmp_path / "base"
    (base / "001").mkdir(parents=True)
    with pytest.raises(PermissionError):
        suite.Gauntlet(base=str(base), fence=Stubborn(), servers=Servers()).close()
    assert not base.exists()


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's attacks mount without a namespace of their own")
def test_what_an_attack_of_root_mounts_is_not_the_hosts(tmp_path):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ground.enter()
            subprocess.run(["mount", "-t", "tmpfs", "x", str(tmp_path)], check=True)
            os.write(writer, b"mounted")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 16) == b"mounted"
    os.close(reader)
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
