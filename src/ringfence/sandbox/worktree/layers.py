"""The entries of a mission's layer: what hides the real tree taken apart, dropped, written.

An upper directory holds what an agent wrote: it is changed here only while no box has it mounted.
"""

import contextlib
import os
import stat
from collections.abc import Iterable

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import kernel, there
from ringfence.sandbox.worktree.removal import remove_tree
from ringfence.sandbox.worktree.walk import overlay_attributes

OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


def assert_not_mounted(upper: str) -> None:
    """Refuse while this process can see the layer mounted: changing a mounted upper directory is undefined."""
    needle = f"upperdir={_escaped(upper)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            options = line.rstrip("\n").rpartition(" ")[2].split(",")
            if " - overlay " in line and needle in options:
                raise RingfenceError(
                    "layer-mounted",
                    "the layer is still mounted, so the gate may not read it",
                    where=upper,
                    remedy="end the box first (ringfence mission end)",
                )


def write(upper: int, path: str, data: bytes, owner: tuple[int, int]) -> None:
    """Make a small file in the layer, and the folders that it lies in; one that is there already stays. Raises OSError.

    What says there that the file is gone does not stay.
    """
    here = os.dup(upper)
    try:
        *folders, name = path.split("/")
        for part in folders:
            if there.entry(here, part) is None:
                os.mkdir(part, 0o755, dir_fd=here)
                _own(here, part, owner)
            here = _step(here, kernel.open_directory(here, part))
        now = there.entry(here, name)
        if now is not None and stat.S_ISCHR(now.st_mode):
            _unlink(here, name)
        with contextlib.suppress(FileExistsError):
            file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=here)
            try:
                with open(file, "wb") as stream:
                    stream.write(data)
                _own(here, name, owner)
            except OSError:
                os.unlink(name, dir_fd=here)  # a part of it would be read as the whole
                raise
    finally:
        os.close(here)


def expose(upper: int, lower: int, path: str) -> None:
    """Let the real tree's version of ``path`` show through the layer again: what hides it is taken apart level by level.

    A whiteout of an ancestor becomes a folder of whiteouts for its other children, an opaque folder an ordinary one.
    """
    parts = path.split("/")
    here, below = os.dup(upper), os.dup(lower)
    try:
        for part in parts[:-1]:
            _open_up(here, below, part)
            info = there.entry(here, part)
            if info is None:
                return
            if stat.S_ISCHR(info.st_mode):
                _unlink(here, part)
                if not _whiteout_children(here, below, part):
                    return
                info = os.stat(part, dir_fd=here, follow_symlinks=False)
            elif not stat.S_ISDIR(info.st_mode):
                return
            here, below = _step(here, _enter(here, part, info)), _step_below(below, part)
        _open_up(here, below, parts[-1])
        _remove_entry(here, parts[-1])
    finally:
        os.close(here)
        if below >= 0:
            os.close(below)


def holds(upper: int, path: str) -> bool:
    """Whether the layer has an entry of its own for this path."""
    parent, _, name = path.rpartition("/")
    fd = there.folder(upper, parent)
    if fd is None:
        return False
    try:
        return there.entry(fd, name) is not None
    finally:
        os.close(fd)


def hiding(upper: int, places: Iterable[str]) -> list[bytes]:
    """Those of the places in a layer behind which nothing of the real tree shows through: they, or what they lie in, are no ordinary folders."""
    return [os.fsencode(place) for place in sorted(places) if _is_hidden(upper, place)]


def _is_hidden(upper: int, place: str) -> bool:
    here = os.dup(upper)
    try:
        for name in place.split("/"):
            info = there.entry(here, name)
            if info is None or not stat.S_ISDIR(info.st_mode):
                return info is not None
            inner = there.folder(here, name)
            if inner is None:
                return True
            here = _step(here, inner)
            if "opaque" in overlay_attributes(here):
                return True
        return False
    finally:
        os.close(here)


def unseal(upper: int, lower: int, path: str) -> None:
    """Let what the real tree gets in a folder from now on show through; what is hidden now is hidden name by name."""
    here = there.folder(upper, path)
    if here is not None:
        below = there.folder(lower, path)
        try:
            _open_up(here, -1 if below is None else below, "")
        finally:
            os.close(here)
            if below is not None:
                os.close(below)


def drop(upper: int, path: str) -> None:
    """Remove one entry of the layer, if it is there: a file, link, whiteout or whole folder."""
    parent, _, name = path.rpartition("/")
    fd = there.folder(upper, parent)
    if fd is None:
        return
    try:
        _remove_entry(fd, name)
    finally:
        os.close(fd)


def drop_empty(upper: int, path: str) -> None:
    """Remove a folder of the layer if nothing is in it."""
    parent, _, name = path.rpartition("/")
    fd = there.folder(upper, parent)
    if fd is not None:
        try:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=fd)
        finally:
            os.close(fd)


def prune(upper: int, lower: int, paths: Iterable[str]) -> None:
    """Remove what has become pointless: whiteouts over nothing, and empty folders that the real tree has too."""
    parents = set(paths)
    for path in list(parents):
        while "/" in path:
            path = path.rpartition("/")[0]
            parents.add(path)
    for path in sorted(parents, key=lambda p: -p.count("/")):
        parent, _, name = path.rpartition("/")
        up = there.folder(upper, parent)
        if up is None:
            continue
        low = there.folder(lower, parent)
        try:
            _prune_one(up, low, name, sealed=_sealed(upper, parent))
        finally:
            os.close(up)
            if low is not None:
                os.close(low)


def _remove_entry(fd: int, name: str) -> None:
    info = there.entry(fd, name)
    if info is not None and stat.S_ISDIR(info.st_mode):
        remove_tree(name, dir_fd=fd)
    elif info is not None:
        _unlink(fd, name)


def _open_up(here: int, below: int, keep: str) -> None:
    """Turn an opaque folder into an ordinary one that looks the same, but for ``keep``.

    Each lower name that it hid gets a whiteout; a folder that both sides have becomes opaque itself, for until now
    only the one above sealed it.
    """
    marks = [name for name in os.listxattr(here) if name in OPAQUE and os.getxattr(here, name) == b"y"]
    if not marks:
        return
    names = set(os.listdir(here))
    for name in os.listdir(below) if below >= 0 else ():
        if name not in names and name != keep:
            _whiteout(here, name)
        elif name in names and name != keep:
            _seal(here, below, name, marks[0])
    if keep in names and below >= 0:
        _seal(here, below, keep, marks[0])
    for name in marks:
        os.removexattr(here, name)


def _seal(here: int, below: int, name: str, mark: str) -> None:
    """Make a folder opaque that has one of the same name below."""
    under, info = there.entry(below, name), there.entry(here, name)
    if under is None or info is None or not stat.S_ISDIR(under.st_mode) or not stat.S_ISDIR(info.st_mode):
        return
    fd = kernel.open_directory(here, name)
    try:
        os.setxattr(fd, mark, b"y")
    finally:
        os.close(fd)


def _whiteout_children(here: int, below: int, name: str) -> bool:
    low = there.folder(below, name) if below >= 0 else None
    if low is None:
        return False
    try:
        info = os.fstat(low)
        os.mkdir(name, 0o700, dir_fd=here)
        fd = kernel.open_directory(here, name)
        try:
            for child in os.listdir(low):
                _whiteout(fd, child)
            if os.geteuid() == 0:
                os.fchown(fd, info.st_uid, info.st_gid)
            os.fchmod(fd, stat.S_IMODE(info.st_mode))
        finally:
            os.close(fd)
    finally:
        os.close(low)
    return True


def _sealed(upper: int, path: str) -> bool:
    """Whether a folder of the layer, or one above it, is opaque."""
    while path:
        fd = there.folder(upper, path)
        if fd is not None:
            try:
                if "opaque" in overlay_attributes(fd):
                    return True
            finally:
                os.close(fd)
        path = path.rpartition("/")[0]
    return False


def _prune_one(up: int, low: int | None, name: str, *, sealed: bool) -> None:
    info, under = there.entry(up, name), there.entry(low, name)
    if info is None:
        return
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0 and under is None:
        _unlink(up, name)
    elif stat.S_ISDIR(info.st_mode) and under is not None and stat.S_ISDIR(under.st_mode):
        fd = kernel.open_directory(up, name)
        try:
            below = there.folder(low, name) if low is not None else None
            try:
                hides = sealed or ("opaque" in overlay_attributes(fd) and below is not None and bool(os.listdir(below)))
            finally:
                if below is not None:
                    os.close(below)
            same_mode = stat.S_IMODE(info.st_mode) == stat.S_IMODE(under.st_mode)
        finally:
            os.close(fd)
        if not hides and same_mode:
            with contextlib.suppress(OSError):  # not empty: it still holds something
                os.rmdir(name, dir_fd=up)


def _own(fd: int, name: str, owner: tuple[int, int]) -> None:
    if os.geteuid() == 0:
        os.chown(name, *owner, dir_fd=fd, follow_symlinks=False)


def _unlink(fd: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except PermissionError:
        os.fchmod(fd, stat.S_IMODE(os.fstat(fd).st_mode) | 0o700)
        os.unlink(name, dir_fd=fd)


def _whiteout(fd: int, name: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mknod(name, stat.S_IFCHR | 0o000, 0, dir_fd=fd)


def _enter(fd: int, name: str, info: os.stat_result) -> int:
    """A folder of the layer; one that the box closed to everybody is open to its owner from now on."""
    if os.geteuid() and stat.S_IMODE(info.st_mode) & 0o700 != 0o700:
        os.chmod(name, stat.S_IMODE(info.st_mode) | 0o700, dir_fd=fd)
    return kernel.open_directory(fd, name)


def _step(old: int, new: int) -> int:
    os.close(old)
    return new


def _step_below(old: int, part: str) -> int:
    """The same folder of the real tree, or -1 where it has none: then nothing can show through."""
    if old < 0:
        return -1
    new = there.folder(old, part)
    os.close(old)
    return -1 if new is None else new


def _escaped(path: str) -> str:
    return path.replace("\\", "\\134").replace(" ", "\\040").replace("\n", "\\012").replace("\t", "\\011")
