"""The system call filter: which calls a box may not make, which are seen on the way, and how it is put in force.

Refused calls are answered by the launcher (EPERM), which thereby sees each of them; a call is never let through on
the launcher's word except ``execve`` and those that change a path, which were allowed anyway and are only recorded.
"""

import ctypes
import errno
import os
import struct

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.bpf import (
    ALLOW,
    ANY_BIT,
    ARCH,
    ARGUMENTS,
    AT_LEAST,
    EQUAL,
    ERRNO,
    NOTIFY,
    NUMBER,
    Program,
)
from ringfence.sandbox.inner.changes import WRITE_INTENT

ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NEW_NAMESPACES = 0x7E020000
"""Every CLONE_NEW* bit that clone(2) can carry."""
NEW_TIME = 0x80
"""CLONE_NEWTIME, which only clone3 and unshare can carry."""
NEWEST = 469
"""file_setattr of Linux 6.17. What a later kernel adds is unknown here, and so answered as by a kernel that has it not."""
NEWEST_OPTION, NAMED_OPTIONS = 77, 0x10000
"""PR_TIMER_CREATE_RESTORE_IDS of Linux 6.15, the same for prctl, whose options from the second on are letters. The next one
has the kernel keep as much memory as is asked for, where no limit without control groups sees it."""

_BOTH = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "cachestat": 451,
    "open_tree_attr": 467,
}
REFUSED = {
    "x86_64": {
        "ptrace": 101, "syslog": 103, "setgroups": 116, "uselib": 134, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
        "adjtimex": 159, "io_setup": 206,
        "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
        "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
        "delete_module": 176, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "fanotify_init": 300, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
        "userfaultfd": 323, **_BOTH,
    },
    "aarch64": {
        "io_setup": 0, "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51,
        "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142, "setgroups": 159, "sethostname": 161,
        "setdomainname": 162, "adjtimex": 171, "settimeofday": 170, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
        "swapoff": 225, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266,
        "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_BOTH,
    },
}  # fmt: skip
BECOMING = {
    "x86_64": {
        "setuid": (105, 1), "setgid": (106, 1), "setreuid": (113, 2), "setregid": (114, 2), "setresuid": (117, 3),
        "setresgid": (119, 3),
    },
    "aarch64": {
        "setregid": (143, 2), "setgid": (144, 1), "setreuid": (145, 2), "setuid": (146, 1), "setresuid": (147, 3),
        "setresgid": (149, 3),
    },
}  # fmt: skip
"""Number, and how many ids it takes; refused where one of them is 0, which nothing in a box maps to."""
PROCESS_ONE = {
    "x86_64": {
        "sched_setparam": 142, "sched_setaffinity": 203, "migrate_pages": 256, "get_robust_list": 274, "move_pages": 279,
    },
    "aarch64": {
        "get_robust_list": 100, "sched_setparam": 118, "sched_setaffinity": 122, "migrate_pages": 238, "move_pages": 239,
    },
}  # fmt: skip
"""Refused where they are about process 1, which has the box's user and is the fence's own."""
ASKING = {"x86_64": {"capset": 126, "sched_setattr": 314}, "aarch64": {"capset": 91, "sched_setattr": 274}}
"""What these ask for stands in memory, where no filter sees it: the launcher looks, and the kernel answers."""
JUDGED = {
    "x86_64": {
        "mmap": 9, "ioctl": 16, "shmget": 29, "socket": 41, "socketpair": 53, "setsockopt": 54, "clone": 56, "execve": 59, "fcntl": 72,
        "setpgid": 109, "personality": 135, "setpriority": 141, "sched_setscheduler": 144, "prctl": 157, "setrlimit": 160,
        "timer_create": 222, "ioprio_set": 251, "timerfd_create": 283, "prlimit64": 302, "memfd_create": 319, "execveat": 322,
    },
    "aarch64": {
        "fcntl": 25, "ioctl": 29, "ioprio_set": 30, "timerfd_create": 85, "personality": 92, "timer_create": 107,
        "sched_setscheduler": 119, "setpriority": 140, "setrlimit": 164, "prctl": 167, "shmget": 194, "socket": 198,
        "socketpair": 199, "setpgid": 154, "setsockopt": 208, "clone": 220, "execve": 221, "mmap": 222, "prlimit64": 261,
        "memfd_create": 279, "execveat": 281,
    },
}  # fmt: skip
CLONE3 = 435
_CHANGING_BOTH = {
    "openat2": 437,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}
CHANGING = {
    "x86_64": {
        "bind": 49, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88,
        "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "mknod": 133, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "utimes": 235, "mkdirat": 258, "mknodat": 259, "fchownat": 260,
        "futimesat": 261, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "renameat2": 316,
        **_CHANGING_BOTH,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45,
        "bind": 200, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "renameat2": 276,
        **_CHANGING_BOTH,
    },
}  # fmt: skip
"""Calls that change what stands under a path: each comes to the launcher, which records those that lead outside."""
OPENING = {"x86_64": {"open": (2, 1), "openat": (257, 2)}, "aarch64": {"openat": (56, 2)}}
"""Number, and the register with the flags; it comes to the launcher only where they ask for more than reading."""
TIMING = {"x86_64": 280, "aarch64": 88}
"""``utimensat``; it comes to the launcher only with a path, for what is open already was judged when it was opened."""
REFUSED_REQUESTS = {
    0x5412: "TIOCSTI", 0x541C: "TIOCLINUX", 0x541D: "TIOCCONS", 0x5423: "TIOCSETD", 0x5437: "TIOCVHANGUP",
    0x5457: "TIOCSLCKTRMIOS", 0x1: "FIBMAP",
}  # fmt: skip
"""Of ioctl: what types into a terminal or takes it over, or asks for places on the disk."""
FILE_LETTERS = (0x5800, 0x6600, 0x7600, 0x9400, 0xBC00)
"""Of ioctl: file systems' own requests, told by the second byte. Home and toolchains lie on the host's."""
FILE_QUESTIONS = (
    0x801C581F, 0x80086601, 0xC020660B, 0x400C6615, 0xC0096616, 0xC080661A, 0x8010661B, 0xC0046686, 0xC0286687, 0x80087601,
    0x40049409, 0x4020940D, 0x80089419, 0x8400941F, 0x81009431, 0xC0189436, 0x80189439,
    *(0x40305828 + one for one in range(4)), 0x40305839,
)  # fmt: skip
"""Of these, what asks about a file or the file system, and what copies, shares or allots contents as other calls do too."""
FILE_CHANGES = {
    0xC0045877: "FIFREEZE", 0xC0045878: "FITHAW", 0xC0185879: "FITRIM", 0x8004587D: "FS_IOC_SHUTDOWN",
    0x40087602: "FS_IOC_SETVERSION", 0x41009432: "FS_IOC_SETFSLABEL", 0x40086610: "EXT4_IOC_RESIZE_FS",
    0x800C6613: "FS_IOC_SET_ENCRYPTION_POLICY", 0xC0506617: "FS_IOC_ADD_ENCRYPTION_KEY", 0xC0406618: "FS_IOC_REMOVE_ENCRYPTION_KEY",
    0x40806685: "FS_IOC_ENABLE_VERITY", 0x50009401: "BTRFS_IOC_SNAP_CREATE", 0x50009417: "BTRFS_IOC_SNAP_CREATE_V2",
    0x5000940E: "BTRFS_IOC_SUBVOL_CREATE", 0x50009418: "BTRFS_IOC_SUBVOL_CREATE_V2", 0x5000940F: "BTRFS_IOC_SNAP_DESTROY",
    0x4008941A: "BTRFS_IOC_SUBVOL_SETFLAGS",
}  # fmt: skip
"""Names of some others, for the record. A snapshot, before Linux 6.7, takes in all of the file system around a folder, and a
key that is removed locks the person's own files."""
NETWORK_REQUESTS = range(0x8900, 0x8A00)
NETWORK_QUESTIONS = (
    *range(0x8901, 0x8908), 0x8910, 0x8912, 0x8913, 0x8915, 0x8917, 0x8919, 0x891B, 0x891D, 0x891F, 0x8921, 0x8925, 0x8927, 0x8929, 0x8933,
    0x8935, 0x8938, 0x8940, 0x8942, 0x8946, 0x8947, 0x8948, 0x894B, 0x8954, 0x8970, 0x8982, 0x8994, 0x89B1,
)  # fmt: skip
"""Of ioctl on sockets, what asks, and who owns its signals. All others would change the network's settings."""
NETWORK_CHANGES = {
    0x890B: "SIOCADDRT", 0x890C: "SIOCDELRT", 0x8914: "SIOCSIFFLAGS", 0x8916: "SIOCSIFADDR", 0x8918: "SIOCSIFDSTADDR",
    0x891A: "SIOCSIFBRDADDR", 0x891C: "SIOCSIFNETMASK", 0x8922: "SIOCSIFMTU", 0x8923: "SIOCSIFNAME", 0x8924: "SIOCSIFHWADDR",
    0x8931: "SIOCADDMULTI", 0x8941: "SIOCSIFBR", 0x8943: "SIOCSIFTXQLEN", 0x8953: "SIOCDARP", 0x8955: "SIOCSARP",
    0x8983: "SIOCSIFVLAN", 0x8990: "SIOCBONDENSLAVE", 0x89A0: "SIOCBRADDBR", 0x89A2: "SIOCBRADDIF", 0x89F1: "SIOCADDTUNNEL",
}  # fmt: skip
"""Names of some, for the record."""
SETTING_REQUESTS = {0x40086602: "FS_IOC_SETFLAGS", 0x401C5820: "FS_IOC_FSSETXATTR"}
"""Of ioctl: attributes of an open file, such as that it may not be changed. They come to the launcher as changes do."""
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM = 1, 2
"""The only types of the internet's: any other, even with no protocol named, is one of SCTP, DCCP, raw or packet sockets."""
MPTCP = 262
PROTOCOLS = (0, 6, 17)
"""The family's own, TCP, UDP. A ping would carry data out, and no box may send one."""
CORE = 4
"""RLIMIT_CORE. It stays as it is, for 0 would let the host's crash handler start; who asks for 0 is told that it is done."""
HUGE_PAGES = {"mmap": (3, 0x40000), "memfd_create": (1, 0x4), "shmget": (2, 0x800)}
"""Register with the flags, and the one for pages that the host keeps aside: no limit of memory counts them."""
SET_DUMPABLE = 4
"""PR_SET_DUMPABLE of prctl. A process that closes itself is told that it is done: what it holds could not be counted, for an
ordinary user, and in a box nobody may trace another anyway."""
PRIVILEGES = {24: "PR_CAPBSET_DROP", 28: "PR_SET_SECUREBITS", 35: "PR_SET_MM", 47: "PR_CAP_AMBIENT"}
"""Of prctl: options that need a capability; the third but for a whole map, the fourth where it is to raise one."""
SET_MM, WHOLE_MAP, AMBIENT, RAISE = 35, (14, 15), 47, 2
REAL_TIME, RESET_ON_FORK = (1, 2), 0x40000000
"""SCHED_FIFO and SCHED_RR, with which a program takes all turns of a processor."""
IO_CLASS, IO_REAL_TIME = 0xE000, 0x2000
BELOW_ZERO = 0x80000000
"""As a signed number. A priority below zero goes before everything of the person's."""
ALARMS = (8, 9)
"""CLOCK_REALTIME_ALARM and CLOCK_BOOTTIME_ALARM, which wake the host from its sleep."""
LEASE = 1024
"""F_SETLEASE of fcntl: on a file that is the person's own it holds up whoever opens it for writing."""
SOCKET_LEVEL, IP_LEVEL, IPV6_LEVEL, TCP_LEVEL, UDP_LEVEL = 1, 0, 41, 6, 17
REFUSED_OPTIONS = {
    SOCKET_LEVEL: (1, 32, 33, 36, 69, 70), IP_LEVEL: (4, 19), IPV6_LEVEL: (54, 55, 57, 59, 64, 65, 75), TCP_LEVEL: (19, 31),
    UDP_LEVEL: (100,),
}  # fmt: skip
"""By level: traces, buffers beyond the limit, marks, busy polling, routes through others, addresses of others, rules of the
packet filter, connections put together by hand, and other protocols of the kernel's laid over or into a connection (TLS, IPsec)."""
ABOVE = {IP_LEVEL: 64, IPV6_LEVEL: 200}
"""From here on an option is about the packet filter or routing."""
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)
"""Linux, 32-bit uname, no address randomisation (debuggers), and the query."""


def build(machine: str) -> bytes:
    """The filter for one architecture. Pure. Raises KeyError for an architecture not known."""
    refused, judged = REFUSED[machine], JUDGED[machine]
    program = Program()
    program.load(ARCH)
    program.test(EQUAL, ARCHES[machine], yes="known")
    program.answer(NOTIFY)  # the watcher ends the caller: no call of another architecture is ever answered
    program.label("known")
    program.load(NUMBER)
    program.when(AT_LEAST, NEWEST + 1, "refuse")  # those of x32 are higher still
    for name, (number, _flags) in OPENING[machine].items():
        program.when(EQUAL, number, f"judge-{name}")
    for name, number in judged.items():
        program.when(EQUAL, number, f"judge-{name}")
    for number, ids in BECOMING[machine].values():
        program.when(EQUAL, number, f"judge-{ids}-ids")
    for number in ASKING[machine].values():
        program.when(EQUAL, number, "refuse")
    for number in PROCESS_ONE[machine].values():
        program.when(EQUAL, number, "judge-process")
    program.when(EQUAL, TIMING[machine], "judge-times")
    program.goto("by-number")
    for name, (_number, register) in OPENING[machine].items():
        program.label(f"judge-{name}")
        program.load(ARGUMENTS + 8 * register)
        program.test(ANY_BIT, WRITE_INTENT, yes="refuse", no="permit")
    _judge_arguments(program)
    program.label("by-number")
    for number in sorted([*refused.values(), *CHANGING[machine].values(), CLONE3]):
        program.test(EQUAL, number, yes="notify")
    program.answer(ALLOW)
    program.label("notify")
    program.answer(NOTIFY)
    return program.assemble()


def _judge_arguments(program: Program) -> None:
    program.label("judge-clone")
    program.load(ARGUMENTS)
    program.test(ANY_BIT, NEW_NAMESPACES, yes="refuse")
    program.answer(ALLOW)
    program.label("judge-ioctl")
    program.load(ARGUMENTS + 8)
    for request in (*REFUSED_REQUESTS, *SETTING_REQUESTS):
        program.test(EQUAL, request, yes="refuse")
    program.test(AT_LEAST, NETWORK_REQUESTS.stop, yes="file-request")
    program.test(AT_LEAST, NETWORK_REQUESTS.start, no="file-request")
    for request in NETWORK_QUESTIONS:
        program.test(EQUAL, request, yes="permit-request")
    program.goto("refuse")
    program.label("file-request")
    for request in FILE_QUESTIONS:
        program.test(EQUAL, request, yes="permit-request")
    program.mask(0xFF00)
    for letter in FILE_LETTERS:
        program.test(EQUAL, letter, yes="refuse")
    program.label("permit-request")
    program.answer(ALLOW)
    _judge_sockets(program)
    program.label("judge-process")
    program.load(ARGUMENTS)
    program.test(EQUAL, 1, yes="refuse", no="permit")
    _judge_turns(program)
    for name in ("timer_create", "timerfd_create"):
        program.label(f"judge-{name}")
    program.load(ARGUMENTS)
    for clock in ALARMS:
        program.test(EQUAL, clock, yes="refuse")
    program.answer(ALLOW)
    program.label("judge-setpgid")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, 1, yes="refuse", no="permit")  # what is set for its group is set for process 1
    program.label("judge-prlimit64")
    program.load(ARGUMENTS + 16)
    program.test(EQUAL, 0, no="judge-new-limit")
    program.load(ARGUMENTS + 20)
    program.test(EQUAL, 0, yes="permit")
    program.label("judge-new-limit")
    program.load(ARGUMENTS)
    program.test(EQUAL, 1, yes="refuse")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, CORE, yes="refuse", no="permit")
    program.label("judge-setrlimit")
    program.load(ARGUMENTS)
    program.test(EQUAL, CORE, yes="refuse", no="permit")
    program.label("judge-prctl")
    program.load(ARGUMENTS)
    program.test(EQUAL, SET_DUMPABLE, no="other-option")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, 0, no="permit")
    program.answer(ERRNO)  # and no error
    program.label("other-option")
    program.test(EQUAL, SET_MM, yes="set-map")
    program.test(EQUAL, AMBIENT, yes="set-ambient")
    for option in sorted(PRIVILEGES.keys() - {SET_MM, AMBIENT}):
        program.test(EQUAL, option, yes="refuse")
    program.test(AT_LEAST, NAMED_OPTIONS, yes="permit")
    program.test(AT_LEAST, NEWEST_OPTION + 1, yes="refuse", no="permit")
    program.label("set-map")
    program.load(ARGUMENTS + 8)
    for whole in WHOLE_MAP:
        program.test(EQUAL, whole, yes="permit")
    program.goto("refuse")
    program.label("set-ambient")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, RAISE, yes="refuse", no="permit")
    for name, (register, flag) in HUGE_PAGES.items():
        program.label(f"judge-{name}")
        program.load(ARGUMENTS + 8 * register)
        program.test(ANY_BIT, flag, yes="refuse", no="permit")
    program.label("judge-fcntl")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, LEASE, yes="refuse", no="permit")
    for ids in (3, 2, 1):
        program.label(f"judge-{ids}-ids")
        program.load(ARGUMENTS + 8 * (ids - 1))
        program.test(EQUAL, 0, yes="refuse")
    program.answer(ALLOW)
    program.label("judge-times")
    program.load(ARGUMENTS + 8)
    program.test(EQUAL, 0, no="refuse")
    program.load(ARGUMENTS + 12)
    program.test(EQUAL, 0, yes="permit", no="refuse")
    program.label("judge-personality")
    program.load(ARGUMENTS)
    for value in PERSONALITIES:
        program.test(EQUAL, value, yes="permit")
    program.goto("refuse")
    program.label("permit")
    program.answer(ALLOW)
    program.label("judge-execve")
    program.label("judge-execveat")
    program.label("refuse")
    program.answer(NOTIFY)


def _judge_turns(program: Program) -> None:
    """Of setpriority and the like: nothing about process 1, and nothing that goes before the person's own programs."""
    for name, of_user in (("setpriority", 2), ("ioprio_set", 3)):
        program.label(f"judge-{name}")
        program.load(ARGUMENTS)
        program.test(EQUAL, of_user, yes="refuse")  # process 1 has the same user
        program.load(ARGUMENTS + 8)
        program.test(EQUAL, 1, yes="refuse")
        program.load(ARGUMENTS + 16)
        if name == "setpriority":
            program.test(AT_LEAST, BELOW_ZERO, yes="refuse", no="permit")
        else:
            program.mask(IO_CLASS)
            program.test(EQUAL, IO_REAL_TIME, yes="refuse", no="permit")
    program.label("judge-sched_setscheduler")
    program.load(ARGUMENTS)
    program.test(EQUAL, 1, yes="refuse")
    program.load(ARGUMENTS + 8)
    program.mask(0xFFFFFFFF - RESET_ON_FORK)
    for policy in REAL_TIME:
        program.test(EQUAL, policy, yes="refuse")
    program.answer(ALLOW)


def _judge_sockets(program: Program) -> None:
    program.label("judge-socketpair")
    program.load(ARGUMENTS)
    program.test(EQUAL, UNIX, yes="permit", no="refuse")
    program.label("judge-socket")
    program.load(ARGUMENTS)
    program.test(EQUAL, UNIX, yes="permit")
    program.test(EQUAL, NETLINK, yes="netlink")
    program.test(EQUAL, INET, yes="internet")
    program.test(EQUAL, INET6, yes="internet", no="refuse")
    program.label("netlink")
    program.load(ARGUMENTS + 16)
    program.test(EQUAL, 0, yes="permit", no="refuse")
    program.label("internet")
    program.load(ARGUMENTS + 8)
    program.mask(0xF)
    program.test(EQUAL, STREAM, yes="protocol")
    program.test(EQUAL, DATAGRAM, no="refuse")
    program.label("protocol")
    program.load(ARGUMENTS + 16)
    for protocol in PROTOCOLS:
        program.test(EQUAL, protocol, yes="permit")
    program.goto("refuse")
    program.label("judge-setsockopt")
    program.load(ARGUMENTS + 8)
    for level in REFUSED_OPTIONS:
        program.test(EQUAL, level, yes=f"options-{level}")
    program.answer(ALLOW)
    for level, options in REFUSED_OPTIONS.items():
        program.label(f"options-{level}")
        program.load(ARGUMENTS + 16)
        for option in options:
            program.test(EQUAL, option, yes="refuse")
        if level in ABOVE:
            program.test(AT_LEAST, ABOVE[level], yes="refuse")
        program.answer(ALLOW)


SET_MODE_FILTER = 1
SPECULATION_ALLOWED, NEW_LISTENER, WAIT_KILLABLE = 1 << 2, 1 << 3, 1 << 5


def install(program: bytes) -> tuple[int, bool]:
    """Put the filter in force for this process and all it starts. Raises OSError.

    Gives the listener's descriptor, and whether a caller that was seen waits for its answer through signals. (Before Linux
    5.19 a signal makes it ask anew.)
    """
    lines = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(lines))
    flags, patient = SPECULATION_ALLOWED | NEW_LISTENER, True
    try:
        listener = kernel.seccomp(SET_MODE_FILTER, flags | WAIT_KILLABLE, header)
    except OSError as fault:
        if fault.errno != errno.EINVAL:
            raise
        listener, patient = kernel.seccomp(SET_MODE_FILTER, flags, header), False
    os.set_inheritable(listener, False)
    return listener, patient
