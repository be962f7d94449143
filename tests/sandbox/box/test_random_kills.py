"""kill -9 of launcher, a process beside it, box init or the program that stands for the supervisor: nothing is left."""

import base64
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringfence.model.ids import MissionId
from ringfence.sandbox.inner import groups
from ringfence.sandbox.teardown import orphans, teardown
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns

PROGRAM = """
import base64, os, pickle, sys
sys.path[:0] = {path!r}
from ringfence.sandbox.launcher import Launcher
launcher = Launcher.spawn({state!r})
print(launcher.pid, flush=True)
null = os.open("/dev/null", os.O_RDWR)
plan = pickle.loads(base64.b64decode(sys.argv[1]))
while True:
    box = launcher.start(plan, stdin=null, stdout=null, stderr=null)
    print(box.pid, flush=True)
    box.wait()
"""
LINE = "echo x >> log; (setsid sleep 20 &) ; sleep 0.02; mkdir -p d; mv d e; rm -rf e"


def there(pid):
    """Alive: what has ended and waits to be collected by the machine's own init holds nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def children(pid):
    try:
        return pids_of(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii"))
    except OSError:
        return []


def pids_of(text):
    return [int(word) for word in text.split()]


def one_round(bench, layer, state, rng):
    plan = bench.plan("/bin/sh", "-c", LINE, layer=layer)
    words = base64.b64encode(pickle.dumps(plan)).decode()
    program = PROGRAM.format(path=sys.path, state=str(state))
    process = subprocess.Popen(
        [sys.executable, "-c", program, words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    os.set_blocking(process.stdout.fileno(), True)
    launcher = int(process.stdout.readline())
    time.sleep(rng.random() * 0.12)
    os.set_blocking(process.stdout.fileno(), False)
    boxes = pids_of((process.stdout.read() or b"").decode())
    victim = rng.choice(["supervisor", "launcher", "beside", "init"])
    target = {
        "supervisor": process.pid,
        "launcher": launcher,
        "beside": rng.choice([pid for pid in children(launcher) if pid not in boxes] or [launcher]),
        "init": boxes[-1] if boxes else launcher,
    }[victim]
    try:
        os.kill(target, signal.SIGKILL)
    except ProcessLookupError:
        pass
    time.sleep(rng.random() * 0.02)
    process.kill()
    process.wait()
    boxes += pids_of((process.stdout.read() or b"").decode())
    process.stdout.close()
    return [launcher, *boxes]


def settle(reached):
    """Other tests kill launchers at the same time; what is ours must be gone soon."""
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def named(folder):
    return {int(os.path.basename(folder).split(".")[1])}


def check_rounds(bench, tmp_path, rounds, seed):
    rng = random.Random(seed)
    state = tmp_path / "state"
    worktree = Worktree.open(bench.layer.lower, str(state))
    layer = worktree.layer(MissionId("m-1"))
    before = {p.name: p.read_bytes() for p in Path(bench.layer.lower).iterdir()}
    everyone: set[int] = set()
    for number in range(rounds):
        pids = one_round(bench, layer, state, rng)
        everyone.update(pids)
        deadline = time.monotonic() + 60
        while [pid for pid in pids if there(pid)]:
            assert time.monotonic() < deadline, f"seed {seed}, round {number}: {pids} are still there"
            time.sleep(0.01)
    report = teardown(str(state), discard=["m-1"])
    others = ("control group ", "process ")  # some of another's tests may resist; of ours none is there any more
    assert (report.refused, [thing for thing in report.left if not thing.startswith(others)]) == ((), [])
    settle(lambda: not set(orphans()) & everyone)
    settle(lambda: not [f for p in groups.parents() for f in groups.stale(p, remove=True) if named(f) & everyone])
    assert {p.name: p.read_bytes() for p in Path(bench.layer.lower).iterdir()} == before
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        assert str(tmp_path) not in mounts.read()


def test_a_few_random_kills(bench, tmp_path):
    check_rounds(bench, tmp_path, 8, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_five_hundred_random_kills(bench, tmp_path, seed):
    check_rounds(bench, tmp_path, 50, seed)
