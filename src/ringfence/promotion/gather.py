"""From two commits to a Change: fork point, commits between, every path that differs, and the blobs of every commit. Pure.

Reading goes through the given functions; the repository file holds the real ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ringfence.promotion.blast.called import called_by_ci, mentioned_by_ci
from ringfence.promotion.change import Change, Reader, Touched, load_side, moved_unchanged
from ringfence.promotion.objects import (
    DIRECTORY,
    GITLINK,
    BadObject,
    Commit,
    Node,
    PathChange,
    diff_trees,
    find_path,
)

_CONTENT_LIMIT = 2 * 1024 * 1024
"""Bytes of one file that are read for its meaning."""
_BLOBS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBlob:
    """A blob that some commit of the change brought in, and what stood at its path before."""

    path: str
    node: Node
    old: Node | None
    commit: str


def gather(base: str, head: str, between: list[str], reader: Reader, *, limit: int) -> Change:
    """The change; raises BadObject where history or trees cannot be read or are not honest.

    ``between`` are the ids that git lists as reachable from head and not from base; they are checked against the
    commits' own parents.
    """
    base_commit, head_commit = reader.commit(base), reader.commit(head)
    bases = reader.merge_bases(base, head)
    if len(bases) != 1:
        raise BadObject("no common ancestor" if not bases else "several common ancestors: merge the base once more")
    if len(between) > limit:
        raise BadObject(f"more than {limit} commits in one change: split or squash it")
    commits = tuple(reader.commit(oid) for oid in between)
    _check_chain(commits, head, between)
    fork = base_commit if bases[0] == base else reader.commit(bases[0])
    changes = diff_trees(fork.tree, head_commit.tree, reader.tree)
    sides = [side for item in changes for side in (item.old, item.new)]
    reader.prefetch([side.oid for side in sides if side is not None and side.mode != GITLINK])
    change = Change(
        base=base_commit,
        fork=fork,
        head=head_commit,
        evidence=head_commit,
        commits=commits,
        touched=tuple(_touched(item, reader) for item in changes),
        moved=_moved(changes, fork, base_commit, reader),
        called=called_by_ci(base_commit.tree, reader),
        mentioned=mentioned_by_ci(base_commit.tree, reader, [item.path for item in changes]),
        label=f"raw tree diff {fork.oid[:12]}..{head_commit.oid[:12]}",
        sources=moved_unchanged(changes),
    )
    return _unwrap_queue(change, reader)


def without(change: Change, path: str) -> Change:
    """The change without its evidence file, whose form has gates of its own."""
    return replace(change, touched=tuple(item for item in change.touched if item.path != path))


def _check_chain(commits: tuple[Commit, ...], head: str, between: list[str]) -> None:
    """Walk from the head by the commits' own words: whatever git listed must be reachable inside the change."""
    known = {commit.oid: commit for commit in commits}
    reached, stack = set(), [head] if head in known else []
    while stack:
        oid = stack.pop()
        if oid in known and oid not in reached:
            reached.add(oid)
            stack.extend(known[oid].parents)
    if reached != set(between):
        raise BadObject("the history that git lists is not what the commits say")


def _touched(item: PathChange, reader: Reader) -> Touched:
    return Touched(
        path=item.path,
        old=load_side(item.old, reader, _CONTENT_LIMIT),
        new=load_side(item.new, reader, _CONTENT_LIMIT),
    )


def _moved(changes: list[PathChange], fork: Commit, base: Commit, reader: Reader) -> tuple[str, ...]:
    if fork.oid == base.oid:
        return ()
    ours = {item.path for item in changes}
    return tuple(item.path for item in diff_trees(fork.tree, base.tree, reader.tree) if item.path in ours)


def _unwrap_queue(change: Change, reader: Reader) -> Change:
    """A merge-queue commit joins the base and the head that was reviewed; then the evidence is in its second parent."""
    head = change.head
    if len(head.parents) != 2:
        return change
    first, second = head.parents
    if not is_on(first, change.base.oid, reader) or is_on(second, change.base.oid, reader):
        return change
    inner = reader.commit(second)
    if unexplained_merge(head, reader):
        return change
    return replace(change, evidence=inner)


def is_on(old: str, new: str, reader: Reader) -> bool:
    """Whether ``old`` is ``new`` or one of its ancestors."""
    return old == new or old in reader.merge_bases(old, new)


def unexplained_merge(merge: Commit, reader: Reader) -> list[str]:
    """Paths of a two-parent merge that are neither parent's: hand-made content, or both sides' edits to one file."""
    first, second = (reader.commit(oid) for oid in merge.parents)
    odd = []
    for item in diff_trees(second.tree, merge.tree, reader.tree):
        theirs = find_path(first.tree, item.path, reader.tree)
        if theirs is not None and theirs.mode == DIRECTORY:
            theirs = None
        if item.new != theirs:
            odd.append(item.path)
    bases = reader.merge_bases(first.oid, second.oid)
    fork = reader.commit(bases[0]) if len(bases) == 1 else None
    for item in diff_trees(second.tree, merge.tree, reader.tree):
        # Taking the base's old version of a path that only the change touched would undo the change.
        if fork and item.path not in odd and find_path(fork.tree, item.path, reader.tree) == item.new:
            odd.append(item.path)
    return odd


def new_blobs(change: Change, reader: Reader) -> Iterator[NewBlob]:
    """Every blob of every commit of the change that its parents did not hold at that path; each once."""
    seen: set[str] = set()
    for commit in reversed(change.commits):
        for item, gone in _brought_in(commit, reader):
            node = item.new
            if node is None or node.mode == GITLINK or node.oid in seen or node.oid in gone:
                continue
            seen.add(node.oid)
            if len(seen) > _BLOBS:
                raise BadObject(f"more than {_BLOBS} blobs in one change: split it")
            yield NewBlob(path=item.path, node=node, old=item.old, commit=commit.oid)


def _brought_in(commit: Commit, reader: Reader) -> Iterator[tuple[PathChange, set[str]]]:
    """Paths that differ from every parent: what a merge took from one side is that side's business."""
    parents: list[str | None] = [reader.commit(oid).tree for oid in commit.parents]
    diffs = [diff_trees(tree, commit.tree, reader.tree) for tree in (parents or [None])]
    common = set.intersection(*({item.path for item in diff} for diff in diffs))
    gone = {item.old.oid for item in diffs[0] if item.old is not None}
    for item in diffs[0]:
        if item.path in common:
            yield item, gone
