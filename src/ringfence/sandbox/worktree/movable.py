"""A folder of the real tree copied up as a whole, so that rename(2) works on it in a box.

Overlayfs in a user namespace answers EXDEV when a folder that has a lower side is renamed. Most tools then copy;
``git mv`` and a bare rename do not. A folder that lies in the upper directory alone, opaque, can be renamed.
A folder with a hidden path in it is left alone: the copy would show it, or look as if the mission had removed it.
"""

import os
import shutil
import stat
from collections.abc import Callable

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.removal import remove_tree

_OPAQUE = "user.overlay.opaque"


class TooMuch(Exception):
    """The folder holds more bytes or files than it is worth, or something that may not be copied."""


def copy_up(upper: int, lower: int, path: str, hides: Callable[[str], bool], *, limit: int, files: int) -> bool:
    """Make ``path`` movable. False, and nothing is left behind, where it is no folder, is in the layer already, or is too much."""
    parent, _, name = path.rpartition("/")
    try:
        below = kernel.open_directory(lower, path)
    except OSError:
        return False
    try:
        above = _parents(upper, lower, parent)
        if above is None:
            return False
        try:
            if _exists(above, name):
                return False
            budget = [limit, files]
            _copy(below, above, name, path, hides, budget)
            return True
        except (TooMuch, OSError):
            remove_tree(name, dir_fd=above)
            return False
        finally:
            os.close(above)
    finally:
        os.close(below)


def _copy(source: int, above: int, name: str, path: str, hides: Callable[[str], bool], budget: list[int]) -> None:  # noqa: PLR0917 - private, recursive
    os.mkdir(name, 0o700, dir_fd=above)
    target = kernel.open_directory(above, name)
    try:
        info = os.fstat(source)
        os.setxattr(target, _OPAQUE, b"y")
        with os.scandir(source) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        for child, state in found:
            below = f"{path}/{child}"
            budget[1] -= 1
            if budget[1] < 0 or child == ".git" or hides(below):
                raise TooMuch
            if stat.S_ISDIR(state.st_mode):
                inner = kernel.open_directory(source, child)
                try:
                    _copy(inner, target, child, below, hides, budget)
                finally:
                    os.close(inner)
            else:
                _leaf(source, target, child, state, budget)
        _fit(target, info)
    finally:
        os.close(target)


def _leaf(source: int, target: int, name: str, info: os.stat_result, budget: list[int]) -> None:
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        if os.geteuid() == 0:
            os.chown(name, info.st_uid, info.st_gid, dir_fd=target, follow_symlinks=False)
        return
    budget[0] -= info.st_size
    if budget[0] < 0 or not stat.S_ISREG(info.st_mode):
        raise TooMuch
    reader = kernel.open_beneath(source, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    writer = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
    with open(reader, "rb") as old, open(writer, "wb") as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        _fit(writer, info)


def _fit(fd: int, info: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.fchown(fd, info.st_uid, info.st_gid)
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))


def _parents(upper: int, lower: int, path: str) -> int | None:
    """The layer's folder for ``path``, made level by level like the real one; None where the layer has something else."""
    here, below = os.dup(upper), os.dup(lower)
    try:
        for part in path.split("/") if path else []:
            next_below = kernel.open_directory(below, part)
            os.close(below)
            below = next_below
            if not _exists(here, part):
                os.mkdir(part, 0o700, dir_fd=here)
                made = kernel.open_directory(here, part)
                _fit(made, os.fstat(below))
            else:
                made = kernel.open_directory(here, part)
                if _OPAQUE in os.listxattr(made):
                    os.close(made)
                    return None
            os.close(here)
            here = made
        return os.dup(here)
    except OSError:
        return None
    finally:
        os.close(here)
        os.close(below)


def _exists(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
