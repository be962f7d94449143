"""Opening a ledger: the lock, a new log's first record, the comparison with remembered heads, the repair of a torn tail."""

import errno
import fcntl
import json
import os
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ringfence.ledger import canonical, envelope, frame, keys, note, scan
from ringfence.ledger.checkpoint import Epochs, read_checkpoint, store_checkpoint
from ringfence.ledger.files import read_small
from ringfence.ledger.resume import State, altered, clear_leftovers, header_of, resume
from ringfence.ledger.retention import finish_removal
from ringfence.ledger.segment import Segment, replace
from ringfence.ledger.tree import Range
from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, MissionId

LONG_CLOSED = 90 * 86_400_000_000
"""Microseconds that may have passed since the last record and make the ones before it older."""
_held: set[str] = set()
_holding = threading.Lock()


class Anchor(Protocol):
    """A place outside that remembers heads."""

    @property
    def name(self) -> str:
        """How it is written in configuration."""
        ...

    def heads(self) -> Mapping[str, note.Checkpoint]:
        """The newest checkpoint of every log it knows, by log id. Raises LedgerError where it cannot be read."""
        ...


@runtime_checkable
class Remembering(Anchor, Protocol):
    """An anchor that also has the heads that it was told before."""

    def past(self, log: str) -> Sequence[note.Checkpoint]:
        """Every head of the log that it ever was told. Raises LedgerError where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A ledger ready to be written: its state, its open segment, its keys, and what was found torn."""

    state: State
    segment: Segment
    epochs: Epochs
    cut: bytes = b""


def now() -> Micros:
    """The wall clock."""
    return Micros(time.time_ns() // 1000)


def unwritable(error: BaseException, where: str) -> LedgerError:
    """The fault of a write that failed."""
    detail = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
    what = "free space on the disk" if is_full(error) else "repair the disk or its permissions"
    return LedgerError(
        "ledger-unwritable",
        f"the ledger could not be written: {detail}; nothing was run",
        where=where,
        remedy=f"{what}, then start again: the ledger checks itself when it is opened",
    )


def is_full(error: BaseException) -> bool:
    """Whether a write failed for want of room."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def acquire(directory: str) -> int:
    """The exclusive lock of a ledger, held by this process until ``release``. Raises ``ledger-busy``.

    A record lock ends with the process and does not pass to children, so a box that outlives its supervisor cannot
    keep the next one out. Such a lock does not exclude the same process, and any close of
    the file there ends it: hence the set, which one thread at a time looks at and changes together with the file.
    """
    busy = LedgerError(
        "ledger-busy",
        "another process writes to this ledger",
        where=directory,
        remedy="use the running supervisor, or end it with `ringfence stop`",
    )
    try:
        for folder in (directory, f"{directory}/segments", f"{directory}/keys"):
            os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise unwritable(error, directory) from error
    with _holding:
        if directory in _held:
            raise busy
        fd = _take(directory, busy)
        _held.add(directory)
    return fd


def _take(directory: str, busy: LedgerError) -> int:
    try:
        fd = os.open(f"{directory}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise unwritable(error, directory) from error
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise busy from error
    return fd


def locked(directory: str) -> bool:
    """Whether a writer holds the ledger now. Never opens the lock file where this process is the writer.

    Closing any descriptor of the file would give up this process's own lock: record locks work so.
    """
    real = os.path.realpath(directory)
    with _holding:
        if real in _held:
            return True
        try:
            fd = os.open(f"{real}/lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)  # a reader may have no more
        except OSError:
            return False
        try:
            asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, asked))
            return bool(answer[0] != fcntl.F_UNLCK)
        finally:
            os.close(fd)


def release(directory: str, lock: int) -> None:
    """Let the lock go."""
    with _holding:
        os.close(lock)
        _held.discard(directory)


def begin(directory: str, *, now: Micros, anchors: Sequence[Anchor], window: int) -> Begun:
    """Compare the log with what is remembered of it, then make it ready to be written."""
    clear_leftovers(directory)
    finish_removal(directory)
    known = {anchor.name: anchor.heads() for anchor in anchors}
    files = scan.segments(directory)
    own = read_checkpoint(directory)
    if not files:
        _refuse_removal(directory, own, known)
        return _create(directory, now, window)
    log = scan.header(files[-1]).log
    heads = [(f"{directory}/checkpoint", own)] if own is not None else []
    for name, logs in known.items():
        _same_logs(name, logs, log)
        heads += [(name, head) for key, head in logs.items() if key == log]
    state = resume(files, {head.size for _, head in heads}, _carried(directory, files[-1].first))
    for where, head in heads:
        _compare(state, where, head)
    forget_carried(directory, files[-1].first)
    if own is None and state.size > 1:
        raise altered("the signed checkpoint is missing", f"{directory}/checkpoint", "TRUNCATED")
    return _continue(directory, files, state, window)


def _refuse_removal(
    directory: str, own: note.Checkpoint | None, known: Mapping[str, Mapping[str, note.Checkpoint]]
) -> None:
    if own is not None:
        raise altered(f"all records are gone, {own.size} were signed for", directory, "TRUNCATED")
    for name, logs in known.items():
        if logs:
            raise altered(f"the log {min(logs)} that this anchor remembers is gone", name, "TRUNCATED")


def _same_logs(name: str, logs: Mapping[str, note.Checkpoint], log: str) -> None:
    missing = sorted(set(logs) - {log})
    if missing:
        raise altered(f"the log {missing[0]} that this anchor remembers is not in this ledger", name, "TRUNCATED")


def _compare(state: State, where: str, head: note.Checkpoint) -> None:
    if head.origin != note.origin(state.log):
        raise altered("the checkpoint is of another log", where)
    if head.size > state.size:
        raise altered(f"{state.size} records are here, {head.size} were signed for", where, "TRUNCATED")
    if (
        head.size not in state.roots
    ):  # never after a purge of ours: it waits until it is signed for and every anchor saw it
        raise altered(
            f"the {head.size} records that were signed for are gone, and no purge that was signed for tells why",
            where,
            "GAP",
        )
    if state.roots[head.size] != head.root:
        raise altered(f"the first {head.size} records are not the ones that were signed for", where, "FORKED")


def _create(directory: str, now: Micros, window: int) -> Begun:
    log = os.urandom(16).hex()
    public = keys.create_key(directory, 1)
    epochs = Epochs.new(public)
    epochs.store(directory)
    state = State(log=log, size=0, prev=frame.NO_HASH, tree=Range())
    segment = Segment.create(f"{directory}/segments", header_of(state), window=window, first=_first(log, public, now))
    files = scan.segments(directory)
    state = resume(files, {0})
    segment.offset = state.end
    head = keys.sign(keys.load_key(directory, 1), log=log, epoch=1, size=1, root=state.tree.root())
    store_checkpoint(directory, head)
    return Begun(state=state, segment=segment, epochs=epochs)


def _first(log: str, public: bytes, now: Micros) -> bytes:
    entry = Entry(kind=EntryKind.CREATED, time=now)
    body: dict[str, Json] = {"log": log, "epoch": 1, "public": public.hex(), "format": frame.VERSION}
    line = frame.complete(envelope.prepare(entry, body=canonical.encode(body), personal={}), frame.NO_HASH, 0, now)
    return line + frame.commit_line(1, frame.record_hash(line))


def _continue(directory: str, files: Sequence[scan.SegmentFile], state: State, window: int) -> Begun:
    stored = Epochs.load(directory)
    epochs = stored.with_rotations(state.rotations)
    if epochs != stored:  # a full disk has no room for the same list again
        epochs.store(directory)
    for epoch in range(1, epochs.present):
        keys.destroy_key(directory, epoch)  # a crash may have come between a rotation and the end of the old key
    segment = Segment.resume(files[-1].path, offset=state.end, window=window)
    cut = state.torn
    if cut:
        segment.wipe(len(cut))
    return Begun(state=state, segment=segment, epochs=epochs, cut=cut)


def closing_entries(begun: Begun, now: Micros) -> list[Entry]:
    """What must be written first: a time of which nobody knows whether it passed, a recovery, the end of calls without result."""
    entries = []
    closed = now - begun.state.last_time if begun.state.last_time else 0
    if closed > LONG_CLOSED:
        entries.append(Entry(kind=EntryKind.CLOCK_STEPPED, time=now, body={"ahead_us": closed}))
    if begun.cut:
        body: dict[str, Json] = {"bytes": len(begun.cut), "sha256": frame.sha256(begun.cut), "at": begun.state.size}
        entries.append(Entry(kind=EntryKind.RECOVERED, time=now, body=body))
    for call, (record, mission) in begun.state.open_calls.items():
        entries.append(
            Entry(
                kind=EntryKind.ORPHANED,
                time=now,
                call=call,
                mission=MissionId(mission) if mission else None,
                parent=record,
                body={"because": "no result was recorded before the supervisor ended"},
            )
        )
    return entries


def carry_open_calls(directory: str, state: State) -> None:
    """Before a new segment is made, remember which calls began in the ones before and have not ended."""
    stored = {call: list(value) for call, value in state.open_calls.items()}
    replace(_carry_path(directory, state.size), json.dumps(stored).encode())


def forget_carried(directory: str, last: int) -> None:
    """Drop what was remembered for other segments than the one that begins with record ``last``."""
    kept = os.path.basename(_carry_path(directory, last))
    for name in os.listdir(directory):
        if name.startswith("open-calls.") and name != kept:
            os.unlink(f"{directory}/{name}")


def _carry_path(directory: str, first: int) -> str:
    return f"{directory}/open-calls.{first:020d}"


def _carried(directory: str, first: int) -> dict[str, tuple[str, str]]:
    try:
        stored = json.loads(read_small(_carry_path(directory, first), 64 << 20))
        return {str(call): (str(record), str(mission)) for call, (record, mission) in stored.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}
