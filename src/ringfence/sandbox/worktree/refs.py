"""Branches, tags and HEAD as files say them: of the real repository, and as a mission's layer left them. No git is run.

Ref files in a layer were written by an agent. They are read as small regular files beneath the layer's root, and a
name or value that git would not have written makes the whole reading fail.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ringfence.sandbox.worktree import kernel, there
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node
from ringfence.sandbox.worktree.git_side import GitSide

MAX_REFS = 20_000
MAX_MOVES = 2_000
"""Each is judged and moved by itself, while the repository is locked."""
_MAX_STEPS = 5
MAX_PACKED = 4 * 1024 * 1024
_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_BAD_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\.(?:/|\Z)|/\Z")
_KINDS = ("refs/heads/", "refs/tags/")
_REFTABLE = "refs/heads/.invalid"
"""What HEAD says where refs are kept in a form that is not read here."""
_REMOTES = "refs/remotes/"
_STAY = ("refs/stash", "refs/notes/", "refs/bisect/")
"""Refs that a mission keeps in its layer."""
_LOOKED_UP = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
"""Where git looks for a short name, in this order."""


class Unreadable(Exception):
    """The refs of a layer make no sense; the reason is for a person."""


@dataclass(frozen=True, slots=True)
class Refs:
    """Branches and tags by full name, and HEAD: a ref's name, or an object id when detached. Loose files win."""

    head: str
    loose: dict[str, str] = field(default_factory=dict)
    packed: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    """The person's own that are not taken over but left as they are: branches that name another branch, odd names."""

    @property
    def names(self) -> dict[str, str]:
        """Every branch and tag with its object id."""
        return self.packed | self.loose

    def tip(self) -> str | None:
        """The commit that HEAD means, or None on a branch without commits."""
        name = self.head
        for _ in range(_MAX_STEPS):
            if not name.startswith("refs/"):
                return name
            name = self.names.get(name) or self.other.get(name, "").removeprefix("ref: ")
            if not name:
                return None
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One ref that a mission moved. None stands for absent."""

    name: str
    old: str | None
    new: str | None


def real_refs(common: int, directory: int) -> Refs:
    """The refs of the real repository. Raises Unreadable."""
    loose: dict[str, str] = {}
    other: dict[str, str] = {}
    for kind in _KINDS:
        _loose(common, kind.rstrip("/"), loose, other)
    packed = _packed(_read(common, "packed-refs"), other)
    return Refs(_head(_read(directory, "HEAD")), loose, packed, other)


def layer_refs(real: Refs, side: GitSide, changes: Iterable[Change]) -> Refs:
    """The refs as the layer's git sees them: ``real`` with the layer's ref files laid over. Raises Unreadable.

    What is not taken over may be in the layer too, as long as it says there what it says in the real repository.
    """
    head, loose, packed = real.head, dict(real.loose), real.packed
    for change in changes:
        name = change.path.removeprefix(".git/")
        if name not in {"HEAD", "packed-refs"} and not name.startswith(_KINDS):
            continue
        gone = change.kind is ChangeKind.DELETED
        if change.fault:
            raise Unreadable(f"{name}: {change.fault}")
        if name == "HEAD":
            head = _head(None if gone else _read(side.upper, side.physical(change.path)))
        elif name == "packed-refs":
            packed = {} if gone else _packed(_read(side.upper, side.physical(change.path)), real.other, strict=True)
        elif name.endswith(".lock"):
            continue
        elif change.node is Node.DIRECTORY:
            loose.pop(name, None)  # a name that was a branch's is a folder's now
        elif gone:
            loose.pop(name, None)
        else:
            data = _read(side.upper, side.physical(change.path))
            if name not in real.other or _text(data) != real.other[name]:
                loose[_name(name)] = _value(data, name)
    if len(loose) + len(packed) > MAX_REFS:
        raise Unreadable(f"more than {MAX_REFS} branches and tags")
    return Refs(head, loose, packed, real.other)


def packed_away(side: GitSide) -> dict[str, str]:
    """The stash and other refs that stay in a layer, as far as its git has put them among the branches and tags."""
    try:
        now, before = (_read(fd, side.physical(".git/packed-refs")) for fd in (side.upper, side.lower))
        lines = set((now or b"").decode("utf-8", "surrogateescape").split("\n"))
        known = (before or b"").decode("utf-8", "surrogateescape").split("\n")
        found = [line.partition(" ")[::2] for line in sorted(lines.difference(known))]
        return {_name(name): _value(value.encode(), name) for value, name in found if name.startswith(_STAY)}
    except Unreadable:
        return {}


def packed_without(packed: bytes, names: Collection[str]) -> bytes:
    """The person's ``packed-refs`` without some names, and without what is noted of the tags among them."""
    kept, gone = [], False
    for line in packed.splitlines(keepends=True):
        if not line.startswith(b"^"):
            gone = os.fsdecode(line.rstrip(b"\n").partition(b" ")[2]) in names
        if not gone:
            kept.append(line)
    return b"".join(kept)


def moves(real: Refs, layer: Refs) -> tuple[Move, ...]:
    """Branches and tags that differ, deletions last. Raises Unreadable where they are more than can be judged at once."""
    before, after = real.names, layer.names
    found = [
        Move(name=name, old=before.get(name), new=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    if len(found) > MAX_MOVES:
        raise Unreadable(f"more than {MAX_MOVES} branches and tags moved at once")
    return tuple(sorted(found, key=lambda move: move.new is None))


def remote_names(common: int) -> frozenset[str]:
    """Full names of the remote-tracking branches, as far as their files say."""
    packed = (_read(common, "packed-refs") or b"").decode("utf-8", "surrogateescape").split("\n")
    found = {line.partition(" ")[2] for line in packed if line[:1] not in {"#", "^"}}
    waiting = [_REMOTES.rstrip("/")]
    while waiting:
        path = waiting.pop()
        folder = there.folder(common, path)
        if folder is None:
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                name = f"{path}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name)
                else:
                    found.add(name)
        os.close(folder)
    return frozenset(name for name in found if name.startswith(_REMOTES))


def in_the_way(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Refs of ``names`` that cannot be there beside ``name``: one is the folder that the other one's file would lie in."""
    above = {folder for folder in _folders(name) if folder in names}
    return tuple(sorted(above)) or tuple(other for other in names if other.startswith(name + "/"))


def _folders(name: str) -> Iterator[str]:
    while name := name.rpartition("/")[0]:
        yield name


def shadowed(name: str, taken: frozenset[str]) -> str:
    """What a person who writes the short name of a new ref may have meant instead; empty where it means only that ref.

    ``taken`` holds all full names. A tag called like a branch wins over it, a branch ``origin/main`` over the remote's.
    """
    short = name.split("/", 2)[2]
    if short == "@" or short.endswith("HEAD"):
        return short
    meant = {form.format(short) for form in _LOOKED_UP} - {name}
    return min(meant & taken, default="")


def read_head(directory: str) -> str:
    """What HEAD of a git directory of the person's names; empty where it cannot be read."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in there.NOT_THERE:
            return ""
        raise
    try:
        return _head(_read(fd, "HEAD"))
    except Unreadable:
        return ""
    finally:
        os.close(fd)


def _packed(data: bytes | None, other: dict[str, str], *, strict: bool = False) -> dict[str, str]:
    """By name, what ``packed-refs`` says. Not ``strict``: what no layer may say goes to ``other``."""
    names: dict[str, str] = {}
    for line in (data or b"").decode("utf-8", "surrogateescape").split("\n"):
        if not line or line[0] in "#^":
            continue
        value, _, name = line.partition(" ")
        if not name.startswith(_KINDS) or (strict and other.get(name) == value):
            continue
        try:
            names[_name(name)] = _value(value.encode(), name)
        except Unreadable:
            if strict:
                raise
            other.setdefault(name, value)
    return names


def _loose(fd: int, path: str, found: dict[str, str], other: dict[str, str]) -> None:
    """The person's ref files in a folder and below it; those that no layer may have go to ``other``."""
    folder = there.folder(fd, path)
    if folder is None:
        return
    try:
        with os.scandir(folder) as entries:
            items = [(e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in entries]
        for name, directory, file in items:
            full = f"{path}/{name}"
            if directory:
                _loose(fd, full, found, other)
            elif file and not name.endswith(".lock"):
                data = _read(folder, name)
                try:
                    found[_name(full)] = _value(data, full)
                except Unreadable:
                    other[full] = _text(data)
    finally:
        os.close(folder)


def _read(fd: int, path: str) -> bytes | None:
    try:
        file = kernel.open_beneath(fd, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    with open(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unreadable(f"{path} is no regular file")
        data = stream.read(MAX_PACKED + 1)
    if len(data) > MAX_PACKED:
        raise Unreadable(f"{path} is larger than any git would write")
    return data


def _head(data: bytes | None) -> str:
    text = (data or b"").decode("utf-8", "surrogateescape").strip("\n")
    if text.startswith("ref: "):
        name = text.removeprefix("ref: ").strip()
        if name == _REFTABLE:
            raise Unreadable(
                "the repository keeps refs as a reftable; `git refs migrate --ref-format=files` makes files of them"
            )
        _name(name)
        if not name.startswith("refs/heads/"):
            raise Unreadable(f"HEAD names {name!r}, which is no branch")
        return name
    return _value(data, "HEAD")


def _name(name: str) -> str:
    if not name.startswith("refs/") or _BAD_NAME.search(name) or len(name) > 240 or not name.isprintable():
        raise Unreadable(f"{name!r} is no name that a branch or tag can have")
    if "/-" in name:
        raise Unreadable(f"{name!r} would be taken for an option")
    return name


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape").removesuffix("\n")


def _value(data: bytes | None, name: str) -> str:
    text = _text(data)
    if not _ID.match(text):
        raise Unreadable(f"{name!r} does not hold an object id")
    return text
