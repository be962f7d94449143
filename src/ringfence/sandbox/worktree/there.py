"""What stands at a place. That nothing does is an answer; that it cannot be looked at is an error, and never taken for it.

A disk that fails, and a process that may open no more files, have removed nothing: whoever took them for an empty place
would carry that over into the tree, or drop what a mission did.
"""

import errno
import os
import stat

from ringfence.sandbox.worktree import kernel

NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EACCES})
"""Nothing there, or nothing that the gate goes into: a link or a file on the way, another file system, a closed folder."""


def entry(fd: int | None, name: str) -> os.stat_result | None:
    """What stands at ``name`` in the folder ``fd``, links not followed; None where nothing does."""
    if fd is None:
        return None
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise


def folder(fd: int, path: str) -> int | None:
    """A descriptor for the folder ``path`` below ``fd`` (empty: that one itself); None where there is none."""
    try:
        return kernel.open_directory(fd, path) if path else os.dup(fd)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise


def lookup(fd: int, path: str) -> os.stat_result | None:
    """What stands at ``path`` below ``fd``; None where nothing does."""
    parent, _, name = path.rpartition("/")
    inner = folder(fd, parent)
    if inner is None:
        return None
    try:
        return entry(inner, name)
    finally:
        os.close(inner)


def small_file(fd: int, path: str, limit: int) -> bytes | None:
    """What a regular file below ``fd`` holds, as far as ``limit`` bytes; None where there is none."""
    try:
        file = kernel.open_beneath(fd, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NOT_THERE:
            return None
        raise
    with open(file, "rb") as stream:
        return stream.read(limit) if stat.S_ISREG(os.fstat(file).st_mode) else None


def is_there(path: str) -> bool:
    """Whether anything stands at a path, links not followed."""
    return _status(path) is not None


def is_folder(path: str) -> bool:
    """Whether a folder stands at a path; a link to one is none."""
    info = _status(path)
    return info is not None and stat.S_ISDIR(info.st_mode)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
