"""What is remembered of each try to reach the network, bounded: the first of a destination whole, the rest counted.

Pure. A flood of tries cannot fill the ledger, and no try goes uncounted: the counts of all lines with stage ``ended``
and ``summary`` add up to the number of tries.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier

OTHER = "(other destinations)"
DROPPED = "(tries without a line)"
ANY = "any"
OUTWARD = frozenset({"capture", "http-proxy", "socks"})
"""Entries by which programs of a box reach for other hosts."""
MAX_DESTINATIONS = 1000
VIOLATIONS = ("floor/", "egress/placeholder-elsewhere", "egress/secret-returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLog:
    """One line of the egress log.

    ``stage`` is ``decided`` (durable before an allowed connection is dialled; counts 0), ``ended`` (one try, whole) or
    ``summary`` (``count`` further tries of the same destination, verdict and rule, with their bytes and durations
    added). Times are microseconds since the epoch; bytes are of the payload, ``sent`` by the box.
    """

    time: Micros
    mission: MissionId
    call: str = ""
    programs: tuple[str, ...] = ()
    """Executables that held the socket, nearest first, then their parents up to the box's init."""
    host: str
    address: str = ""
    """The address dialled, or the one the box tried where it gave no name."""
    port: int
    protocol: str
    """``tls``, ``http``, ``ssh``, ``tcp``, ``dns``, ``udp`` or ``icmp``; ``any`` where lines were dropped."""
    entry: str
    """``capture``, ``http-proxy``, ``socks``, ``dns``, ``nflog``, ``endpoint``, ``host-port`` or ``inbound``; ``any`` as above."""
    method: str = ""
    path: str = ""
    sent: int = 0
    received: int = 0
    duration: Micros = Micros(0)
    tier: Tier
    rule: str
    because: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    """What a model's answers told through an endpoint of the mission."""
    outcome: str = ""
    """How it ended, as ``closed``, ``refused``, ``not-resolved``, ``unreachable``, ``worker-ended``."""
    flags: tuple[str, ...] = ()
    """``odd-labels``, ``learning``, ``violation``, ``inspected``, ``credential``."""
    stage: str = "ended"
    count: int = 1

    @property
    def violation(self) -> bool:
        """Whether this hit the floor or gave a credential's placeholder away, rather than a default."""
        return "violation" in self.flags

    def entry_of(self) -> Entry:
        """The line as the ledger keeps it. Empty fields are left out."""
        body: dict[str, Json] = {}
        for item in fields(self):
            if item.name in {"time", "mission", "call"}:
                continue
            value = getattr(self, item.name)
            if item.name == "tier":
                value = self.tier.word
            if isinstance(value, tuple):
                value = list(value)
            if value not in ("", [], 0) or item.name == "count":
                body[item.name] = value
        return Entry(kind=EntryKind.EGRESS, time=self.time, mission=self.mission, call=self.call, body=body)


def from_body(body: Mapping[str, Json], *, time: int, mission: str, call: str) -> ConnectionLog:
    """The line that ``entry_of`` made into an entry. Unknown keys of later versions are ignored; raises ValueError."""
    known = {item.name for item in fields(ConnectionLog)} - {"time", "mission", "call", "tier"}
    given: dict[str, object] = {key: _thaw(value) for key, value in body.items() if key in known}
    try:
        tier = Tier[str(body["tier"]).upper()]
        return ConnectionLog(
            time=Micros(time),
            mission=MissionId(mission),
            call=call,
            tier=tier,
            **{"port": 0, **given},  # type: ignore[arg-type] # checked by the ledger's own schema
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not an egress record: {error}") from error


def from_observation(kind: str, detail: str, *, count: int, time: int, mission: str, call: str) -> ConnectionLog | None:
    """The line of a try that a box without a network was seen to make; None for an observation of something else."""
    if kind not in {"egress", "floor"}:
        return None
    found = _SEEN.fullmatch(detail)
    word, host, port = (found["word"], found["host"], int(found["port"] or 0)) if found else (ANY, DROPPED, 0)
    alone = bool(found and found["alone"])
    rule = "egress/own-loopback" if alone else "floor/metadata" if kind == "floor" else "egress/no-network"
    return ConnectionLog(
        time=Micros(time),
        mission=MissionId(mission),
        call=call,
        host=host,
        port=53 if word == "name" else port,
        protocol="dns" if word == "name" else word,
        entry="dns" if word == "name" else "nflog",
        tier=Tier.ALLOW if alone else Tier.DENY,
        rule=rule,
        because="nobody listens there" if alone else "the policy gives its boxes no network",
        outcome="refused",
        flags=("violation",) if kind == "floor" else (),
        count=count,
    )


_SEEN = re.compile(r"(?P<word>name|protocol \d+|\w+) (?P<host>\S+)(?: port (?P<port>\d+))?(?P<alone>, nobody listens)?")


def _thaw(value: Json) -> object:
    return tuple(value) if isinstance(value, list) else value


def is_violation(tier: Tier, rule: str) -> bool:
    """Whether a refusal by this rule counts against the agent rather than against an unfinished policy."""
    return tier is Tier.DENY and rule.startswith(VIOLATIONS)


Key: TypeAlias = tuple[str, int, str, str, Tier, str, str]
"""Host, port, protocol, entry, tier, rule, outcome: tries that agree in these are told as one."""


@dataclass(slots=True)
class _Sum:
    """Further tries of one kind; ``first`` is the line that told of the kind."""

    first: ConnectionLog
    count: int = 0
    sent: int = 0
    received: int = 0
    duration: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    flags: frozenset[str] = frozenset()

    def add(self, line: ConnectionLog) -> None:
        """Count every try that a line stands for."""
        self.count += line.count
        self.sent += line.sent
        self.received += line.received
        self.duration += line.duration
        self.tokens_in += line.tokens_in
        self.tokens_out += line.tokens_out

    def line(self) -> ConnectionLog:
        return replace(
            self.first,
            stage="summary",
            count=self.count,
            sent=self.sent,
            received=self.received,
            duration=Micros(self.duration),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            flags=tuple(sorted({*self.first.flags, *self.flags})),
        )


class Sort(enum.Enum):
    """Three sorts of lines with room of their own: a flood of refused tries hides nothing that was let through."""

    PASSED = "passed"
    ALERT = "alert"
    REFUSED = "refused"


def sort_of(line: ConnectionLog) -> Sort:
    """The sort of a line. Names that the box's own server answered are no more than refused tries: nothing went out."""
    if is_violation(line.tier, line.rule):
        return Sort.ALERT
    passed = line.tier is Tier.ALLOW or "learning" in line.flags
    return Sort.PASSED if passed and line.entry != "dns" else Sort.REFUSED


@dataclass(slots=True)
class Summary:
    """The bounded memory of one mission's tries: ``limit`` kinds of each sort are told one by one."""

    limit: int = MAX_DESTINATIONS
    _first: dict[Key, ConnectionLog] = field(default_factory=dict)
    _told: dict[Sort, int] = field(default_factory=lambda: dict.fromkeys(Sort, 0))
    _more: dict[Key, _Sum] = field(default_factory=dict)
    total: int = 0

    def is_new(self, line: ConnectionLog) -> bool:
        """Whether no try with this destination, verdict and rule has been told yet (and there is room to tell it)."""
        return key_of(line) not in self._first and self._has_room(line)

    def is_new_decision(self, line: ConnectionLog) -> bool:
        """Whether an allowed try is the first of its kind, so that it must be durable before it is dialled."""
        return _decided(line) not in self._first and self._has_room(line)

    def announced(self, line: ConnectionLog) -> None:
        """The ``decided`` line of this kind of try is durable."""
        self._tell(_decided(line), line)

    def _has_room(self, line: ConnectionLog) -> bool:
        return self._told[sort_of(line)] < self.limit

    def _tell(self, key: Key, line: ConnectionLog) -> None:
        self._first[key] = line
        self._told[sort_of(line)] += 1

    def tally(self, key: Key, flags: tuple[str, ...], *, sent: int = 0, received: int = 0, duration: int = 0) -> bool:
        """Count one ended try without making its line; False where its kind was not told yet, so that ``add`` must.

        The short way for floods: a line costs more than all the rest of answering.
        """
        first = self._first.get(key)
        if first is None or first.flags != flags:
            return False
        self.total += 1
        more = self._more.get(key)
        if more is None:
            more = self._more[key] = _Sum(first)
        more.count += 1
        more.sent += sent
        more.received += received
        more.duration += duration
        return True

    def add(self, line: ConnectionLog) -> ConnectionLog | None:
        """Count one ended try; the line itself where it is the first of its kind, else ``None`` until ``flush``."""
        self.total += line.count
        key = key_of(line)
        if self.is_new(line):
            self._tell(key, line)
            return line
        if key not in self._first:
            line = replace(line, host=OTHER, address="", port=0, method="", path="", programs=(), flags=())
            key = key_of(line)
        more = self._more.setdefault(key, _Sum(self._first.get(key, line)))
        more.add(line)
        more.flags |= set(line.flags)
        return None

    @property
    def pending(self) -> int:
        """How many tries were counted since the last flush."""
        return sum(more.count for more in self._more.values())

    @property
    def crowded(self) -> bool:
        """Whether more kinds are counted than honest tries can bring: a flush must not wait for the ledger any longer."""
        return len(self._more) > 2 * len(Sort) * self.limit

    def flush(self) -> list[ConnectionLog]:
        """Everything counted since the last flush, one line a kind."""
        lines = [more.line() for more in self._more.values()]
        self._more.clear()
        return lines


@dataclass(slots=True)
class Dropped:
    """Lines for which there was no room while the ledger refused: their exact sums, one for each tier, violations apart."""

    _sums: dict[tuple[Tier, bool], tuple[_Sum, int]] = field(default_factory=dict)

    def add(self, line: ConnectionLog) -> None:
        """Count a line that cannot be kept, and every try that it stands for."""
        key = (line.tier, line.violation)
        more, lines = self._sums.get(key, (None, 0))
        if more is None:
            more = _Sum(_nameless(line))
        more.add(line)
        self._sums[key] = more, lines + 1

    def oldest(self) -> ConnectionLog | None:
        """The line to write next; ``told`` once it is durable."""
        for more, lines in self._sums.values():
            return replace(more.line(), because=f"{lines} lines were dropped while the ledger took none")
        return None

    def told(self) -> None:
        """The oldest line is durable."""
        del self._sums[next(iter(self._sums))]

    @property
    def tries(self) -> int:
        """How many tries are counted here and stand in no entry yet."""
        return sum(more.count for more, _ in self._sums.values())


def _nameless(line: ConnectionLog) -> ConnectionLog:
    flags = tuple(flag for flag in line.flags if flag == "violation")
    return ConnectionLog(
        time=line.time,
        mission=line.mission,
        call=line.call,
        host=DROPPED,
        port=0,
        protocol=ANY,
        entry=ANY,
        tier=line.tier,
        rule="egress/lines-dropped",
        outcome="not-recorded",
        flags=flags,
    )


def key_of(line: ConnectionLog) -> Key:
    """The kind of a line."""
    return (line.host, line.port, line.protocol, line.entry, line.tier, line.rule, line.outcome)


def _decided(line: ConnectionLog) -> Key:
    return (line.host, line.port, line.protocol, line.entry, line.tier, line.rule, "decided")
