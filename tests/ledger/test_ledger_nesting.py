"""How deep a record may be: what the writer takes every reader can read, whatever stands on its stack."""

import functools
import subprocess
import sys

import pytest

from ringfence.ledger import canonical, scan, verify
from ringfence.ledger.index import Index
from ringfence.ledger.note import parse
from ringfence.ledger.standalone import VERIFIER
from ringfence.ledger.verdict import Verdict
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

NOW = Micros(1_800_000_001_000_000)


class Remembered:
    """An anchor that remembers what it was told."""

    name = "remembered"

    def __init__(self, head) -> None:
        self._head = head

    def heads(self):
        return {self._head.origin.removeprefix("ringfence/"): self._head}


def alone(directory: str, head) -> tuple[int, str]:
    """Exit status and verdict of the verifier that travels."""
    path = f"{directory}.head"
    with open(path, "wb") as stream:
        stream.write(head.text())
    command = [sys.executable, "-I", "-S", VERIFIER, directory, "--now", str(NOW), "--strict", "--anchor", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.split()[0]


def nested(levels: int, *, objects: bool) -> object:
    found: object = 1
    for _ in range(levels):
        found = {"a": found} if objects else [found]
    return found


def below(frames: int, act):
    """Act with so many more frames on the stack."""
    return act() if frames == 0 else below(frames - 1, act)


@pytest.mark.parametrize("objects", [True, False])
def test_a_record_is_taken_up_to_a_hundred_levels_and_every_reader_reads_it(make_ledger, make_entry, objects, stranger):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED, body={"x": nested(98, objects=objects)})])
        for levels in (99, 400, 985, 990, 100_000):
            with pytest.raises(LedgerError, match="entry-not-canonical"):
                ledger.append([make_entry(2, body={"x": nested(levels, objects=objects)})])
    with open(f"{ledger.directory}/checkpoint", "rb") as stream:
        head = parse(stream.read())
    assert head is not None
    judge = functools.partial(verify.verify, ledger.directory, anchors=[Remembered(head)], now=NOW)
    assert below(500, judge).verdict is Verdict.OK
    assert alone(ledger.directory, head) == (0, "OK")
    assert stranger.verify(ledger.directory, [head.text()])[0] == "OK"
    with Index(ledger.directory) as index:
        assert index.catch_up() == 2


@pytest.mark.parametrize("levels", [100, 200, 500, 900, 985, 30_000])
@pytest.mark.parametrize("objects", [True, False])
def test_a_deeper_record_that_somebody_wrote_is_altered_and_never_a_crash(
    make_ledger, make_entry, levels, objects, monkeypatch, stranger
):
    levels = min(levels, 10_000) if objects else levels
    mark = b'"' + b"m" * 8 + b'"'
    opened, closed = (b'{"a":', b"}") if objects else (b"[", b"]")
    deep = opened * levels + b"1" + closed * levels
    with make_ledger() as ledger:
        with monkeypatch.context() as patch:
            encode = canonical.encode
            patch.setattr(canonical, "encode", lambda value: encode(value).replace(mark, deep))
            ledger.append([make_entry(1, body={"x": "m" * 8})])
    with open(f"{ledger.directory}/checkpoint", "rb") as stream:
        head = parse(stream.read())
    found = verify.verify(ledger.directory, anchors=[Remembered(head)], now=NOW)
    assert (found.verdict, found.place.rpartition(", ")[2]) == (Verdict.ALTERED, "record 1")
    assert alone(ledger.directory, head) == (12, "ALTERED")
    assert stranger.verify(ledger.directory, [head.text()])[0] == "ALTERED"
    for depth in ("chain", "tree"):
        assert isinstance(verify.verify(ledger.directory, anchors=[Remembered(head)], now=NOW, depth=depth).place, str)
    with pytest.raises(LedgerError, match="ledger-altered"):
        list(scan.records(ledger.directory))
    with Index(ledger.directory) as index, pytest.raises(LedgerError, match="ledger-altered"):
        index.catch_up()


@pytest.mark.parametrize("wide", [1, 15, 16, 70_000])
@pytest.mark.parametrize("objects", [True, False])
def test_levels_are_counted_however_many_members_each_has(wide, objects):
    """Packed, an object or array is told by another code from 16 members on, and by a third from 65,536 on."""
    most = canonical.MAX_DEPTH - 1
    siblings = [0] * (wide - 1)
    around = dict.fromkeys((f"k{number}" for number in range(wide - 1)), 0)

    def of(levels: int) -> object:
        found: object = 1
        for level in range(levels):
            members, names = (siblings, around) if level % 50 == 0 or wide < 100 else ([], {})
            found = {**names, "z": found} if objects else [*members, found]
        return found

    canonical.encode(of(most))
    with pytest.raises(LedgerError):
        canonical.encode(of(most + 1))
