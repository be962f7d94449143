"""Which of git's files stay in a mission's layer after a gate, which go, and which the next mission gets. Moves nothing.

A file that stays hides what the person's git writes there later: only what waits for a person, or is the mission's own
(the stash, staged work, a rebase that stopped), may.
"""

from collections.abc import Collection, Iterable

from ringfence.sandbox.worktree.change import Change, ChangeKind
from ringfence.sandbox.worktree.git_side import GitSide
from ringfence.sandbox.worktree.staged_index import MAX_INDEX
from ringfence.sandbox.worktree.there import small_file

_CARRIED = ("objects", "refs/stash", "refs/notes", "logs/refs/stash", "logs/refs/notes")
_IN_PROGRESS = (
    "index", "refs/bisect", "rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE",
    "MERGE_AUTOSTASH", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "ORIG_HEAD", "BISECT_LOG",
    "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK",
)  # fmt: skip


def other_ref(path: str) -> bool:
    """Refs that this part leaves in the layer (the stash, notes), and work in progress: their objects must stay too."""
    name = path.removeprefix(".git/")
    kept = (
        "refs/stash",
        "refs/notes",
        "refs/bisect",
        "rebase-",
        "sequencer",
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
    )
    return name.startswith(kept)


def goes(change: Change, waiting: Collection[str], *, packed: bool, other: bool, index: bool) -> bool:
    """Whether what the layer has of one of git's files leaves it. ``waiting``: refs that wait there.

    ``packed``: nothing waits in ``packed-refs``; ``other``: the stash or the like needs its objects; ``index``: what
    the layer's own says is nothing beyond the commit, and no commit that waits.
    """
    name = change.path.removeprefix(".git/")
    if name.startswith("objects/") and change.kind is ChangeKind.DELETED:
        return True  # what ``git gc`` removed in a box does no harm there
    if name == "packed-refs":
        return packed
    ref = name.removeprefix("logs/")
    if ref == "HEAD" or ref.startswith(("refs/heads/", "refs/tags/")):
        return ref not in waiting
    if name == "index":
        return index
    if waiting:
        return False
    kinds = ("objects", "logs", "COMMIT_EDITMSG", "ORIG_HEAD", "AUTO_MERGE", "gc.")
    return not other and index and name.startswith(kinds)


def layer_index(side: GitSide) -> bytes:
    """The index that a layer holds; empty where it holds none."""
    return small_file(side.upper, side.physical(".git/index"), MAX_INDEX) or b""


def carried(changes: Iterable[Change], *, staged: bool, stale: bool) -> tuple[str, ...]:
    """Names of git's files that go on to the repository's next mission: the stash and notes, and work in progress.

    ``staged``: the index holds more than the real one. ``stale``: someone changed the real one since; then work in progress
    stays behind, as it does where a branch waits.
    """
    left = [c for c in changes if c.internal and c.kind is not ChangeKind.DELETED]
    going = not stale and not pending(left)
    if not any(other_ref(c.path) for c in left) and not (staged and going):
        return ()
    shared = (c.path.removeprefix(".git/") for c in left if c.path.startswith(".git/sharedindex."))
    return (*_CARRIED, *_IN_PROGRESS, *shared) if going else _CARRIED


def pending(changes: Iterable[Change]) -> bool:
    """Whether the layer holds ref files that differ, so that a bundle is worth making."""
    names = [c.path.removeprefix(".git/") for c in changes if c.internal and c.kind is not ChangeKind.SAME]
    return any(n in {"HEAD", "packed-refs"} or n.startswith(("refs/heads/", "refs/tags/")) for n in names)
