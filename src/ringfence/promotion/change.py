"""The change as values: base, head, pinned commit, commits between, and every path that differs, with its bytes at hand.

Bytes are fetched on demand through two functions, so that a scanner reads a blob once and a large one never.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ringfence.promotion.objects import FILE, GITLINK, LINK, BadObject, Commit, Node, PathChange, ReadTree, find_path

_LFS = b"version https://git-lfs.github.com/spec/v1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How this change's objects are read; each raises BadObject when it cannot."""

    commit: Callable[[str], Commit]
    tree: ReadTree
    blob: Callable[[str], bytes]
    size: Callable[[str], int]
    prefetch: Callable[[list[str]], None]
    merge_bases: Callable[[str, str], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A file on one side of the change. ``content`` is None for links to other repositories and for what is too large."""

    mode: str
    size: int
    content: bytes | None
    lfs_size: int | None = None

    @property
    def opaque(self) -> bool:
        """Whether a person reviewing the diff cannot read what this file is."""
        return self.content is None or self.lfs_size is not None or is_binary(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One path of the change with both sides."""

    path: str
    old: Side | None
    new: Side | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Everything that the gates ask about a change. ``touched`` leaves out the evidence file."""

    base: Commit
    fork: Commit
    """The best common ancestor: the base itself unless the base moved on."""
    head: Commit
    evidence: Commit
    """The commit that holds the evidence: the head, or the second parent of a merge-queue commit."""
    commits: tuple[Commit, ...]
    touched: tuple[Touched, ...]
    moved: tuple[str, ...] = ()
    """Touched paths that the base changed as well since the fork."""
    label: str = ""
    """How reports name the difference."""
    called: tuple[str, ...] = ()
    """Globs of what the base's CI files name as parts of themselves."""
    mentioned: tuple[str, ...] = ()
    """Touched paths that the base's CI files name."""
    sources: dict[str, str] = field(default_factory=dict)
    """New path to old path, for files that moved unchanged."""


def is_binary(content: bytes) -> bool:
    """Whether the bytes are not text: a zero byte, or not UTF-8 (UTF-16 counts as binary too)."""
    if b"\0" in content:
        return True
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def load_side(node: Node | None, reader: Reader, limit: int) -> Side | None:
    """The file at one side; None where there is none."""
    if node is None:
        return None
    if node.mode == GITLINK:
        return Side(mode=node.mode, size=0, content=None)
    size = reader.size(node.oid)
    content = reader.blob(node.oid) if size <= limit else None
    return Side(mode=node.mode, size=size, content=content, lfs_size=_lfs_size(content))


def _lfs_size(content: bytes | None) -> int | None:
    if content is None or not content.startswith(_LFS) or len(content) > 1024:
        return None
    for line in content.splitlines():
        word, _, number = line.partition(b" ")
        if word == b"size" and number.isdigit() and len(number) < 19:
            return int(number)
    return 0


def moved_unchanged(changes: list[PathChange]) -> dict[str, str]:
    """New path to old path where exactly the same blob and mode left one path and came up at another."""
    gone: dict[Node, list[str]] = {}
    for change in changes:
        if change.new is None and change.old is not None and change.old.mode != GITLINK:
            gone.setdefault(change.old, []).append(change.path)
    sources = {}
    for change in changes:
        if change.old is None and change.new is not None and gone.get(change.new):
            sources[change.path] = gone[change.new].pop(0)
    return sources


def base_file(commit: Commit, path: str, reader: Reader) -> bytes:
    """A regular file of a commit's tree; raises BadObject where it is none."""
    node = find_path(commit.tree, path, reader.tree)
    if node is None or node.mode not in {FILE, "100755"}:
        raise BadObject(f"{path} is not a regular file in {commit.oid[:12]}")
    return reader.blob(node.oid)


def is_link(side: Side | None) -> bool:
    """Whether the side is a symbolic link."""
    return side is not None and side.mode == LINK
