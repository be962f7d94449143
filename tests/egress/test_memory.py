"""What is remembered of requests is small, however large and however different they are."""

import tracemalloc

from ringfence.egress.answering import Answerer
from ringfence.egress.asking import Ask, Ended, Try
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.ids import CallId, Micros, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier

SIZE, COUNT = 40_000, 300


def decide(_call) -> Decision:
    reason = Reason(
        rule=RuleId("r"), scope=Scope.REPOSITORY, place=Place(file="p"), tier=Tier.ALLOW, matched="", because="b"
    )
    return Decision(call_id=CallId(""), policy_digest=Sha256("0" * 64), reasons=(reason,))


def grown(ask) -> int:
    """Bytes that remain after many questions, each on an open connection of its own."""
    egress = Answerer(
        mission=MissionId("m"), decide=decide, record=lambda _line: None, clock=lambda: Micros(5), cwd="/"
    )
    egress.take(Ask(id=1, subject=Try(host="h", port=443, protocol="tls", entry="capture")))
    tracemalloc.start()
    try:
        for number in range(2, COUNT):
            egress.take(Ask(id=number, subject=Try(host="h", port=443, protocol="tls", entry="capture")))
            egress.take(ask(number))
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    for number in range(1, COUNT):
        egress.take(Ended(id=number, sent=1, received=1, micros=1, outcome="closed", protocol="tls"))
    assert egress.summary.total == COUNT - 1
    return size


def test_bodies_are_not_kept():
    def ask(number: int) -> Ask:
        body = f"{number}".ljust(SIZE, "x")
        subject = Try(host="h", port=443, protocol="https", entry="capture", method="POST", path="/", body=body)
        return Ask(id=COUNT + number, subject=subject, whole=False, connection=number)

    assert grown(ask) < SIZE * COUNT / 10


def test_long_paths_and_queries_are_not_kept():
    def ask(number: int) -> Ask:
        text = f"/{number}".ljust(10_000, "x")
        subject = Try(host="h", port=80, protocol="http", entry="capture", method="GET", path=text, query=text)
        return Ask(id=COUNT + number, subject=subject, whole=False, connection=number)

    assert grown(ask) < 20_000 * COUNT / 4
