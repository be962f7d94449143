"""A verifier written from the format page alone agrees with both of ours, on good ledgers of every kind and on bent ones."""

import gzip
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ringfence.ledger import admin, export, note, retention, scan
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.standalone import VERIFIER
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import Micros, MissionId
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
DAY = 86_400 * 1_000_000
START = 1_800_000_000_000_000


class Kept:
    """An anchor that remembers one head."""

    name = "kept"

    def __init__(self, head: note.Checkpoint) -> None:
        self._head = head

    def heads(self):
        return {self._head.origin.removeprefix("ringfence/"): self._head}


@pytest.fixture
def three(stranger):
    """The verdicts of all three."""
    return lambda directory, head, now: _three(stranger, directory, head, now)


def _three(stranger: ModuleType, directory: Path, head: note.Checkpoint | None, now: int) -> set[str]:
    """The verdicts of the stranger, of `ledger verify` and of verify.py, as a set: one word where they agree."""
    anchors = [] if head is None else [Kept(head)]
    ours = verify(str(directory), anchors=anchors, now=Micros(now), max_age=Micros(10**17)).verdict.value
    theirs = stranger.verify(str(directory), [one._head.text() for one in anchors])[0]
    arguments = []
    if head is not None:
        kept = directory.parent / "kept.checkpoint"
        kept.write_bytes(head.text())
        arguments = ["--anchor", str(kept)]
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            VERIFIER,
            str(directory),
            "--strict",
            "--now",
            str(now),
            "--max-age",
            "1e11",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return {ours, theirs, done.stdout.split()[0]}


@pytest.fixture
def old(tmp_path, monkeypatch) -> Ledger:
    """500 days of entries in small segments: two keys, an archive, a purge, an erasure, a hold, an anchor."""
    now = [START]
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(now[0] // 1_000_000 - 10**9))
    settings = Settings(segment_bytes=2500, window_bytes=512, checkpoint_every=Micros(10**12))
    ledger = Ledger.open(str(tmp_path / "old"), clock=lambda: Micros(now[0]), settings=settings)
    for day in range(0, 500, 10):
        now[0] = START + day * DAY
        body = {"day": day, "text": 'Grüße \u2028 \x7f \\ " \x01 𝄞', "deep": [[{"a": [None, True, -1]}]]}
        personal = {"note": "x" * day} if day % 50 == 0 else {}
        ledger.append(
            [
                Entry(
                    kind=EntryKind.OBSERVED, time=Micros(now[0]), mission=MissionId("m-1"), body=body, personal=personal
                )
            ]
        )
        if day in {100, 300}:
            ledger.rotate_key()
    (tmp_path / "elsewhere").mkdir()
    admin.perform(ledger, "anchor", {"add": [f"copy:{tmp_path}/elsewhere"]}, by=ME)
    yield ledger
    ledger.close()


def test_every_kind_of_good_ledger_is_good_for_all_three(old, tmp_path, three):
    directory, now = Path(old.directory), START + 501 * DAY
    steps: dict[str, Callable[[], object]] = {
        "as it grew": lambda: None,
        "erased": lambda: admin.perform(old, "erase", {"mission": "m-1", "ground": "asked"}, by=ME),
        "archived": lambda: admin.perform(old, "archive", {}, by=ME),
        "purged": lambda: admin.perform(old, "purge", {}, by=ME),
        "held": lambda: admin.perform(old, "hold", {"action": "place", "subject": "s", "because": "case"}, by=ME),
        "turned": lambda: admin.perform(old, "rotate-key", {}, by=ME),
    }
    for name, step in steps.items():
        early = old.checkpoint()
        step()
        head = old.checkpoint()
        assert three(directory, None, now) == {"NO_ANCHOR"}, name
        assert three(directory, head, now) == {"OK"}, name
        assert three(directory, early, now) == {"OK"}, name
        export.bundle(old.directory, str(tmp_path / "out"))
        assert three(tmp_path / "out", head, now) == {"OK"}, name
        shutil.rmtree(tmp_path / "out")
    assert scan.segments(old.directory)[0].first > 0
    assert any(file.archived for file in scan.segments(old.directory))


def damage(directory: Path, rng: random.Random) -> str:
    """One random change somewhere in the evidence."""
    files = [*sorted((directory / "segments").iterdir()), *directory.glob("checkpoint")]
    file = rng.choice(files)
    content = bytearray(file.read_bytes())
    at = rng.randrange(max(1, len(content)))
    what = rng.choice(
        ["flip", "zeros", "cut", "take out", "double", "swap lines", "drop line", "double line", "rename", "gone"]
    )
    if what == "flip":
        content = content or bytearray(1)
        content[at % len(content)] ^= 1 << rng.randrange(8)
    elif what == "zeros":
        length = rng.choice([1, 16, 512])
        content[at : at + length] = bytes(len(content[at : at + length]))
    elif what == "cut":
        del content[at:]
    elif what == "take out":
        del content[at : at + rng.choice([1, 100])]
    elif what == "double":
        content[at:at] = content[at : at + rng.choice([1, 100, 700])]
    elif what in {"swap lines", "drop line", "double line"}:
        lines = bytes(content).split(b"\n")
        one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
        if what == "swap lines":
            lines[one], lines[two] = lines[two], lines[one]
        elif what == "drop line":
            del lines[one]
        else:
            lines.insert(two, lines[one])
        content = bytearray(b"\n".join(lines))
    elif what == "rename":
        file.rename(file.with_name(f"{rng.randrange(40):020d}.seg"))
        return what
    elif what == "gone":
        file.unlink()
        return what
    file.write_bytes(content)
    return what


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 60 else pytest.mark.slow) for seed in range(700)]
)
def test_random_damage_gets_one_verdict_from_all_three(small, tmp_path, stranger, seed):
    head = note.parse((small / "checkpoint").read_bytes())
    assert head is not None
    rng = random.Random(seed)
    shutil.copytree(small, tmp_path / "bent")
    told = [damage(tmp_path / "bent", rng) for _ in range(rng.choice([1, 1, 2]))]
    for anchor in (None, head):
        ours = verify(str(tmp_path / "bent"), anchors=[Kept(anchor)] if anchor else [], now=Micros(START)).verdict.value
        theirs = stranger.verify(str(tmp_path / "bent"), [anchor.text()] if anchor else [])[0]
        kept = tmp_path / "kept"
        kept.write_bytes(head.text())
        lone = standalone.verify(
            str(tmp_path / "bent"), [str(kept)] if anchor else [], strict=True, now=START, max_age=1e11
        )[0]
        assert {ours, theirs, lone} == {ours}, (told, ours, theirs, lone)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A log of a few segments, one of them archived by hand."""
    settings = Settings(segment_bytes=1500, window_bytes=256, checkpoint_every=Micros(10**12))
    at = tmp_path_factory.mktemp("small") / "ledger"
    with Ledger.open(str(at), clock=lambda: Micros(START), settings=settings) as ledger:
        for number in range(10):
            entries = [Entry(kind=EntryKind.OBSERVED, time=Micros(START), body={"n": n}) for n in range(number % 3 + 1)]
            ledger.append(entries)
    file = Path(scan.segments(str(at))[1].path)
    file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    file.unlink()
    return at


def test_a_group_that_lost_whole_sectors_is_torn_and_repaired(small, tmp_path, stranger):
    shutil.copytree(small, tmp_path / "torn")
    with Ledger.open(str(tmp_path / "torn"), clock=lambda: Micros(START)) as ledger:
        early = (tmp_path / "torn" / "checkpoint").read_bytes()
        whole = [record.line for record in ledger.read()]
        ledger.append(
            [Entry(kind=EntryKind.OBSERVED, time=Micros(START), body={"n": n, "t": "x" * 300}) for n in range(9)]
        )
    (tmp_path / "torn" / "checkpoint").write_bytes(early)
    last = Path(scan.segments(str(tmp_path / "torn"))[-1].path)
    content = last.read_bytes()
    begin = content.rindex(whole[-1]) + len(whole[-1])
    for sector in range(begin // 512 + 1, len(content.rstrip(b"\0")) // 512):
        bent = bytearray(content)
        bent[sector * 512 : sector * 512 + 512] = bytes(512)
        last.write_bytes(bent)
        assert _three(stranger, tmp_path / "torn", None, START) == {"TORN"}, sector
    with Ledger.open(str(tmp_path / "torn"), clock=lambda: Micros(START)) as ledger:
        assert [record.line for record in ledger.read()][: len(whole)] == whole
    assert _three(stranger, tmp_path / "torn", None, START) == {"NO_ANCHOR"}


def test_a_purge_that_a_crash_cut_short_is_whole(old, tmp_path, stranger, monkeypatch):
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    admin.perform(old, "archive", {}, by=ME)
    monkeypatch.setattr(retention, "remove", crash)
    with pytest.raises(KeyboardInterrupt):
        admin.perform(old, "purge", {}, by=ME)
    files = scan.segments(old.directory)
    body = next(
        r.value["body"] for r in old.read() if r.value["kind"] == "retention.change" and "before" in r.value["body"]
    )
    going = [file for file in files if file.first < body["before"]]
    assert len(going) >= 2
    head = old.checkpoint()
    for file in going:
        Path(file.path).unlink()
        assert _three(stranger, Path(old.directory), head, START + 501 * DAY) == {"OK"}
    Path(scan.segments(old.directory)[0].path).unlink()
    assert _three(stranger, Path(old.directory), None, START + 501 * DAY) == {"GAP"}
