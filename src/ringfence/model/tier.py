"""The three answers the fence can give, and the scopes that may give them."""

import enum


class Tier(enum.IntEnum):
    """Ordered by strictness: the strictest of several is ``max()``."""

    ALLOW = 1
    ASK = 2
    DENY = 3

    @property
    def word(self) -> str:
        """The tier as policies and JSON spell it: ``allow``, ``ask`` or ``deny``."""
        return self.name.lower()


class Scope(enum.Enum):
    """Where a rule comes from, widest first. ``BUILTIN`` is ringfence itself and cannot be lifted."""

    BUILTIN = "builtin"
    ORGANISATION = "organisation"
    USER = "user"
    REPOSITORY = "repository"
    MISSION = "mission"
