"""What is begun beside a process ends with it, whenever and however that one dies."""

import os
import select
import signal
import subprocess
import sys

import pytest

DIES = """
import os, signal, sys
from ringfence.sandbox.inner import beside, groups, idmap, kernel
if sys.argv[2] == "without the kernel's help":
    kernel.prctl = lambda *_: 0  # as when its parent died before the child could ask for it
begun = beside.Beside.__init__
def noted(self, *arguments):
    begun(self, *arguments)
    print(self.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
beside.Beside.__init__ = noted
eval(sys.argv[1])
"""
USES = {
    "a process for nothing": "beside.Beside(beside.wait)",
    "a trial of control groups": "groups._make_all({'memory': os.getcwd() + '/group'}, '')",
    "a map of ids": "idmap.make((0, 0), (1_900_000_000, 1_900_000_000))",
}


@pytest.mark.parametrize("help_", ["with the kernel's help", "without the kernel's help"])
@pytest.mark.parametrize("use", USES)
def test_it_ends_when_its_parent_is_killed(use, help_, tmp_path):
    if use == "a map of ids" and os.geteuid() != 0:
        pytest.skip("only a launcher started by root makes maps")
    words = [sys.executable, "-c", DIES, USES[use], help_]
    ran = subprocess.run(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == -signal.SIGKILL
    try:
        pidfd = os.pidfd_open(int(ran.stdout))
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], 30)[0], "it lives on"
    finally:
        os.close(pidfd)
