"""What deciding needs to know of the file system, gathered by the caller and stored with the intent.

Deciding is pure: the same call, policy and facts give the same decision years later. A path or program that the
evaluator asks about and that is not here is a reason to deny, never a reason to look.
"""

import enum

from msgspec import Struct


class PathKind(enum.Enum):
    """What stands at the resolved path."""

    ABSENT = "absent"
    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"
    """A device, FIFO or socket."""
    UNREADABLE = "unreadable"
    """Resolution failed (permission, loop, too long, NUL byte): treated as outside every root."""


class PathFact(Struct, frozen=True, kw_only=True, gc=False):
    """One path as asked (absolute, not normalised) and where it leads.

    ``real`` is the path with every existing component resolved (symlinks and ``..`` as the kernel takes them) and the
    missing rest appended. ``links`` counts hard links of a regular file (0 where absent). ``via_symlink`` says whether
    the last component itself is a symbolic link.
    """

    asked: str
    real: str
    kind: PathKind
    links: int = 0
    via_symlink: bool = False
    git_directory: bool = False
    """The path is a directory that git would take for a repository of its own (bare, or holding ``.git``)."""


class ProgramFact(Struct, frozen=True, kw_only=True, gc=False):
    """What a bare program name means on the PATH of the box, or ``None`` where it is not found."""

    name: str
    real: str | None


class GlobFact(Struct, frozen=True, kw_only=True, gc=False):
    """The existing names that an unquoted pattern on the line stands for; ``complete`` is false past the cap."""

    asked: str
    """Absolute, not normalised, as the pattern would be expanded."""
    matches: tuple[str, ...] = ()
    """Absolute; each is among ``paths`` as well."""
    complete: bool = True


class PathFacts(Struct, frozen=True, kw_only=True, gc=False):
    """Everything of the file system that one decision used."""

    cwd: str
    home: str
    root: str
    """Resolved path of the repository's root: what ``.`` in ``allowed_roots`` means."""
    paths: tuple[PathFact, ...] = ()
    programs: tuple[ProgramFact, ...] = ()
    globs: tuple[GlobFact, ...] = ()
    homes: tuple[tuple[str, str], ...] = ()
    """Other users' homes that ``~name`` words on the line mean."""
