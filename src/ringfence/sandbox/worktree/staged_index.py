"""Git's index moved along when HEAD moves, so that a person's ``git status`` shows the commit and nothing else.

What the person had staged stays staged. The new index is made apart and takes the old one's place under git's own
lock; an index that is locked, changed or cannot be merged is left alone, and that is reported.
"""

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

from ringfence.sandbox.worktree.gitrun import Answer, Git
from ringfence.sandbox.worktree.repository import read_small
from ringfence.sandbox.worktree.state import identity_of

MAX_INDEX = 1 << 28
_OURS = "index.ringfence"
_NONE = b"0 %b 0"
_PATIENCE, _POLL = 2.0, 0.02
"""Seconds that another git may keep the index's lock."""
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


def says(git: Git, index: str) -> str:
    """What ``git``'s index, at this path, says, whatever it notes of files' times beside that; empty where nobody can tell.

    While nothing is staged git notes what tree the whole amounts to; else the entries count.
    """
    trees = _trees(read_small(index, MAX_INDEX))
    if trees:
        return b" ".join(sorted(trees)).hex()
    answer = git.run("ls-files", "--stage", "-v", "-z")
    return hashlib.sha256(answer.out).hexdigest() if answer.ok else ""


def move_index(
    git: Git,
    directory: str,
    folder: str,
    *,
    old: str | None,
    new: str,
    owner: tuple[int, int],
    ours: bool,
    whole: bool = False,
    root: str = "",
) -> str:
    """Move the index in git directory ``directory`` from commit ``old`` to ``new``. Gives "" or why it was left alone.

    What differs from ``old`` is staged, and stays. ``ours``: nobody touched the index since the mission had it, so whatever
    it holds of paths that the mission committed, and of conflicts that it resolved, is in ``new``; ``whole``: so is all else
    that it holds. ``root``: the worktree of a sparse checkout. ``git`` reads objects (a quarantine repository); ``folder`` is
    scratch space of our own.
    """
    deadline = time.monotonic() + _PATIENCE
    try:
        while True:
            why, again = _follow(git, directory, folder, old, new, owner, root, ours=ours, whole=whole)
            if not again or time.monotonic() >= deadline:
                return why
            time.sleep(_POLL)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/index.scratch")


def _follow(  # noqa: PLR0917 - private
    git: Git,
    directory: str,
    folder: str,
    old: str | None,
    new: str,
    owner: tuple[int, int],
    root: str,
    *,
    ours: bool,
    whole: bool,
) -> tuple[str, bool]:
    """Why the index did not follow, and whether another try may help."""
    index, scratch = f"{directory}/index", f"{folder}/index.scratch"
    before = None
    try:
        with open(index, "rb") as source, open(scratch, "wb") as target:
            before = identity_of(os.fstat(source.fileno()))
            shutil.copyfileobj(source, target, 1 << 20)
    except FileNotFoundError:
        pass
    made = Git(directory=git.directory, environment=(("GIT_INDEX_FILE", scratch),))
    with _shared_indexes(directory, folder):
        tags = _tags(made) if root and before is not None else None
        if before is None:
            answer = made.run("read-tree", new)
        elif whole:
            answer = _one_by_one(made, old, new, ours=ours, whole=whole)
        else:
            answer = made.run("read-tree", "-m", "-i", *([old] if old is not None else []), new)
            if not answer.ok:
                answer = _one_by_one(made, old, new, ours=ours, whole=whole)
        if answer.ok and tags is not None:
            answer = _left_out(made, root, tags)
    if not answer.ok:
        return f"{answer.error}; `git reset` makes it follow", False
    return _replace(directory, index, scratch, before, owner)


@contextlib.contextmanager
def _shared_indexes(directory: str, folder: str) -> Iterator[None]:
    """The larger part of a split index lies in files of its own, which git looks for beside the one that it is given."""
    links = []
    for name in os.listdir(directory):
        if name.startswith("sharedindex."):
            with contextlib.suppress(FileExistsError):
                os.symlink(f"{directory}/{name}", f"{folder}/{name}")
            links.append(f"{folder}/{name}")
    try:
        yield
    finally:
        for link in links:
            os.unlink(link)


def _tags(git: Git) -> dict[bytes, bytes]:
    """By path, what git tells of it: ``S`` for what a sparse checkout leaves out of the tree, ``H`` for what is in it."""
    listed = git.run("ls-files", "-v", "-z").out.split(b"\0")[:-1]
    return {line[2:]: line[:1].upper() for line in listed}


def _left_out(git: Git, root: str, before: dict[bytes, bytes]) -> Answer:
    """In a sparse checkout what came to the index and not to the tree was left out of it, and nobody removed it."""
    came = [path for path, tag in _tags(git).items() if tag == b"H" and before.get(path, b"S") == b"S"]
    missing = (path for path in came if not os.path.lexists(os.path.join(os.fsencode(root), path)))
    nowhere = ("GIT_WORK_TREE", git.directory)  # git wants one, and does not look at it
    placed = replace(git, environment=(*git.environment, nowhere))
    return placed.run("update-index", "--skip-worktree", "-z", "--stdin", given=b"".join(p + b"\0" for p in missing))


def sparse(git: Git, directory: str) -> bool:
    """Whether a person's git leaves some of what is committed out of the tree."""
    if not os.path.exists(f"{directory}/info/sparse-checkout"):
        return False
    return git.run("config", "--type=bool", "core.sparseCheckout").out == b"true\n"


def _one_by_one(git: Git, old: str | None, new: str, *, ours: bool, whole: bool) -> Answer:
    """Let each path follow by itself, where git would leave all of them because of one."""
    listed = git.run("ls-files", "--stage", "-z")
    wanted, had = (_tree(git, commit) for commit in (new, old))
    if not listed.ok or wanted is None or had is None:
        return Answer(ok=False, out=b"", error=listed.error)
    held: dict[bytes, bytes] = {}
    resolved: set[bytes] = set()
    for line in listed.out.split(b"\0")[:-1]:
        entry, _, path = line.partition(b"\t")
        held[path] = entry
        if not entry.endswith(b" 0"):
            resolved.add(path)
    changed = {path for path in wanted.keys() | had.keys() if wanted.get(path) != had.get(path)}
    if whole:
        follow = {path for path in wanted.keys() | held.keys() if wanted.get(path) != held.get(path)}
    elif ours:
        follow = changed | resolved
    else:
        follow = {path for path in changed - resolved if held.get(path) == had.get(path)}
    lines = [(wanted.get(path) or _NONE % (len(new) * b"0")) + b"\t" + path for path in sorted(follow)]
    return git.run("update-index", "-z", "--index-info", given=b"".join(line + b"\0" for line in lines))


def _tree(git: Git, commit: str | None) -> dict[bytes, bytes] | None:
    """By path, what a commit's tree has, as git writes entries of the index; None where that cannot be read."""
    if commit is None:
        return {}
    answer = git.run("ls-tree", "-r", "-z", "--full-tree", commit)
    if not answer.ok:
        return None
    found = {}
    for line in answer.out.split(b"\0")[:-1]:
        entry, _, path = line.partition(b"\t")
        mode, _, oid = entry.split(b" ")
        found[path] = b"%b %b 0" % (mode, oid)
    return found


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


def _replace(directory: str, index: str, scratch: str, before: object, owner: tuple[int, int]) -> tuple[str, bool]:
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
        return "another git holds its lock; once that is gone, `git reset` makes it follow", True
    try:
        now = identity_of(os.stat(index)) if os.path.exists(index) else None
        if now != before:
            os.unlink(lock)
            return "it changed meanwhile; `git reset` makes it follow", True
        os.unlink(ours)
        os.rename(lock, index)
    finally:
        if os.path.lexists(ours):
            os.unlink(ours)
    return "", False
