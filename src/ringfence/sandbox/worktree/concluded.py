"""A merge, rebase, cherry-pick or revert that a person's git had stopped at, and a mission brought to its end or gave up.

Git notes such work in files beside the index. No file of that kind is ever taken over from a box; those of the person go
when the mission's git removed its view of them and nobody touched them since. They are kept in the mission's folder.
"""

import os
import shutil
import stat
from collections.abc import Iterable

from ringfence.sandbox.worktree.change import Change, ChangeKind
from ringfence.sandbox.worktree.removal import remove_tree
from ringfence.sandbox.worktree.repository import read_small

_NOTED = (
    "rebase-merge", "rebase-apply", "sequencer", "CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG",
    "MERGE_AUTOSTASH", "SQUASH_MSG", "REBASE_HEAD", "AUTO_MERGE",
)  # fmt: skip
_WORK = frozenset({"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer"})
_AUTOSTASH = ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash")


def is_over(changes: Iterable[Change]) -> bool:
    """Whether a layer no longer has such work of a person's."""
    return any(c.kind is ChangeKind.DELETED and c.path.removeprefix(".git/") in _WORK for c in changes)


def concluded(changes: Iterable[Change], directory: str, since: int) -> tuple[str, ...]:
    """What a person's git noted of work that is over in the layer; nothing where none is, or someone touched it ``since`` (ns)."""
    gone = {c.path.removeprefix(".git/") for c in changes if c.kind is ChangeKind.DELETED}
    names = tuple(name for name in _NOTED if name in gone and os.path.lexists(f"{directory}/{name}"))
    if _WORK.isdisjoint(names) or any(_touched(f"{directory}/{name}", since) for name in names):
        return ()
    return names


def autostashes(directory: str, names: Iterable[str]) -> list[str]:
    """Edits of the person's that git put by for that work: what names their commits."""
    found = []
    for name in _AUTOSTASH:
        if name.split("/", maxsplit=1)[0] in names:
            found += read_small(f"{directory}/{name}", 100).decode("ascii", "replace").split()[:1]
    return found


def rebased(directory: str, name: str, *, since: int) -> bool:
    """Whether a rebase of a branch is under way in a git directory, begun after an instant (ns)."""
    for work in ("rebase-merge", "rebase-apply"):
        path = f"{directory}/{work}/head-name"
        if read_small(path, 4096).strip() == os.fsencode(name) and os.lstat(path).st_ctime_ns > since:
            return True
    return False


def put_by(directory: str, names: Iterable[str], folder: str) -> None:
    """Move them from a git directory into a folder of our own."""
    os.makedirs(folder, mode=0o700)
    for name in names:
        source = f"{directory}/{name}"
        if stat.S_ISDIR(os.lstat(source).st_mode):
            shutil.copytree(source, f"{folder}/{name}", symlinks=True)
            remove_tree(source)
        else:
            shutil.copy2(source, f"{folder}/{name}", follow_symlinks=False)
            os.unlink(source)


def _touched(path: str, since: int) -> bool:
    if os.lstat(path).st_ctime_ns > since:
        return True
    return any(
        os.lstat(os.path.join(base, name)).st_ctime_ns > since
        for base, folders, files in os.walk(path)
        for name in (*folders, *files)
    )
