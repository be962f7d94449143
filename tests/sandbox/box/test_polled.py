"""Where no control group counts: what the kernel's figures of a tree count twice, and what they drop."""

import subprocess
import sys

import pytest

from ringfence.sandbox.inner import groups, polled, tree

MIB = 1 << 20
FORKS = """
import os, signal, sys
kept = bytearray(os.urandom(MIB) * 40)
told, tell = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        os.write(tell, b"x")
        signal.pause()  # until it is told to write
        for n in range(0, len(kept), 4096): kept[n] = 1
        os.write(tell, b"x")
        signal.pause()
for line in ("shared", "own"):
    for _ in range(6): os.read(told, 1)
    print(line, flush=True)
    sys.stdin.readline()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    os.killpg(0, signal.SIGUSR1)
""".replace("MIB", str(MIB)).replace("told, tell", "signal.signal(signal.SIGUSR1, lambda *_: None)\ntold, tell")


@pytest.fixture
def alone(monkeypatch):
    """The process has no network and no places of its own: what others on this machine send and keep is not asked for."""
    monkeypatch.setattr(groups.buffers, "on_host", lambda: 0)
    monkeypatch.setattr(groups, "kept_memory", lambda _pids: 0)
    found = groups.Groups(groups.POLLING, {})
    found.limits = {"memory": 128 * MIB, "cpu": 1 << 40, "processes": 1000}
    return found


def test_memory_that_processes_share_since_a_fork_counts_once_and_what_they_write_counts_as_theirs(alone):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", FORKS], **pipes) as process:
        try:
            assert process.stdout.readline() == b"shared\n"
            assert sum(tree.own_memory(tree.below(process.pid))[:2]) > 128 * MIB
            assert alone.reached(process.pid) == ""
            process.stdin.write(b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"own\n"
            alone.forks.due = 0.0  # as it is a quarter of a second later
            assert alone.reached(process.pid) == "memory, 128 MiB"
        finally:
            for pid in tree.below(process.pid)[1:]:
                subprocess.run(["/bin/kill", "-9", str(pid)], check=False)
            process.kill()


def test_memory_that_is_swapped_out_is_still_the_processs(monkeypatch):
    monkeypatch.setattr(
        tree, "_read", lambda _path: b"RssAnon:\t 10 kB\nRssShmem:\t 3 kB\nVmPTE:\t 4 kB\nVmSwap:\t 500 kB\n"
    )
    assert tree.own_memory([1, 2]) == (2 * 514 * 1024, 2 * 3 * 1024, 510 * 1024)  # page tables are never shared


ROLLUP = b"1-2 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss_Anon: 30 kB\nAnonymous: 200 kB\nSwap: 80 kB\nSwapPss: 10 kB\n"


def test_no_more_of_what_is_shared_is_looked_for_than_is_needed(monkeypatch):
    read = {"/proc/1/statm": b"9 5 0\n", "/proc/2/statm": b"9 7 0\n", "/proc/2/smaps_rollup": ROLLUP}
    asked = []
    monkeypatch.setattr(tree, "_read", lambda path: asked.append(path) or read.get(path))
    assert tree.shared_by_forks([1, 2, 3], 240 * 1024, 60) == 240 * 1024
    assert asked[3:] == ["/proc/2/smaps_rollup"]
    assert tree.shared_by_forks([1, 2, 3], 241 * 1024, 60) == 240 * 1024  # whom nobody may look into counts whole
    assert "/proc/3/smaps_rollup" in asked


def test_between_two_looks_a_box_that_was_below_its_limit_is_not_above_it(monkeypatch):
    monkeypatch.setattr(polled, "shared_by_forks", lambda *_asked: 30)
    forks = polled.Forks()
    assert forks.twice([1], 90, 100, 500) == 0
    assert forks.twice([1], 120, 100, 500) == 30
    assert forks.twice([1], 142, 100, 500) == 42
    assert forks.twice([1], 143, 100, 500) == 30  # it grew by an eighth of its limit: looked at early
    forks.due = 0.0
    assert forks.twice([1], 170, 100, 500) == 30


def test_a_box_that_is_above_its_limit_whatever_its_processes_have_in_common_is_above_it(monkeypatch):
    monkeypatch.setattr(polled, "shared_by_forks", lambda *_asked: 30)
    forks = polled.Forks()
    assert forks.twice([1], 120, 100, 40) == 30
    assert forks.twice([1], 139, 100, 40) == 39  # between two looks
    assert forks.twice([1], 141, 100, 40) == 0


def spent(monkeypatch, *looks):
    """What ``Spent`` says at each look; a look is own and waited for milliseconds by process."""
    counter, said = polled.Spent(), []
    for look in looks:
        monkeypatch.setattr(
            polled, "times", lambda pid, look=look: ((pid, 7), look[pid]) if pid in look else ((pid, 0), (0, 0))
        )
        said.append(counter.millis([1, 2, 3]))
    return said


def test_the_time_of_a_child_that_nobody_waited_for_stays_spent(monkeypatch):
    assert spent(monkeypatch, {1: (10, 0), 2: (500, 0)}, {1: (20, 0)}, {1: (30, 0)}, {1: (40, 0)}) == [
        510,
        20,
        530,
        540,
    ]


def test_the_time_of_a_child_that_was_waited_for_counts_once(monkeypatch):
    at_once = {1: (10, 0), 2: (500, 0)}, {1: (20, 510)}, {1: (30, 510)}
    a_look_later = {1: (10, 0), 2: (500, 0)}, {1: (20, 0)}, {1: (30, 510)}, {1: (30, 510)}
    assert spent(monkeypatch, *at_once) == [510, 530, 540]
    assert spent(monkeypatch, *a_look_later) == [510, 20, 540, 540]


def test_what_a_parent_waited_for_goes_up_with_its_end_and_counts_once(monkeypatch):
    looks = {1: (0, 0), 2: (50, 400)}, {1: (0, 460)}, {1: (0, 460)}
    assert spent(monkeypatch, *looks) == [450, 460, 460]


def test_children_that_nobody_waits_for_reach_the_limit_of_cpu_time(alone):
    alone.limits |= {"memory": 1 << 40, "cpu": 1000}
    source = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n"
        "    if os.fork() == 0:\n        while time.process_time() < 0.6: pass\n        os._exit(0)\n"
        "    try: os.wait()\n    except ChildProcessError: pass\n"
    )
    with subprocess.Popen([sys.executable, "-c", source]) as process:
        try:
            while not (reached := alone.reached(process.pid)):
                assert process.poll() is None
        finally:
            for pid in tree.below(process.pid)[1:]:
                subprocess.run(["/bin/kill", "-9", str(pid)], check=False)
            process.kill()
    assert reached == "cpu, 1000 ms"
