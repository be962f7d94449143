"""Whatever is done to the writer or its disk: what was acknowledged is there, and nothing ran without an entry.

A writer process appends an intent, and only after the acknowledgement "runs" it (says so on a pipe). It is killed, or
its system calls fail, at every place; then the ledger is opened again and compared with what the pipe said.
"""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from ringfence.ledger import flush, scan, segment
from ringfence.ledger.flush import Flusher
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, MissionId

SETTINGS = Settings(segment_bytes=16_384, window_bytes=4096, checkpoint_every=Micros(3000))
START = 1_800_000_000_000_000


def write(directory: str, pipe: int, *, calls: int, threads: int, size: int = 300) -> None:
    """What the writer process does. Each line on the pipe: ``ack SEQ HASH CALL`` or ``run CALL``, or a refusal."""
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            os.write(pipe, text.encode() + b"\n")

    def work(number: int) -> None:
        for count in range(calls):
            call = f"c-{os.getpid()}-{number}-{count}"
            try:
                body = {"pad": "x" * random.randrange(size), "decision": {"tier": "allow"}}
                (ack,) = ledger.append(
                    [Entry(kind=EntryKind.INTENT, time=Micros(START), mission=MissionId("m"), call=call, body=body)]
                )
                say(f"ack {ack.seq} {ack.record} {call}\nrun {call}")
                (ack,) = ledger.append([Entry(kind=EntryKind.RESULT, time=Micros(START), call=call, body={"exit": 0})])
                say(f"ack {ack.seq} {ack.record} {call}")
            except LedgerError as error:
                say(f"refused {error.code}")
                if error.code != "ledger-full":
                    return

    try:
        ledger = Ledger.open(directory, settings=SETTINGS)
    except LedgerError as error:
        say(f"refused {error.code} {error.what}")
        return
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with contextlib.suppress(LedgerError, OSError):
        ledger.close()


class Injected:
    """Wraps a system call of the writer: at the given count it fails, writes short, or kills the process."""

    def __init__(self, name: str, how: str, when: int) -> None:
        self.name, self.how, self.when, self.count = name, how, when, 0
        self.real = getattr(os, name)

    def __call__(self, *arguments):
        self.count += 1
        if self.count < self.when or (self.count > self.when and not self.how.endswith("-on")):
            return self.real(*arguments)
        how = self.how.removesuffix("-on")
        if self.name in {"pwrite", "pwritev"} and how in {"short", "torn", "kill"}:
            fd, given, *rest = arguments
            data = bytes(given) if self.name == "pwrite" else b"".join(given)
            part = data[: random.randrange(1, len(data) + 1)]
            written = self.real(fd, part if self.name == "pwrite" else (part,), *rest)
            if how == "short":
                return written
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.EIO if how == "torn" else getattr(errno, how), "injected")


def run_writer(
    directory: Path,
    *,
    injected: Injected | None = None,
    kill_after: float | None = None,
    begun: bool = False,
    calls: int = 12,
    threads: int = 2,
) -> list[str]:
    """Fork the writer, let it work (and die), and return what it said.

    ``kill_after`` counts from its start, or where ``begun`` is set from when it said something first.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            if injected is not None:
                setattr(os, injected.name, injected)
            write(str(directory), writing, calls=calls, threads=threads)
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1) if begun else b""
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as stream:
        said += stream.read()
    os.waitpid(child, 0)
    return said.decode().split("\n")[:-1]


def check(directory: Path, said: list[str]) -> list[scan.Stored]:
    """Open the ledger as the next start does, and hold it against what the writer said."""
    if not scan.segments(str(directory)):
        assert not [line for line in said if line.startswith(("ack", "run"))]
        return []
    with Ledger.open(str(directory), settings=SETTINGS) as ledger:
        records = list(ledger.read())
    by_seq = {record.seq: record for record in records}
    intents = {record.value.get("call") for record in records if record.value["kind"] == "tool.intent"}
    ended = {record.value.get("call") for record in records if record.value["kind"] in {"tool.result", "tool.orphaned"}}
    for line in said:
        words = line.split()
        if words[0] == "ack":
            assert segment_hash(by_seq[int(words[1])]) == words[2], line
        if words[0] == "run":
            assert words[1] in intents, line
    assert intents == ended
    assert verify(str(directory), now=Micros(START)).verdict.proven
    return records


def segment_hash(record: scan.Stored) -> str:
    from ringfence.ledger.frame import record_hash

    return record_hash(record.line)


def test_kills_at_any_time_lose_nothing_that_was_acknowledged(tmp_path):
    random.seed(1)
    acknowledged = 0
    for number in range(12):
        after = random.uniform(0.01, 0.25)
        said = run_writer(tmp_path / "ledger", kill_after=after, begun=number % 2 == 1, calls=10_000)
        acknowledged += sum(line.startswith("ack") for line in said)
        check(tmp_path / "ledger", said)
    assert acknowledged >= 6


PLACES = [
    (name, how, when)
    for name, hows in (("pwrite", ("kill", "short", "torn", "ENOSPC", "EIO")), ("fdatasync", ("kill", "EIO", "ENOSPC")))
    for how in hows
    for when in (1, 4, 9)
]
PLACES += [
    ("pwritev", how, when) for how in ("kill", "short", "torn", "ENOSPC", "EIO", "EOPNOTSUPP") for when in (1, 4, 9)
]
PLACES += [(name, "kill", when) for name in ("fsync", "rename", "ftruncate") for when in (1, 3, 5)]
PLACES += [
    ("pwritev", "ENOSPC-on", 5),
    ("pwritev", "EIO-on", 7),
    ("pwrite", "ENOSPC-on", 12),
    ("fdatasync", "EIO-on", 7),
    ("fsync", "EIO", 6),
    ("rename", "EIO", 4),
]


@pytest.mark.parametrize(("name", "how", "when"), PLACES)
def test_a_call_that_fails_or_dies_at_any_place(tmp_path, name, how, when):
    random.seed(when)
    Ledger.open(str(tmp_path / "ledger"), settings=SETTINGS).close()
    said = run_writer(tmp_path / "ledger", injected=Injected(name, how, when))
    check(tmp_path / "ledger", said)


@pytest.mark.parametrize(("name", "how", "when"), [place for place in PLACES if place[0] in {"pwrite", "fdatasync"}])
def test_the_same_where_a_write_and_its_flush_are_two_calls(tmp_path, monkeypatch, name, how, when):
    monkeypatch.setattr(flush, "_KNOWN", frozenset())
    test_a_call_that_fails_or_dies_at_any_place(tmp_path, name, how, when)


@pytest.mark.parametrize("name", ["pwrite", "fdatasync", "fsync", "rename"])
def test_a_death_while_the_ledger_is_made_leaves_none_or_a_whole_one(tmp_path, name):
    for when in range(1, 9):
        directory = tmp_path / f"{name}-{when}"
        said = run_writer(directory, injected=Injected(name, "kill", when), calls=1, threads=1)
        check(directory, said)
        with Ledger.open(str(directory), settings=SETTINGS) as ledger:
            assert ledger.head.size >= 1


def test_a_fault_that_is_told_again_and_again_holds_nothing_of_those_who_were_told(
    make_ledger, make_entry, monkeypatch
):
    """Else callers that come back for hours would fill the memory of the one who refuses them."""
    with make_ledger() as ledger:
        monkeypatch.setattr(Flusher, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "injected")))
        for number in range(30):
            with pytest.raises(LedgerError) as refused:
                ledger.append([make_entry(number)])
        assert refused.value.code == "ledger-unwritable"
        assert len(list(traceback.walk_tb(refused.value.__traceback__))) < 8


@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
def test_after_a_failed_flush_nothing_is_taken_until_it_is_opened_again(make_ledger, make_entry, monkeypatch, call):
    if call == "fdatasync":
        monkeypatch.setattr(flush, "_KNOWN", frozenset())
    with make_ledger() as ledger:
        ledger.append([make_entry(1)])
        monkeypatch.setattr(os, call, Injected(call, "EIO", 1))
        with pytest.raises(LedgerError) as first:
            ledger.append([make_entry(2)])
        monkeypatch.undo()
        with pytest.raises(LedgerError) as second:
            ledger.append([make_entry(3)])
        assert (first.value.code, second.value.code) == ("ledger-unwritable", "ledger-unwritable")
    with make_ledger() as again:
        assert again.append([make_entry(4)])[0].seq >= 2


def test_on_a_full_disk_results_still_fit_and_intents_do_not(make_ledger, make_entry, monkeypatch):
    with make_ledger() as ledger:
        ledger.append([make_entry(0)])
        monkeypatch.setattr(segment.Segment, "extend", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        refused = results = 0
        for number in range(1, 60):
            try:
                ledger.append([make_entry(number)])
            except LedgerError as error:
                refused += error.code == "ledger-full"
                with contextlib.suppress(LedgerError):
                    ledger.append([make_entry(number, EntryKind.RESULT)])
                    results += 1
        assert refused
        assert results > 3
        monkeypatch.undo()
        ledger.append([make_entry(99)])


def test_a_disk_that_is_full_at_the_end_leaves_nothing_half_made(make_ledger, make_entry, monkeypatch):
    ledger = make_ledger()
    ledger.append([make_entry(0)])
    monkeypatch.setattr(segment, "write_all", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(LedgerError, match="ledger-unwritable"):
        ledger.checkpoint()
    ledger.close()
    assert not [*Path(ledger.directory).rglob("*.new")]
    monkeypatch.undo()
    with make_ledger() as again:
        assert again.append([make_entry(1)])


SMALL_DISK = """
set -e
mount -t tmpfs -o size=200k none "$1"
exec "$2" "$3" "$1/ledger" 4000 2
"""


@pytest.mark.needs_userns
def test_a_real_full_disk(tmp_path):
    """A tmpfs of 200 KiB: the kernel writes short and says ENOSPC where it pleases."""
    mount = tmp_path / "small"
    mount.mkdir()
    copy = tmp_path / "copy"
    script = SMALL_DISK + '\ncp -a "$1/ledger" "$4"\n'
    script = script.replace("exec ", "")
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "bash",
            "-c",
            script,
            "x",
            str(mount),
            sys.executable,
            __file__,
            str(copy),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout.splitlines()
    assert "refused ledger-full" in said, done.stderr
    check(copy, said)


STRACE = shutil.which("strace")
CALLS = [
    ("pwrite64", "error=ENOSPC"),
    ("pwrite64", "error=EIO"),
    ("fdatasync", "error=EIO"),
    ("pwritev2", "error=ENOSPC"),
    ("pwritev2", "error=EIO"),
    ("pwritev2", "error=EOPNOTSUPP"),
    ("pwritev2", "signal=KILL"),
    ("pwrite64", "signal=KILL"),
    ("fdatasync", "signal=KILL"),
]


def traced(directory: Path, call: str, what: str, when: int) -> list[str]:
    done = subprocess.run(
        [
            STRACE or "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            f"trace={call}",
            "-e",
            f"inject={call}:{what}:when={when}",
            sys.executable,
            __file__,
            str(directory),
            "12",
            "2",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(
    STRACE is None, reason="strace is not installed; the tests above make the same calls fail in the process"
)
@pytest.mark.parametrize(("call", "what"), CALLS)
def test_failures_that_the_kernel_makes(tmp_path, call, what):
    """The same with strace's injection: our own code is what runs, unpatched."""
    Ledger.open(str(tmp_path / "ledger"), settings=SETTINGS).close()
    said = traced(tmp_path / "ledger", call, what, 9)
    assert [line for line in said if line.startswith("ack")]
    check(tmp_path / "ledger", said)


@pytest.mark.slow
def test_a_thousand_kills_and_failures(tmp_path):
    random.seed(2)
    acknowledged = rounds = 0
    for number in range(1000):
        directory = tmp_path / f"ledger-{number // 50}"
        if number % 3 == 0:
            said = run_writer(
                directory, kill_after=random.uniform(0.002, 0.1), calls=10_000, threads=random.choice([1, 2, 8])
            )
        elif number % 50 == 1 and STRACE:
            call, what = random.choice(CALLS)
            said = traced(directory, call, what, random.randrange(1, 40))
        else:
            name, how, _ = random.choice(PLACES)
            said = run_writer(
                directory, injected=Injected(name, how, random.randrange(1, 60)), threads=random.choice([1, 3])
            )
        acknowledged += sum(line.startswith("ack") for line in said)
        check(directory, said)
        rounds += 1
    assert rounds == 1000
    assert acknowledged > 5000


if __name__ == "__main__":
    write(sys.argv[1], 1, calls=int(sys.argv[2]), threads=int(sys.argv[3]))
