"""The launcher is woken at once on a busy machine, and the box's programs run as any others."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_userns


def slice_of(text):
    found = re.search(r"se\.slice\s*:\s*(\d+)", text)
    if found is None:
        pytest.skip("this kernel does not tell the slice")
    return int(found[1])


def test_the_launcher_has_a_short_slice_and_the_box_the_ordinary_one(bench):
    ordinary = slice_of(Path("/proc/self/sched").read_text())
    ran = bench.run("/usr/bin/cat", "/proc/self/sched")
    assert slice_of(ran.out.decode()) == ordinary
    launcher = slice_of(Path(f"/proc/{bench.launcher.pid}/sched").read_text())
    assert launcher in {100_000, ordinary}
