"""What one box takes of what the kernel counts for a user, or for the host, is there for the next one all the same."""

import os
import resource

import pytest

from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.inner.view import TERMINALS
from ringfence.sandbox.launcher import Launcher

pytestmark = pytest.mark.needs_userns

SENDS_ALL_IT_CAN = """
import socket, sys
pairs = []
try:
    while True:
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        pairs[-1][0].setblocking(False)
        try:
            while True: socket.send_fds(pairs[-1][0], [b"x"], [0] * 250)
        except BlockingIOError: pass
except OSError as fault: print(fault.strerror, flush=True)
sys.stdin.read()
"""
MAKES_TERMINALS = """
import os, sys
made = 0
try:
    while True:
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        made += 1
except OSError as fault: print(made, fault.strerror, flush=True)
sys.stdin.read()
"""


def beside(bench, script, said, *argv):
    """Run a command in a box while another one does what it can."""
    away, kept = os.pipe()
    null = os.open("/dev/null", os.O_WRONLY)
    seen, told = os.pipe()
    plan = bench.plan("/usr/bin/python3", "-c", script)
    other = bench.launcher.start(plan, stdin=away, stdout=told, stderr=null)
    try:
        for descriptor in (away, null, told):
            os.close(descriptor)
        assert os.read(seen, 100).decode().strip() == said
        return bench.run(*argv, layer=None, cwd="/tmp")
    finally:
        other.kill("the test is over")
        other.wait(60)
        os.close(kept)
        os.close(seen)


def test_a_box_is_built_while_another_has_all_descriptors_under_way_that_it_may(bench, tmp_path):
    with Launcher.spawn(str(tmp_path / "state")) as bench.launcher:
        bench.facts = gather_host_facts(bench.launcher.state_dir, path=os.environ["PATH"])
        ran = beside(bench, SENDS_ALL_IT_CAN, "Too many references: cannot splice", "/bin/echo", "built")
    assert (ran.execution.exit, ran.out) == (0, b"built\n")


def test_a_box_has_terminals_while_another_has_all_that_it_may(bench):
    words = ("/usr/bin/python3", "-c", "import os; os.openpty()")
    ran = beside(bench, MAKES_TERMINALS, f"{TERMINALS} No space left on device", *words)
    assert ran.execution.exit == 0, ran.err


def test_the_limit_of_open_files_leaves_the_fence_a_part_of_what_the_user_may(bench):
    ran = bench.sh("ulimit -Hn; ulimit -Sn")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert ran.out.split() == [b"%d" % min(16_384, hard * 3 // 4)] * 2


ASKS_FOR_WHAT_THE_HOST_HAS_ONCE = """
import ctypes, errno, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
setup, get = {"x86_64": (206, 29), "aarch64": (0, 194)}[os.uname().machine]
def said(result): return errno.errorcode.get(ctypes.get_errno()) if result < 0 else "done"
print(said(libc.syscall(setup, 1000, ctypes.byref(ctypes.c_ulong()))))
print(said(libc.syscall(get, 0, ctypes.c_long(1 << 21), 0o4600)))
for take in (lambda: mmap.mmap(-1, 1 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000), lambda: os.memfd_create("x", 4)):
    try: take(); print("done")
    except OSError as fault: print(errno.errorcode[fault.errno])
print(said(libc.prctl(78, 1, ctypes.c_ulong(1 << 10), 0, 0)))
mmap.mmap(-1, 1 << 21); os.memfd_create("x"); libc.prctl(15, b"name", 0, 0, 0)
"""


def test_a_box_gets_nothing_of_what_the_host_has_once_for_all_and_no_limit_counts(bench):
    ran = bench.run("/usr/bin/python3", "-c", ASKS_FOR_WHAT_THE_HOST_HAS_ONCE)
    assert (ran.execution.exit, ran.out.split()) == (0, [b"ENOSYS", b"ENOMEM", b"ENOMEM", b"ENOMEM", b"EINVAL"]), (
        ran.err
    )
    assert {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"} == {
        "io_setup", "shmget of huge pages", "mmap of huge pages", "memfd_create of huge pages", "prctl 78",
    }  # fmt: skip
