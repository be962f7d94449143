"""Every verb of the ledger dies, or its system calls fail, at every place: nothing acknowledged is lost, no verdict accuses.

Before the ledger is opened again the verifier must not speak of tampering, opening must work, and the verb must work
when it is asked for once more. Where a call failed and the process lives, it must not spoil what it has.
"""

import contextlib
import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ringfence.ledger import admin, export, scan
from ringfence.ledger.index import Index
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, MissionId
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
DAY = 86_400 * 1_000_000
START = 1_800_000_000_000_000
NOW = START + 501 * DAY
SETTINGS = Settings(segment_bytes=4000, window_bytes=1024, checkpoint_every=Micros(10**12))
CALLS = ("open", "pwrite", "pwritev", "write", "fsync", "fdatasync", "rename", "unlink", "ftruncate", "replace")
Verb = Callable[[Ledger, Path], object]


def perform(verb: str, **arguments: object) -> Verb:
    return lambda ledger, _: admin.perform(ledger, verb, arguments, by=ME)


def roll(ledger: Ledger, _: Path) -> None:
    for number in range(12):
        ledger.append([note(number, size=500)])


def rebuild(ledger: Ledger, _: Path) -> None:
    with Index(ledger.directory) as index:
        index.rebuild()


def bundle(ledger: Ledger, directory: Path) -> None:
    export.bundle(ledger.directory, str(directory.parent / f"out-{os.getpid()}"))


VERBS: dict[str, Verb] = {
    "nothing": lambda _, __: None,
    "roll": roll,
    "rotate-key": perform("rotate-key"),
    "archive": perform("archive"),
    "purge": perform("purge"),
    "erase": perform("erase", mission="m-1", ground="asked"),
    "hold": perform("hold", action="place", mission="m-1", because="case"),
    "anchor": perform("anchor"),
    "configure": lambda ledger, directory: admin.perform(
        ledger, "anchor", {"add": [f"copy:{directory.parent}/elsewhere"]}, by=ME
    ),
    "rebuild-index": rebuild,
    "export": bundle,
}


def note(number: int, size: int = 100) -> Entry:
    body = {"n": number, "pad": "x" * size}
    return Entry(kind=EntryKind.OBSERVED, time=Micros(NOW), mission=MissionId("m-1"), body=body)


@pytest.fixture(scope="module")
def aged(tmp_path_factory) -> Path:
    """500 days of entries: some to archive, some to purge, some with personal parts; anchored."""
    home = tmp_path_factory.mktemp("aged")
    (home / "elsewhere").mkdir()
    now = [START]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "clock_gettime", lambda _: float(now[0] // 1_000_000 - 10**9))
        with Ledger.open(str(home / "ledger"), clock=lambda: Micros(now[0]), settings=SETTINGS) as ledger:
            for day in range(0, 500, 6):
                now[0] = START + day * DAY
                personal = {"note": "text"} if day % 60 == 0 else {}
                mission = MissionId("m-1")
                body = {"day": day}
                ledger.append(
                    [
                        Entry(
                            kind=EntryKind.OBSERVED,
                            time=Micros(now[0]),
                            mission=mission,
                            body=body,
                            personal=personal,
                        )
                    ]
                )
            admin.perform(ledger, "anchor", {"add": [f"copy:{home}/elsewhere"]}, by=ME)
    return home


class Place:
    """The ``when``-th system call of a child dies, or fails with an error; ``on``: and so does every later one."""

    def __init__(self, how: str, when: int, *, on: bool) -> None:
        self.how, self.when, self.on, self.count, self.hit = how, when, on, 0, False

    def wrap(self, name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            writes = name != "open" or (len(arguments) > 1 and int(str(arguments[1])) & (os.O_WRONLY | os.O_RDWR))
            self.count += bool(writes)
            if not writes or self.count < self.when or (self.count > self.when and not self.on):
                return real(*arguments, **named)
            self.hit = True
            if self.how == "kill":
                if name in {"pwrite", "write"}:
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2], *arguments[2:])
                if name == "pwritev":
                    (data,) = arguments[1]
                    real(arguments[0], (data[: len(data) // 2],), *arguments[2:])
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(getattr(errno, self.how), "injected")

        return call


def child(directory: Path, verb: str, place: Place) -> tuple[list[str], int]:
    """Open, carry out a verb with the fault, go on a little; what it said, and its status."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            say = os.fdopen(writing, "w", buffering=1)
            real_open = verb == "open"
            code = 0
            with contextlib.ExitStack() as stack:
                ledger = None if real_open else stack.enter_context(opened(directory))
                for name in CALLS:
                    setattr(os, name, place.wrap(name))
                try:
                    if ledger is None:
                        ledger = stack.enter_context(opened(directory))
                    VERBS[verb](ledger, directory) if not real_open else None
                    say.write("done\n")
                    for number in range(3):
                        (ack,) = ledger.append([note(number)])
                        say.write(f"ack {ack.seq} {ack.record}\n")
                    ledger.checkpoint()
                except (LedgerError, OSError) as error:
                    say.write(f"refused {error!r}\n")
                say.write(f"hit {place.hit}\n")
        except (LedgerError, OSError):
            pass
        except BaseException as error:  # noqa: BLE001 - what no caller expects
            os.write(2, repr(error).encode())
            code = 3
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode().split("\n")[:-1]
    return said, os.waitpid(pid, 0)[1]


def opened(directory: Path) -> Ledger:
    return Ledger.open(str(directory), clock=lambda: Micros(NOW), settings=SETTINGS)


def check(directory: Path, verb: str, said: list[str], before: dict[int, bytes]) -> None:
    """The verdict before it is opened, after, and what was acknowledged."""
    if before or scan.segments(str(directory)):
        found = verify(str(directory), now=Micros(NOW))
        assert found.verdict.proven or found.verdict.value in {"TORN", "TRUNCATED" if not before else "TORN"}, (
            found,
            said,
        )
    with opened(directory) as ledger:
        records = {record.seq: record for record in ledger.read()}
        for seq, line in before.items():
            assert seq < min(records) or records[seq].line == line
        for text in said:
            if text.startswith("ack"):
                _, seq, digest = text.split()
                assert scan_hash(records[int(seq)]) == digest
        if verb != "open":
            VERBS[verb](ledger, directory)
        ledger.append([note(99)])
    found = verify(str(directory), now=Micros(NOW))
    assert found.verdict.proven, (found, said)


def scan_hash(record: scan.Stored) -> str:
    from ringfence.ledger.frame import record_hash

    return record_hash(record.line)


def campaign(aged: Path, tmp_path: Path, verb: str, how: str, *, on: bool = False, step: int = 1) -> int:
    """Every ``step``-th place of a verb; returns how many there were."""
    places = 0
    for when in range(1, 200, step):
        home = tmp_path / str(when)
        shutil.copytree(aged, home)
        directory = home / "ledger"
        if verb == "open":
            shutil.rmtree(directory)
        else:
            replace_home(directory, aged, home)
        before = dict(scan.lines(str(directory))) if verb != "open" else {}
        said, status = child(directory, verb, Place(how, when, on=on))
        assert os.waitstatus_to_exitcode(status) in ({0, -signal.SIGKILL} if how == "kill" else {0}), (when, said)
        check(directory, verb, said, before)
        shutil.rmtree(home)
        if "hit False" in said:
            return places
        places += 1
    return places


def replace_home(directory: Path, old: Path, new: Path) -> None:
    for name in ("anchors.json", "anchor-receipts.json"):
        path = directory / name
        path.write_text(path.read_text().replace(str(old), str(new)))


def cases() -> Iterator[object]:
    for verb in [*VERBS, "open"]:
        for how in ("kill", "ENOSPC", "EIO"):
            for on in (False, True) if how == "ENOSPC" else (False,):
                yield pytest.param(verb, how, on, marks=pytest.mark.slow)


@pytest.mark.parametrize(("verb", "how", "on"), [*cases()])
def test_a_verb_that_dies_or_fails_at_every_place(aged, tmp_path, verb, how, on):
    assert campaign(aged, tmp_path, verb, how, on=on) > 0 or verb == "nothing"


@pytest.mark.parametrize("verb", ["rotate-key", "purge", "archive"])
def test_a_verb_that_dies_at_some_places(aged, tmp_path, verb):
    assert campaign(aged, tmp_path, verb, "kill", step=7) > 0
