"""Commits that no branch of the person's has, kept under ``refs/ringfence/MISSION/`` so that git removes none of them.

What is kept there is never replaced: a second one of the same name gets a number in front of it.
"""

import itertools

from ringfence.sandbox.worktree.gitrun import Answer, Git
from ringfence.sandbox.worktree.refs import in_the_way


def kept_name(git: Git, mission: str, name: str, oid: str) -> str:
    """The full name to keep a commit under: one that is free, or that keeps this commit already."""
    base = f"refs/ringfence/{mission}"
    listed = git.run("for-each-ref", "--format=%(refname) %(objectname)", base)
    lines = listed.out.decode("utf-8", "surrogateescape").splitlines()
    there = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines}
    tried = (f"{base}/{name}" if number == 1 else f"{base}/{number}/{name}" for number in itertools.count(1))
    return next(full for full in tried if there.get(full, oid) == oid and not in_the_way(full, there))


def keep(git: Git, mission: str, name: str, oid: str) -> tuple[str, Answer]:
    """Keep a commit. Gives where it is then, and what git said of it."""
    full = kept_name(git, mission, name, oid)
    return full, git.run("update-ref", "--stdin", given=f"update {full} {oid}\n".encode())
