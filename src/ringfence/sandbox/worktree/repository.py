"""Where a worktree's git directory and common directory are, found by reading files: no git is run.

Handles ``.git`` as a directory, as a file (worktrees, submodules) and as a symbolic link, and a worktree without any.
"""

import os
import stat
from dataclasses import dataclass

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree.there import NOT_THERE

_LIMIT = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The git side of a worktree. All paths are absolute and resolved."""

    directory: str
    """``.git`` itself, or where the file or link ``.git`` points."""
    common: str
    """Where refs and objects live; differs from ``directory`` in a linked worktree."""
    inside: bool
    """``.git`` is a real directory in the worktree, so that the overlay covers it."""

    @property
    def index(self) -> str:
        """The index of this worktree."""
        return f"{self.directory}/index"

    @property
    def exclude(self) -> str:
        """The person's own ignore rules."""
        return f"{self.common}/info/exclude"


def find_repository(root: str) -> Repository | None:
    """The repository whose working tree is ``root``, or None. Raises RingfenceError where ``.git`` makes no sense."""
    dot = f"{root}/.git"
    if _looks_bare(root):
        raise RingfenceError(
            "bare-repository",
            "this is a bare repository: it has no files an agent could work on",
            where=repr(root),
            remedy="make a worktree of it (git worktree add DIR) and use that folder",
        )
    if not os.path.lexists(dot):
        return None
    real = os.path.realpath(dot)
    if os.path.isfile(real):
        directory = _pointer(real, b"gitdir:", os.path.dirname(real) if not os.path.islink(dot) else root)
        inside = False
    else:
        directory = real
        inside = not os.path.islink(dot)
    if not os.path.isfile(f"{directory}/HEAD") and not os.path.islink(f"{directory}/HEAD"):
        raise _broken(dot, f"{directory!r} holds no HEAD")
    common = directory
    if os.path.isfile(f"{directory}/commondir"):
        common = _pointer(f"{directory}/commondir", b"", directory)
    if not inside and (common + "/").startswith(root + "/"):
        raise _broken(dot, f"it leads back into the worktree, to {common!r}")
    if not inside and (root + "/").startswith(common + "/"):
        raise _broken(dot, f"the worktree lies inside its own git directory {common!r}")
    _refuse_borrowed(f"{common}/objects", (root, common))
    return Repository(directory=directory, common=common, inside=inside)


def _refuse_borrowed(objects: str, seen: tuple[str, ...]) -> None:
    """No box is shown another repository's objects, and git finds nothing where some that it needs are out of sight."""
    for line in read_small(f"{objects}/info/alternates", _LIMIT).splitlines():
        path = os.path.realpath(os.path.join(objects, os.fsdecode(line.strip(b'"'))))
        if line and not line.startswith(b"#") and not any(path.startswith(place + "/") for place in seen):
            raise RingfenceError(
                "objects-borrowed",
                f"this repository borrows objects of another one, {path!r}, which no box sees: git would find no commit there",
                where=f"{objects}/info/alternates",
                remedy="give it its own: git repack -a -d && rm .git/objects/info/alternates",
            )


def read_small(path: str, limit: int) -> bytes:
    """A file of the person's own git directory; empty where it is absent or no regular file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in NOT_THERE:
            return b""
        raise
    with open(fd, "rb") as stream:
        return stream.read(limit) if stat.S_ISREG(os.fstat(fd).st_mode) else b""


def _pointer(path: str, prefix: bytes, base: str) -> str:
    with open(path, "rb") as stream:
        text = stream.read(_LIMIT)
    if not text.startswith(prefix) or len(text) == _LIMIT:
        raise _broken(path, "it does not say where the git directory is")
    target = os.fsdecode(text.removeprefix(prefix).strip(b" \r\n"))
    real = os.path.realpath(os.path.join(base, target))
    if not target or not os.path.isdir(real):
        raise _broken(path, f"it points to {target!r}, which is no directory")
    return real


def _looks_bare(root: str) -> bool:
    return (
        os.path.isfile(f"{root}/HEAD")
        and os.path.isdir(f"{root}/objects")
        and os.path.isdir(f"{root}/refs")
        and not os.path.lexists(f"{root}/.git")
    )


def _broken(path: str, why: str) -> RingfenceError:
    return RingfenceError(
        "git-directory-broken",
        f"{path!r} is not a git directory: {why}",
        where=repr(path),
        remedy="run git status there and repair the repository first",
    )
