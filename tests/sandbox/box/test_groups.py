"""How a box comes into its control groups, and when the next one is begun."""

import os
import time
from pathlib import Path

import pytest

from ringfence.sandbox.inner.groups import POLLING, PREFIX, Groups, mechanism


@pytest.mark.parametrize(("kind", "door"), [("cgroup v1", "tasks"), ("cgroup v2", "cgroup.procs")])
def test_a_box_goes_into_its_groups_by_the_door_that_holds_up_nobody(tmp_path, kind, door):
    groups = Groups(kind, {name: f"{tmp_path}/{name}" for name in ("memory", "pids", "freezer")})
    assert groups.doors() == [f"{tmp_path}/memory/{door}", f"{tmp_path}/pids/{door}"]


@pytest.mark.needs_userns
def test_all_of_a_box_is_in_its_groups(bench):
    if mechanism() == POLLING:
        pytest.skip("no groups to be had here: limits are polled")
    running = bench.begin(bench.plan("/bin/sh", "-c", "sleep 60 & wait"))
    wait_for(lambda: len(running.box.pids()) == 3)
    for pid in running.box.pids():
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        assert any(PREFIX in line for line in lines if "pids" in line or line.startswith("0:")), (pid, lines)
    running.box.kill("enough")
    running.finish()


def children(pid):
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.needs_userns
def test_the_next_box_is_begun_while_a_long_command_runs_and_after_a_short_one(bench):
    bench.run("/usr/bin/true")
    wait_for(lambda: len(children(bench.launcher.pid)) == 4)  # three that help, and the next box
    waiting = children(bench.launcher.pid)
    running = bench.begin(bench.plan("/usr/bin/sleep", "60"))
    wait_for(lambda: len(children(bench.launcher.pid)) == 5)
    assert waiting < children(bench.launcher.pid), "the one that was begun took the order, and another was begun"
    running.box.kill("enough")
    running.finish()
    wait_for(lambda: len(children(bench.launcher.pid)) == 4)


def test_groups_that_cannot_all_be_made_leave_none(tmp_path):
    (tmp_path / "pids").mkdir()
    with pytest.raises(FileNotFoundError):
        Groups("cgroup v1", {"memory": f"{tmp_path}/memory", "pids": f"{tmp_path}/pids/absent/one"})
    assert os.listdir(tmp_path) == ["pids"]


def test_processor_time_is_counted_where_no_group_counts_it(tmp_path):
    groups = Groups("cgroup v1", {name: f"{tmp_path}/{name}" for name in ("memory", "pids")})
    groups.limits = {"memory": 1 << 40, "cpu": 0}
    assert groups.reached(os.getpid()) == "cpu, 0 ms"
