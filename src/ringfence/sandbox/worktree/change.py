"""What a mission changed, and what the gate made of it. Values only: nothing here reads a file.

Paths are relative to the worktree's root, as ``os.fsdecode`` gives them: bytes that are not UTF-8 are kept as
surrogates, so every name survives the way there and back.
"""

import enum
import hashlib
import os
import stat
from dataclasses import dataclass

from ringfence.model.ids import Bytes
from ringfence.model.tier import Tier


class Node(enum.Enum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    DEVICE = "device"
    FIFO = "fifo"
    SOCKET = "socket"


class ChangeKind(enum.Enum):
    """How a path differs from the real tree."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    MODE = "mode"
    TYPE = "type"
    SAME = "same"
    """Copied up by the overlay, but equal to what lies below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs. ``node``, ``size`` and ``mode`` tell what the mission left; for DELETED, what was there."""

    path: str
    kind: ChangeKind
    node: Node
    was: Node | None = None
    size: Bytes = Bytes(0)
    holes: Bytes = Bytes(0)
    """How much of a file was never written, and takes no room in the layer."""
    mode: int = 0
    links: int = 1
    target: str = ""
    """Where a symbolic link points."""
    ignored: bool = False
    """Ignored by the repository: stays in the layer. A directory stands for everything below it."""
    internal: bool = False
    """Git's own bookkeeping (objects, refs, index): leaves the box as history, never as files."""
    implied: bool = False
    """A directory that comes or goes with what is in it: not judged by itself."""
    fault: str = ""
    """Why it cannot be taken over at all, where the walk already knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells one state of a path in the real tree from another."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int

    def same_content(self, other: "Identity | None") -> bool:
        """Equal but for ctime, which a link or rename of our own also moves."""
        return other is not None and (self.device, self.inode, self.size, self.mtime_ns, self.mode) == (
            other.device,
            other.inode,
            other.size,
            other.mtime_ns,
            other.mode,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GateItem:
    """One path in a gate's report, with why it went where it went."""

    path: str
    change: Change
    tier: Tier
    reason: str
    rule: str = ""
    kept: str = ""
    """For a conflict: the folder on the host that holds the mission's version."""
    mode: int = 0
    """Permissions that a committed path has now; 0 where it was removed."""
    content: str = ""
    """SHA-256 of the bytes that were committed, of a link's target; empty for folders, modes and what was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What one commit did. Every change is in exactly one of the four lists, or counted as ignored or internal."""

    committed: tuple[GateItem, ...] = ()
    held: tuple[GateItem, ...] = ()
    """Waiting in the layer until a person commits them by name."""
    refused: tuple[GateItem, ...] = ()
    """Left in the layer; only ``discard`` removes them."""
    conflicts: tuple[GateItem, ...] = ()
    """Changed by someone else meanwhile. The real tree keeps its version; the mission's is at ``kept``."""
    ignored: int = 0
    internal: int = 0
    journal: str = ""
    """Folder of the undo journal of this commit; empty when nothing was committed."""

    @property
    def digest(self) -> str:
        """SHA-256 over all that was committed, ``docs/ledger-format.md`` says how; empty when nothing was."""
        if not self.committed:
            return ""
        rows = sorted(((os.fsencode(item.path), item) for item in self.committed), key=lambda row: row[0])
        parts = [
            b"%b\0%b %o %b\0" % (path, i.change.kind.value.encode(), i.mode, i.content.encode()) for path, i in rows
        ]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    @property
    def clean(self) -> bool:
        """Nothing was held, refused or in conflict."""
        return not (self.held or self.refused or self.conflicts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts for ``mission diff``."""

    added: int = 0
    modified: int = 0
    deleted: int = 0
    ignored: int = 0
    size: Bytes = Bytes(0)


_NODES = {
    stat.S_IFREG: Node.FILE,
    stat.S_IFDIR: Node.DIRECTORY,
    stat.S_IFLNK: Node.SYMLINK,
    stat.S_IFIFO: Node.FIFO,
    stat.S_IFSOCK: Node.SOCKET,
}


def node_of(mode: int) -> Node:
    """The node type in a ``st_mode``."""
    return _NODES.get(stat.S_IFMT(mode), Node.DEVICE)


def statistics(changes: tuple[Change, ...]) -> Statistics:
    """Counts over changes; implied directories and git's own files are left out."""
    seen = [c for c in changes if not c.internal and not c.implied and c.kind is not ChangeKind.SAME]
    real = [c for c in seen if not c.ignored]
    return Statistics(
        added=sum(c.kind is ChangeKind.ADDED for c in real),
        modified=sum(c.kind in {ChangeKind.MODIFIED, ChangeKind.MODE, ChangeKind.TYPE} for c in real),
        deleted=sum(c.kind is ChangeKind.DELETED for c in real),
        ignored=sum(c.ignored for c in seen),
        size=Bytes(sum(c.size for c in real if c.kind is not ChangeKind.DELETED)),
    )


def covers(selection: frozenset[str], path: str) -> bool:
    """Whether ``path`` is one of the selected paths or lies below one; ``.`` selects everything."""
    if "." in selection or path in selection:
        return True
    return any(path.startswith(chosen.rstrip("/") + "/") for chosen in selection if chosen.rstrip("/"))
