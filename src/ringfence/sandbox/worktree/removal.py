"""Folders removed, at once or later, whatever an agent left in them."""

import contextlib
import errno
import os
import stat

from ringfence.sandbox.worktree import kernel

_BIN = 32
_DEEP = 48


def set_out(path: str, bin_folder: str) -> None:
    """Put a folder out of the way in one step; ``empty_bin`` removes it later. Removing many folders is slow, moving is not."""
    _make(bin_folder)
    for number in range(_BIN):
        try:
            os.rename(path, f"{bin_folder}/{number}")
            return
        except FileNotFoundError:
            if not os.path.lexists(path):
                return
            _make(bin_folder)  # the bin was emptied at this moment
        except OSError as error:
            if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise
    remove_tree(path)  # the bin is full: nobody empties it, so nothing more goes in


def _make(folder: str) -> None:
    with contextlib.suppress(FileExistsError):  # ``exist_ok`` would fail where it is removed between two looks
        os.makedirs(folder, mode=0o700)


def empty_bin(bin_folder: str) -> None:
    """Remove everything that ``set_out`` put there; what another thread puts in or removes meanwhile is left to it."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(bin_folder):
            with contextlib.suppress(OSError):
                remove_tree(f"{bin_folder}/{name}")
    with contextlib.suppress(OSError):
        os.rmdir(bin_folder)


def remove_tree(path: str, *, dir_fd: int | None = None) -> None:
    """Remove a folder and all in it, whatever modes and depth it has; no symbolic link is followed. Absent is fine.

    What lies deeper than a few dozen folders is moved up first: a box can nest folders without end, and neither the
    stack nor the table of descriptors may run out over that.
    """
    try:
        top = _open_for_removal(path, dir_fd)
    except FileNotFoundError:
        return
    try:
        while _empty(top, top, 0):
            pass
    finally:
        os.close(top)
    os.rmdir(path, dir_fd=dir_fd)


def _empty(fd: int, top: int, depth: int) -> int:
    """Remove what is in a folder; gives how many folders were moved up to ``top`` instead."""
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    moved = 0
    for name, directory in found:
        if not directory:
            os.unlink(name, dir_fd=fd)
            continue
        inner = _open_for_removal(name, fd)
        try:
            if depth >= _DEEP:
                _move_up(fd, name, top)
                moved += 1
                continue
            moved += _empty(inner, top, depth + 1)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=fd)
    return moved


def _open_for_removal(path: str, dir_fd: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, dir_fd=dir_fd)
    except PermissionError:
        os.chmod(path, 0o700, dir_fd=dir_fd)
        fd = os.open(path, flags, dir_fd=dir_fd)
    if os.geteuid() and stat.S_IMODE(os.fstat(fd).st_mode) & 0o700 != 0o700:
        os.fchmod(fd, 0o700)
    return fd


def _move_up(fd: int, name: str, top: int) -> None:
    number = 0
    while True:
        try:
            kernel.rename_at(fd, name, top, f"deep-{number}", kernel.RENAME_NOREPLACE)
            return
        except FileExistsError:
            number += 1
