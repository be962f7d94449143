"""What of a worktree a box may not see: paths the policy denies to read, and git configurations with secrets in them.

The walk is remembered folder by folder: one whose modification time has not moved is not read again.
"""

import os
import stat
import threading
import time
from dataclasses import dataclass

from ringfence.model.errors import BoxError
from ringfence.policy.policy import Policy
from ringfence.sandbox.gitconfig import sanitise

MAX_CONFIG = 1024 * 1024
"""Bytes of a git configuration that is shown to a box at all; a larger one is hidden."""
RACY = 100_000_000
"""Nanoseconds: a folder that changed this recently is looked at again, whatever its time says."""
MAX_FOLDERS = 500_000
"""Folders of a worktree; one with more is refused, because what is in the rest would not be looked at."""


@dataclass(frozen=True, slots=True)
class _Folder:
    stamp: tuple[int, int, int]
    folders: tuple[str, ...]
    hidden: tuple[str, ...]
    gits: tuple[str, ...]
    """Git directories in it or being it, whatever their names: a bare repository is one too."""


class Hidden:
    """Remembers what was found. Safe to use from many threads."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: dict[tuple[str, str], dict[str, _Folder]] = {}
        self._lock = threading.Lock()

    def of(self, policy: Policy) -> tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]:
        """Relative paths to mask, and relative paths of git configurations with the text to show instead.

        Raises BoxError when the tree cannot be looked through: what was not looked at could be seen.
        """
        root = str(policy.root)
        key = (root, str(policy.digest))
        with self._lock:
            before = self._known.get(key, {})
        after: dict[str, _Folder] = {}
        masked: list[str] = []
        replaced: list[tuple[str, bytes]] = []
        waiting = [""]
        while waiting:
            if len(after) > MAX_FOLDERS:
                raise BoxError(
                    "tree-too-large",
                    f"the worktree has more than {MAX_FOLDERS} folders",
                    where=root,
                    remedy="move what is not part of the work out of it",
                )
            relative = waiting.pop()
            folder = _look(root, relative, before.get(relative), policy)
            after[relative] = folder
            masked += folder.hidden
            waiting += folder.folders
            for git in folder.gits:
                _configurations(root, git, masked, replaced)
        with self._lock:
            if len(self._known) > 32:
                self._known.clear()
            self._known[key] = after
        return tuple(sorted(masked)), tuple(sorted(replaced))


def _look(root: str, relative: str, known: _Folder | None, policy: Policy) -> _Folder:
    path = f"{root}/{relative}" if relative else root
    try:
        info = os.lstat(path)
        stamp = (info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        if time.time_ns() - info.st_mtime_ns < RACY:  # a name made in the same tick of the clock would go unseen
            stamp = (0, 0, 0)
        with os.scandir(path) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except FileNotFoundError:
        return _Folder((0, 0, 0), (), (), ())
    except OSError as error:
        raise BoxError(
            "tree-unreadable",
            f"a folder of the worktree cannot be looked through: {error.strerror}",
            where=ascii(path),
            remedy="make it readable for you, or move it out of the worktree",
        ) from error
    folders, hidden = [], []
    names = {name for name, _ in found}
    bare = bool(relative) and {"HEAD", "objects", "refs"} <= names
    gits = [relative] if bare else []
    for name, is_folder in found:
        below = f"{relative}/{name}" if relative else name
        if name == ".git" and is_folder:
            gits.append(below)
        elif policy.read_denies(below):
            hidden.append(below)
        elif is_folder:
            folders.append(below)
    return _Folder(stamp, tuple(folders), tuple(hidden), tuple(gits))


def _configurations(root: str, git: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    """The configurations of one git directory and of the modules and worktrees kept inside it."""
    waiting = [git]
    while waiting:
        relative = waiting.pop()
        for name in ("config", "config.worktree"):
            _replace(root, f"{relative}/{name}", masked, replaced)
        for inner in ("modules", "worktrees"):
            waiting += _git_directories(root, f"{relative}/{inner}")


def _git_directories(root: str, relative: str) -> list[str]:
    """Git directories below a ``modules`` or ``worktrees`` folder, at any depth: a module's name may hold slashes."""
    found, waiting = [], [relative]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            continue
        if "HEAD" in names:
            found.append(folder)
        else:
            waiting += [f"{folder}/{name}" for name, is_folder in names.items() if is_folder]
    return found


def _replace(root: str, relative: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    path = f"{root}/{relative}"
    try:
        info = os.lstat(path)
    except OSError:
        return
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_CONFIG:
        masked.append(relative)
        return
    try:
        with open(path, "rb") as file:
            text = file.read(MAX_CONFIG).decode("utf-8", "surrogateescape")
    except OSError:
        masked.append(relative)
        return
    shown = sanitise(text).encode("utf-8", "surrogateescape")
    replaced.append((relative, shown))
