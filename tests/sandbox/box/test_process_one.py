"""Process 1 of a box is the fence's own: nothing changes it, and what a box does to it costs no record."""

import os
import signal

import pytest

pytestmark = pytest.mark.needs_userns

PRELUDE = """
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
prlimit64, sched_setscheduler, migrate_pages, unshare, setpriority, ioprio_set, setpgid = {
    "x86_64": (302, 144, 256, 272, 141, 251, 109), "aarch64": (261, 119, 238, 97, 140, 30, 154),
}[os.uname().machine]
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*(ctypes.c_long(one) if isinstance(one, int) else one for one in (number, *arguments)))
    return errno.errorcode.get(ctypes.get_errno(), result)
"""


def python(bench, body):
    return bench.run("/usr/bin/python3", "-c", PRELUDE + body)


def refused(ran):
    return {o.detail for o in ran.execution.observations if o.kind == "refused-syscall"}


def test_no_limit_of_process_1_can_be_set_and_its_limits_can_be_read(bench):
    ran = python(bench, """
for kind in range(16): print(call(prlimit64, 1, kind, struct.pack("QQ", 0, 0), 0))
print(call(prlimit64, 1 | 1 << 32, 7, struct.pack("QQ", 0, 0), 0))
assert call(prlimit64, 1, 7, 0, ctypes.create_string_buffer(16)) == 0
assert call(prlimit64, os.getpid(), 7, struct.pack("QQ", 64, 64), 0) == call(prlimit64, 0, 4, struct.pack("QQ", 0, 0), 0) == 0
""")  # fmt: skip
    assert (ran.execution.exit, ran.execution.ended_by) == (0, ""), ran.err
    assert set(ran.out.split()) == {b"EPERM"}
    assert refused(ran) == {"prlimit64 of process 1"}


def test_tries_on_how_process_1_is_scheduled_and_where_its_memory_lies_are_seen(bench):
    ran = python(bench, """
assert call(sched_setscheduler, 1, 5, struct.pack("i", 0)) == call(migrate_pages, 1, 64, 0, 0) == "EPERM"
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)); os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    assert refused(ran) == {"sched_setscheduler of process 1", "migrate_pages of process 1"}


def test_process_1_gets_its_turns_whatever_a_program_asks_for(bench):
    ran = python(bench, """
assert {call(setpriority, *one, 19) for one in ((0, 1), (1, 1), (2, 0), (2, os.getuid()))} == {"EPERM"}
assert {call(ioprio_set, *one, 3 << 13) for one in ((1, 1), (2, 1), (3, 0), (3, os.getuid()))} == {"EPERM"}
assert os.getpriority(os.PRIO_PROCESS, 1) == os.getpriority(os.PRIO_PROCESS, 0)
os.setpriority(os.PRIO_PROCESS, 0, 5); os.setpriority(os.PRIO_PGRP, 0, 6); assert call(ioprio_set, 1, 0, 3 << 13) == 0
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    assert refused(ran) == {"setpriority of process 1", "ioprio_set of process 1"}


def test_nobody_joins_the_group_of_process_1_to_set_its_turns(bench):
    ran = python(bench, """
assert call(setpgid, 0, 1) == "EPERM"
os.setpriority(os.PRIO_PGRP, 0, 19); assert call(ioprio_set, 2, 0, 3 << 13) == 0
assert os.getpriority(os.PRIO_PROCESS, 1) == 0
child = os.fork()
if not child: os.setpgid(0, 0); os.setpgid(0, os.getpgid(os.getppid())); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")  # fmt: skip
    assert ran.execution.exit == 0, ran.err
    assert refused(ran) == {"setpgid of process 1"}


def test_a_call_that_only_a_later_kernel_has_is_none_and_is_seen(bench):
    ran = python(bench, "print(call(470), call(471, 1, 2, 3))")
    assert (ran.execution.exit, ran.out.split()) == (0, [b"ENOSYS"] * 2)
    assert refused(ran) == {"call 0x1d6", "call 0x1d7"}


@pytest.mark.parametrize(
    "name", ["comm", "autogroup", "oom_score_adj", "coredump_filter", "clear_refs", "timerslack_ns"]
)
def test_what_a_process_may_set_about_itself_it_may_not_set_about_process_1(bench, name):
    ran = bench.sh(f"echo 1 > /proc/1/{name}; echo 1 > /proc/self/{name}; echo 1 > /proc/$$/{name}; true")
    seen = {o.detail for o in ran.execution.observations if o.kind == "refused-write"}
    assert seen == {f"open for writing /proc/1/{name}"}


def test_every_signal_to_process_1_changes_nothing(bench):
    ran = python(bench, """
for number in range(1, 65): libc.kill(1, number)
print("here")
""")  # fmt: skip
    assert (ran.out, ran.execution.exit, ran.execution.ended_by) == (b"here\n", 0, "")


def test_a_box_whose_first_process_dies_keeps_its_record(bench, wait_for):
    running = bench.begin(bench.plan("/usr/bin/python3", "-c", PRELUDE + """
call(unshare, 0x10000000); print("done", flush=True)
import time; time.sleep(100)
"""))  # fmt: skip
    wait_for(lambda: b"done" in running.parts[0])
    os.kill(running.box.pid, signal.SIGKILL)
    ran = running.finish()
    assert ran.execution.ended_by.startswith("fault of the box's first process")
    assert (ran.execution.exit, ran.execution.signal) == (None, signal.SIGKILL)
    assert refused(ran) == {"unshare 0x10000000"}
