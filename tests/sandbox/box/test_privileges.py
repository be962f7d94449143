"""Tries to have a privilege that no program of a box has: refused as the kernel refuses them, and each in the record."""

import errno

import pytest

from ringfence.sandbox.inner import seccomp
from ringfence.sandbox.inner.bpf import ALLOW, NOTIFY, simulate
from ringfence.sandbox.inner.refused import answer_to, asks_for, describe

MACHINES = sorted(seccomp.ARCHES)
FIFO, ROUND, BATCH, IDLE, DEADLINE, RESET = 1, 2, 3, 5, 6, 0x40000000


def act(machine, name, *arguments):
    tables = (seccomp.REFUSED, seccomp.JUDGED, seccomp.ASKING, seccomp.PROCESS_ONE)
    numbers = {name: number for table in tables for name, number in table[machine].items()}
    return simulate(seccomp.build(machine), number=numbers[name], arch=seccomp.ARCHES[machine], arguments=arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_options_of_a_process_that_need_a_capability_are_refused_and_giving_one_up_is_not(machine):
    drop, secure, bits, memory, ambient, read = 24, 28, 27, 35, 47, 23
    for option in ((drop, 1), (secure, 1), (memory, 1), (memory, 13), (ambient, 2)):
        assert act(machine, "prctl", *option) == NOTIFY
        assert answer_to("prctl", (*option, 0, 0)) == errno.EPERM
    for option in ((bits, 0), (memory, 14), (memory, 15), (ambient, 1), (ambient, 3), (ambient, 4), (read, 1)):
        assert act(machine, "prctl", *option) == ALLOW
    assert answer_to("prctl", (500, 0, 0, 0)) == errno.EINVAL
    assert describe("prctl", (47, 2, 0, 0)) == "prctl PR_CAP_AMBIENT"
    assert describe("prctl", (500, 0, 0, 0)) == "prctl 500"


@pytest.mark.parametrize("machine", MACHINES)
def test_no_turn_before_the_persons_programs_is_given(machine):
    for policy in (FIFO, ROUND, FIFO | RESET, ROUND | RESET):
        assert {act(machine, "sched_setscheduler", who, policy) for who in (0, 7)} == {NOTIFY}
    for policy in (0, BATCH, IDLE, IDLE | RESET):
        assert act(machine, "sched_setscheduler", 0, policy) == ALLOW
        assert act(machine, "sched_setscheduler", 1, policy) == NOTIFY
    minus = (1 << 64) - 5
    assert {act(machine, "setpriority", kind, 0, minus) for kind in (0, 1)} == {NOTIFY}
    assert {act(machine, "setpriority", 0, 0, value) for value in (0, 19)} == {ALLOW}
    assert {act(machine, "ioprio_set", 1, 0, 1 << 13 | level) for level in range(8)} == {NOTIFY}
    assert {act(machine, "ioprio_set", 1, 0, kind << 13) for kind in (0, 2, 3)} == {ALLOW}
    assert answer_to("setpriority", (0, 0, minus)) == errno.EACCES
    assert answer_to("setpriority", (0, 1, minus)) == errno.EPERM
    assert describe("setpriority", (0, 0, minus)) == "setpriority -5"
    assert describe("setpriority", (0, 1, minus)) == "setpriority of process 1"


@pytest.mark.parametrize("machine", MACHINES)
def test_no_alarm_wakes_the_host_and_nothing_is_asked_about_what_others_read(machine):
    for name in ("timer_create", "timerfd_create"):
        assert {act(machine, name, clock) for clock in (8, 9)} == {NOTIFY}
        assert {act(machine, name, clock) for clock in (0, 1, 7, 11)} == {ALLOW}
    assert act(machine, "cachestat", 3) == act(machine, "get_robust_list", 1) == act(machine, "ioctl", 3, 1) == NOTIFY
    assert {act(machine, "get_robust_list", who) for who in (0, 2)} == {ALLOW}
    assert answer_to("cachestat", (3, 0, 0, 0)) == errno.ENOSYS


def test_what_stands_in_memory_is_told_where_it_asks_for_a_privilege():
    words = [0x1, 0x3, 0, 0x1F, 0, 0]
    assert asks_for("capset", b"".join(word.to_bytes(4, "little") for word in words)) == "0x1f00000003"
    assert asks_for("capset", bytes(24)) == asks_for("capset", b"") == ""

    def turns(policy, nice=0):
        return (
            (48).to_bytes(4, "little")
            + policy.to_bytes(4, "little")
            + bytes(8)
            + nice.to_bytes(4, "little", signed=True)
        )

    assert {asks_for("sched_setattr", turns(policy)) for policy in (FIFO, ROUND, DEADLINE)} == {"of real time"}
    assert {asks_for("sched_setattr", turns(policy, 5)) for policy in (0, BATCH, IDLE)} == {""}
    assert asks_for("sched_setattr", turns(0, -7)) == "-7"


TRIES = r"""
import ctypes, errno, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
def call(*arguments):
    ctypes.set_errno(0)
    return "done" if libc.syscall(*arguments) >= 0 else errno.errorcode[ctypes.get_errno()]
capset, setattr_, timerfd, timer, robust, ioprio = (126, 314, 283, 222, 274, 251) if x86 else (91, 274, 85, 107, 100, 30)
header = struct.pack("=Ii", 0x20080522, 0)
print("give up", call(capset, header, bytes(24)), "raise", call(capset, header, struct.pack("=6I", 0, 0, 0, 2, 2, 0)))
print("drop", "done" if libc.prctl(24, 1, 0, 0, 0) == 0 else errno.errorcode[ctypes.get_errno()])
print("ambient", "done" if libc.prctl(47, 2, 21, 0, 0) == 0 else errno.errorcode[ctypes.get_errno()])
print("batch", call(setattr_, 0, struct.pack("=IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0),
      "deadline", call(setattr_, 0, struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, 1 << 20, 1 << 24, 1 << 24), 0),
      "first", call(setattr_, 1, struct.pack("=IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0))
for name, try_ in (("fifo", lambda: os.sched_setscheduler(0, 1, os.sched_param(50))), ("below", lambda: os.setpriority(0, 0, -20))):
    try: try_(); print(name, "done")
    except OSError as fault: print(name, errno.errorcode[fault.errno])
print("reads first", call(ioprio, 1, 0, 1 << 13), "alarm", call(timerfd, 9, 0), call(timer, 8, 0, 0), "timer", call(timerfd, 1, 0))
print("list", call(robust, 1, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_size_t())), "pages", call(451, 0, 0, 0, 0))
one = socket.socket()
for level, option in ((1, 1), (1, 69), (0, 4), (41, 57)):
    try: one.setsockopt(level, option, bytes(8)); print("option", "done")
    except OSError as fault: print("option", errno.errorcode[fault.errno])
"""


@pytest.mark.needs_userns
def test_tries_to_have_a_privilege_are_refused_and_seen_each(bench):
    ran = bench.run("/usr/bin/python3", "-c", TRIES)
    assert ran.out.decode().splitlines() == [
        "give up done raise EPERM",
        "drop EPERM",
        "ambient EPERM",
        "batch done deadline EPERM first EPERM",
        "fifo EPERM",
        "below EACCES",
        "reads first EPERM alarm EPERM EPERM timer done",
        "list EPERM pages ENOSYS",
        *["option EPERM"] * 4,
    ], ran.err
    assert {o.detail: o.count for o in ran.execution.observations if o.kind == "refused-syscall"} == dict.fromkeys([
        "capset 0x200000000", "prctl PR_CAPBSET_DROP", "prctl PR_CAP_AMBIENT", "sched_setattr of real time",
        "sched_setattr of process 1", "sched_setscheduler of real time", "setpriority -20", "ioprio_set of real time",
        "timerfd_create of an alarm that wakes the host", "timer_create of an alarm that wakes the host",
        "get_robust_list of process 1", "cachestat", "setsockopt level 1 option 1", "setsockopt level 1 option 69",
        "setsockopt level 0 option 4", "setsockopt level 41 option 57",
    ], 1)  # fmt: skip
