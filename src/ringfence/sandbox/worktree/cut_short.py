"""What a crash cut short in a mission's commits: taken back, or finished where all was on disk. Judges nothing."""

import os
import stat
from collections.abc import Iterable

from ringfence.sandbox.worktree import journal, layers, removal
from ringfence.sandbox.worktree.plan import Step
from ringfence.sandbox.worktree.state import Base, load, pack, store, unpack
from ringfence.sandbox.worktree.there import lookup


def bases_after(steps: Iterable[Step], root: int) -> dict[bytes, Base]:
    """How paths look that a commit left, or gave back, as they were: keeping an original moves its ctime, and that is ours."""
    found = {}
    for step in steps:
        now = journal.source_identity(root, os.fsdecode(step.path))
        if step.before is not None and journal.same(now, unpack(step.before)):
            found[step.path] = Base(identity=pack(now))
    return found


def recover(mission: str, upper: str, root: int, stage: str) -> list[str]:
    """Finish or take back what a crash cut short in one mission. Gives a line for a person per journal touched.

    No commit of the mission is under way then, so what one could not remove of its staging folder goes too.
    """
    told = []
    for record in journal.journals(mission):
        if record.has("clean") or record.has("undone"):
            continue
        if not record.has("plan"):
            removal.remove_tree(record.folder)
            continue
        if not record.has("done"):
            report = record.take_back(root)
            known = load(mission)
            if known is not None:
                known.bases |= bases_after(record.plan().steps, root)
                store(mission, known)
            record.mark("undone")
            told.append(f"commit {record.folder} was cut short: {len(report.restored)} steps taken back")
            continue
        _clean_again(record, upper, root)
        record.mark("clean")
        told.append(f"commit {record.folder} was complete: the layer was cleaned of it")
    removal.remove_tree(stage)
    return told


def _clean_again(record: journal.Journal, upper: str, root: int) -> None:
    plan, void = record.plan(), set(record.outcome().void)
    try:
        fd = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        paths = []
        for step in plan.steps:
            path = os.fsdecode(step.path)
            paths.append(path)
            if step.number in void or step.verb in {"mkdir", "rmdir"}:
                continue
            entry = journal.source_identity(fd, path)
            if step.verb == "remove":
                if entry is not None and stat.S_ISCHR(entry.mode) and lookup(root, path) is None:
                    layers.drop(fd, path)
            elif entry is not None and (step.source is None or pack(entry) == step.source):
                layers.expose(fd, root, path)
        layers.prune(fd, root, paths)
    finally:
        os.close(fd)
