"""Who acted, as the supervisor verified it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person or account that the supervisor identified: the peer's uid, or a log-in it checked."""

    name: str
    uid: int
    how: str
    """``peer`` (socket credentials), ``terminal`` (typed challenge) or ``login``."""
