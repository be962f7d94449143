"""Where a symbolic link that a mission left would lead once it lies in the real tree, without following it.

Every component is looked up in the mission's layer and in the real tree, and where the two differ both count: what the
layer has there may be held or refused, so a link may come to lie beside the one or the other. A step out of the tree,
even one that comes back, counts as leading out.
"""

import os
import stat

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.there import NOT_THERE

MAX_LINKS = 40
MAX_WAYS = 64


def leads_to(upper: int, lower: int, root: str, path: str, target: str) -> tuple[str, ...] | None:
    """The paths below the root that the link at ``path`` may come to mean.

    None when one of them leads out or loops, or when it cannot be told.
    """
    begin = [] if target.startswith("/") else path.split("/")[:-1]
    steps = _steps(target, root)
    if steps is None:
        return None
    found = set()
    ways = [(steps, begin, 0)]
    tried = 0
    while ways:
        pending, where, seen = ways.pop()
        tried += 1
        if tried > MAX_WAYS or seen > MAX_LINKS:
            return None
        while pending:
            step, pending = pending[0], pending[1:]
            if step == "..":
                if not where:
                    return None
                where = where[:-1]
                continue
            links = _read_links(upper, lower, "/".join([*where, step]))
            for inner in sorted(link for link in links if link is not None):
                more = _steps(inner, root)
                if more is None:
                    return None
                ways.append((more + pending, [] if inner.startswith("/") else where, seen + 1))
            if None not in links:
                break
            where = [*where, step]
        else:
            found.add("/".join(where) or ".")
    return tuple(sorted(found))


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


def _read_links(upper: int, lower: int, path: str) -> set[str | None]:
    """What stands at ``path`` in the layer and in the real tree: a link's target, or None for anything else or nothing."""
    found: set[str | None] = set()
    for fd in (upper, lower):
        try:
            link = kernel.open_beneath(fd, path, os.O_PATH | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno in NOT_THERE:
                continue
            raise
        try:
            info = os.fstat(link)
            found.add(os.readlink("", dir_fd=link) if stat.S_ISLNK(info.st_mode) else None)
        finally:
            os.close(link)
    return found or {None}
