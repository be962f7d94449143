"""The RFC 6962 Merkle tree over records: leaf and node hashes, compact ranges, inclusion and consistency proofs. Pure.

A record's hash is its leaf hash, so one SHA-256 per record serves the chain and the tree.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

EMPTY_ROOT = hashlib.sha256(b"").digest()
_sha256 = hashlib.sha256
_LEAF, _NODE = _sha256(b"\x00"), _sha256(b"\x01")
"""Begun once: to copy one takes less than to begin one."""


def leaf_hash(stored: bytes) -> bytes:
    """SHA-256(0x00 and the stored bytes)."""
    digest = _LEAF.copy()
    digest.update(stored)
    return digest.digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01, left, right)."""
    return _sha256(b"\x01" + left + right).digest()


class Range:
    """The roots of the perfect subtrees that cover leaves 0 to ``size``, largest first: all that appending needs."""

    __slots__ = ("nodes", "size")

    def __init__(self, size: int = 0, nodes: Sequence[bytes] = ()) -> None:
        """Raises ValueError where the count of nodes does not fit the size."""
        if size.bit_count() != len(nodes):
            raise ValueError(f"{len(nodes)} subtree roots cannot cover {size} leaves")
        self.size = size
        self.nodes = list(nodes)

    def add(self, leaf: bytes) -> None:
        """Append one leaf hash."""
        nodes, size = self.nodes, self.size
        while size & 1:
            digest = _NODE.copy()
            digest.update(nodes.pop() + leaf)
            leaf = digest.digest()
            size >>= 1
        nodes.append(leaf)
        self.size += 1

    def copy(self) -> "Range":
        """An independent copy."""
        return Range(self.size, self.nodes)

    def root(self) -> bytes:
        """The tree's root."""
        return fold(self.nodes)


def fold(nodes: Sequence[bytes]) -> bytes:
    """The root over subtree roots, largest first."""
    if not nodes:
        return EMPTY_ROOT
    root = nodes[-1]
    for node in reversed(nodes[:-1]):
        root = node_hash(node, root)
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """Leaf hashes ``first`` and on, over a compact range of all before: what proofs are made from after a purge too.

    A proof about leaves before ``first`` cannot be made; the range's own nodes stand for them.
    """

    first: int
    before: tuple[bytes, ...]
    hashes: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Leaves in the tree."""
        return self.first + len(self.hashes)

    def root(self, low: int, high: int) -> bytes:
        """The root of leaves ``low`` to ``high``. Raises ValueError where purged leaves would be needed one by one."""
        if low >= self.first:
            return _root(self.hashes[low - self.first : high - self.first])
        position = 0
        remaining = self.first
        for node in self.before:
            width = 1 << (remaining.bit_length() - 1)
            if (low, high) == (position, position + width):
                return node
            position += width
            remaining -= width
        if high <= self.first and high - low <= 1:
            raise ValueError(f"leaf {low} was purged")
        split = _split(high - low)
        return node_hash(self.root(low, low + split), self.root(low + split, high))


def _split(count: int) -> int:
    if count < 2:
        raise ValueError("purged leaves cannot be proved one by one")
    return 1 << ((count - 1).bit_length() - 1)


def _root(hashes: Sequence[bytes]) -> bytes:
    if not hashes:
        return EMPTY_ROOT
    level = list(hashes)
    while len(level) > 1:
        paired = [_sha256(b"\x01" + a + b).digest() for a, b in zip(level[::2], level[1::2], strict=False)]
        if len(level) & 1:
            paired.append(level[-1])
        level = paired
    return level[0]


def inclusion(leaves: Leaves, index: int, size: int) -> tuple[bytes, ...]:
    """The proof that leaf ``index`` is in the tree of ``size`` leaves: siblings, lowest first."""
    if not 0 <= index < size <= leaves.size:
        raise ValueError(f"there are {leaves.size} leaves")
    return _path(leaves, index, 0, size)


def _path(leaves: Leaves, index: int, low: int, high: int) -> tuple[bytes, ...]:
    if high - low == 1:
        return ()
    middle = low + _split(high - low)
    if index < middle:
        return (*_path(leaves, index, low, middle), leaves.root(middle, high))
    return (*_path(leaves, index, middle, high), leaves.root(low, middle))


def consistency(leaves: Leaves, old: int, new: int) -> tuple[bytes, ...]:
    """The proof that the tree of ``old`` leaves is a prefix of the tree of ``new`` leaves (RFC 6962, 2.1.2)."""
    if not 0 < old <= new <= leaves.size:
        raise ValueError(f"there are {leaves.size} leaves, and the first size is at least 1")
    return () if old == new else _subproof(leaves, old, 0, new, whole=True)


def _subproof(leaves: Leaves, old: int, low: int, high: int, *, whole: bool) -> tuple[bytes, ...]:
    if old == high:
        return () if whole else (leaves.root(low, high),)
    middle = low + _split(high - low)
    if old <= middle:
        return (*_subproof(leaves, old, low, middle, whole=whole), leaves.root(middle, high))
    return (*_subproof(leaves, old, middle, high, whole=False), leaves.root(low, middle))


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether ``proof`` shows that ``leaf`` stands at ``index`` in the tree of ``size`` leaves with ``root``."""
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while node and not node & 1:
                node >>= 1
                last >>= 1
        else:
            found = node_hash(found, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and found == root


def verify_consistency(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether ``proof`` shows that the tree of ``old`` leaves is a prefix of the tree of ``new`` leaves."""
    if old == new:
        return not proof and old_root == new_root
    if not 0 < old < new or not proof:
        return False
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    node, last = old - 1, new - 1
    while node & 1:
        node >>= 1
        last >>= 1
    first = second = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while node and not node & 1:
                node >>= 1
                last >>= 1
        else:
            second = node_hash(second, sibling)
        node >>= 1
        last >>= 1
    return last == 0 and first == old_root and second == new_root
