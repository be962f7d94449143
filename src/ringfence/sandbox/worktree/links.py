"""Where a symbolic link that a mission left would lead once it lies in the real tree, without following it.

Every component is looked up in the mission's layer first, then in the real tree, so a chain of links is seen as it
would be after the commit. A step out of the tree, even one that comes back, counts as leading out.
"""

import os
import stat
from collections import deque

from ringfence.sandbox.worktree import kernel

MAX_LINKS = 40


def leads_to(upper: int, lower: int, root: str, path: str, target: str) -> str | None:
    """The path below the root that the link at ``path`` means, or None when it leads out, loops, or cannot be told."""
    pending = deque(_steps(target, root) or ())
    if not pending and target.startswith("/"):
        return None
    where = [] if target.startswith("/") else path.split("/")[:-1]
    seen = 0
    while pending:
        step = pending.popleft()
        if step == "..":
            if not where:
                return None
            where.pop()
            continue
        here = "/".join([*where, step])
        inner = _read_link(upper, lower, here)
        if inner is None:
            where.append(step)
            continue
        seen += 1
        steps = _steps(inner, root)
        if seen > MAX_LINKS or steps is None:
            return None
        if inner.startswith("/"):
            where = []
        pending.extendleft(reversed(steps))
    return "/".join(where) or "."


def is_winding(target: str) -> bool:
    """Whether a target steps up after it stepped into something: ``near/../../x``, or any ``..`` in an absolute one.

    Such a link changes its meaning when ``near`` later becomes a link or another one: two harmless changes would add up
    to a way out. Where steps up only come first, each counts from where the link itself lies, whatever changes later.
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    while parts and parts[0] == ".." and not target.startswith("/"):
        parts.pop(0)
    return ".." in parts


def _steps(target: str, root: str) -> list[str] | None:
    """Components of a target; an absolute one counts from the root, and is None outside it."""
    if target.startswith("/"):
        if target != root and not target.startswith(root.rstrip("/") + "/"):
            return None
        target = target[len(root) :]
    return [part for part in target.split("/") if part not in {"", "."}]


def _read_link(upper: int, lower: int, path: str) -> str | None:
    """The target of a link at ``path`` in the merged view; None for anything else, or nothing."""
    for fd in (upper, lower):
        try:
            link = kernel.open_beneath(fd, path, os.O_PATH | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            info = os.fstat(link)
            return os.readlink("", dir_fd=link) if stat.S_ISLNK(info.st_mode) else None
        finally:
            os.close(link)
    return None
