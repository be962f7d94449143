"""What is made after the filling lies close together, and what a box has for itself stays small."""

import os
import subprocess
import sys

import pytest

from ringfence.sandbox.inner import dense

SPREAD = """
import sys
sys.path.insert(0, sys.argv[1])
import argparse, json, typing  # leave holes behind
from ringfence.sandbox.inner import dense
filled = dense.fill()
made = [bytes(100) for _ in range(300)]
print(len({id(one) >> 12 for one in made}))
"""


def test_what_is_made_afterwards_lies_on_few_pages():
    source = dense.__file__.removesuffix("/ringfence/sandbox/inner/dense.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SPREAD, source], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) <= 300 * 144 // dense.PAGE + 4


def test_each_size_is_filled():
    assert {one.__sizeof__() for one in dense.fill()} >= set(range(48, dense.LARGEST + 1, dense.SMALLEST))


def names(pids):
    found = []
    for pid in pids:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            found.append(file.read().strip())
    return found


def private(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a box's process")
@pytest.mark.needs_userns
def test_a_boxs_own_process_takes_less_than_three_mebibytes_after_many_boxes(bench, wait_for):
    for _ in range(20):
        bench.run("/usr/bin/true")
    running = bench.begin(bench.plan("/bin/sh", "-c", "echo; exec sleep 60"))
    wait_for(lambda: bool(running.parts[0]) and "sleep" in names(running.box.pids()))
    own = sum(private(pid) for pid in running.box.pids())
    running.box.kill("enough")
    running.finish()
    assert own < 3072, f"{own} KiB"
