"""Git objects as values: ids, commits, trees, and the difference of two trees. Pure: raw bytes come through a reader.

Own parsing, because what git's own diff says depends on attributes, configuration, replace refs and submodule settings
that a change can bring along. A tree that git's fsck would complain about is a fault, never a guess.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
FILE, EXECUTABLE, LINK, GITLINK, DIRECTORY = "100644", "100755", "120000", "160000", "40000"
_MODES = frozenset({FILE, EXECUTABLE, LINK, GITLINK, DIRECTORY})
MAX_DEPTH = 64
MAX_CHANGES = 50_000
"""Paths of one difference; a few trees that name each other many times unfold to billions."""
MAX_BLOB = 8 * 1024 * 1024
"""Bytes of one blob that are read; a larger one is counted and called opaque."""
# Names that some file system takes for .git, or that leave the tree.
_UNSAFE_NAME = re.compile(r"(?:\.|\.\.|\.git[ .]*|git~\d+)\Z", re.IGNORECASE)
_HFS_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


class BadObject(ValueError):
    """An object is missing, is not what its id says, or is one that an honest git would not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit as stored. ``author`` and ``committer`` are name and mail as written, which prove nothing."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    author: tuple[str, str]
    committer: tuple[str, str]
    message: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One entry of a tree."""

    mode: str
    oid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """One path that differs between two trees. ``old`` or ``new`` is None where the path was added or removed."""

    path: str
    old: Node | None
    new: Node | None


ReadTree = Callable[[str], dict[str, Node]]


def parse_commit(oid: str, raw: bytes) -> Commit:
    """The commit's own words; raises BadObject."""
    head, _, message = raw.partition(b"\n\n")
    tree = ""
    parents: list[str] = []
    people = {b"author": ("", ""), b"committer": ("", "")}
    for number, line in enumerate(head.split(b"\n")):
        word, _, rest = line.partition(b" ")
        if word == b"tree" and number == 0:
            tree = rest.decode("ascii", "replace")
        elif word == b"parent" and number == len(parents) + 1:
            parents.append(rest.decode("ascii", "replace"))
        elif word in people and people[word] == ("", ""):
            people[word] = _person(rest)
    if not all(OID.match(x) and len(x) == len(oid) for x in (tree, *parents)):
        raise BadObject(f"commit {oid} does not name a tree and its parents")
    if len(set(parents)) != len(parents):
        raise BadObject(f"commit {oid} names a parent twice")
    return Commit(
        oid=oid,
        tree=tree,
        parents=tuple(parents),
        author=people[b"author"],
        committer=people[b"committer"],
        message=message,
    )


def _person(raw: bytes) -> tuple[str, str]:
    name, _, rest = raw.decode("utf-8", "replace").partition(" <")
    return name, rest.partition(">")[0]


def parse_tree(oid: str, raw: bytes) -> dict[str, Node]:
    """Name to entry, in order; raises BadObject for what fsck --strict would refuse."""
    width, at, entries = len(oid) // 2, 0, {}
    last = b""
    while at < len(raw):
        space, zero = raw.find(b" ", at), raw.find(b"\0", at)
        if not at < space < zero or zero + 1 + width > len(raw):
            raise BadObject(f"tree {oid} is cut short")
        mode, name = raw[at:space].decode("ascii", "replace"), raw[space + 1 : zero]
        at = zero + 1 + width
        if mode not in _MODES:
            raise BadObject(f"tree {oid} holds mode {mode!a}")
        text = _safe_name(oid, name)
        key = name + b"/" if mode == DIRECTORY else name
        if key <= last or text in entries:
            raise BadObject(f"tree {oid} is not sorted, or names {text!a} twice")
        last = key
        entries[text] = Node(mode=mode, oid=raw[zero + 1 : at].hex())
    return entries


def _safe_name(oid: str, name: bytes) -> str:
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        raise BadObject(f"tree {oid} holds a name that is not UTF-8") from None
    bare = text.translate(_HFS_IGNORED)
    if not text or "/" in text or "\\" in text or not text.isprintable() or _UNSAFE_NAME.match(bare):
        raise BadObject(f"tree {oid} holds the name {text!a}")
    return text


def diff_trees(old: str | None, new: str | None, read: ReadTree) -> list[PathChange]:
    """Every path below which two trees differ; only subtrees that differ are read. Nothing is taken for a rename."""
    changes: list[PathChange] = []
    stack: list[tuple[str, str | None, str | None]] = [("", old, new)]
    while stack:
        prefix, before, after = stack.pop()
        if before == after:
            continue
        if prefix.count("/") > MAX_DEPTH:
            raise BadObject(f"folders nested deeper than {MAX_DEPTH}")
        if len(changes) > MAX_CHANGES:
            raise BadObject(f"more than {MAX_CHANGES} paths differ: split the change")
        left = read(before) if before else {}
        right = read(after) if after else {}
        for name in left.keys() | right.keys():
            one, two = left.get(name), right.get(name)
            if one == two:
                continue
            path = prefix + name
            subtrees = _subtree(one), _subtree(two)
            if any(subtrees):
                stack.append((path + "/", *subtrees))
            files = _leaf(one), _leaf(two)
            if any(files):
                changes.append(PathChange(path=path, old=files[0], new=files[1]))
    return sorted(changes, key=lambda change: change.path)


def _subtree(node: Node | None) -> str | None:
    return node.oid if node and node.mode == DIRECTORY else None


def _leaf(node: Node | None) -> Node | None:
    return node if node and node.mode != DIRECTORY else None


def find_path(tree: str, path: str, read: ReadTree) -> Node | None:
    """What stands at the path in a tree, or None. No link is followed."""
    node = Node(mode=DIRECTORY, oid=tree)
    for part in path.split("/"):
        if node.mode != DIRECTORY:
            return None
        found = read(node.oid).get(part)
        if found is None:
            return None
        node = found
    return node
