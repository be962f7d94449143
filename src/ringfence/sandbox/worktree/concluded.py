"""A merge, rebase, cherry-pick or revert that a person's git had stopped at, and a mission brought to its end or gave up.

Git notes such work in files beside the index. No file of that kind is ever taken over from a box; those of the person go
when the mission's git removed its view of them, nobody touched them since, and the work is in the commits that arrived, or
a person says that it may be given up. They are kept in the mission's folder.
"""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from ringfence.sandbox.worktree.change import Change, ChangeKind
from ringfence.sandbox.worktree.removal import remove_tree
from ringfence.sandbox.worktree.repository import read_small

NOTED = (
    "rebase-merge", "rebase-apply", "sequencer", "CHERRY_PICK_HEAD", "REVERT_HEAD", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG",
    "MERGE_AUTOSTASH", "SQUASH_MSG", "REBASE_HEAD", "AUTO_MERGE",
)  # fmt: skip
_WORK = frozenset({"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer"})
_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
Descends: TypeAlias = Callable[[str, str], bool]
"""Whether the first commit has the second one among its ancestors."""
_AUTOSTASH = ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash")


def is_over(changes: Iterable[Change]) -> bool:
    """Whether a layer no longer has such work of a person's."""
    return any(c.kind is ChangeKind.DELETED and c.path.removeprefix(".git/") in _WORK for c in changes)


def concluded(changes: Iterable[Change], directory: str, since: int) -> tuple[str, ...]:
    """What a person's git noted of work that is over in the layer; nothing where none is, or someone touched it ``since`` (ns)."""
    gone = {c.path.removeprefix(".git/") for c in changes if c.kind is ChangeKind.DELETED}
    names = tuple(name for name in NOTED if name in gone and os.path.lexists(f"{directory}/{name}"))
    if _WORK.isdisjoint(names) or any(_touched(f"{directory}/{name}", since) for name in names):
        return ()
    return names


def finished(
    names: Iterable[str],
    directory: str,
    moved: Collection[str],
    ends: tuple[str | None, str | None],
    descends: Descends,
) -> bool:
    """Whether the work is in the commits of ``ends``, HEAD's before and now; else it was given up. ``moved`` are full names of refs."""
    before, now = ends
    forward = now is not None and now != before and (before is None or descends(now, before))
    for name in names:
        if name == "MERGE_HEAD":
            merged = read_small(f"{directory}/{name}", 65536).decode("ascii", "replace").split()
            if now is None or not all(_ID.fullmatch(oid) and descends(now, oid) for oid in merged):
                return False
        elif name.startswith("rebase-"):
            branch = os.fsdecode(read_small(f"{directory}/{name}/head-name", 4096)).strip()
            if not (branch in moved or (forward and not branch.startswith("refs/"))):
                return False
        elif name in _WORK and not forward:
            return False
    return True


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
    """Move them from a git directory into a folder of our own, with a copy of the index."""
    os.makedirs(folder, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(f"{directory}/index", f"{folder}/index", follow_symlinks=False)
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
