"""What of a git directory a box does not see: passwords in its configurations and in what git notes elsewhere, saved log-ins.

Looks and reads; what is found is told as paths to mask and as texts to show instead. A folder that is closed to us is masked
whole, and what cannot be looked at for any other reason refuses the box: only what is not there holds nothing.
"""

import os
import re
import stat

from ringfence.model.errors import BoxError
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
KEYS = ("git-crypt", "annex/creds")
"""Folders beside git's own in which programs keep keys: of files that history holds encrypted, of stores of large files."""

MANY_KNOWN = 4096
ABSENT = (FileNotFoundError, NotADirectoryError)

Stamp = tuple[int, int, int, int]
_known: dict[str, tuple[Stamp, bytes | None]] = {}
"""Of each note its newest state that was read, and what is shown instead of it."""


def hide(root: str, git: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    """Add what one git directory, and those kept in it, must not show. ``git`` is its path below ``root``, empty for itself.

    Raises BoxError where it cannot be looked through: what was not looked at could be seen.
    """
    try:
        _hide(root, git, masked, replaced)
    except OSError as error:
        raise BoxError(
            "tree-unreadable",
            f"git's folder cannot be looked through: {error.strerror}",
            where=ascii(error.filename or f"{root}/{git}"),
            remedy="see that you can read it and that the disk is well, then try again",
        ) from error


def _hide(root: str, git: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    waiting = [git]
    while waiting:
        relative = waiting.pop()
        for name in CONFIGURATIONS:
            _configuration(root, _below(relative, name), masked, replaced)
        masked += [_below(relative, name) for name in _private(f"{root}/{relative}")]
        masked += [path for name in KEYS if os.path.lexists(f"{root}/{(path := _below(relative, name))}")]
        for name in NOTED:
            _noted(root, relative, name, masked, replaced)
        for inner in ("modules", "worktrees"):
            waiting += _git_directories(root, _below(relative, inner), masked)


def _configuration(root: str, relative: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    path = f"{root}/{relative}"
    try:
        info = os.lstat(path)
    except ABSENT:
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
    except ABSENT:
        return []


def _noted(root: str, git: str, name: str, masked: list[str], replaced: list[tuple[str, bytes]]) -> None:
    waiting = [name]
    while waiting:
        inner = waiting.pop()
        if inner in OWN_LOGS:
            continue
        relative = _below(git, inner)
        path = f"{root}/{relative}"
        try:
            if inner == REMOTES and _has_more(path, MANY_LOGS):
                masked.append(relative)
                continue
            info = os.lstat(path)
            if stat.S_ISDIR(info.st_mode):
                waiting += [f"{inner}/{child}" for child in os.listdir(path)]
                continue
        except ABSENT:
            continue
        except PermissionError:
            masked.append(relative)
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
        except ABSENT:
            continue
    return seen > most


def _shown(path: str, stamp: Stamp) -> bytes | None:
    """What to show instead of a file with a password in an address; None for one without. Read again once it has changed."""
    known = _known.get(path)
    if known is None or known[0] != stamp:
        if len(_known) >= MANY_KNOWN:
            _known.clear()
        known = _known[path] = (stamp, _read(path))
    return known[1]


def _read(path: str) -> bytes | None:
    with open(path, "rb") as file:
        text = file.read()
    if b"@" not in text or b"://" not in text:
        return None
    shown = without_users(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return None if shown == text else shown


def _git_directories(root: str, relative: str, masked: list[str]) -> list[str]:
    """Git directories below a ``modules`` or ``worktrees`` folder, at any depth: a module's name may hold slashes."""
    found, waiting = [], [relative]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except ABSENT:
            continue
        except PermissionError:
            masked.append(folder)
            continue
        if "HEAD" in names:
            found.append(folder)
        else:
            waiting += [f"{folder}/{name}" for name, is_folder in names.items() if is_folder]
    return found


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
