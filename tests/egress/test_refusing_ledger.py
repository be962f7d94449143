"""A ledger that takes nothing for a while: nothing new is allowed, memory stays bounded, and every try is counted."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.egress import answering
from ringfence.egress.answering import Answerer
from ringfence.egress.asking import Ask, Ended, Refused, Try
from ringfence.egress.record import DROPPED, ConnectionLog, Dropped, Sort, from_body
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.ids import CallId, Micros, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier


class Ledger:
    """Takes lines, or refuses: always, or from the n-th on."""

    def __init__(self) -> None:
        self.lines: list[ConnectionLog] = []
        self.takes = 10**9

    def __call__(self, line: ConnectionLog) -> None:
        if self.takes <= 0:
            raise OSError("disk full")
        self.takes -= 1
        self.lines.append(line)


def decide(call) -> Decision:
    reason = Reason(
        rule=RuleId("r"), scope=Scope.REPOSITORY, place=Place(file="p"), tier=Tier.ALLOW, matched="", because="b"
    )
    return Decision(call_id=CallId(""), policy_digest=Sha256("0" * 64), reasons=(reason,))


def answerer(ledger: Ledger) -> Answerer:
    return Answerer(mission=MissionId("m"), decide=decide, record=ledger, clock=lambda: Micros(5), cwd="/")


def subject(number: int, protocol: str = "tcp") -> Try:
    return Try(host=f"h{number}.example", port=443, protocol=protocol, entry="capture")


def refused(number: int, rule: str = "egress/rate", count: int = 1, protocol: str = "tcp") -> Refused:
    return Refused(subject=subject(number, protocol), rule=rule, because="b", count=count)


def tries(lines: list[ConnectionLog]) -> int:
    return sum(line.count for line in lines)


def test_an_outage_loses_neither_a_try_nor_its_destination():
    ledger = Ledger()
    egress = answerer(ledger)
    for number in range(400):
        egress.take(refused(number))
    ledger.takes = 0
    for round_ in range(3):
        for number in range(800):
            egress.take(refused(number, count=1 + round_ % 2))
        egress.flush()
    assert egress.unrecorded == 800 * 4
    assert egress.take(Ask(id=1, subject=subject(9000)))[0].allow is False
    ledger.takes = 10**9
    egress.flush()
    assert egress.unrecorded == 0
    assert tries(ledger.lines) == 400 + 800 * 4 + 1 == egress.summary.total
    by_host = Counter()
    for line in ledger.lines:
        by_host[line.host] += line.count
    assert by_host["h7.example"] == 5
    assert by_host["h700.example"] == 4
    assert DROPPED not in by_host


def test_lines_beyond_the_room_are_counted_exactly_and_written_when_the_ledger_takes_entries(monkeypatch):
    monkeypatch.setattr(answering, "MAX_UNRECORDED", 5)
    ledger = Ledger()
    egress = answerer(ledger)
    ledger.takes = 0
    for number in range(50):
        egress.take(refused(number))
    for number in range(50, 60):
        egress.take(refused(number, rule="floor/metadata"))
    assert len(egress._unrecorded) == 5
    assert egress.unrecorded == 60
    assert egress.take(Ask(id=1, subject=subject(1)))[0].rule == "egress/not-recorded"
    ledger.takes = 6  # the five, and one sum: the other waits for its turn
    egress.flush()
    ledger.takes = 10**9
    egress.flush()
    dropped = [line for line in ledger.lines if line.host == DROPPED]
    assert [(line.tier, line.count, line.violation) for line in dropped] == [
        (Tier.DENY, 45 + 1, False),
        (Tier.DENY, 10, True),
    ]
    assert dropped[0].because == "46 lines were dropped while the ledger took none"
    assert {line.rule for line in dropped} == {"egress/lines-dropped"}
    assert tries(ledger.lines) == 61 == egress.summary.total
    assert egress.take(Ask(id=2, subject=subject(2)))[0].allow is True
    entry = dropped[1].entry_of()
    assert from_body(entry.body, time=5, mission="m", call="") == dropped[1]


def test_a_worker_that_invents_kinds_cannot_make_the_supervisor_grow():
    ledger = Ledger()
    egress = answerer(ledger)
    ledger.takes = 0
    for number in range(20_000):
        egress.take(refused(number, protocol=f"p{number}"))
        if number % 1000 == 0:
            egress.flush()
    egress.flush()
    assert len(egress._unrecorded) <= answering.MAX_UNRECORDED
    assert len(egress.summary._more) <= 2 * len(Sort) * egress.summary.limit + 1000
    ledger.takes = 10**9
    egress.flush()
    assert egress.unrecorded == 0
    assert tries(ledger.lines) == 20_000


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("refused"), st.integers(0, 12), st.sampled_from(["egress/rate", "floor/x"])),
            st.tuples(st.just("connect"), st.integers(0, 12), st.just("")),
            st.tuples(st.just("takes"), st.integers(0, 4), st.just("")),
            st.tuples(st.just("flush"), st.just(0), st.just("")),
        ),
        max_size=60,
    ),
    st.integers(0, 4),
)
def test_whatever_the_ledger_does_the_counts_add_up(steps, room):
    ledger = Ledger()
    egress = answerer(ledger)
    egress.summary = dataclasses.replace(egress.summary, limit=6)
    made = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answering, "MAX_UNRECORDED", room)
        for ident, (what, number, rule) in enumerate(steps):
            if what == "takes":
                ledger.takes = number
            elif what == "flush":
                egress.flush()
            elif what == "refused":
                egress.take(refused(number, rule=rule))
                made += 1
            else:
                egress.take(Ask(id=ident, subject=subject(number)))
                egress.take(Ended(id=ident, sent=1, received=1, micros=1, outcome="closed", protocol="tls"))
                made += 1
            assert len(egress._unrecorded) <= room
            assert tries(ledger.lines) + egress.unrecorded == made
        ledger.takes = 10**9
        egress.flush()
        egress.flush()
    assert tries(ledger.lines) == made
    assert egress.unrecorded == 0


def test_sums_keep_bytes_and_tell_verdicts_apart():
    dropped = Dropped()
    line = ConnectionLog(
        time=Micros(1),
        mission=MissionId("m"),
        host="a",
        port=1,
        protocol="tls",
        entry="capture",
        tier=Tier.ALLOW,
        rule="r",
        sent=3,
        received=4,
        count=2,
    )
    dropped.add(line)
    dropped.add(dataclasses.replace(line, tier=Tier.DENY))
    dropped.add(line)
    first = dropped.oldest()
    assert first is not None
    assert (first.tier, first.count, first.sent, first.received) == (Tier.ALLOW, 4, 6, 8)
    dropped.told()
    second = dropped.oldest()
    assert second is not None
    assert (second.tier, second.count) == (Tier.DENY, 2)
    dropped.told()
    assert dropped.oldest() is None
