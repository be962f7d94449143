"""What of a worktree a box may not see: paths the policy denies to read, and what git directories keep of secrets.

The walk is remembered folder by folder: one whose modification time has not moved is not read again.
"""

import os
import threading
import time
from dataclasses import dataclass

from ringfence.model.errors import BoxError
from ringfence.policy.policy import Policy
from ringfence.sandbox.worktree.git_view import hide

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
        """Relative paths to mask, and relative paths of git's files with the text to show instead.

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
                hide(root, git, masked, replaced)
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
