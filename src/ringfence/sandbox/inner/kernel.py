"""Kernel calls that Python 3.11 has no function for. One prepared function per call, so that no look-up is left to do.

The C library is loaded as PyDLL: the interpreter lock stays held over ``clone``, which returns in two processes.
"""

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Callable

CLONE_PARENT = 0x00008000
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
SIGCHLD = 17

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC, ATTR_IDMAP = 1, 2, 4, 8, 0x100000
AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_SYMLINK_NOFOLLOW = 0x100
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
OPEN_TREE_CLOEXEC = os.O_CLOEXEC
MOVE_FROM_EMPTY = 4
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_IN_ROOT = 2, 4, 16
RESOLVE_HERE = 1 | 2 | 4 | 8
"""openat2: no other file system, no magic links, no links, nothing above."""
FSCONFIG_FLAG, FSCONFIG_STRING, FSCONFIG_CREATE = 0, 1, 6

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47

MACHINE = platform.machine() if os.name == "posix" else ""
_BOTH = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "mount_setattr": 442,
    "close_range": 436,
    "openat2": 437,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
_NUMBERS = {
    "x86_64": {
        "clone": 56,
        "pivot_root": 155,
        "seccomp": 317,
        "capset": 126,
        "keyctl": 250,
        "getdents64": 217,
        "renameat2": 316,
        "sched_setattr": 314,
        "kcmp": 312,
        **_BOTH,
    },
    "aarch64": {
        "clone": 220,
        "pivot_root": 41,
        "seccomp": 277,
        "capset": 91,
        "keyctl": 219,
        "getdents64": 61,
        "renameat2": 276,
        "sched_setattr": 274,
        "kcmp": 272,
        **_BOTH,
    },
}
NUMBERS = _NUMBERS.get(MACHINE, {})
"""System call numbers of this machine; empty on an architecture this package does not know, which is refused."""

_libc = ctypes.PyDLL(None, use_errno=True)
_long, _str, _ptr = ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p


def _check(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


def _system_call(name: str, *types: type) -> Callable[..., int]:
    number = NUMBERS.get(name, -1)
    function = _libc["syscall"]
    function.argtypes = [_long, *types]
    function.restype = _long

    def call(*arguments: object) -> int:
        return _check(function(number, *arguments), name)

    return call


def _library_call(name: str, *types: type) -> Callable[..., int]:
    function = _libc[name]
    function.argtypes = list(types)
    function.restype = ctypes.c_int

    def call(*arguments: object) -> int:
        return _check(function(*arguments), name)

    return call


class MountAttr(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = [
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    ]


clone = _system_call("clone", _long, _long, _long, _long, _long)
open_tree = _system_call("open_tree", _long, _str, _long)
move_mount = _system_call("move_mount", _long, _str, _long, _str, _long)
fsopen = _system_call("fsopen", _str, _long)
fsconfig = _system_call("fsconfig", _long, _long, _str, _str, _long)
fsmount = _system_call("fsmount", _long, _long, _long)
mount_setattr = _system_call("mount_setattr", _long, _str, _long, ctypes.POINTER(MountAttr), _long)
openat2 = _system_call("openat2", _long, _str, _str, _long)
kcmp = _system_call("kcmp", _long, _long, _long, _long, _long)
getdents64 = _system_call("getdents64", _long, _ptr, _long)
close_range = _system_call("close_range", _long, _long, _long)
pivot_root = _system_call("pivot_root", _str, _str)
seccomp = _system_call("seccomp", _long, _long, _ptr)
capset = _system_call("capset", _str, _str)
landlock_create_ruleset = _system_call("landlock_create_ruleset", _ptr, _long, _long)
landlock_add_rule = _system_call("landlock_add_rule", _long, _long, _ptr, _long)
landlock_restrict_self = _system_call("landlock_restrict_self", _long, _long)
read_other: Callable[..., int] = _libc["process_vm_readv"]
"""``process_vm_readv`` with addresses as numbers; -1 for any failure. The hot path of what a box's calls are about."""
read_other.argtypes = [ctypes.c_int, *[ctypes.c_size_t, ctypes.c_ulong] * 2, ctypes.c_ulong]  # type: ignore[attr-defined]
read_other.restype = ctypes.c_ssize_t  # type: ignore[attr-defined]
open_place: Callable[..., int] = _libc["syscall"]
"""``openat2`` (its number first) with ``struct open_how`` as bytes; -1 for a failure, with ctypes' errno."""
open_place.argtypes = [_long, ctypes.c_int, _str, _str, ctypes.c_size_t]  # type: ignore[attr-defined]
open_place.restype = _long  # type: ignore[attr-defined]
_rename = _libc["syscall"]
_rename.argtypes = [_long, ctypes.c_int, _str, ctypes.c_int, _str, ctypes.c_ulong]
_rename.restype = _long
_sched_setattr = _system_call("sched_setattr", _long, _str, _long)
keyctl = _system_call("keyctl", _long, _str)
prctl = _library_call("prctl", ctypes.c_int, _long, _long, _long, _long)
mount = _library_call("mount", _str, _str, _str, ctypes.c_ulong, _str)
umount2 = _library_call("umount2", _str, ctypes.c_int)
unshare = _library_call("unshare", ctypes.c_int)
setns = _library_call("setns", ctypes.c_int, ctypes.c_int)
inotify_init1 = _library_call("inotify_init1", ctypes.c_int)
inotify_rm_watch = _library_call("inotify_rm_watch", ctypes.c_int, ctypes.c_int)
inotify_add_watch = _library_call("inotify_add_watch", ctypes.c_int, _str, ctypes.c_uint32)


_trim = getattr(_libc, "malloc_trim", None)  # glibc has it


def trim() -> None:
    """Give back to the kernel what the C library keeps of freed memory."""
    if _trim is not None:
        _trim(0)


def set_attributes(tree: int, flags: int, *, userns: int = -1, path: bytes = b"", recursive: bool = True) -> None:
    """Set mount attributes on the mount behind a descriptor (or a path), with everything mounted below it."""
    attr = MountAttr(set=flags | (ATTR_IDMAP if userns >= 0 else 0), userns=max(userns, 0))
    where = AT_EMPTY_PATH if not path else 0
    mount_setattr(tree, path, where | (AT_RECURSIVE if recursive else 0), ctypes.byref(attr), ctypes.sizeof(attr))


def clone_tree(path: bytes, *, recursive: bool = True) -> int:
    """A detached copy of the mount at a path, as a descriptor."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0)
    return open_tree(AT_FDCWD, path, flags)


def clone_place(path: bytes) -> int:
    """A detached mount of what stands under a path alone, a link included, as a descriptor."""
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW)


def attach(tree: int, target: bytes) -> None:
    """Attach a detached mount at a path, which is not followed where it is a link, and close its descriptor."""
    move_mount(tree, b"", AT_FDCWD, target, MOVE_FROM_EMPTY)
    os.close(tree)


def rename(old: bytes, new: bytes, flags: int) -> int:
    """``renameat2``; -1 for a failure, with ctypes' errno."""
    return int(_rename(NUMBERS["renameat2"], AT_FDCWD, old, AT_FDCWD, new, flags))


def set_slice(nanoseconds: int) -> None:
    """Run in short turns, so that a wake-up is not kept waiting by long ones of others; 0: as others. No more in sum.

    Linux 6.12 and later; others change nothing.
    """
    attributes = struct.pack(
        "=IIQiIQQQ", 48, os.sched_getscheduler(0), 0, os.getpriority(os.PRIO_PROCESS, 0), 0, nanoseconds, 0, 0
    )
    with contextlib.suppress(OSError):
        _sched_setattr(0, attributes, 0)
