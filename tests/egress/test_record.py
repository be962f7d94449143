"""The bounded memory of tries: first ones whole, the rest counted, and every count exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.egress.buckets import Bucket
from ringfence.egress.names import FIRST, NameTable, PoolFullError, address4, address6
from ringfence.egress.record import OTHER, ConnectionLog, Sort, Summary, from_body, is_violation
from ringfence.model.entry import EntryKind
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier


def line(host="example.org", **more):
    given_ = {
        "port": 443,
        "protocol": "tls",
        "entry": "capture",
        "tier": Tier.DENY,
        "rule": "default",
        "outcome": "refused",
    }
    return ConnectionLog(time=Micros(1), mission=MissionId("m"), host=host, **{**given_, **more})


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(list(Tier)), st.integers(0, 9)), max_size=200),
    st.integers(1, 10),
)
def test_counts_and_bytes_add_up_and_lines_stay_few(tries, limit):
    summary = Summary(limit=limit)
    told = []
    for number, tier, size in tries:
        found = summary.add(line(f"h{number}", tier=tier, sent=size))
        told += [found] if found is not None else []
    told += summary.flush()
    assert sum(entry.count for entry in told) == len(tries) == summary.total
    assert sum(entry.sent for entry in told) == sum(size for _n, _t, size in tries)
    assert len(told) <= 2 * len(Sort) * limit + len(Tier)
    assert summary.flush() == []


def test_beyond_the_limit_destinations_are_counted_without_their_names():
    summary = Summary(limit=1)
    assert summary.add(line("a")) is not None
    assert summary.add(line("b")) is None
    assert summary.add(line("c")) is None
    assert [(entry.host, entry.count) for entry in summary.flush()] == [(OTHER, 2)]


def test_a_flood_of_one_sort_hides_nothing_of_another():
    summary = Summary(limit=2)
    noise = [line(f"n{n}") for n in range(9)]
    noise += [line(f"q{n}", tier=Tier.ALLOW, entry="dns", rule="egress/no-data") for n in range(9)]
    for item in noise:
        summary.add(item)
    assert summary.is_new_decision(line("out", tier=Tier.ALLOW, rule="r", outcome=""))
    assert summary.add(line("out", tier=Tier.ALLOW, rule="r", outcome="closed")) is not None
    assert summary.add(line("learned", flags=("learning",), outcome="closed")) is not None
    assert summary.add(line("meta", rule="floor/metadata")) is not None
    assert summary.add(line("n10")) is None


def test_a_decided_line_is_told_once_for_each_kind():
    summary = Summary()
    assert summary.is_new_decision(line(outcome=""))
    summary.announced(line(outcome=""))
    assert not summary.is_new_decision(line(outcome=""))
    assert summary.is_new_decision(line(outcome="", port=80))
    assert summary.is_new(line(outcome="closed"))


def test_a_line_becomes_an_entry_and_comes_back():
    whole = line(programs=("/usr/bin/curl",), flags=("violation",), sent=3, because="x", method="GET", path="/a")
    entry = whole.entry_of()
    assert entry.kind is EntryKind.EGRESS
    assert "address" not in entry.body
    assert from_body(entry.body, time=1, mission="m", call="") == whole


@pytest.mark.parametrize("body", [{}, {"tier": "maybe"}, {"tier": "deny"}])
def test_a_body_that_is_no_egress_record(body):
    with pytest.raises(ValueError, match="egress"):
        from_body(body, time=1, mission="m", call="")


@pytest.mark.parametrize(
    ("tier", "rule", "violation"),
    [
        (Tier.DENY, "floor/metadata", True),
        (Tier.DENY, "egress/placeholder-elsewhere", True),
        (Tier.DENY, "default", False),
        (Tier.ALLOW, "floor/private", False),
        (Tier.ASK, "floor/private", False),
    ],
)
def test_violations(tier, rule, violation):
    assert is_violation(tier, rule) is violation


@given(st.lists(st.floats(0, 100), max_size=300))
def test_a_bucket_never_gives_more_than_burst_and_rate(moments):
    bucket = Bucket(rate=2.0, burst=5.0)
    moments = sorted(moments)
    taken = sum(bucket.take(moment) for moment in moments)
    if moments:
        assert taken <= 5 + 2 * (moments[-1] - moments[0]) + 1


def test_a_clock_that_goes_back_gives_nothing():
    bucket = Bucket(rate=1.0, burst=1.0)
    assert bucket.take(100.0)
    assert not bucket.take(50.0)
    assert not bucket.take(100.5)
    assert bucket.take(101.5)


def test_a_name_keeps_its_pair_and_no_pair_changes_its_name():
    table = NameTable(limit=3)
    first = table.give("a.example")
    assert first == FIRST
    assert table.give("a.example") == first
    assert table.give("b.example") != first
    assert table.name_of(address4(first)) == "a.example"
    assert table.name_of(address6(first)) == "a.example"
    assert table.name_of(address4(first + 7)) is None
    later = NameTable(limit=3)
    later.restore(table.pairs())
    assert later.name_of(address4(first)) == "a.example"
    later.give("c.example")
    with pytest.raises(PoolFullError):
        later.give("d.example")
    assert len(set(dict(later.pairs()))) == 3
