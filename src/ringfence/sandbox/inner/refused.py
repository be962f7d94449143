"""System calls that a box was refused: what the caller is told, and the words for a record. Pure."""

import errno
import struct

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.seccomp import (
    BECOMING,
    BELOW_ZERO,
    FILE_CHANGES,
    HUGE_PAGES,
    IO_CLASS,
    IO_REAL_TIME,
    MPTCP,
    NETWORK_CHANGES,
    PRIVILEGES,
    PROCESS_ONE,
    REAL_TIME,
    REFUSED_REQUESTS,
)

REQUESTS = REFUSED_REQUESTS | FILE_CHANGES | NETWORK_CHANGES
CAPABILITIES = struct.Struct("=6I")
"""Which are effective, permitted and inheritable; the lower half of each, and then the upper ones."""
TURNS = struct.Struct("=IIQi")
"""The head of what sched_setattr is told: size, policy, flags, priority."""
DEADLINE = 6
SAME = 0xFFFFFFFF
"""The id that a call shall leave as it is."""
FAMILIES = {
    1: "unix",
    2: "inet",
    10: "inet6",
    15: "key",
    16: "netlink",
    17: "packet",
    21: "rds",
    29: "can",
    30: "tipc",
    31: "bluetooth",
    38: "alg",
    40: "vsock",
    44: "xdp",
}

ABOUT_PROCESS_ONE = frozenset(
    {"prlimit64", "setpgid", "setpriority", "ioprio_set", "sched_setscheduler", "sched_setattr"}
)
SOCKETS = frozenset({"socket", "socketpair"})
ERRORS = {
    **dict.fromkeys(SOCKETS, errno.EAFNOSUPPORT),
    **dict.fromkeys(HUGE_PAGES, errno.ENOMEM),
    "io_setup": errno.ENOSYS,
    "cachestat": errno.ENOSYS,
}
"""What a refused call is told where there is another answer on which programs fall back than that it is forbidden."""
INTERNET = frozenset({2, 10})
TYPES = {1: "stream", 2: "datagram", 3: "raw", 4: "rdm", 5: "seqpacket", 6: "dccp", 10: "packet"}
PROTOCOLS = {
    1: "icmp",
    2: "igmp",
    6: "tcp",
    17: "udp",
    33: "dccp",
    41: "ipv6",
    47: "gre",
    50: "esp",
    51: "ah",
    58: "icmpv6",
    132: "sctp",
    136: "udplite",
    255: "raw",
    262: "mptcp",
}


def answer_to(name: str, arguments: tuple[int, ...]) -> int:
    """The errno of a refused call. Runtimes try multipath TCP first, and by this one fall back to TCP."""
    many_paths = name in SOCKETS and arguments[0] & 0xFFFFFFFF in INTERNET and arguments[2] & 0xFFFFFFFF == MPTCP
    if many_paths:
        return errno.EPROTONOSUPPORT
    if name == "prctl" and arguments[0] & 0xFFFFFFFF not in PRIVILEGES:
        return errno.EINVAL  # as by a kernel that has it not
    if name == "setpriority" and _before_others(name, arguments):
        return errno.EACCES
    return ERRORS.get(name, errno.EPERM)


def asks_for(name: str, data: bytes) -> str:
    """In words, the privilege that is asked for in what a call of ``ASKING`` points at; empty for none."""
    if name == "capset":
        low, high = (wanted[0] | wanted[1] | wanted[2] for wanted in struct.iter_unpack("=3I", data.ljust(24, b"\0")))
        return f"{low | high << 32:#x}" if low or high else ""
    _size, policy, _flags, nice = TURNS.unpack(data.ljust(TURNS.size, b"\0"))
    if policy in {*REAL_TIME, DEADLINE}:
        return "of real time"
    return str(nice) if nice < 0 else ""


def describe(name: str, arguments: tuple[int, ...]) -> str:
    """A refused call in words, from its name and its registers."""
    if name in SOCKETS:
        return f"{name} {_socket(*(argument & 0xFFFFFFFF for argument in arguments[:3]))}"
    if name == "ioctl":
        request = arguments[1] & 0xFFFFFFFF
        return f"ioctl {REQUESTS.get(request) or hex(request)}"
    if name == "setsockopt":
        return f"setsockopt level {arguments[1] & 0xFFFFFFFF} option {arguments[2] & 0xFFFFFFFF}"
    if name == "fcntl":
        return "fcntl F_SETLEASE"
    if name in {"setpriority", "ioprio_set", "sched_setscheduler"} and _before_others(name, arguments):
        return f"{name} {(arguments[2] & 0xFFFFFFFF) - (1 << 32) if name == 'setpriority' else 'of real time'}"
    if name in {"timer_create", "timerfd_create"}:
        return f"{name} of an alarm that wakes the host"
    if name == "prlimit64" and arguments[0] & 0xFFFFFFFF != 1:
        return "prlimit64 of cores"
    if name in ABOUT_PROCESS_ONE or name in PROCESS_ONE[kernel.MACHINE]:
        return f"{name} of process 1"
    if name in HUGE_PAGES:
        return f"{name} of huge pages"
    if name == "prctl":
        return f"prctl {PRIVILEGES.get(option := arguments[0] & 0xFFFFFFFF, option)}"
    if name in BECOMING[kernel.MACHINE]:
        ids = (argument & 0xFFFFFFFF for argument in arguments[: BECOMING[kernel.MACHINE][name][1]])
        return f"{name} {' '.join('-' if one == SAME else str(one) for one in ids)}"
    if name in {"clone", "unshare", "personality"}:
        return f"{name} {arguments[0] & 0xFFFFFFFF:#x}"
    return name


def _before_others(name: str, arguments: tuple[int, ...]) -> bool:
    """Whether turns before the person's own programs are asked for, and not for process 1."""
    if name == "sched_setscheduler":
        return arguments[0] & 0xFFFFFFFF != 1
    first = arguments[1] & 0xFFFFFFFF == 1
    asked = arguments[2] & BELOW_ZERO if name == "setpriority" else arguments[2] & IO_CLASS == IO_REAL_TIME
    return bool(asked) and not first


def _socket(family: int, kind: int, protocol: int) -> str:
    """Names where there are some: a person, and whoever searches the record, knows no numbers."""
    kind &= 0xF
    named = PROTOCOLS.get(protocol) if family in INTERNET else None
    words = f"{FAMILIES.get(family, family)} type {TYPES.get(kind, kind)}"
    return words if protocol == 0 else f"{words} protocol {named or protocol}"
