"""Which repository a call belongs to, and what git's own files say of it. Reads files; never runs git.

The agent may write most of what is read here, so nothing in it grants by itself: it only fills a ``when`` condition,
which holds for ALLOW only where the value is known.
"""

import os
import re
import stat
from dataclasses import dataclass

from ringfence.model.errors import PolicyError
from ringfence.policy.in_force import find_policy
from ringfence.policy.load import FILE_NAME

MAX_CONFIG = 1024 * 1024
"""Bytes of a git config or reference file that are read: git's own are a few hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A worktree with a policy. ``head`` is the commit, where it is known."""

    root: str
    policy: str
    branch: str | None
    head: str | None
    remotes: tuple[tuple[str, str], ...]


def find_root(cwd: str) -> str:
    """The folder of the nearest policy at or above ``cwd``, not looking above a git repository's top.

    Raises PolicyError where there is none: a call without a policy is not allowed.
    """
    if not os.path.isdir(cwd):
        raise PolicyError(
            "no-directory", "the working directory does not exist", where=cwd, remedy="change to one that is there"
        )
    return os.path.dirname(find_policy(cwd))


def read_repository(root: str) -> Repository:
    """What git's files say of the worktree at ``root``; a worktree without git has no branch, head or remotes."""
    git = git_directory(root)
    branch: str | None = None
    head: str | None = None
    remotes: tuple[tuple[str, str], ...] = ()
    if git is not None:
        common = _common(git)
        branch, head = _head(git, common)
        remotes = _remotes(os.path.join(common, "config"))
    return Repository(root=root, policy=os.path.join(root, FILE_NAME), branch=branch, head=head, remotes=remotes)


def git_directory(root: str) -> str | None:
    """The git directory of a worktree, through a ``.git`` file where it is one; None where there is none."""
    dot = os.path.join(root, ".git")
    try:
        info = os.lstat(dot)
    except OSError:
        return None
    if stat.S_ISDIR(info.st_mode):
        return dot
    text = _read(dot) if stat.S_ISREG(info.st_mode) else None
    if text is None or not text.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(root, text[8:].strip()))


def _common(git: str) -> str:
    text = _read(os.path.join(git, "commondir"))
    return git if text is None else os.path.normpath(os.path.join(git, text.strip()))


def _head(git: str, common: str) -> tuple[str | None, str | None]:
    text = _read(os.path.join(git, "HEAD"))
    if text is None:
        return None, None
    text = text.strip()
    if not text.startswith("ref: "):
        return None, text if _is_object(text) else None
    reference = text[5:].strip()
    if ".." in reference or not reference.startswith("refs/"):
        return None, None
    branch = reference.removeprefix("refs/heads/") if reference.startswith("refs/heads/") else None
    loose = _read(os.path.join(common, reference))
    if loose is not None and _is_object(loose.strip()):
        return branch, loose.strip()
    packed = _read(os.path.join(common, "packed-refs")) or ""
    for line in packed.splitlines():
        value, _, name = line.partition(" ")
        if name == reference and _is_object(value):
            return branch, value
    return branch, None


def _remotes(config: str) -> tuple[tuple[str, str], ...]:
    """Names and URLs of remotes. A config with includes or rewrites does not say where a name leads: none are known."""
    text = _read(config)
    if text is None or re.search(r"^\s*\[\s*(include|includeif|url)\b", text, re.IGNORECASE | re.MULTILINE):
        return ()
    found: list[tuple[str, str]] = []
    name = None
    for line in text.splitlines():
        section = re.match(r'^\s*\[\s*remote\s+"([^"\\]+)"\s*\]\s*$', line, re.IGNORECASE)
        if section:
            name = section.group(1)
        elif line.lstrip().startswith("["):
            name = None
        elif name is not None and (
            value := re.match(r"^\s*(?:push)?url\s*=\s*([^\s#;\"\\]+)\s*$", line, re.IGNORECASE)
        ):
            found.append((name, value.group(1)))
    return tuple(found)


def _is_object(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text))


def _read(path: str) -> str | None:
    """The text of a small regular file that is not a link; None for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_CONFIG:
            return None
        return os.read(descriptor, MAX_CONFIG).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
