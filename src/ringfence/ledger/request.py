"""One caller's entries on their way to the disk."""

import enum
import threading
from collections.abc import Mapping, Sequence

import msgspec

from ringfence.ledger.resume import Mark
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


_START, _CALL, _REST = Rank.START, Rank.CALL, Rank.REST
_INTENT, _MISSION = EntryKind.INTENT, EntryKind.MISSION


def rank_of(kind: EntryKind, body: Mapping[str, Json]) -> Rank:
    """The rank of one entry."""
    if kind is _INTENT:
        return _CALL
    return _START if kind is _MISSION and body.get("action") == "start" else _REST


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """One record up to its place in the chain."""

    head: bytes
    time: int
    rank: Rank
    mark: Mark | None = None
    """The call that it begins or ends."""


class Request:
    """Prepared records; one without records waits to be alone. ``wake`` is released once."""

    __slots__ = ("acks", "error", "prepared", "size", "wake")

    def __init__(self, prepared: list[Prepared]) -> None:
        """Not yet answered."""
        self.prepared = prepared
        self.size = 160 * len(prepared)
        """At most how many bytes its records take."""
        for one in prepared:
            self.size += len(one.head)
        self.wake = threading.Lock()
        self.acks: list[Ack] | None = None
        self.error: LedgerError | None = None

    @property
    def rank(self) -> Rank:
        """That of the entry that gives way first: a request is written whole or not at all."""
        return min((one.rank for one in self.prepared), default=Rank.REST)

    @property
    def done(self) -> bool:
        """Whether it was acknowledged or refused."""
        return self.acks is not None or self.error is not None


def bytes_of(batch: Sequence[Request]) -> int:
    """At most how many bytes a batch takes as a group."""
    return sum([request.size for request in batch]) + 100


def ration(batch: Sequence[Request], *, room: int, kept: int) -> list[Request]:
    """What of a batch still gets some of the last ``room`` bytes: no start of a mission; intents while ``kept`` stay."""
    rest = [request for request in batch if request.rank is not Rank.START]
    if bytes_of(rest) + kept > room:
        rest = [request for request in rest if request.rank is Rank.REST]
    return rest if bytes_of(rest) <= room else []


def refuse(batch: Sequence[Request], error: LedgerError) -> None:
    """Tell every request that has no answer yet."""
    for request in batch:
        if not request.done:
            request.error = error
