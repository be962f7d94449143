"""The folders behind a mission's layer: made, mended, exchanged for new ones, carried on from mission to mission.

An upper directory holds what an agent wrote: it is changed here only while no box has it mounted.
"""

import contextlib
import os
import stat
from collections.abc import Iterable

from ringfence.sandbox.worktree import stash
from ringfence.sandbox.worktree.layers import OPAQUE
from ringfence.sandbox.worktree.removal import remove_tree, set_out
from ringfence.sandbox.worktree.there import is_folder, is_there

_FRESH = "fresh-upper"


def make_upper(folder: str, root: str, carried: str) -> None:
    """Make ``upper`` and ``work`` in a mission's folder; a carried layer of ignored paths becomes the upper directory."""
    upper = f"{folder}/upper"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    mend(folder, root)
    take_on(carried, upper, root)
    for name in ("upper", "work"):
        make_like(f"{folder}/{name}", root)


def take_on(carried: str, upper: str, like: str) -> None:
    """Let what an earlier mission carried on, if anything, become an upper directory that is not there yet."""
    if not is_folder(upper):
        with contextlib.suppress(FileNotFoundError):
            os.rename(carried, upper)
            _fit(upper, like)


def make_like(path: str, like: str) -> None:
    """Make a folder, if need be, with the mode and owner of another."""
    if not is_folder(path):
        os.makedirs(path)
        _fit(path, like)


def mend(folder: str, root: str) -> None:
    """Finish a ``carry_on`` that a crash cut short, so that no ignored path is lost: what was moved out comes back."""
    upper, fresh = f"{folder}/upper", f"{folder}/{_FRESH}"
    for own in (upper, f"{folder}/git-upper"):
        _open_to_us(own)
    if not is_folder(fresh):
        return
    if is_folder(upper):
        _merge_back(fresh, upper)
        remove_tree(fresh)
    else:
        os.rename(fresh, upper)
        _fit(upper, root)


def carry_on(
    folder: str,
    root: str,
    kept: Iterable[str],
    bin_folder: str,
    *,
    target: str | None = None,
    others: Iterable[str] = (),
) -> None:
    """Exchange a mission's upper directory for one with the kept paths alone; the old one is set out.

    With ``target`` the new one becomes that folder instead (nothing kept: none is made), and the mission has no upper
    directory any more; ``others`` are paths that go on from the target that was there, left by another mission, as its
    stash does. Must not be called while it is mounted.
    """
    upper, fresh = f"{folder}/upper", f"{folder}/{_FRESH}"
    mend(folder, root)
    paths = sorted(kept)
    if paths or target is None:
        os.makedirs(fresh, mode=0o700)
    for path in paths:
        _mirror(upper, fresh, os.path.dirname(path))
        _movable(f"{upper}/{path}")
        _keep_sealed(upper, path)
        os.rename(f"{upper}/{path}", f"{fresh}/{path}")
    if target is None:
        _fit(fresh, root)
    set_out(upper, bin_folder)
    if target is None:
        os.rename(fresh, upper)
    elif paths:
        for path in others:
            if is_there(f"{target}/{path}"):
                _mirror(target, fresh, os.path.dirname(path))
                _movable(f"{target}/{path}")
                os.rename(f"{target}/{path}", f"{fresh}/{path}")
        if is_folder(f"{target}/.git") and not is_there(f"{fresh}/.git"):
            os.rename(f"{target}/.git", f"{fresh}/.git")  # another mission's stash: it waits for whoever comes next
        elif is_folder(f"{target}/.git"):
            stash.join(f"{target}/.git", f"{fresh}/.git")
        set_out(target, bin_folder)
        os.rename(fresh, target)


def hand_on(upper: str, target: str, names: Iterable[str], bin_folder: str) -> None:
    """Make ``target`` of the named parts of an upper directory that is done with; safe to repeat after a crash."""
    fresh = f"{upper}.carried"
    for name in sorted(names):
        os.makedirs(fresh, mode=0o700, exist_ok=True)
        _mirror(upper, fresh, os.path.dirname(name))
        _movable(f"{upper}/{name}")
        os.rename(f"{upper}/{name}", f"{fresh}/{name}")
    if is_folder(fresh):
        if is_folder(target):
            stash.join(target, fresh)
        set_out(target, bin_folder)
        os.rename(fresh, target)


def _fit(upper: str, root: str) -> None:
    """The upper directory's own mode and owner are what a box sees of the worktree's root."""
    info = os.stat(root)
    os.chmod(upper, stat.S_IMODE(info.st_mode))
    if os.geteuid() == 0:
        os.chown(upper, info.st_uid, info.st_gid)


def _merge_back(fresh: str, upper: str) -> None:
    for name in os.listdir(fresh):
        source, target = f"{fresh}/{name}", f"{upper}/{name}"
        if not is_there(target):
            os.rename(source, target)
        elif is_folder(source) and is_folder(target):
            _merge_back(source, target)


def _keep_sealed(upper: str, path: str) -> None:
    """A kept folder that an opaque one above sealed is opaque itself from now on."""
    if not is_folder(f"{upper}/{path}"):
        return
    above = os.path.dirname(path)
    while above:
        for mark in OPAQUE:
            if _marked(f"{upper}/{above}", mark):
                os.setxattr(f"{upper}/{path}", mark, b"y", follow_symlinks=False)
                return
        above = os.path.dirname(above)


def _marked(path: str, mark: str) -> bool:
    return mark in os.listxattr(path, follow_symlinks=False) and os.getxattr(path, mark, follow_symlinks=False) == b"y"


def _mirror(upper: str, fresh: str, path: str) -> None:
    """Make the parents of a carried path with the modes and owners they had."""
    at = ""
    for part in path.split("/") if path else []:
        at = f"{at}/{part}"
        if not is_folder(fresh + at):
            info = os.lstat(upper + at)
            os.mkdir(fresh + at)
            if os.geteuid() == 0:
                os.chown(fresh + at, info.st_uid, info.st_gid)
            os.chmod(fresh + at, stat.S_IMODE(info.st_mode) | 0o700)


def _movable(path: str) -> None:
    info = os.lstat(path)
    if os.geteuid() and stat.S_ISDIR(info.st_mode) and not info.st_mode & stat.S_IWUSR:
        os.chmod(path, stat.S_IMODE(info.st_mode) | 0o700)  # renaming a folder writes its ``..``


def _open_to_us(upper: str) -> None:
    """A box may take everybody's rights to the worktree's root, its own too: the layer stays ours to read and to remove."""
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(os.lstat(upper).st_mode)
        if os.geteuid() and mode & 0o700 != 0o700:
            os.chmod(upper, mode | 0o700)
