"""The box that is begun before it is asked for: what the host mounts meanwhile is in view all the same."""

import os
import sys
import traceback
from dataclasses import replace

import pytest

from ringfence.sandbox.inner import init, kernel
from ringfence.sandbox.launcher import Launcher

pytestmark = pytest.mark.needs_userns


def in_mounts_of_its_own(work):
    """Do it in a child that may mount without anybody else's noticing."""
    child = os.fork()
    if child == 0:
        try:
            user, group = os.geteuid(), os.getegid()
            kernel.unshare(kernel.CLONE_NEWNS | (kernel.CLONE_NEWUSER if user else 0))
            if user:
                init.map_self(user, group)
            kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001  said, and told by the status
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_worktree_on_a_disk_that_was_mounted_since_the_last_box(bench, tmp_path):
    disk, place = tmp_path / "disk", tmp_path / "place"
    (disk / "project").mkdir(parents=True)
    (disk / "project" / "was.txt").write_text("here\n")
    place.mkdir()
    target = str(place / "project")
    layer = replace(bench.layer, lower=target, target=target, masked=())

    def work():
        with Launcher.spawn(str(tmp_path / "state")) as bench.launcher:
            assert bench.sh("true").execution.exit == 0
            kernel.mount(os.fsencode(disk), os.fsencode(place), None, 4096, None)  # MS_BIND
            ran = bench.sh("cat was.txt", layer=layer, cwd=target)
            assert (ran.execution.exit, ran.out) == (0, b"here\n")

    in_mounts_of_its_own(work)
