"""The supervisor's side of the conversation: asks the policy, makes the first try of each kind durable, answers.

No socket and no thread here: messages in, messages out. Whatever goes wrong on the way to an answer is a refusal.
"""

import collections
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ringfence.egress.asking import Ask, Ended, Held, Message, Named, Noted, Ready, Refused, ToSupervisor, Try, Verdict
from ringfence.egress.record import ConnectionLog, Summary, is_violation
from ringfence.model.call import ToolCall
from ringfence.model.decision import Decision
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier

CACHE_LIMIT, CACHE_MICROS = 4096, 1_000_000
MAX_UNRECORDED = 1000
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

    id: int
    call: ToolCall
    decision: Decision
    line: ConnectionLog
    subject: Try
    until: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """The value of one credential, and where it may go."""

    value: str = field(repr=False)
    host: str
    port: int


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
    can_approve: bool = False
    inspects: Callable[[str, int], bool] | None = None
    secrets: dict[str, Secret] = field(default_factory=dict)
    grants: frozenset[tuple[str, int]] = frozenset()
    """Entry (``host-port`` or ``inbound``) and port that the mission's configuration opened."""
    names: list[tuple[int, str]] = field(default_factory=list)
    waiting: dict[int, Waiting] = field(default_factory=dict)
    ready: Ready | None = None
    summary: Summary = field(default_factory=Summary)
    _open: dict[int, tuple[ConnectionLog, Try]] = field(default_factory=dict)
    _cache: dict[ToolCall, tuple[Micros, Decision]] = field(default_factory=dict)
    _unrecorded: collections.deque[ConnectionLog] = field(default_factory=collections.deque)

    def take(self, message: ToSupervisor) -> list[Message]:
        """What to send back for one message."""
        match message:
            case Ask():
                return self._asked(message)
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
        return []

    def settle(self, ident: int, *, approved: bool, because: str) -> list[Message]:
        """The person's answer, or the time-out's, to a held question."""
        held = self.waiting.pop(ident, None)
        if held is None:
            return []
        rule = str(held.decision.deciding[0].rule)
        if approved:
            return [self._allow(ident, held.line, held.subject, rule=rule, because=because)]
        return [self._deny(ident, held.line, held.subject, rule, because)]

    def overdue(self, now: Micros) -> list[int]:
        """Held questions whose time is over."""
        return [ident for ident, held in self.waiting.items() if held.until <= now]

    def forget(self) -> None:
        """Drop remembered decisions, as after a reload of the policy."""
        self._cache.clear()

    def flush(self) -> None:
        """Record what was only counted since the last time. Kept for the next time where the ledger refuses."""
        for line in self.summary.flush():
            self._write(line)
        self._retry()

    def worker_ended(self) -> None:
        """The worker is gone: every open connection ended with it, and nobody is waited for any more."""
        for ident in list(self._open):
            line, subject = self._open.pop(ident)
            self._close(line, subject, outcome="worker-ended")
        for held in self.waiting.values():
            self._close(held.line, held.subject, outcome="worker-ended")
        self.waiting.clear()
        self.flush()

    def _asked(self, message: Ask) -> list[Message]:
        subject = message.subject
        line = self._line(subject)
        if (subject.entry, subject.port) in self.grants:
            rule = f"grant/{subject.entry}"
            return [self._allow(message.id, line, subject, rule=rule, because="opened by configuration")]
        decision = self._strictest(message)
        if decision is None:
            return [self._deny(message.id, line, subject, "egress/decide-failed", "the decision could not be made")]
        reason = decision.deciding[0]
        rule, because = str(reason.rule), reason.because
        line = replace(line, tier=decision.tier, rule=rule, because=because)
        if not message.whole:
            return [self._request(message, decision)]
        if decision.tier is Tier.ALLOW:
            secret = self._secret(message)
            return [self._allow(message.id, line, subject, rule=rule, because=because, credential=secret)]
        if self._learns(decision):
            line = replace(line, flags=(*line.flags, "learning"))
            return [self._allow(message.id, line, subject, rule=rule, because=because)]
        if decision.tier is Tier.ASK:
            return self._hold(message, decision, line)
        return [self._deny(message.id, line, subject, rule, because)]

    def _strictest(self, message: Ask) -> Decision | None:
        """The decision, under both readings of the path where there are two."""
        subject = message.subject
        decision = self._decided(self._call(subject, subject.path or None))
        if message.also_path is None or decision is None:
            return decision
        other = self._decided(self._call(subject, message.also_path))
        return None if other is None else max(decision, other, key=lambda d: d.tier)

    def _request(self, message: Ask, decision: Decision) -> Verdict:
        """A request on a connection that is counted already, or the question whether a literal is granted."""
        reason = decision.deciding[0]
        allow = decision.tier is Tier.ALLOW or (not message.literal_only and self._learns(decision))
        if not allow and message.connection in self._open:
            line, subject = self._open[message.connection]
            line = replace(line, method=message.subject.method, path=message.subject.path[:500])
            self._open[message.connection] = line, subject
        secret = self._secret(message) if allow else ""
        because = reason.because
        if decision.tier is Tier.ASK and not allow:
            because = f"{because} (a single request is not held for a person)"
        return Verdict(id=message.id, allow=allow, rule=str(reason.rule), because=because, secret=secret)

    def _hold(self, message: Ask, decision: Decision, line: ConnectionLog) -> list[Message]:
        until = Micros(self.clock() + self.ask_millis * 1000)
        call = self._call(message.subject, message.subject.path or None)
        self.waiting[message.id] = Waiting(
            id=message.id, call=call, decision=decision, line=line, subject=message.subject, until=until
        )
        return [Held(id=message.id, millis=self.ask_millis)]

    def _allow(
        self, ident: int, line: ConnectionLog, subject: Try, *, rule: str, because: str, credential: str = ""
    ) -> Verdict:
        """ALLOW, after the first of its kind is durable; where that fails nothing is allowed."""
        line = replace(line, rule=rule, because=because)
        if not self._retry():
            return self._deny(ident, line, subject, "egress/not-recorded", "the ledger did not take an earlier line")
        if self.summary.is_new_decision(line):
            line = self._attributed(line, subject)
            try:
                self.record(replace(line, stage="decided", count=0))
            except Exception:  # noqa: BLE001 - the ledger's faults are many, and each means: not recorded, so not allowed
                because = "the ledger did not take this connection's line"
                return self._deny(ident, line, subject, "egress/not-recorded", because)
            self.summary.announced(line)
        self._open[ident] = line, subject
        inspect = self.inspects is not None and self.inspects(line.host, line.port)
        return Verdict(id=ident, allow=True, rule=rule, because=because, inspect=inspect, secret=credential)

    def _deny(self, ident: int, line: ConnectionLog, subject: Try, rule: str, because: str) -> Verdict:
        tier = line.tier if line.tier is not Tier.ALLOW else Tier.DENY
        self._close(replace(line, tier=tier, rule=rule, because=because), subject, outcome="refused")
        return Verdict(id=ident, allow=False, rule=rule, because=because)

    def _ended(self, message: Ended) -> None:
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
            flags=tuple(sorted({*line.flags, *message.flags})),
        )
        if message.rule:
            line = replace(line, tier=Tier.DENY, rule=message.rule, because=message.because)
        self._close(line, subject, outcome=message.outcome)

    def _told(self, message: Refused | Noted, tier: Tier, outcome: str) -> None:
        line = replace(
            self._line(message.subject), tier=tier, rule=message.rule, because=message.because, count=message.count
        )
        self._close(line, message.subject, outcome=outcome)

    def _close(self, line: ConnectionLog, subject: Try, *, outcome: str) -> None:
        line = replace(line, outcome=outcome)
        if is_violation(line.tier, line.rule) and "violation" not in line.flags:
            line = replace(line, flags=(*line.flags, "violation"))
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
        if len(self._cache) >= CACHE_LIMIT:
            self._cache.clear()
        self._cache[call] = (now, decision)
        return decision

    def _learns(self, decision: Decision) -> bool:
        if self.clock() >= self.learning_until:
            return False
        return decision.tier is Tier.ASK or all(reason.kind in LEARNABLE for reason in decision.deciding)

    def _secret(self, message: Ask) -> str:
        """The credential asked for, only where it belongs."""
        secret = self.secrets.get(message.credential)
        fits = secret is not None and (secret.host, secret.port) == (message.subject.host, message.subject.port)
        return secret.value if secret is not None and fits else ""

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
            if len(self._unrecorded) < MAX_UNRECORDED:
                self._unrecorded.append(line)

    def _retry(self) -> bool:
        while self._unrecorded:
            try:
                self.record(self._unrecorded[0])
            except Exception:  # noqa: BLE001 - still not: the caller refuses
                return False
            self._unrecorded.popleft()
        return True
