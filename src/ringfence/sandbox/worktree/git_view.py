"""What of a git directory a box does not see: passwords in its configurations and in what git notes elsewhere, saved log-ins.

Looks and reads; what is found is told as paths to mask and as texts to show instead.
"""

import functools
import os
import re
import stat

from ringfence.sandbox.gitconfig import sanitise, without_users

CONFIGURATIONS = ("config", "config.worktree")
MAX_CONFIG = 1024 * 1024
"""Bytes of a git configuration that is shown to a box at all; a larger one is hidden."""
NOTED = ("logs", "remotes", "branches", "FETCH_HEAD")
"""Where git notes addresses as somebody typed them: ``git pull https://me:TOKEN@…`` stands in the log of the branch."""
LARGEST_NOTE = 64 * 1024 * 1024
OWN_LOGS = ("logs/refs/stash", "logs/refs/notes")
"""What they say is made by git alone, and a mission's stash goes on to the repository's next one."""
REMOTES = "logs/refs/remotes"
MANY_LOGS = 500
"""Logs of other repositories' branches that are looked at before each command; where there are more, none of them is shown."""
PRIVATE = re.compile("config|credential|token|secret|passw|netrc", re.IGNORECASE)
"""Names of files beside git's own that people and tools keep there: backups of the configuration, saved log-ins."""

Stamp = tuple[int, int, int, int]


def hide(root: str, git: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    """Add what one git directory, and those kept in it, must not show. ``git`` is its path below ``root``, empty for itself."""
    waiting = [git]
    while waiting:
        relative = waiting.pop()
        for name in CONFIGURATIONS:
            _configuration(root, _below(relative, name), masked, replaced)
        masked += [_below(relative, name) for name in _private(f"{root}/{relative}")]
        for name in NOTED:
            _noted(root, relative, name, masked, replaced)
        for inner in ("modules", "worktrees"):
            waiting += _git_directories(root, _below(relative, inner))


def _configuration(root: str, relative: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
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
    replaced.append((relative, sanitise(text).encode("utf-8", "surrogateescape")))


def _private(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [
                entry.name
                for entry in entries
                if PRIVATE.search(entry.name)
                and entry.name not in CONFIGURATIONS
                and not entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []


def _noted(root: str, git: str, name: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    waiting = [name]
    while waiting:
        inner = waiting.pop()
        if inner in OWN_LOGS:
            continue
        if inner == REMOTES and _has_more(f"{root}/{_below(git, inner)}", MANY_LOGS):
            masked.append(_below(git, inner))
            continue
        relative = _below(git, inner)
        path = f"{root}/{relative}"
        try:
            info = os.lstat(path)
            if stat.S_ISDIR(info.st_mode):
                waiting += [f"{inner}/{child}" for child in os.listdir(path)]
                continue
        except OSError:
            continue
        if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST_NOTE:
            masked.append(relative)
            continue
        try:
            shown = _shown(path, (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns))
        except OSError:
            masked.append(relative)
            continue
        if shown is not None:
            replaced.append((relative, shown))


def _has_more(folder: str, most: int) -> bool:
    """Whether more entries lie below a folder; each is only listed, not looked at."""
    waiting, seen = [folder], 0
    while waiting and seen <= most:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return seen > most


@functools.lru_cache(maxsize=4096)
def _shown(path: str, _stamp: Stamp) -> bytes | None:
    """What to show instead of a file with a password in an address; None for one without. Read again once it has changed."""
    with open(path, "rb") as file:
        text = file.read()
    if b"@" not in text or b"://" not in text:
        return None
    shown = without_users(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return None if shown == text else shown


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


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
