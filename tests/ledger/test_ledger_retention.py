"""Retention: what is old leaves, what is held stays, and proofs of the rest hold through all of it."""

import errno
import gzip
import itertools
import os
from pathlib import Path

import pytest

from ringfence.ledger import admin, anchors, holds, retention, scan, verify
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.personal import PersonalStore
from ringfence.ledger.verdict import Verdict
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, MissionId
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
DAY = 86_400 * 1_000_000
START = 1_800_000_000_000_000


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Micros:
        self.now += 1000
        return Micros(self.now)


@pytest.fixture
def time_() -> Clock:
    return Clock()


@pytest.fixture
def aged(tmp_path, time_, monkeypatch):
    """A ledger with an entry every fifth day for 500 days, in small segments. Suspending a host would age it as the test does."""
    boot = itertools.count(1, 5 * DAY // 1_000_000)
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(next(boot)))
    settings = Settings(segment_bytes=1800, window_bytes=512, checkpoint_every=Micros(10**12))
    ledger = Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings)
    for day in range(0, 500, 5):
        time_.now = START + day * DAY
        ledger.append(
            [
                Entry(
                    kind=EntryKind.OBSERVED,
                    time=Micros(time_.now),
                    mission=MissionId(f"m-{day // 50}"),
                    body={"day": day},
                    personal={"note": f"day {day}"} if day % 50 == 0 else {},
                )
            ]
        )
    yield ledger
    ledger.close()


def judge(ledger: Ledger) -> Verdict:
    ledger.checkpoint()
    return verify.verify(ledger.directory, now=Micros(START)).verdict


def days(ledger: Ledger) -> list[int]:
    return [r.value["body"]["day"] for r in ledger.read() if "day" in r.value["body"]]


def test_old_segments_are_archived_and_nothing_else_changes(aged):
    before = [record.line for record in aged.read()]
    told = admin.perform(aged, "archive", {"dry_run": True}, by=ME)
    assert all(not file.archived for file in scan.segments(aged.directory))
    done = admin.perform(aged, "archive", {}, by=ME)
    assert [row["first"] for row in done["archived"]] == [row["first"] for row in told["archived"]]
    kept = [file for file in scan.segments(aged.directory) if not file.archived]
    newest = max(
        int(r.value["time"])
        for r in scan.records_of(next(f for f in reversed(scan.segments(aged.directory)) if f.archived))
    )
    assert newest < START + (499 - 90) * DAY
    assert kept
    assert [record.line for record in aged.read()][: len(before)] == before
    assert judge(aged) is Verdict.NO_ANCHOR
    assert admin.perform(aged, "archive", {}, by=ME)["archived"] == []


def test_a_purge_keeps_the_proofs_of_the_rest_and_takes_the_data_of_what_went(aged):
    admin.perform(aged, "archive", {}, by=ME)
    first_note = next(r.value["personal"]["note"] for r in aged.read() if r.value.get("personal"))
    told = admin.perform(aged, "purge", {"dry_run": True}, by=ME)
    assert days(aged)[0] == 0
    done = admin.perform(aged, "purge", {}, by=ME)
    assert done["records"] == told["records"] > 10
    left = days(aged)
    assert left[-1] == 495
    assert 100 < left[0] <= 500 - 365
    assert judge(aged) is Verdict.NO_ANCHOR
    found = verify.verify(aged.directory, now=Micros(START))
    assert found.first == done["before"]
    assert PersonalStore(aged.directory).load(first_note) is None
    aged.rotate_key()
    assert judge(aged) is Verdict.NO_ANCHOR
    aged.close()
    again = Ledger.open(aged.directory, clock=aged._clock, settings=aged._settings)
    assert days(again) == left
    again.close()


def test_a_cut_beginning_is_a_gap_unless_a_purge_says_so(aged):
    aged.close()
    Path(scan.segments(aged.directory)[0].path).unlink()
    assert verify.verify(aged.directory, now=Micros(START)).verdict is Verdict.GAP


@pytest.mark.parametrize(
    "covers",
    [{"mission": "m-1"}, {"subject": "m-1"}, {"since": START + 49 * DAY, "until": START + 51 * DAY}],
    ids=["mission", "subject", "range"],
)
def test_a_hold_blocks_purge_and_erasure_and_is_not_lifted_by_one_person(aged, covers):
    with pytest.raises(LedgerError) as refused:
        admin.perform(aged, "hold", {"action": "place", **covers}, by=ME)
    assert refused.value.code == "bad-hold"
    placed = admin.perform(aged, "hold", {"action": "place", "because": "case 17", **covers}, by=ME)["id"]
    done = admin.perform(aged, "purge", {}, by=ME)
    assert done["kept_by_hold"] == placed
    assert set(range(50, 100, 5)) <= set(days(aged))
    with pytest.raises(LedgerError) as held:
        admin.perform(aged, "erase", {"mission": "m-1", "ground": "GDPR 17(1)(b)"}, by=ME)
    assert held.value.code == "on-hold"
    with pytest.raises(LedgerError) as alone:
        admin.perform(aged, "hold", {"action": "lift", "id": placed}, by=ME)
    assert alone.value.code == "hold-needs-two"
    assert [row["id"] for row in admin.perform(aged, "hold", {}, by=ME)["holds"]] == [placed]


@pytest.mark.parametrize("covers", [{"mission": "m-x"}, {"since": START + 510 * DAY, "until": START + 512 * DAY}])
def test_a_hold_keeps_the_personal_data_of_everyone_in_the_records_it_covers(aged, time_, covers):
    for day, mission in ((505, "m-y"), (511, "m-x")):
        for who in ("anna", "ben")[: 1 + (day == 505)]:
            time_.now = START + day * DAY
            entry = Entry(
                kind=EntryKind.OBSERVED,
                time=Micros(time_.now),
                mission=MissionId(mission),
                subject=who,
                personal={"mail": f"Dear {who}"},
            )
            aged.append([entry])
    placed = admin.perform(aged, "hold", {"action": "place", "because": "case 17", **covers}, by=ME)["id"]
    with pytest.raises(LedgerError, match=placed):
        admin.perform(aged, "erase", {"subject": "anna", "ground": "GDPR 17"}, by=ME)
    assert admin.perform(aged, "erase", {"subject": "ben", "ground": "GDPR 17"}, by=ME)["erased"]


def test_an_erasure_names_one_subject_or_one_mission(aged):
    with pytest.raises(LedgerError, match="bad-erasure"):
        admin.perform(aged, "erase", {"subject": "anna", "mission": "m-1", "ground": "GDPR 17"}, by=ME)


def test_an_erasure_is_recorded_first_and_finished_after_a_crash(aged, monkeypatch):
    commit = next(r.value["personal"]["note"] for r in aged.read() if r.value.get("mission") == "m-2")
    monkeypatch.setattr(PersonalStore, "erase", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        admin.perform(aged, "erase", {"mission": "m-2", "ground": "GDPR 17(1)(b)"}, by=ME)
    monkeypatch.undo()
    last = list(aged.read())[-1].value
    assert (last["kind"], last["body"]["records"], last["body"]["ground"]) == ("privacy.erased", 1, "GDPR 17(1)(b)")
    store = PersonalStore(aged.directory)
    assert store.load(commit) == "day 100"
    assert admin.tick(aged)["erasures"]["erased"] == [commit["subject"]]
    assert store.load(commit) is None
    assert judge(aged) is Verdict.NO_ANCHOR


def test_the_schedule_does_what_is_due_and_says_so(aged):
    done = admin.tick(aged)
    assert done["archive"]["archived"]
    assert done["purge"]["records"] > 0
    by = [r.value["body"]["by"]["name"] for r in aged.read() if r.value["kind"] == "retention.change"]
    assert by == ["schedule", "schedule"]
    assert admin.tick(aged)["purge"]["records"] == 0


def test_a_clock_that_runs_ahead_does_not_make_records_old(tmp_path, time_):
    settings = Settings(segment_bytes=3000, window_bytes=1024, checkpoint_every=Micros(10**12))
    with Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings) as ledger:
        for number in range(60):
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={"n": number})])
        time_.now += 3650 * DAY
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={"n": 60})])
        assert "clock.stepped" in [r.value["kind"] for r in ledger.read()]
        assert admin.perform(ledger, "archive", {"dry_run": True}, by=ME)["archived"] == []
        assert admin.perform(ledger, "purge", {"dry_run": True}, by=ME)["records"] == 0


def test_a_clock_that_runs_ahead_in_small_steps_does_not_make_records_old_either(tmp_path, time_):
    settings = Settings(segment_bytes=3000, window_bytes=1024, checkpoint_every=Micros(10**12))
    with Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings) as ledger:
        for number in range(60):
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={"n": number})])
        for _ in range(100 * 24):
            time_.now += DAY // 24 - 1_000_000
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
        assert retention.believable_now(ledger.directory, ledger.now) < START + DAY
        assert admin.perform(ledger, "archive", {"dry_run": True}, by=ME)["archived"] == []


def test_a_clock_that_was_wrong_when_the_host_started_does_not_make_records_old(tmp_path, time_):
    settings = Settings(segment_bytes=3000, window_bytes=1024, checkpoint_every=Micros(10**12))
    with Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings) as ledger:
        for number in range(60):
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={"n": number})])
    time_.now += 3650 * DAY
    with Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings) as ledger:
        done = admin.tick(ledger)
        assert not done["archive"]["archived"]
        assert done["purge"]["records"] == 0
        assert days_since(ledger, 0) < 1
        time_.now -= 3650 * DAY
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
        assert days_since(ledger, 0) < 1


def test_a_clock_that_comes_back_to_what_it_was_is_not_ahead(tmp_path, time_, monkeypatch):
    """A host without a battery starts years behind, and its clock is set right when it has a network."""
    boot = [10**6]
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(boot[0]))

    def sleep(days):
        boot[0] += days * DAY // 1_000_000
        time_.now += days * DAY

    def note(ledger):
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])

    for _ in range(3):
        with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
            note(ledger)
            sleep(30)
            note(ledger)
        time_.now -= 2000 * DAY
        with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
            note(ledger)
            time_.now += 2000 * DAY
            note(ledger)
            assert [r.value["kind"] for r in ledger.read()].count("clock.stepped") % 2 == 0
    with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
        assert 89 <= days_since(ledger, 0) <= 91


def test_a_clock_that_was_ahead_and_came_back_buys_nothing(tmp_path, time_):
    with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
        for step in (400, -400, 400, -100, 100, 200):
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
            time_.now += step * DAY
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
        assert days_since(ledger, 0) < 1


def test_weeks_in_which_nothing_ran_do_make_records_older(tmp_path, time_):
    for _ in range(10):
        with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
            time_.now += 40 * DAY
    with Ledger.open(str(tmp_path / "ledger"), clock=time_) as ledger:
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={})])
        assert days_since(ledger, 0) >= 399


def days_since(ledger: Ledger, seq: int) -> float:
    first = next(ledger.read(seq)).value["time"]
    return (retention.believable_now(ledger.directory, ledger.now) - first) / DAY


def test_a_purge_waits_for_what_the_anchor_itself_remembers(aged, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    admin.perform(aged, "anchor", {"add": [f"copy:{elsewhere}"]}, by=ME)
    elsewhere.rename(tmp_path / "gone")
    for dry_run in (False, True):
        with pytest.raises(LedgerError, match="anchor-unreadable"):
            admin.perform(aged, "purge", {"dry_run": dry_run}, by=ME)
    elsewhere.mkdir()  # its memory is lost; our own note still says that it was told everything
    for dry_run in (False, True):
        with pytest.raises(LedgerError, match="purge-not-anchored"):
            admin.perform(aged, "purge", {"dry_run": dry_run}, by=ME)
    admin.perform(aged, "anchor", {}, by=ME)
    assert admin.perform(aged, "purge", {}, by=ME)["records"] > 0


def test_a_purge_tells_the_list_of_anchors_anew(tmp_path, time_, monkeypatch):
    """Else nobody would miss an anchor that is struck from the list by hand a year later."""
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: time_.now / 1_000_000)
    settings = Settings(segment_bytes=1800, window_bytes=512, checkpoint_every=Micros(10**12))
    names = [f"copy:{tmp_path}/one", f"copy:{tmp_path}/two"]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Ledger.open(str(tmp_path / "ledger"), clock=time_, settings=settings) as ledger:
        admin.perform(ledger, "anchor", {"add": names}, by=ME)
        for day in range(0, 500, 5):
            time_.now = START + day * DAY
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(time_.now), body={"day": day})])
        admin.perform(ledger, "anchor", {}, by=ME)
        for _ in range(2):
            done = admin.perform(ledger, "purge", {}, by=ME)
            assert anchors.told(ledger.directory) == names
        assert done["records"] == 0
        told = [r for r in ledger.read() if r.value["body"].get("action") == "configure"]
        assert [r.value["body"]["by"]["name"] for r in told] == ["me"]
        admin.perform(ledger, "anchor", {}, by=ME)
        anchors.configure(ledger.directory, names[:1])
        found = verify.verify(ledger.directory, anchors=anchors.configured(ledger.directory), now=Micros(time_.now))
    assert found.verdict is Verdict.NO_ANCHOR
    assert names[1] in found.detail


def test_a_purge_that_a_crash_cut_short_is_finished_at_the_next_start(aged, monkeypatch):
    real = retention.os.unlink
    calls = itertools.count()

    def crash(path):
        if str(path).endswith((".seg", ".gz")) and next(calls) == 1:
            raise KeyboardInterrupt
        real(path)

    monkeypatch.setattr("ringfence.ledger.retention.os.unlink", crash)
    with pytest.raises(KeyboardInterrupt):
        admin.perform(aged, "purge", {}, by=ME)
    monkeypatch.undo()
    aged.close()
    Ledger.open(aged.directory, settings=aged._settings, clock=aged._clock).close()
    found = verify.verify(aged.directory, now=Micros(START))
    assert (found.verdict, found.first > 15) == (Verdict.NO_ANCHOR, True)


def test_personal_data_of_what_was_purged_goes_also_where_a_crash_came_before_it(aged, monkeypatch):
    store = PersonalStore(aged.directory)
    commits = [(r.value["body"]["day"], r.value["personal"]["note"]) for r in aged.read() if r.value.get("personal")]

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(PersonalStore, "erase", crash)
    with pytest.raises(KeyboardInterrupt):
        admin.perform(aged, "purge", {}, by=ME)
    monkeypatch.undo()
    assert store.load(commits[0][1]) is not None
    aged.close()
    with Ledger.open(aged.directory, settings=aged._settings, clock=aged._clock) as again:
        left = {r.value["personal"]["note"]["subject"] for r in again.read() if r.value.get("personal")}
    assert [store.has(commit["subject"]) for _, commit in commits] == [c["subject"] in left for _, c in commits]
    assert 0 < len(left) < len(commits)


def test_an_archive_that_was_changed_after_it_was_verified_takes_nothing_away(aged):
    segment = retention.sealed(aged.directory)[0]
    digest = retention.pack(segment)["sha256"]
    archive = Path(f"{segment.file.path}.gz")
    whole = archive.read_bytes()
    for bent in (whole[:-9], b"", gzip.compress(b"another")):
        archive.write_bytes(bent)
        with pytest.raises(LedgerError) as refused:
            retention.drop_plain(segment, digest)
        assert refused.value.code == "archive-mismatch"
    assert Path(segment.file.path).exists()
    assert judge(aged) is Verdict.NO_ANCHOR
    archive.write_bytes(whole)
    retention.drop_plain(segment, digest)
    assert not Path(segment.file.path).exists()
    assert judge(aged) is Verdict.NO_ANCHOR


def test_a_note_of_a_purge_that_somebody_wrote_takes_nothing_of_what_is_kept(aged):
    """It names what a purge was about to remove; only what a purge's entry tells of goes, and nobody's data that a record speaks of."""
    present = {subject for r in aged.read() for subject in holds.subjects_of(r.value)}
    note = Path(aged.directory, "purging")
    before = [record.line for record in aged.read()]
    note.write_text("\n".join(["30", *present]))
    retention.finish_removal(aged.directory)
    assert [record.line for record in aged.read()] == before
    done = admin.perform(aged, "purge", {}, by=ME)
    left = {subject for r in aged.read() for subject in holds.subjects_of(r.value)}
    assert left
    assert all(aged.keeper.has(subject) for subject in left)
    note.write_text("\n".join([str(done["before"]), *left, "../keys", ""]))
    retention.finish_removal(aged.directory)
    assert all(aged.keeper.has(subject) for subject in left)
    assert not note.exists()


def test_a_full_disk_that_stops_the_archive_leaves_nothing_and_does_not_stop_the_purge(aged, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ringfence.ledger.retention.shutil.copyfileobj", full)
    done = admin.tick(aged)
    assert done["archive"]["what"] == os.strerror(errno.ENOSPC)
    assert done["purge"]["records"] > 0
    assert not [name for name in os.listdir(f"{aged.directory}/segments") if name.endswith(".new")]


@pytest.mark.parametrize("given", [{"compliance_days": 30}, {"operational_days": 400}, {"operational_days": -1}])
def test_classes_that_keep_too_little_are_refused(aged, given):
    with pytest.raises(LedgerError) as refused:
        admin.perform(aged, "retention", given, by=ME)
    assert refused.value.code == "bad-retention"
    assert admin.perform(aged, "retention", {"operational_days": 30}, by=ME)["operational_days"] == 30


def test_an_unknown_verb_and_an_unfounded_erasure_are_refused(aged):
    for verb, arguments, code in [("explode", {}, "bad-ledger-verb"), ("erase", {"mission": "m-1"}, "bad-erasure")]:
        with pytest.raises(LedgerError) as refused:
            admin.perform(aged, verb, arguments, by=ME)
        assert refused.value.code == code
