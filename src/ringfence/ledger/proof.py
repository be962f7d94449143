"""Proofs on request: that a record is in the log, and that one head is a prefix of another.

Made from the log's own segments; checked with nothing but the proof, a record and a signed head.
"""

from ringfence.ledger import scan, tree
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

_WITHIN = "`ringfence ledger verify` says which records there are"


def leaves_of(directory: str) -> tree.Leaves:
    """Leaf hashes of all records that are here, over the tree of what was purged."""
    return scan.undisturbed(directory, lambda: _leaves(directory))


def _leaves(directory: str) -> tree.Leaves:
    files = scan.segments(directory)
    if not files:
        raise LedgerError(
            "ledger-missing",
            "there is no ledger here",
            where=directory,
            remedy="run something first: `ringfence run -- true`",
        )
    head = scan.header(files[0])
    hashes = tuple(tree.leaf_hash(line) for _, line in scan.lines(directory))
    return tree.Leaves(first=head.first, before=tuple(bytes.fromhex(node) for node in head.nodes), hashes=hashes)


def root_at(directory: str, size: int) -> bytes | None:
    """The root over the first ``size`` records, from the segment that ends them, or None where they were purged."""
    files = [file for file in scan.segments(directory) if file.first <= size]
    if not files:
        return None
    head = scan.header(files[-1])
    found = tree.Range(head.first, [bytes.fromhex(node) for node in head.nodes])
    for seq, line in scan.lines(directory, head.first):
        if seq >= size:
            break
        found.add(tree.leaf_hash(line))
    return found.root()


def inclusion(leaves: tree.Leaves, index: int, size: int) -> dict[str, Json]:
    """Proof that record ``index`` is among the first ``size``. Raises LedgerError ``no-proof``."""
    try:
        path = tree.inclusion(leaves, index, size)
        leaf = leaves.root(index, index + 1)
        root = leaves.root(0, size)
    except ValueError as error:
        raise LedgerError(
            "no-proof", f"no inclusion proof of record {index} in {size}: {error}", remedy=_WITHIN
        ) from error
    return {"index": index, "size": size, "leaf": leaf.hex(), "root": root.hex(), "path": _spell(path)}


def consistency(leaves: tree.Leaves, old: int, new: int) -> dict[str, Json]:
    """Proof that the first ``old`` records are a prefix of the first ``new``. Raises LedgerError ``no-proof``."""
    try:
        path = tree.consistency(leaves, old, new)
        roots = leaves.root(0, old), leaves.root(0, new)
    except ValueError as error:
        raise LedgerError("no-proof", f"no consistency proof from {old} to {new}: {error}", remedy=_WITHIN) from error
    return {"old": old, "new": new, "old_root": roots[0].hex(), "new_root": roots[1].hex(), "path": _spell(path)}


def _spell(path: tuple[bytes, ...]) -> list[Json]:
    return [node.hex() for node in path]
