"""Who says how long records stay: the organisation is the floor, a ledger may keep longer, and nothing shortens unseen."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.ledger import admin, retention, scan, verify
from ringfence.ledger.classes import Classes, Organisation, Recorded, Stated, in_force
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.verdict import Verdict
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
DAY = 86_400 * 1_000_000
START = 1_800_000_000_000_000
FILE = "/etc/ringfence/policy.yaml"


def asks(operational: int | None, compliance: int | None, policy: str = "a" * 64) -> Organisation:
    stated = Stated(operational_days=operational, compliance_days=compliance)
    return Organisation(file=FILE, there=True, stated=stated, policy=policy)


GONE = Organisation(file=FILE)
BROKEN = Organisation(file=FILE, there=True, fault="not-yaml: line 3")
SILENT = Organisation(file=FILE, there=True, policy="b" * 64)
LONG = asks(120, 730)


@pytest.fixture
def aged(tmp_path, monkeypatch):
    """A ledger with an entry every tenth day for 900 days, in small segments."""
    boot = itertools.count(1, 10 * DAY // 1_000_000)
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(next(boot)))
    now = [START]
    settings = Settings(segment_bytes=2500, window_bytes=512, checkpoint_every=Micros(10**12))
    with Ledger.open(str(tmp_path / "ledger"), clock=lambda: Micros(now[0]), settings=settings) as ledger:
        for day in range(0, 900, 10):
            now[0] = START + day * DAY
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(now[0]), body={"day": day})])
        yield ledger


def do(ledger: Ledger, verb: str, organisation: Organisation, **given: object) -> dict[str, object]:
    return admin.perform(ledger, verb, given, by=ME, organisation=organisation)


def days(ledger: Ledger) -> list[int]:
    return [r.value["body"]["day"] for r in ledger.read() if "day" in r.value["body"]]


def told(ledger: Ledger) -> list[dict]:
    return [r.value["body"] for r in ledger.read() if r.value["body"].get("action") == "configure"]


@pytest.mark.parametrize(
    ("organisation", "local", "expected", "sources"),
    [
        (GONE, Stated(), (90, 365), ("default", "default")),
        (GONE, Stated(operational_days=30), (30, 365), ("local", "default")),
        (SILENT, Stated(operational_days=30), (30, 365), ("local", "default")),
        (LONG, Stated(), (120, 730), ("organisation", "organisation")),
        (LONG, Stated(operational_days=30, compliance_days=365), (120, 730), ("organisation", "organisation")),
        (LONG, Stated(compliance_days=1000), (120, 1000), ("organisation", "local")),
        (asks(30, None), Stated(), (30, 365), ("organisation", "default")),
        (asks(None, 730), Stated(operational_days=10), (10, 730), ("local", "organisation")),
        (SILENT, Stated(operational_days=400), (400, 400), ("local", "local")),
    ],
)
def test_the_organisation_is_the_floor_and_a_ledger_may_keep_longer(organisation, local, expected, sources):
    found = in_force(organisation, local, None)
    assert found.problem == ""
    assert (found.classes.operational_days, found.classes.compliance_days) == expected
    assert tuple(found.now.sources.values()) == sources


@pytest.mark.parametrize("organisation", [GONE, BROKEN])
def test_a_policy_that_cannot_be_known_leaves_in_force_what_it_asked_for_last(organisation):
    last = in_force(LONG, Stated(), None).now
    found = in_force(organisation, Stated(), last)
    assert found.classes == Classes(operational_days=120, compliance_days=730)
    assert found.problem
    assert found.remedy
    assert found.now.policy == LONG.policy
    assert in_force(BROKEN, Stated(), None).problem


def test_a_purge_keeps_what_the_organisation_asks_for(aged):
    assert do(aged, "purge", LONG, dry_run=True)["compliance_days"] == 730
    assert told(aged) == []  # a dry run records nothing
    archived = do(aged, "archive", LONG)
    assert archived["operational_days"] == 120
    done = do(aged, "purge", LONG)
    assert done["records"] > 0
    assert 0 < days(aged)[0] <= 900 - 730
    purged = [r.value["body"] for r in aged.read() if r.value["body"].get("action") == "purge"]
    assert purged[0]["classes"]["source"] == {"compliance_days": "organisation", "operational_days": "organisation"}
    assert purged[0]["classes"]["policy"] == LONG.policy
    assert verify.verify(aged.directory, now=Micros(START)).verdict is Verdict.NO_ANCHOR
    aged.checkpoint()
    run = [sys.executable, "-I", standalone.__file__, aged.directory, "--strict"]
    assert subprocess.run(run, capture_output=True, text=True, check=False).stdout.startswith("NO_ANCHOR")


@pytest.mark.parametrize("given", [{"operational_days": 119}, {"compliance_days": 729}, {"operational_days": 0}])
def test_days_below_the_organisations_are_refused_with_the_remedy(aged, given):
    with pytest.raises(LedgerError) as refused:
        do(aged, "retention", LONG, **given)
    assert refused.value.code == "retention-below-organisation"
    assert refused.value.where == FILE
    assert "730" in refused.value.remedy or "120" in refused.value.remedy
    assert told(aged) == []
    assert do(aged, "retention", LONG)["operational_days"] == 120


def test_longer_days_are_kept_and_recorded_and_a_look_changes_nothing(aged):
    size = aged.head.size
    shown = do(aged, "retention", LONG)
    assert (shown["operational_days"], shown["compliance_days"]) == (120, 730)
    assert shown["organisation"] == {"file": FILE, "there": True, "operational_days": 120, "compliance_days": 730}
    assert aged.head.size == size
    shown = do(aged, "retention", LONG, compliance_days=900)
    assert shown["source"] == {"operational_days": "organisation", "compliance_days": "local"}
    assert shown["local"] == {"compliance_days": 900}
    (entry,) = told(aged)
    assert entry["old"] == {
        "operational_days": 90,
        "compliance_days": 365,
        "source": {"operational_days": "default", "compliance_days": "default"},
    }
    assert entry["classes"]["compliance_days"] == 900
    assert entry["classes"]["organisation"] == {"operational_days": 120, "compliance_days": 730}
    assert entry["classes"]["policy"] == LONG.policy
    assert entry["by"]["name"] == "me"
    assert do(aged, "purge", LONG)["records"] == 0
    do(aged, "retention", LONG, compliance_days=900)
    assert len(told(aged)) == 1  # nothing changed, so nothing is told


def test_each_change_of_the_organisation_is_told_once(aged):
    for organisation in (GONE, SILENT, LONG, LONG, asks(120, 730, "c" * 64), asks(60, 730), SILENT, SILENT):
        admin.keeping.note_change(aged, ME, organisation)
    in_turn = [(e["old"]["operational_days"], e["classes"]["operational_days"]) for e in told(aged)]
    assert in_turn == [(90, 120), (120, 60), (60, 90)]
    assert told(aged)[-1]["classes"]["policy"] == SILENT.policy


@pytest.mark.parametrize("organisation", [GONE, BROKEN])
@pytest.mark.parametrize("forgotten", [False, True])
def test_without_the_policy_nothing_leaves_even_if_the_copy_is_removed(aged, organisation, forgotten):
    do(aged, "retention", LONG)
    admin.keeping.note_change(aged, ME, LONG)
    if forgotten:
        Path(aged.directory, "retention.json").unlink()
    before = days(aged)
    for verb in ("purge", "archive"):
        for given in ({}, {"dry_run": True}):
            with pytest.raises(LedgerError) as refused:
                do(aged, verb, organisation, **given)
            assert refused.value.code == "retention-unknown"
            assert refused.value.remedy
    with pytest.raises(LedgerError):
        do(aged, "retention", BROKEN, compliance_days=900)
    done = admin.tick(aged, organisation)
    assert done["purge"]["error"] == done["archive"]["error"] == "retention-unknown"
    assert days(aged) == before
    assert all(not file.archived for file in scan.segments(aged.directory))
    shown = do(aged, "retention", organisation)
    assert (shown["operational_days"], shown["compliance_days"]) == (120, 730)
    assert shown["problem"]
    assert len(told(aged)) == 1
    assert do(aged, "purge", SILENT)["records"] > 0  # the organisation says itself that it asks for nothing any more
    assert told(aged)[-1]["old"]["compliance_days"] == 730


def test_a_purge_tells_the_days_anew_so_that_they_never_leave_with_what_is_purged(aged):
    admin.keeping.note_change(aged, ME, LONG)
    do(aged, "purge", LONG)
    Path(aged.directory, "retention.json").unlink()
    found = retention.recorded_in_log(aged.directory)
    assert found is not None
    assert found.organisation == LONG.stated


def test_a_lost_copy_does_not_shorten_what_this_ledger_keeps_by_itself(aged):
    do(aged, "retention", SILENT, operational_days=40, compliance_days=880)
    Path(aged.directory, "retention.json").unlink()
    assert do(aged, "retention", SILENT)["local"] == {"operational_days": 40, "compliance_days": 880}
    assert do(aged, "purge", SILENT)["records"] == 0
    Path(aged.directory, "retention.json").unlink(missing_ok=True)
    admin.keeping.note_change(aged, ME, LONG)
    assert told(aged)[-1]["classes"]["compliance_days"] == 880


def test_days_of_an_earlier_version_go_on_to_count(aged):
    path = Path(aged.directory, "retention.json")
    path.write_text('{"operational_days": 30, "compliance_days": 400}')
    shown = do(aged, "retention", SILENT)
    assert (shown["operational_days"], shown["compliance_days"]) == (30, 400)
    assert do(aged, "retention", LONG)["source"]["operational_days"] == "organisation"
    do(aged, "retention", SILENT, operational_days=40)
    assert json.loads(path.read_text())["compliance_days"] == 400


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"operational_days": "soon"}',
        '{"days": 3}',
        '{"operational_days": -3}',
        '{"recorded": {"operational_days": 3, "compliance_days": 3}}',
        '{"recorded": {"operational_days": [], "compliance_days": 3}}',
    ],
)
def test_days_that_cannot_be_read_let_nothing_leave(aged, text):
    Path(aged.directory, "retention.json").write_text(text)
    with pytest.raises(LedgerError) as refused:
        do(aged, "purge", SILENT)
    assert refused.value.code == "bad-retention"
    assert days(aged)[0] == 0


def test_what_is_recorded_comes_back():
    for recorded in (Recorded(), in_force(LONG, Stated(compliance_days=900), None).now):
        assert retention.read_recorded(recorded.body()) == recorded
    assert retention.read_recorded({"action": "purge"}) is None


def test_the_fewest_days_that_are_possible():
    assert Classes(operational_days=1, compliance_days=365).days == {"operational_days": 1, "compliance_days": 365}
    assert Classes(operational_days=400, compliance_days=400).compliance_days == 400
    for few in ({"operational_days": 0}, {"compliance_days": 364}, {"operational_days": 400, "compliance_days": 399}):
        with pytest.raises(LedgerError, match="not possible"):
            Classes(**few)
