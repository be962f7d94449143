"""What the launcher keeps of boxes that have ended: nothing."""

import time

import pytest


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@pytest.mark.needs_userns
def test_the_launcher_keeps_nothing_of_boxes_that_have_ended(bench):
    for _ in range(10):
        bench.run("/usr/bin/true")
    time.sleep(0.1)
    before = resident(bench.launcher.pid)
    for _ in range(40):
        bench.run("/usr/bin/true")
    time.sleep(0.1)
    assert resident(bench.launcher.pid) - before < 400, "KiB; 37 for each box where its timers kept it"
