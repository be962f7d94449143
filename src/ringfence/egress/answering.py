"""The supervisor's side of the conversation: asks the policy, makes the first try of each kind durable, answers.

No socket and no thread here: messages in, messages out. Whatever goes wrong on the way to an answer is a refusal.
"""

import collections
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from ringfence.egress.asking import (
    Ask,
    Ended,
    Held,
    Here,
    Message,
    Named,
    Noted,
    Ready,
    Refused,
    Reused,
    ToSupervisor,
    Try,
    Verdict,
)
from ringfence.egress.credentials import Vault
from ringfence.egress.record import ConnectionLog, Dropped, Summary, is_violation
from ringfence.model.call import NetworkAccess, ToolCall
from ringfence.model.decision import Decision
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier

CACHE_LIMIT, CACHE_MICROS, CACHE_CHARACTERS = 4096, 1_000_000, 1024
MAX_UNRECORDED = 1000
REUSE_MILLIS = 1000
WITHOUT_CHARACTERS = 290
VIOLATION = "violation"
LEARNABLE = frozenset({"default", "trust"})
"""Kinds of refusal that learning mode lets pass; every written deny, and the floor, stay."""

Decide = Callable[[ToolCall], Decision]
Record = Callable[[ConnectionLog], None]
Attribute = Callable[[tuple[str, int], tuple[str, int]], tuple[str, ...]]
Approve = Callable[[ToolCall, Decision, float], bool]
"""Asks a person; gets the call, the decision and the seconds it may take; runs in a thread of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A question held for a person."""

    message: Ask
    call: ToolCall
    decision: Decision
    line: ConnectionLog
    until: Micros


@dataclass(slots=True, kw_only=True)
class Answerer:
    """Answers one mission's worker. ``clock`` gives microseconds since the epoch."""

    mission: MissionId
    decide: Decide
    record: Record
    clock: Callable[[], Micros]
    cwd: str
    call: str = ""
    ask_millis: int = 30_000
    learning_until: Micros = Micros(0)
    attribute: Attribute | None = None
    inspects: Callable[[str, int], bool] | None = None
    vaults: dict[str, Vault] = field(default_factory=dict)
    bound: frozenset[tuple[str, int]] = frozenset()
    """Host and port of credentials whose placeholders are replaced on the way out: such hosts are inspected."""
    grants: frozenset[tuple[str, int]] = frozenset()
    """Entry (``host-port`` or ``inbound``) and port that the mission's configuration opened."""
    names: list[tuple[int, str]] = field(default_factory=list)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    ready: Ready | None = None
    summary: Summary = field(default_factory=Summary)
    _open: dict[int, tuple[ConnectionLog, Try]] = field(default_factory=dict)
    _reused: dict[int, tuple[Micros, Reused]] = field(default_factory=dict)
    """Open connections under a standing verdict, whose lines are made only if they are needed."""
    _cache: dict[ToolCall, tuple[Micros, Decision]] = field(default_factory=dict)
    _unrecorded: collections.deque[ConnectionLog] = field(default_factory=collections.deque)
    _dropped: Dropped = field(default_factory=Dropped)

    def take(self, message: ToSupervisor) -> list[Message]:
        """What to send back for one message."""
        match message:
            case Ask():
                return self._asked(message)
            case Reused():
                self._reused[message.id] = self.clock(), message
            case Ended():
                self._ended(message)
            case Refused():
                self._told(message, Tier.DENY, "refused")
            case Noted():
                self._told(message, Tier.ALLOW, "answered")
            case Named():
                self.names.append((message.number, message.name))
            case Ready():
                self.ready = message
            case Here():
                pass
        return []

    def settle(self, ident: int, *, approved: bool, because: str) -> list[Message]:
        """The person's answer, or the time-out's, to a held question."""
        held = self.waiting.pop(ident, None)
        if held is None:
            return []
        line = replace(held.line, because=because)
        answer = self._allow if approved else self._deny
        return [answer(held.message, line)]

    def overdue(self, now: Micros) -> list[int]:
        """Held questions whose time is over."""
        return [ident for ident, held in self.waiting.items() if held.until <= now]

    def flush(self) -> None:
        """Record what was only counted since the last time. Kept, counted, for the next time where the ledger refuses."""
        write = self._write if self._retry() else self._keep if self.summary.crowded else None
        if write is not None:
            for line in self.summary.flush():
                write(line)

    @property
    def unrecorded(self) -> int:
        """Tries that stand in no entry yet: more than those since the last flush only while the ledger refuses."""
        return self.summary.pending + sum(line.count for line in self._unrecorded) + self._dropped.tries

    def worker_ended(self) -> None:
        """The worker is gone: every open connection ended with it, and nobody is waited for any more."""
        for held in self.waiting.values():
            if held.message.whole:
                self._close(held.line, held.message.subject, outcome="worker-ended")
        self.waiting.clear()
        for ident in list(self._reused):
            self._line_of_reused(ident)
        for ident in list(self._open):
            line, subject = self._open.pop(ident)
            self._close(line, subject, outcome="worker-ended")
        self.flush()

    def _asked(self, message: Ask) -> list[Message]:
        subject = message.subject
        if message.connection in self._reused:
            self._line_of_reused(message.connection)
        if (subject.entry, subject.port) in self.grants:
            line = self._line(subject)
            granted = replace(line, rule=f"grant/{subject.entry}", because="opened by configuration")
            return [self._allow(message, granted)]
        if message.whole and (subject.entry == "endpoint" or self._to_inspect(subject)):
            self._open[message.id] = replace(self._line(subject), rule="egress/inspected"), subject
            because = "judged request by request"
            return [Verdict(id=message.id, allow=True, rule="egress/inspected", because=because, inspect=True)]
        call = self._call(subject, subject.path or None)
        decision = self._strictest(call, message)
        if decision is None:
            failed = replace(
                self._line(subject),
                tier=Tier.DENY,
                rule="egress/decide-failed",
                because="the decision could not be made",
            )
            return [self._deny(message, failed)]
        reason = decision.deciding[0]
        if message.whole and decision.tier is Tier.DENY and not self._learns(decision):
            key = (subject.host, subject.port, subject.protocol, subject.entry, Tier.DENY, str(reason.rule), "refused")
            if self.summary.tally(key, subject.flags):
                rule, because = str(reason.rule), reason.because
                return [Verdict(id=message.id, allow=False, rule=rule, because=because, reuse=REUSE_MILLIS)]
        line = replace(self._line(subject), tier=decision.tier, rule=str(reason.rule), because=reason.because)
        if decision.tier is Tier.ALLOW:
            return [self._allow(message, line)]
        if message.literal_only:
            return [Verdict(id=message.id, allow=False, rule=line.rule, because=line.because)]
        if self._learns(decision):
            return [self._allow(message, replace(line, flags=(*line.flags, "learning")))]
        if decision.tier is Tier.ASK:
            until = Micros(self.clock() + self.ask_millis * 1000)
            held = Waiting(message=message, call=call, decision=decision, line=line, until=until)
            self.waiting[message.id] = held
            return [Held(id=message.id, millis=self.ask_millis)]
        return [self._deny(message, line)]

    def _to_inspect(self, subject: Try) -> bool:
        if (subject.host, subject.port) in self.bound:
            return True
        return self.inspects is not None and self.inspects(subject.host, subject.port)

    def _strictest(self, call: ToolCall, message: Ask) -> Decision | None:
        """The decision, under both readings of the path where there are two."""
        decision = self._decided(call)
        if message.also_path is None or decision is None:
            return decision
        other = self._decided(self._call(message.subject, message.also_path))
        return None if other is None else max(decision, other, key=lambda d: d.tier)

    def _allow(self, message: Ask, line: ConnectionLog) -> Verdict:
        """ALLOW, after the first of its kind is durable; where that fails nothing is allowed."""
        if message.literal_only:
            return Verdict(id=message.id, allow=True, rule=line.rule, because=line.because)
        because = ""
        if not self._retry():
            because = "the ledger did not take an earlier line"
        elif self.summary.is_new_decision(line):
            line = self._attributed(line, message.subject)
            try:
                self.record(replace(line, stage="decided", count=0))
                self.summary.announced(line)
            except Exception:  # noqa: BLE001 - the ledger's faults are many, and each means: not recorded, so not allowed
                because = "the ledger did not take this connection's line"
        if because:
            refused = replace(line, tier=Tier.DENY, rule="egress/not-recorded", because=because)
            return self._deny(message, refused)
        connection = message.id if message.whole else message.connection
        if message.whole or connection in self._open:
            self._open[connection] = self._of_connection(connection, line), _ends(message.subject)
        # The policy is pinned and deciding is pure: for a moment the same question has the same answer.
        reuse = REUSE_MILLIS if message.whole and line.tier is Tier.ALLOW and not line.flags else 0
        secret, without = self._secret(message)
        return Verdict(
            id=message.id,
            allow=True,
            rule=line.rule,
            because=line.because,
            reuse=reuse,
            secret=secret,
            without=without,
        )

    def _deny(self, message: Ask, line: ConnectionLog) -> Verdict:
        """No. A refused request changes what its connection's line will say; a refused connection is told at once."""
        if message.whole:
            self._close(line, message.subject, outcome="refused")
        elif message.connection in self._open:
            kept = self._of_connection(message.connection, line)
            self._open[message.connection] = kept, _ends(message.subject)
        return Verdict(id=message.id, allow=False, rule=line.rule, because=line.because)

    def _of_connection(self, connection: int, line: ConnectionLog) -> ConnectionLog:
        """A request's line put in the place of its connection's, which began earlier."""
        before = self._open.get(connection)
        if before is None:
            return line
        return replace(line, time=before[0].time, programs=line.programs or before[0].programs)

    def _ended(self, message: Ended) -> None:
        if message.id in self._reused:
            if self._tally_reused(message):
                return
            self._line_of_reused(message.id)
        found = self._open.pop(message.id, None)
        if found is None:
            return
        line, subject = found
        line = replace(
            line,
            sent=max(0, message.sent),
            received=max(0, message.received),
            duration=Micros(max(0, message.micros)),
            address=message.address or line.address,
            protocol=message.protocol or line.protocol,
            tokens_in=max(0, message.tokens[0]),
            tokens_out=max(0, message.tokens[1]),
            flags=tuple(sorted({*line.flags, *message.flags})),
        )
        if message.rule:
            own = line.rule == message.rule and line.tier is not Tier.ALLOW
            line = replace(line, tier=line.tier if own else Tier.DENY, rule=message.rule, because=message.because)
        self._close(line, subject, outcome=message.outcome)

    def _tally_reused(self, message: Ended) -> bool:
        """Count the end of a connection under a standing verdict the short way, where its kind was told before."""
        told = self._reused[message.id][1]
        subject = told.subject
        if message.rule or message.tokens != (0, 0) or message.flags:
            return False
        protocol = message.protocol or subject.protocol
        key = (subject.host, subject.port, protocol, subject.entry, Tier.ALLOW, told.rule, message.outcome)
        sent, received = max(0, message.sent), max(0, message.received)
        if not self.summary.tally(key, subject.flags, sent=sent, received=received, duration=max(0, message.micros)):
            return False
        del self._reused[message.id]
        return True

    def _line_of_reused(self, ident: int) -> None:
        time, told = self._reused.pop(ident)
        line = replace(self._line(told.subject), time=time, rule=told.rule, because=told.because)
        self._open[ident] = line, told.subject

    def _told(self, message: Refused | Noted, tier: Tier, outcome: str) -> None:
        subject = message.subject
        key = (subject.host, subject.port, subject.protocol, subject.entry, tier, message.rule, outcome)
        if message.count == 1 and self.summary.tally(key, _flags(subject, tier, message.rule)):
            return
        line = replace(
            self._line(message.subject), tier=tier, rule=message.rule, because=message.because, count=message.count
        )
        self._close(line, message.subject, outcome=outcome)

    def _close(self, line: ConnectionLog, subject: Try, *, outcome: str) -> None:
        line = replace(line, outcome=outcome)
        if is_violation(line.tier, line.rule) and VIOLATION not in line.flags:
            line = replace(line, flags=(*line.flags, VIOLATION))
        if not line.programs and self.summary.is_new(line):
            line = self._attributed(line, subject)
        told = self.summary.add(line)
        if told is not None:
            self._write(told)

    def _decided(self, call: ToolCall) -> Decision | None:
        """The policy's decision, remembered for a second; ``None`` where deciding failed."""
        now = self.clock()
        kept = self._cache.get(call)
        if kept is not None and 0 <= now - kept[0] < CACHE_MICROS:
            return kept[1]
        try:
            decision = self.decide(call)
        except Exception:  # noqa: BLE001 - a fault in deciding must deny this connection, not end the mission's egress
            return None
        if _is_short(call):
            if len(self._cache) >= CACHE_LIMIT:
                self._cache.clear()
            self._cache[call] = (now, decision)
        return decision

    def _learns(self, decision: Decision) -> bool:
        if self.clock() >= self.learning_until:
            return False
        return decision.tier is Tier.ASK or all(reason.kind in LEARNABLE for reason in decision.deciding)

    def _secret(self, message: Ask) -> tuple[str, str]:
        """The value of the credential asked for, only where it belongs; where it cannot be read, empty and why."""
        vault = self.vaults.get(message.credential)
        if vault is None:
            return "", ""
        bound, subject = vault.credential, message.subject
        inside = subject.path == bound.path or subject.path.startswith(bound.path.rstrip("/") + "/")
        if (bound.host, bound.port) != (subject.host, subject.port) or not inside or subject.protocol == "http":
            return "", ""
        try:
            return vault.value(), ""
        except RingfenceError as error:
            return "", f"{error.what}; {error.remedy}"[:WITHOUT_CHARACTERS]

    def _call(self, subject: Try, path: str | None) -> ToolCall:
        return ToolCall.network(
            subject.host,
            subject.port,
            method=subject.method or None,
            path=path,
            query=subject.query,
            body=subject.body,
            cwd=self.cwd,
        )

    def _line(self, subject: Try) -> ConnectionLog:
        return ConnectionLog(
            time=self.clock(),
            mission=self.mission,
            call=self.call,
            host=subject.host,
            address=subject.address,
            port=subject.port,
            protocol=subject.protocol,
            entry=subject.entry,
            method=subject.method,
            path=subject.path[:500],
            tier=Tier.ALLOW,
            rule="",
            flags=subject.flags,
        )

    def _attributed(self, line: ConnectionLog, subject: Try) -> ConnectionLog:
        """The line with the programs that hold the box's end of the connection, as far as they can still be seen."""
        if self.attribute is None or not subject.source[1] or line.programs:
            return line
        try:
            return replace(line, programs=self.attribute(subject.source, subject.target))
        except OSError:
            return line

    def _write(self, line: ConnectionLog) -> None:
        try:
            self.record(line)
        except Exception:  # noqa: BLE001 - kept and tried again; until then nothing further is allowed
            self._keep(line)

    def _keep(self, line: ConnectionLog) -> None:
        if len(self._unrecorded) < MAX_UNRECORDED:
            self._unrecorded.append(line)
        else:
            self._dropped.add(line)

    def _retry(self) -> bool:
        """Whether the ledger has all that it refused before: the lines that were kept, then the sums of the rest."""
        try:
            while self._unrecorded:
                self.record(self._unrecorded[0])
                self._unrecorded.popleft()
            while (line := self._dropped.oldest()) is not None:
                self.record(line)
                self._dropped.told()
        except Exception:  # noqa: BLE001 - still not: the caller refuses
            return False
        return True


def _is_short(call: ToolCall) -> bool:
    """Whether a call is small enough to be remembered: thousands of bodies or long paths would fill the memory."""
    request = call.request
    if not isinstance(request, NetworkAccess) or request.body is not None:
        return False
    return len(request.path or "") + len(request.query or "") <= CACHE_CHARACTERS


def _ends(subject: Try) -> Try:
    """What an open connection's line still needs of its subject: who holds it. A body is not kept as long as that."""
    return msgspec.structs.replace(subject, path="", query=None, body=None)


def _flags(subject: Try, tier: Tier, rule: str) -> tuple[str, ...]:
    return (*subject.flags, VIOLATION) if is_violation(tier, rule) else subject.flags
