"""A purge while somebody verifies, exports or proves: the reader begins again, and an honest log is not accused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.ledger import admin, export, note, proof, scan, verify
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.verdict import Verdict
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, MissionId
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
START, DAY = 1_800_000_000_000_000, 86_400 * 1_000_000
NOW = START + 501 * DAY


@pytest.fixture
def old(tmp_path, monkeypatch):
    """500 days of entries in small segments, all of them told to an anchor."""
    now = [START]
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(now[0] // 1_000_000 - 10**9))
    settings = Settings(segment_bytes=3000, window_bytes=512, checkpoint_every=Micros(10**12))
    ledger = Ledger.open(str(tmp_path / "old"), clock=lambda: Micros(now[0]), settings=settings)
    (tmp_path / "elsewhere").mkdir()
    admin.perform(ledger, "anchor", {"add": [f"copy:{tmp_path}/elsewhere"]}, by=ME)
    for day in range(0, 500, 10):
        now[0] = START + day * DAY
        body = {"day": day, "text": "x" * 200}
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(now[0]), mission=MissionId("m-1"), body=body)])
    admin.perform(ledger, "anchor", {}, by=ME)
    yield ledger
    ledger.close()


@pytest.fixture
def meanwhile(old, monkeypatch) -> Callable[[object, str], None]:
    """Have a purge happen right after the first call of a function."""

    def place(owner: object, name: str) -> None:
        real = getattr(owner, name)

        def first(*arguments, **named):
            found = real(*arguments, **named)
            monkeypatch.setattr(owner, name, real)
            admin.perform(old, "purge", {}, by=ME)
            return found

        monkeypatch.setattr(owner, name, first)

    return place


@pytest.mark.parametrize("where", [(export, "_checkpoint"), (export, "_copy_segment"), (scan, "segments")])
def test_an_export_is_of_one_moment(old, meanwhile, tmp_path, where):
    meanwhile(*where)
    export.bundle(old.directory, str(tmp_path / "out"))
    assert scan.segments(str(tmp_path / "out"))[0].first == scan.segments(old.directory)[0].first > 0
    found = standalone.verify(str(tmp_path / "out"), [], strict=True, now=NOW, max_age=1e11)
    assert found[0] == "NO_ANCHOR", found


@pytest.mark.parametrize("where", [(verify, "_own"), (verify, "_present"), (scan, "header")])
def test_a_log_that_is_verified_meanwhile_is_whole(old, meanwhile, where):
    meanwhile(*where)
    found = verify.verify(old.directory, now=Micros(NOW), max_age=Micros(10**17))
    assert found.verdict is Verdict.NO_ANCHOR, found


def test_a_proof_is_of_one_moment(old, meanwhile):
    meanwhile(scan, "header")
    found = proof.inclusion(proof.leaves_of(old.directory), old.head.size - 1, old.head.size)
    assert found["root"] == old.head.root.hex()


def test_a_statement_is_of_one_moment(old, meanwhile):
    meanwhile(export, "_checkpoint")
    (text,) = export.rows(old.directory, "in-toto", mission="m-1")
    predicate = json.loads(text)["predicate"]
    head = note.parse(predicate["checkpoint"].encode())
    assert head is not None
    assert {entry["proof"]["root"] for entry in predicate["entries"]} == {head.root.hex()}


def test_what_is_wrong_all_the_time_is_told_at_once(old, tmp_path):
    turns = []

    def read() -> None:
        turns.append(1)
        raise LedgerError("ledger-altered", "it is damaged")

    with pytest.raises(LedgerError):
        scan.undisturbed(old.directory, read)
    assert turns == [1]


def test_a_log_whose_beginning_never_rests_is_read_all_the_same(tmp_path):
    folder = tmp_path / "segments"
    folder.mkdir()
    turns: list[Path] = []

    def read() -> str:
        turns.append(folder / f"{len(turns):020d}.seg")
        for file in folder.iterdir():
            file.unlink()
        turns[-1].touch()
        return "read"

    assert scan.undisturbed(str(tmp_path), read) == "read"
    assert len(turns) == 6
