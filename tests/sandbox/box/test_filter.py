"""The system call filter: proved in the simulator for both architectures, then by the kernel."""

import errno
import os
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.sandbox.inner import refused, seccomp
from ringfence.sandbox.inner.bpf import ALLOW, EQUAL, ERRNO, FAR, NOTIFY, NUMBER, Program, simulate
from ringfence.sandbox.inner.changes import CHANGES

MACHINES = sorted(seccomp.ARCHES)
NO_SYSTEM = ERRNO | errno.ENOSYS


def act(machine, name, *arguments):
    numbers = {
        **seccomp.REFUSED[machine],
        **seccomp.JUDGED[machine],
        **seccomp.CHANGING[machine],
        **seccomp.PROCESS_ONE[machine],
        **{name: number for name, (number, _register) in seccomp.OPENING[machine].items()},
        **{name: number for name, (number, _ids) in seccomp.BECOMING[machine].items()},
        "clone3": seccomp.CLONE3,
        "utimensat": seccomp.TIMING[machine],
    }
    program = seccomp.build(machine)
    return simulate(program, number=numbers[name], arch=seccomp.ARCHES[machine], arguments=arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_refused_call_is_stopped_and_seen(machine):
    program = seccomp.build(machine)
    for number in seccomp.REFUSED[machine].values():
        assert simulate(program, number=number, arch=seccomp.ARCHES[machine]) == NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_named_dangers_are_in_the_table(machine):
    wanted = {
        "unshare", "setns", "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "mount_setattr",
        "ptrace", "process_vm_readv", "process_vm_writev", "bpf", "io_uring_setup", "io_uring_enter", "keyctl", "add_key",
        "request_key", "userfaultfd", "perf_event_open", "kexec_load", "kexec_file_load", "init_module", "finit_module",
        "reboot", "swapon", "open_by_handle_at", "pidfd_getfd", "kcmp", "fanotify_init", "quotactl",
    }  # fmt: skip
    assert wanted <= set(seccomp.REFUSED[machine])


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, seccomp.NEWEST))
def test_every_other_call_passes(machine, number):
    judged = {
        *seccomp.REFUSED[machine].values(),
        *seccomp.JUDGED[machine].values(),
        *seccomp.CHANGING[machine].values(),
        *seccomp.PROCESS_ONE[machine].values(),
        *seccomp.ASKING[machine].values(),
        *(number for number, _ids in seccomp.BECOMING[machine].values()),
        seccomp.CLONE3,
    }
    if number not in judged:
        assert simulate(seccomp.build(machine), number=number, arch=seccomp.ARCHES[machine]) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_another_architecture_and_numbers_beyond_all_go_to_the_watcher(machine):
    program = seccomp.build(machine)
    assert simulate(program, number=1, arch=0x40000003) == NOTIFY
    for number in (seccomp.NEWEST + 1, 500, 0x40000000 + 59, 0xFFFFFFFF):
        assert simulate(program, number=number, arch=seccomp.ARCHES[machine]) == NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_nobody_becomes_root_and_everybody_may_stay_who_they_are(machine):
    for name, (_number, ids) in seccomp.BECOMING[machine].items():
        assert act(machine, name, *[1000] * ids) == act(machine, name, *[0xFFFFFFFF] * ids) == ALLOW
        for place in range(ids):
            assert act(machine, name, *[1000] * place, 0, *[1000] * (ids - place - 1)) == NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_times_are_seen_by_path_only(machine):
    assert act(machine, "utimensat", 5, 0, 0, 0) == ALLOW
    for path in (4096, 1 << 40, (1 << 40) + 4096):
        assert act(machine, "utimensat", 5, path, 0, 0) == NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_clone_may_make_processes_and_threads_but_no_namespace(machine):
    assert act(machine, "clone", 0x01200011) == ALLOW
    assert act(machine, "clone", 0x003D0F00) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert act(machine, "clone", 0x11 | bit) == NOTIFY
    assert act(machine, "clone3", 0) == NOTIFY  # its flags stand in memory: the launcher looks, and says "no such call"


@pytest.mark.parametrize("machine", MACHINES)
def test_sockets_by_family_type_and_protocol(machine):
    stream, datagram, raw, flags = 1, 2, 3, 0x80800
    for family in (1, 2, 10):
        assert act(machine, "socket", family, stream | flags, 0) == ALLOW
    assert act(machine, "socket", 2, datagram, 17) == ALLOW
    assert act(machine, "socket", 2, datagram, 1) == act(machine, "socket", 10, datagram, 58) == NOTIFY
    assert act(machine, "socket", 2, raw | flags, 1) == NOTIFY
    assert act(machine, "socket", 10, raw, 58) == NOTIFY
    assert act(machine, "socket", 2, stream, 132) == NOTIFY
    assert act(machine, "socket", 2, stream, 262) == act(machine, "socket", 10, stream, 262) == NOTIFY
    assert act(machine, "socket", 16, raw, 0) == ALLOW
    assert act(machine, "socket", 16, raw, 12) == NOTIFY
    for family in (17, 38, 40, 15, 44, 31, 29):
        assert act(machine, "socket", family, stream, 0) == NOTIFY
    for kind in set(range(16)) - {stream, datagram}:  # without a protocol these are SCTP, DCCP, packet sockets
        for family in (2, 10):
            assert {act(machine, "socket", family, kind | flags, protocol) for protocol in (0, 6, 17)} == {NOTIFY}


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 60), kind=st.integers(0, 10), protocol=st.integers(0, 262))
def test_a_pair_of_sockets_is_local_or_none(machine, family, kind, protocol):
    assert act(machine, "socketpair", family, kind, protocol) == (ALLOW if family == 1 else NOTIFY)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_limit_of_cores_is_nobodys_to_set_and_a_lease_nobodys_to_take(machine):
    core, files, new = 4, 7, 1 << 40
    assert act(machine, "setrlimit", core) == act(machine, "prlimit64", 0, core, new) == NOTIFY
    assert act(machine, "prlimit64", 9, core, 4096, 4096) == NOTIFY
    assert act(machine, "setrlimit", files) == act(machine, "prlimit64", 0, files, new) == ALLOW
    assert act(machine, "prlimit64", 0, core, 0, 4096) == ALLOW  # a question
    assert act(machine, "fcntl", 3, 1024) == NOTIFY
    assert {act(machine, "fcntl", 3, one) for one in (*range(16), 1030, 1031, 1033)} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_who_closes_itself_is_told_that_it_is_done_and_stays_open(machine):
    dumpable, name = 4, 15
    assert act(machine, "prctl", dumpable, 0) == ERRNO
    assert act(machine, "prctl", dumpable, 1) == act(machine, "prctl", name, 0) == act(machine, "prctl", 38, 1) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_options_of_a_process_that_only_a_later_kernel_has_are_seen(machine):
    known = (1, 15, 22, 38, 53, 62, 77, 0x41555856, 0x53564D41, 0x59616D61)
    assert {act(machine, "prctl", one, 1) for one in known} == {ALLOW}
    assert {act(machine, "prctl", one, 1, 1 << 23) for one in (78, 79, 500, 0xFFFF)} == {NOTIFY}


@pytest.mark.parametrize("machine", MACHINES)
@given(flags=st.integers(0, 0xFFFFFFFF), upper=st.integers(0, 0xFFFFFFFF))
def test_memory_is_asked_for_in_pages_that_limits_count(machine, flags, upper):
    for name, (register, flag) in seccomp.HUGE_PAGES.items():
        asked = [1 << 21] * register + [flags | upper << 32]
        assert act(machine, name, *asked) == (NOTIFY if flags & flag else ALLOW)


@pytest.mark.parametrize("machine", MACHINES)
def test_options_of_sockets_that_need_a_privilege_or_lay_protocols_over_them_are_seen_and_all_others_pass(machine):
    options = {1: (36, 33), 0: (19, 64, 96, 200), 41: (64, 75, 209), 6: (19, 31), 17: (100,)}
    for level, option in ((level, option) for level, some in options.items() for option in some):
        assert act(machine, "setsockopt", 3, level, option) == NOTIFY
    for level, option in ((1, 2), (1, 9), (1, 26), (0, 1), (0, 25), (0, 52), (41, 26), (41, 67), (6, 64), (17, 103)):
        assert act(machine, "setsockopt", 3, level, option) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "kinds"), [("setpriority", (0, 1, 2)), ("ioprio_set", (1, 2, 3))])
def test_turns_of_process_1_are_not_set_alone_nor_in_a_group_nor_with_all_of_its_user(machine, name, kinds):
    process, group, user = kinds
    assert {act(machine, name, *one) for one in ((process, 1), (group, 1), (user, 0), (user, 1000))} == {NOTIFY}
    assert {act(machine, name, kind, who) for kind in (process, group) for who in (0, 2, 1000)} == {ALLOW}
    assert {act(machine, "setpgid", one, 1) for one in (0, 2, 1000)} == {NOTIFY}
    assert {act(machine, "setpgid", *one) for one in ((0, 0), (1000, 0), (0, 1000), (1, 2))} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("table", [seccomp.PROCESS_ONE, {name: {"prlimit64": 0} for name in MACHINES}])
def test_what_is_about_process_1_is_seen(machine, table):
    for name in table[machine]:
        assert act(machine, name, 1, 7, 4096) == act(machine, name, 1 | 1 << 32, 7, 1 << 40) == NOTIFY
        assert act(machine, name, 0, 7, 4096) == act(machine, name, 2, 7, 4096) == ALLOW
    assert act(machine, "prlimit64", 1, 7, 0) == ALLOW  # a question


@pytest.mark.parametrize("machine", MACHINES)
@given(upper=st.integers(0, 0xFFFFFFFF))
def test_typing_into_the_terminal_is_stopped_whatever_the_upper_half_says(machine, upper):
    for request in seccomp.REFUSED_REQUESTS:
        assert act(machine, "ioctl", 0, request | upper << 32) == NOTIFY
    assert act(machine, "ioctl", 0, 0x5401 | upper << 32) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_of_the_requests_about_a_network_only_questions_pass(machine):
    asked = {one for one in range(0x8800, 0x8B00) if act(machine, "ioctl", 3, one) == NOTIFY}
    assert asked == set(seccomp.NETWORK_REQUESTS) - set(seccomp.NETWORK_QUESTIONS)
    assert asked > set(seccomp.NETWORK_CHANGES)


@pytest.mark.parametrize("machine", MACHINES)
@given(
    direction=st.integers(0, 3),
    size=st.integers(0, 0x3FFF),
    letter=st.sampled_from(seccomp.FILE_LETTERS),
    one=st.integers(0, 255),
)
def test_of_the_requests_of_file_systems_only_questions_and_copies_pass(machine, direction, size, letter, one):
    request = direction << 30 | size << 16 | letter | one
    assert act(machine, "ioctl", 3, request) == (ALLOW if request in seccomp.FILE_QUESTIONS else NOTIFY)


@pytest.mark.parametrize("machine", MACHINES)
def test_ordinary_requests_about_files_pass_and_what_changes_a_file_system_is_seen(machine):
    flags, extents, version, clone, clone_range, label = (
        0x80086601,
        0xC020660B,
        0x80087601,
        0x40049409,
        0x4020940D,
        0x81009431,
    )
    for request in (flags, extents, version, clone, clone_range, label, 2, 0x541B, 0x5421, 0x5451):
        assert act(machine, "ioctl", 3, request) == ALLOW
    for request in seccomp.FILE_CHANGES:
        assert act(machine, "ioctl", 3, request) == NOTIFY
        assert refused.describe("ioctl", (3, request, 0)).isascii()
    assert refused.describe("ioctl", (3, 0x50009401, 0)) == "ioctl BTRFS_IOC_SNAP_CREATE"


@pytest.mark.parametrize("machine", MACHINES)
def test_exec_is_seen_and_personality_judged(machine):
    assert act(machine, "execve") == act(machine, "execveat") == NOTIFY
    assert act(machine, "personality", 0xFFFFFFFF) == ALLOW
    assert act(machine, "personality", 0x0400000) == NOTIFY


@pytest.mark.parametrize("machine", MACHINES)
def test_every_change_of_a_path_is_seen(machine):
    program = seccomp.build(machine)
    for number in seccomp.CHANGING[machine].values():
        assert simulate(program, number=number, arch=seccomp.ARCHES[machine]) == NOTIFY
    wanted = {"unlinkat", "renameat2", "mkdirat", "linkat", "symlinkat", "mknodat", "fchmodat", "fchownat", "openat2"}
    assert wanted <= set(seccomp.CHANGING[machine])
    assert set(seccomp.CHANGING[machine]) | set(seccomp.OPENING[machine]) <= set(CHANGES)
    tables = (seccomp.REFUSED, seccomp.JUDGED, seccomp.CHANGING, seccomp.PROCESS_ONE, seccomp.ASKING)
    numbers = [number for table in tables for number in table[machine].values()]
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("machine", MACHINES)
@given(flags=st.integers(0, 0xFFFFFFFF), upper=st.integers(0, 0xFFFFFFFF))
def test_an_open_is_seen_where_it_asks_for_more_than_to_read(machine, flags, upper):
    intent = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for name, (_number, register) in seccomp.OPENING[machine].items():
        arguments = [0xFFFFFF9C] * register + [flags | upper << 32]
        assert act(machine, name, *arguments) == (NOTIFY if intent else ALLOW)


def test_the_assembler_refuses_what_would_jump_wrong():
    program = Program()
    program.load(NUMBER)
    program.test(EQUAL, 1, yes="far")
    for _ in range(FAR + 1):
        program.load(NUMBER)
    program.label("far")
    program.answer(ALLOW)
    with pytest.raises(ValueError, match="255 lines"):
        program.assemble()
    backwards = Program()
    backwards.label("start")
    backwards.load(NUMBER)
    backwards.goto("start")
    with pytest.raises(ValueError, match="behind"):
        backwards.assemble()
    missing = Program()
    missing.goto("nowhere")
    with pytest.raises(ValueError, match="no label"):
        missing.assemble()
    with pytest.raises(ValueError, match="twice"):
        program.label("far")


TRIES = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    print(name, "done" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?"))
names = "unshare", "mount", "ptrace", "bpf", "keyctl", "userfaultfd", "perf", "setns", "kexec"
numbers = {"x86_64": (272, 165, 101, 321, 250, 323, 298, 308, 246), "aarch64": (97, 40, 117, 280, 219, 282, 241, 268, 104)}
of = dict(zip(names, numbers[os.uname().machine]))
call("unshare", of["unshare"], 0x10000000); call("mount", of["mount"], b"x", b"/tmp", b"tmpfs", 0, 0)
call("io_uring", 425, 1, 0); call("clone3", 435, 0, 0); call("userfaultfd", of["userfaultfd"], 1)
for name in ("ptrace", "bpf", "keyctl", "perf", "setns", "kexec"): call(name, of[name], 0, 0, 0, 0)
for family, kind in ((40, 1), (17, 3), (2, 3), (38, 5)):
    try: socket.socket(family, kind); print("socket", family, "done")
    except OSError as fault: print("socket", family, errno.errorcode[fault.errno])
try: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
except OSError as fault: print("multipath", errno.errorcode[fault.errno])
import fcntl
try: fcntl.ioctl(0, 0x5412, b"x"); print("tiocsti done")
except OSError as fault: print("tiocsti", errno.errorcode[fault.errno])
"""


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((2, 2, 1), "socket inet type datagram protocol icmp"),
        ((10, 3, 58), "socket inet6 type raw protocol icmpv6"),
        ((2, 0x80803, 255), "socket inet type raw protocol raw"),
        ((17, 3, 0x300), "socket packet type raw protocol 768"),
        ((16, 3, 12), "socket netlink type raw protocol 12"),
        ((99, 77, 0), "socket 99 type 13"),
        ((2, 10, 0), "socket inet type packet"),
        ((2 | 5 << 32, 1, 132), "socket inet type stream protocol sctp"),
    ],
)
def test_a_refused_socket_is_told_in_words(asked, words):
    assert refused.describe("socket", (*asked, 0, 0, 0)) == words


@pytest.mark.needs_userns
def test_the_kernel_agrees(bench):
    ran = bench.run("/usr/bin/python3", "-c", TRIES)
    lines = dict(line.rsplit(" ", 1) for line in ran.out.decode().splitlines())
    assert lines.pop("clone3") == "ENOSYS"
    for family in ("40", "17", "2", "38"):
        assert lines.pop(f"socket {family}") == "EAFNOSUPPORT"
    assert lines.pop("multipath") == "EPROTONOSUPPORT"  # by which runtimes fall back to TCP
    assert set(lines.values()) == {"EPERM"}, lines
    refused = [o.detail for o in ran.execution.observations if o.kind == "refused-syscall"]
    assert [detail for detail in refused if detail.endswith("protocol mptcp")]
    seen = {detail.split()[0] for detail in refused}
    assert {"unshare", "mount", "ptrace", "bpf", "io_uring_setup", "keyctl", "socket", "ioctl"} <= seen


@pytest.mark.needs_userns
def test_repeated_refusals_are_counted_exactly(bench):
    script = "import ctypes; libc = ctypes.CDLL(None); [libc.unshare(0x10000000) for _ in range(500)]"
    ran = bench.run("/usr/bin/python3", "-c", script)
    counts = [o.count for o in ran.execution.observations if o.detail.startswith("unshare")]
    assert counts == [500]


@pytest.mark.needs_userns
def test_more_kinds_than_are_kept_are_counted_as_dropped(bench):
    script = "import ctypes\nlibc = ctypes.CDLL(None)\nfor n in range(1200): libc.personality(0x01000000 + n)\n"
    ran = bench.run("/usr/bin/python3", "-c", script)
    kept = sum(1 for o in ran.execution.observations if o.kind == "refused-syscall")
    assert kept < 1000
    assert kept + ran.execution.observations_dropped == 1200


def _with_calls_of_32_bit():
    """A program of a few bytes that asks for its process id as 32-bit programs do, and ends with 50."""
    code, machine = {
        # mov eax, 20; int 0x80; mov ebx, 50; mov eax, 1; int 0x80
        "x86_64": ("b814000000cd80bb32000000b801000000cd80", 3),
        # mov r7, #20; svc 0; mov r0, #50; mov r7, #1; svc 0
        "aarch64": ("1470a0e3000000ef3200a0e30170a0e3000000ef", 40),
    }[os.uname().machine]
    base, size = 0x10000, 52 + 32
    flags = 0x05000000 if machine == 40 else 0
    whole = size + len(code) // 2
    head = b"\x7fELF\1\1\1".ljust(16, b"\0")
    head += struct.pack("<HHIIIIIHHHHHH", 2, machine, 1, base + size, 52, 0, flags, 52, 32, 1, 0, 0, 0)
    return head + struct.pack("<IIIIIIII", 1, 0, base, base, whole, whole, 5, 0x1000) + bytes.fromhex(code)


@pytest.mark.needs_userns
def test_a_call_of_another_architecture_ends_its_caller_and_is_recorded(bench):
    program = Path(bench.layer.target) / "of-32-bit"
    program.write_bytes(_with_calls_of_32_bit())
    program.chmod(0o755)
    try:
        outside = subprocess.run([program], check=False).returncode
    except OSError as fault:
        pytest.skip(f"no 32-bit programs here: {fault.strerror}")
    assert outside == 50, "it works where nothing holds it"
    ran = bench.sh("./of-32-bit; echo $?")
    assert ran.out.split()[-1] == b"137"
    arch = {"x86_64": "0x40000003", "aarch64": "0x40000028"}[os.uname().machine]
    assert any(f"of architecture {arch}" in o.detail for o in ran.execution.observations)
