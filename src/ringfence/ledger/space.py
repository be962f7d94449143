"""How full the file system of a ledger is, as `df` counts: what only root may use is not available.

A quota is not seen here; where one is reached, appending is refused as on a full disk.
"""

import os
from dataclasses import dataclass

LOW = 0.90
"""Fraction used from which a person is warned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Bytes used, and bytes that are still to be had."""

    taken: int
    available: int

    @property
    def used(self) -> float:
        """Fraction used, 0 to 1. A file system that tells no sizes counts as unused."""
        return self.taken / (self.taken + self.available) if self.taken else 0.0

    @property
    def warning(self) -> str:
        """What to tell a person, or empty while less than 90 % are used."""
        if self.used < LOW:
            return ""
        return (
            f"the disk of the ledger is {int(self.used * 100)} % full, {self.available >> 20} MiB are left: "
            "when it is full, no mission starts and then no call runs"
        )


def space_of(directory: str) -> Space:
    """The space of the file system that holds ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    return Space(taken=(found.f_blocks - found.f_bfree) * found.f_frsize, available=found.f_bavail * found.f_frsize)
