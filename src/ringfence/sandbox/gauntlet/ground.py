"""The ground that attacks run on: a network of its own in which every address answers locally and no packet leaves.

Root gets a network namespace, and one of mounts; an ordinary user gets one through a user namespace that maps the user to itself. The
metadata address, documentation addresses and the resolver's address are put on that namespace's own loopback.
"""

import ctypes
import fcntl
import os
import pwd
import socket
import struct

from ringfence.model.errors import BoxError

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWUTS = 0x04000000
PR_SET_CHILD_SUBREAPER = 36
PR_SET_DUMPABLE = 4
SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCSIFADDR, SIOGIFINDEX = 0x8913, 0x8914, 0x8916, 0x8933
IFF_UP = 1
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18

METADATA = "169.254.169.254"
OUTSIDE = "192.0.2.10"
OUTSIDE_V6 = "2001:db8::5"
RESOLV_CONF = "/etc/resolv.conf"


def enter() -> None:
    """Move this process, which must have one thread, into a network of its own. Raises BoxError naming the remedy."""
    uid, gid = os.getuid(), os.getgid()
    flags = CLONE_NEWNET | CLONE_NEWUTS | (CLONE_NEWUSER if uid else CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise BoxError(
            "gauntlet-network",
            f"the gauntlet cannot make a network of its own: {os.strerror(ctypes.get_errno())}",
            where="unshare",
            remedy="run it as root, or allow unprivileged user namespaces (`ringfence doctor` says how)",
        )
    if uid == 0:  # what root's attacks mount is never the host's, and gone with the last of their processes
        libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    else:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    _loopback_up()
    for number, address in enumerate(dict.fromkeys([METADATA, OUTSIDE, *resolvers()]), start=1):
        if not address.startswith("127.") and ":" not in address:
            _add_v4(f"lo:{number}", address)
    _add_v6(OUTSIDE_V6)
    _write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
    _write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647" if uid == 0 else f"{gid} {gid}")


def become(user: str) -> None:
    """Give up root for the named user, for good. Raises BoxError where that cannot be."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        entry = None
    if entry is None or os.getuid() != 0:
        raise BoxError(
            "gauntlet-user",
            f"there is no user {user!a} here" if entry is None else "only root can run it as another user",
            where="--user",
            remedy="as root, name a user of /etc/passwd; as that user, leave --user out",
        )
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def adopt_orphans() -> None:
    """Make this process the one to which daemons of the attacks fall, so that none is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def resolvers() -> list[str]:
    """The IPv4 addresses that the host's resolver asks."""
    try:
        with open(RESOLV_CONF, encoding="utf-8", errors="replace") as file:
            words = [line.split() for line in file]
    except OSError:
        return []
    return [line[1] for line in words if len(line) > 1 and line[0] == "nameserver" and ":" not in line[1]]


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise BoxError("gauntlet-network", f"cannot write {text!r}: {error.strerror}", where=path) from error


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def _add_v4(label: str, address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sHH4s8x", label.encode(), socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(sock, SIOCSIFADDR, request)


def _add_v6(address: str) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        index = struct.unpack("16si4x", fcntl.ioctl(sock, SIOGIFINDEX, struct.pack("16si4x", b"lo", 0)))[1]
        request = socket.inet_pton(socket.AF_INET6, address) + struct.pack("Ii", 128, index)
        fcntl.ioctl(sock, SIOCSIFADDR, request)
