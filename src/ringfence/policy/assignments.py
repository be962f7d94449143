"""Variables that a line sets: which of them a policy lets it set, by name, or by name and value. Pure."""

import functools
import re
from collections.abc import Collection

from ringfence.shell.syntax import Assignment


def is_free(assignment: Assignment, assignable: Collection[str], *, local: bool) -> bool:
    """Whether the policy's list holds the name, or the name with this very value, or the variable is the line's own."""
    name = assignment.name
    return name in assignable or _is_local(assignment, local=local) or _is_listed_value(assignment, assignable)


def _is_local(assignment: Assignment, *, local: bool) -> bool:
    """A variable of the line alone: not exported, and of no name that a program reads from its environment."""
    name = assignment.name
    if not name.islower() or name.endswith("_proxy") or name.startswith("npm_"):
        return False
    return assignment.scope == "loop" or (assignment.scope == "shell" and local)


def _is_listed_value(assignment: Assignment, assignable: Collection[str]) -> bool:
    """``NAME=VALUE`` of the list. A value that is added to another (``+=``) is not the value that is set."""
    value = assignment.value
    if value is None or value.dynamic or value.tilde or value.start - assignment.start > len(assignment.name) + 1:
        return False
    begins = assignment.name + "="
    return any(
        entry.startswith(begins) and _pattern(entry).fullmatch(begins + value.text) is not None for entry in assignable
    )


@functools.lru_cache(maxsize=256)
def _pattern(entry: str) -> re.Pattern[str]:
    """A star stands for letters, digits and dots: never for a blank or a slash, behind which something else begins."""
    return re.compile(r"[\w.]*".join(map(re.escape, entry.split("*"))), re.ASCII)
