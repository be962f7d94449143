"""Limits and a pause are the whole tree's: also of what a second thread has started, and of what lets nobody look into it."""

import time

import pytest

from ringfence.model.box import Limits
from ringfence.model.ids import Bytes, Millis

pytestmark = pytest.mark.needs_userns

IN_A_THREAD = """
import os, threading, time
def started_by_a_thread(work):
    def start():
        if os.fork() == 0:
            work()
            os._exit(0)
        os.wait()
        time.sleep(60)  # a command that ended now would not be ended by the limit
    threading.Thread(target=start).start()
"""
TAKES = """
kept = os.memfd_create("kept")
for _ in range(512): os.write(kept, bytes(1 << 20))
print("took it", flush=True); time.sleep(30)
"""


def ended(bench, script, **limits):
    ran = bench.run("/usr/bin/python3", "-c", script, limits=Limits(**limits))
    return ran.execution.ended_by, ran.out


def test_memory_of_what_a_thread_started_counts(bench):
    work = (
        "def work():\n    x = bytearray(400 << 20)\n    for n in range(0, len(x), 4096): x[n] = 1\n    time.sleep(30)\n"
    )
    script = f"{IN_A_THREAD}\n{work}\nstarted_by_a_thread(work)"
    assert ended(bench, script, memory=Bytes(128 << 20))[0] == "memory, 128 MiB"


def test_cpu_time_of_what_a_thread_started_counts(bench):
    work = "def work():\n    for _ in range(8):\n        if os.fork() == 0:\n            while True: pass\n    time.sleep(60)\n"
    script = f"{IN_A_THREAD}\n{work}\nstarted_by_a_thread(work)"
    assert ended(bench, script, cpu=Millis(2000))[0] == "cpu, 2000 ms"


@pytest.mark.parametrize("way", ["asks for it", "may be run and not be read"])
def test_memory_counts_of_a_process_that_closes_itself(bench, way):
    """Of an ordinary user's, what it has open could not be seen."""
    script = f"import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n{TAKES}"
    if way != "asks for it":
        again = f"import os, time\n{TAKES}"
        script = (
            "import os, shutil\nshutil.copy('/usr/bin/python3', 'python'); os.chmod('python', 0o111)\n"
            f"os.execv('./python', ['/usr/bin/python3', '-c', {again!r}])"
        )
    assert ended(bench, script, memory=Bytes(128 << 20), runtime=Millis(60_000))[0] == "memory, 128 MiB"


def test_what_a_thread_started_is_paused_too(bench, wait_for):
    work = "def work():\n    while True: print(end='x', flush=True)\n"
    script = f"{IN_A_THREAD}\n{work}\nstarted_by_a_thread(work)\ntime.sleep(60)"
    limits = Limits(output=Bytes(1 << 30))
    running = bench.begin(bench.plan("/usr/bin/python3", "-c", script, limits=limits))
    wait_for(lambda: len(running.parts[0]) > 1000)
    running.box.pause()
    assert len(running.box.pids()) > 2
    seen = 0

    def stands():
        nonlocal seen
        before, seen = seen, len(running.parts[0])
        time.sleep(0.5)  # what is in the pipe is handed on meanwhile
        return before == seen == len(running.parts[0])

    wait_for(stands)
    running.box.resume()
    wait_for(lambda: len(running.parts[0]) > seen)
    running.box.kill("seen enough")
    running.finish()
