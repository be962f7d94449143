"""A pause without a freezer: everything stops, whatever it does, and what wakes by itself is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.sandbox.inner import pausing

PRELUDE = """
import ctypes, os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from pausing import Pause
def beat(name, seconds=0.0):
    count = 0
    while True:
        count += 1
        told(name, count)
        time.sleep(seconds)
def told(name, count):
    file = os.open(f"{sys.argv[2]}/{name}", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"%09d" % count)
    os.close(file)
def counted(name):
    try:
        return int(open(f"{sys.argv[2]}/{name}").read() or 0)
    except FileNotFoundError:
        return 0
def goes_on(name):
    before = counted(name)
    while counted(name) == before: time.sleep(0.01)
def begin(work):
    child = os.fork()
    if child: return child
    work()
    os._exit(0)
def stays(name):
    while "D" in pause.states(): time.sleep(0.01)  # the disk is slow: a write that was begun ends
    before = counted(name)
    for _look in range(100): assert pause.stands(); os.sched_yield()
    time.sleep(0.2)
    assert counted(name) == before
pause = Pause()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
"""


def in_its_own_tree(tmp_path: Path, body: str) -> None:
    """Run the lines as process 1 of a tree."""
    words = ["unshare", "-Urpf", "--kill-child", "--mount-proc", sys.executable, "-I", "-S", "-c", PRELUDE + body]
    folder = str(Path(pausing.__file__).parent)
    done = subprocess.run([*words, folder, str(tmp_path)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.needs_userns
def test_a_process_whose_first_thread_is_gone_stops_and_goes_on(tmp_path):
    in_its_own_tree(tmp_path, """
def work():
    threading.Thread(target=beat, args=("thread",)).start()
    ctypes.CDLL(None).pthread_exit(None)
begin(work)
goes_on("thread")
assert pause.begin()
stays("thread")
pause.end()
goes_on("thread")
""")  # fmt: skip


@pytest.mark.needs_userns
def test_nothing_is_forked_past_a_pause(tmp_path):
    in_its_own_tree(tmp_path, """
def work():
    count = 0
    while True:
        count += 1
        if os.fork(): os._exit(0)
        told("chain", count)
begin(work)
for _again in range(20):
    goes_on("chain")
    assert pause.begin()
    stays("chain")
    pause.end()
""")  # fmt: skip


@pytest.mark.needs_userns
def test_what_was_stopped_before_stays_so(tmp_path):
    in_its_own_tree(tmp_path, """
before, other = begin(lambda: beat("before", 0.01)), begin(lambda: beat("other", 0.01))
goes_on("before")
os.kill(before, signal.SIGSTOP)
while "T" not in open(f"/proc/{before}/stat").read(): time.sleep(0.01)
assert pause.begin() and pause.begin()  # asked for twice, as a person may
pause.end()
goes_on("other")
stopped = counted("before")
goes_on("other")
assert counted("before") == stopped
""")  # fmt: skip


@pytest.mark.needs_userns
def test_what_wakes_by_itself_is_found(tmp_path):
    in_its_own_tree(tmp_path, """
child = begin(lambda: beat("other", 0.01))
goes_on("other")
assert pause.begin()
os.kill(child, signal.SIGCONT)  # as a timer of its own would
while pause.stands(): time.sleep(0.01)
""")  # fmt: skip
