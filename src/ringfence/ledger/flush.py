"""Writes that are durable when they return, in one system call where the file system is known to do both.

One call instead of two matters where threads share an interpreter: after each, the writer waits for its turn to go on,
and between two of them the disk would wait with it.
"""

import errno
import os

_KNOWN = frozenset({"ext2", "ext3", "ext4", "xfs"})
"""Disk file systems that flush what ``RWF_DSYNC`` writes as ``fdatasync`` does. Others get both calls: a network or
user-space file system may take the flag and do nothing."""
_ABSENT = frozenset({errno.EOPNOTSUPP, errno.ENOSYS})
"""The kernel, or a filter before it, does not know the flag: nothing was written."""


def write_all(fd: int, data: bytes, offset: int) -> None:
    """Write every byte at ``offset``: a short write is continued, and an error after it raises OSError."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, offset)
        if written <= 0:
            raise OSError(5, "the kernel wrote nothing")
        view = view[written:]
        offset += written


class Flusher:
    """Writes to one file, whose earlier bytes must be durable already."""

    def __init__(self, fd: int) -> None:
        """Looks at the file system once."""
        self._fd = fd
        self._at_once = file_system(fd) in _KNOWN

    def write(self, data: bytes, offset: int) -> None:
        """Make ``data`` durable at ``offset``. Raises OSError; what reached the disk is then unknown."""
        written = 0
        if self._at_once:
            try:
                written = os.pwritev(self._fd, (data,), offset, os.RWF_DSYNC)
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                self._at_once = False
        if written != len(data):
            write_all(self._fd, data[written:], offset + written)
            os.fdatasync(self._fd)


def file_system(fd: int) -> str:
    """The kind of file system that holds a file, as the kernel names it, or empty where that cannot be told."""
    device = os.fstat(fd).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                mount, _, rest = line.partition(" - ")
                if mount.split(" ", 3)[2] == wanted:
                    return rest.partition(" ")[0]
    except OSError:
        pass
    return ""
