"""What a ledger is opened with, and what it says of itself: sizes, scrubber, side store, head. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ringfence.ledger.segment import SEGMENT_BYTES, WINDOW_BYTES
from ringfence.model.entry import Json
from ringfence.model.ids import Micros, Sha256


class Scrubber(Protocol):
    """Replaces secrets before anything is written."""

    def suspects(self, encoded: bytes) -> bool:
        """Whether a body, given its canonical bytes, may hold something to replace."""
        ...

    def scrub(self, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """The body with every secret replaced."""
        ...

    def clean(self, text: str) -> str:
        """One text with every secret replaced."""
        ...


class Keeper(Protocol):
    """Keeps personal data apart, erasable, and gives the commitments that enter the record."""

    def keep(self, subject: str, values: Mapping[str, str]) -> Mapping[str, Json]:
        """Store the values durably; returns one commitment a name."""
        ...

    def load(self, commit: Mapping[str, Json]) -> str | None:
        """The value of a commitment, or None where it was erased."""
        ...

    def has(self, own: str) -> bool:
        """Whether a subject, given its id, has values."""
        ...

    def erase(self, own: str) -> bool:
        """Destroy the values of a subject, given its id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes and times of one ledger. ``checkpoint_every`` is in microseconds."""

    segment_bytes: int = SEGMENT_BYTES
    window_bytes: int = WINDOW_BYTES
    checkpoint_every: Micros = Micros(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where the log ends: records, hash of the last one, root of the tree."""

    log: str
    size: int
    last: Sha256
    root: bytes
