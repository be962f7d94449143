"""Control groups of one box."""

from typing import Any


def mechanism() -> str:
    """``cgroup v2``, ``cgroup v1`` or ``polling``."""
    return "polling"


class Groups:
    """Limits on the whole tree."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.limits = limits
        self.name = "none"
        self.needs_polling = False

    def join(self, pid: int) -> None:
        """Put the box's first process under the limits."""

    def reached(self, pid: int) -> str:
        """The limit that the tree has passed, or an empty string."""
        return ""

    def verdict(self) -> str:
        """After the end: the limit that killed, or an empty string."""
        return ""

    def freeze(self) -> bool:
        """Stop the tree where it stands; False where no freezer is to be had."""
        return False

    def thaw(self) -> bool:
        """Let it go on."""
        return False

    def remove(self) -> None:
        """Leave nothing."""


_: Any = None
