"""The few system calls that Python has no name for, by ctypes: openat2, renameat2, syncfs, statfs, statx.

Nothing here decides. Every function raises OSError with the kernel's own errno.
"""

import ctypes
import errno
import os
import platform

RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
STRICT = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

_SYS_OPENAT2 = 437  # the same on every architecture
_SYS_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276}.get(platform.machine(), -1)
_libc = ctypes.CDLL(None, use_errno=True)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(fd: int, path: str, flags: int, mode: int = 0, *, resolve: int = STRICT) -> int:
    """A descriptor for ``path`` below the directory ``fd``: no symbolic link, no ``..``, no other mount on the way."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, resolve)
    raw = os.fsencode(path)
    while True:
        result = _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(fd),
            ctypes.c_char_p(raw),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if result >= 0:
            return int(result)
        if ctypes.get_errno() not in {errno.EAGAIN, errno.EINTR}:  # a rename elsewhere raced the lookup: try again
            _fail(path)


def open_directory(fd: int, path: str) -> int:
    """A descriptor for the directory ``path`` below ``fd``, with the same promises."""
    return open_beneath(fd, path, _DIRECTORY)


def rename_at(from_fd: int, source: str, to_fd: int, target: str, flags: int = 0) -> None:
    """Rename within one file system. RENAME_NOREPLACE and RENAME_EXCHANGE make the check and the move one step."""
    result = _libc.syscall(
        ctypes.c_long(_SYS_RENAMEAT2),
        ctypes.c_int(from_fd),
        ctypes.c_char_p(os.fsencode(source)),
        ctypes.c_int(to_fd),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(flags),
    )
    if result != 0:
        _fail(target)


def sync_filesystem(fd: int) -> None:
    """All writes to the file system that holds ``fd`` are on disk: one call for a whole phase."""
    if _libc.syncfs(ctypes.c_int(fd)) != 0:
        _fail(f"descriptor {fd}")


def filesystem_type(path: str) -> int:
    """The magic number of the file system that holds ``path``."""
    buffer = ctypes.create_string_buffer(512)
    if _libc.statfs(ctypes.c_char_p(os.fsencode(path)), buffer) != 0:
        _fail(path)
    return int(ctypes.c_long.from_buffer(buffer).value) & 0xFFFFFFFF


def _fail(path: str) -> None:
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)


def birth(path: str) -> int:
    """When the file came into being, in nanoseconds; 0 where the file system does not say.

    An inode number is given again as soon as its file is gone; with its birth it is not.
    """
    buffer = ctypes.create_string_buffer(256)
    at_fdcwd, statx_btime = -100, 0x800
    if _libc.statx(at_fdcwd, os.fsencode(path), 0, statx_btime, buffer) != 0:
        _fail(path)
    mask = int.from_bytes(buffer.raw[0:4], "little")
    if not mask & statx_btime:
        return 0
    seconds = int.from_bytes(buffer.raw[80:88], "little", signed=True)
    return seconds * 1_000_000_000 + int.from_bytes(buffer.raw[88:92], "little")
