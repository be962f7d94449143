"""Git's index moved along when HEAD moves, so that a person's ``git status`` shows the commit and nothing else.

What the person had staged stays staged. The new index is made apart and takes the old one's place under git's own
lock; an index that is locked, changed or cannot be merged is left alone, and that is reported.
"""

import os
import re
import shutil

from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.state import identity_of

MAX_INDEX = 1 << 28
_OURS = "index.ringfence"
_SHORTEST = 20
_TREE = re.compile(rb"TREE....\0\d+ \d+\n(.{%d})" % _SHORTEST, re.DOTALL)
"""The extension in which git notes what tree the whole index amounts to; -1 stands there while it does not know."""


def amounts_to(index: bytes, tree: str) -> bool:
    """Whether an index says that it amounts to this tree. Git notes that, and takes it back when something is staged."""
    return bytes.fromhex(tree)[:_SHORTEST] in _trees(index)


def same_tree(one: bytes, other: bytes) -> bool:
    """Whether two indexes say that they amount to the same tree."""
    return not _trees(one).isdisjoint(_trees(other))


def _trees(index: bytes) -> set[bytes]:
    return set(_TREE.findall(index))


def move_index(git: Git, directory: str, folder: str, *, old: str | None, new: str, owner: tuple[int, int]) -> str:
    """Move the index in git directory ``directory`` from commit ``old`` to ``new``. Gives "" or why it was left alone.

    ``git`` reads objects (a quarantine repository); ``folder`` is scratch space of our own.
    """
    index, scratch = f"{directory}/index", f"{folder}/index.scratch"
    before = None
    try:
        with open(index, "rb") as source, open(scratch, "wb") as target:
            before = identity_of(os.fstat(source.fileno()))
            shutil.copyfileobj(source, target, 1 << 20)
    except FileNotFoundError:
        pass
    made = Git(directory=git.directory, environment=(("GIT_INDEX_FILE", scratch),))
    if before is None or old is None:
        answer = made.run("read-tree", new) if before is None else made.run("read-tree", "-m", "-i", new)
    else:
        answer = made.run("read-tree", "-m", "-i", old, new)
    if not answer.ok:
        return f"the index was left as it is, staged changes stand in the way: {answer.error}"
    return _replace(directory, index, scratch, before, owner)


def recover_index(directory: str) -> None:
    """Remove a lock that a crash of ours left behind; a lock of someone else's git stays."""
    ours, lock = f"{directory}/{_OURS}", f"{directory}/index.lock"
    try:
        mine = os.lstat(ours)
    except FileNotFoundError:
        return
    try:
        if os.path.samestat(mine, os.lstat(lock)):
            os.unlink(lock)
    except FileNotFoundError:
        pass
    os.unlink(ours)


def _replace(directory: str, index: str, scratch: str, before: object, owner: tuple[int, int]) -> str:
    ours, lock = f"{directory}/{_OURS}", f"{directory}/index.lock"
    recover_index(directory)
    with open(scratch, "rb") as source, open(ours, "xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
        if os.geteuid() == 0:
            os.fchown(target.fileno(), *owner)
        os.fchmod(target.fileno(), 0o644)
        target.flush()
        os.fsync(target.fileno())
    try:
        os.link(ours, lock)
    except FileExistsError:
        os.unlink(ours)
        return "the index was left as it is: another git holds its lock"
    try:
        now = identity_of(os.stat(index)) if os.path.exists(index) else None
        if now != before:
            os.unlink(lock)
            return "the index was left as it is: it changed meanwhile"
        os.unlink(ours)
        os.rename(lock, index)
    finally:
        if os.path.lexists(ours):
            os.unlink(ours)
    return ""
