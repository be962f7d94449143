"""One caller's entries on their way to the disk."""

import enum
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ringfence.model.entry import Ack, EntryKind, Json
from ringfence.model.errors import LedgerError


class Rank(enum.IntEnum):
    """Who gives way first where the disk is full."""

    START = 1
    """The start of a mission: work that has not begun."""
    CALL = 2
    """An intent: a call of a mission that runs."""
    REST = 3
    """Results, answers, incidents: what has happened must be told."""


def rank_of(kind: EntryKind, body: Mapping[str, Json]) -> Rank:
    """The rank of one entry."""
    if kind is EntryKind.INTENT:
        return Rank.CALL
    return Rank.START if kind is EntryKind.MISSION and body.get("action") == "start" else Rank.REST


@dataclass(slots=True)
class Request:
    """Prepared records with their times and ranks; one without records waits to be alone. ``wake`` is released once."""

    prepared: list[tuple[bytes, int, Rank]]
    wake: threading.Lock = field(default_factory=threading.Lock)
    acks: list[Ack] | None = None
    error: LedgerError | None = None

    @property
    def rank(self) -> Rank:
        """That of the entry that gives way first: a request is written whole or not at all."""
        return min((rank for _, _, rank in self.prepared), default=Rank.REST)

    @property
    def done(self) -> bool:
        """Whether it was acknowledged or refused."""
        return self.acks is not None or self.error is not None


def bytes_of(batch: Sequence[Request]) -> int:
    """At most how many bytes a batch takes as a group."""
    return sum(len(prepared) + 160 for request in batch for prepared, _, _ in request.prepared) + 100


def ration(batch: Sequence[Request], *, room: int, kept: int) -> list[Request]:
    """What of a batch still gets some of the last ``room`` bytes: no start of a mission; intents while ``kept`` stay."""
    rest = [request for request in batch if request.rank is not Rank.START]
    if bytes_of(rest) + kept > room:
        rest = [request for request in rest if request.rank is Rank.REST]
    return rest if bytes_of(rest) <= room else []
