"""Checkpoints in time: at most one a second while records come, one at the end, each whole on disk or not at all.

Also the list of key epochs, and the change from one key to the next.
"""

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringfence.ledger import keys, note
from ringfence.ledger.files import open_regular, read_small
from ringfence.ledger.resume import altered
from ringfence.ledger.segment import replace
from ringfence.ledger.tree import fold
from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Head = tuple[int, str, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A key and the first size it may sign: it is in force for checkpoints of more than ``after`` records."""

    epoch: int
    after: int
    public: bytes


def _row(number: int, epoch: int, after: int, public: str) -> Epoch:
    """One stored row. Raises ValueError where it is not key ``number``."""
    key = bytes.fromhex(public)
    if epoch.__class__ is not int or after.__class__ is not int or epoch != number or len(key) != 32:
        raise ValueError("not a row of a list of keys")
    return Epoch(epoch=epoch, after=after, public=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """All keys a log ever had, oldest first."""

    known: tuple[Epoch, ...]

    @classmethod
    def new(cls, public: bytes) -> "Epochs":
        """Those of a log that begins."""
        return cls(known=(Epoch(epoch=1, after=0, public=public),))

    @classmethod
    def load(cls, directory: str) -> "Epochs":
        """The stored list. Raises LedgerError ``ledger-key``."""
        path = f"{directory}/keys/epochs.json"
        try:
            rows = json.loads(read_small(path))
            return cls(known=tuple(_row(number, *row) for number, row in enumerate(rows, 1))).checked()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise LedgerError(
                "ledger-key",
                "the list of the ledger's keys cannot be read",
                where=path,
                remedy="restore the file from a backup; its contents are also in the log's own entries",
            ) from error

    def checked(self) -> "Epochs":
        """The list, where there is a key and each came after the one before. Raises ValueError."""
        befores = [epoch.after for epoch in self.known]
        if not befores or befores[0] != 0 or sorted(set(befores)) != befores:
            raise ValueError("no list of keys in order")
        return self

    def store(self, directory: str) -> None:
        """Keep the list durably."""
        rows = [[e.epoch, e.after, e.public.hex()] for e in self.known]
        replace(f"{directory}/keys/epochs.json", json.dumps(rows).encode())

    def with_rotations(self, rotations: Sequence[tuple[int, int, str]]) -> "Epochs":
        """The list with the rotations that the log tells of and the list does not."""
        known = list(self.known)
        for epoch, seq, public in rotations:
            if epoch == known[-1].epoch + 1:
                known.append(Epoch(epoch=epoch, after=seq, public=bytes.fromhex(public)))
        return Epochs(known=tuple(known))

    @property
    def present(self) -> int:
        """The epoch whose key signs now."""
        return self.known[-1].epoch

    def at(self, size: int) -> Epoch:
        """The key in force for a checkpoint of ``size`` records."""
        return next((e for e in reversed(self.known) if size > e.after), self.known[0])


def read_checkpoint(directory: str) -> note.Checkpoint | None:
    """The stored checkpoint, its signature not yet checked; None where there is no file."""
    path = f"{directory}/checkpoint"
    try:
        with open_regular(path) as stream:
            found = note.parse(stream.read(note.LONGEST + 1))
    except FileNotFoundError:
        return None
    if found is None:
        raise altered("the checkpoint is not a signed note", path)
    return found


def store_checkpoint(directory: str, head: note.Checkpoint) -> None:
    """Make the checkpoint durable in place of the one before."""
    replace(f"{directory}/checkpoint", head.text())


def signed_by(head: note.Checkpoint, log: str, epoch: Epoch) -> bool:
    """Whether the key of ``epoch`` signed this checkpoint."""
    name = note.key_name(log, epoch.epoch)
    hint = note.key_id(name, epoch.public)
    return any(
        s.name == name and s.key_id == hint and keys.verify_signature(epoch.public, s.value, head.body())
        for s in head.signatures
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A change of keys, prepared: the entry that tells it, and the key that comes."""

    epoch: Epoch
    entry: Entry


class Checkpointer:
    """Signs the head on a thread of its own. The first signature is made only after the stored one was found good."""

    def __init__(self, directory: str, *, log: str, head: Callable[[], Head], epochs: Epochs, every: Micros) -> None:
        """Nothing is read, signed or started yet."""
        self._directory, self._log, self._head, self.epochs, self._every = directory, log, head, epochs, every
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._private: Ed25519PrivateKey | None = None
        self._stuck = False
        self.written: note.Checkpoint | None = None
        self.failure: BaseException | None = None
        """Why the last attempt on the thread failed, or None."""

    def notice(self) -> None:
        """There are new records."""
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ledger-checkpoint", daemon=True)
                self._thread.start()

    def write(self) -> note.Checkpoint:
        """Sign and store the head as it is now, unless the stored checkpoint already says it."""
        with self._lock:
            if self._stuck:
                raise LedgerError(
                    "ledger-unwritable",
                    "a change of keys was recorded and could not be completed",
                    where=self._directory,
                    remedy="repair the disk, then start again: opening the ledger completes the change",
                )
            if self._private is None:
                self._begin()
            size, _, nodes = self._head()
            if self.written is None or self.written.size != size:
                assert self._private is not None
                epoch = self.epochs.present
                head = keys.sign(self._private, log=self._log, epoch=epoch, size=size, root=fold(nodes))
                store_checkpoint(self._directory, head)
                self.written = head
            return self.written

    def stop(self) -> None:
        """End the thread and write the last checkpoint."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=30)
        self.write()

    def held(self) -> AbstractContextManager[bool]:
        """A context in which no other thread writes a checkpoint."""
        return self._lock

    def prepare_rotation(self, seq: int, now: Micros) -> Turn:
        """Sign the head a last time with the old key, make a new one, and the entry numbered ``seq`` signed by both."""
        self.write()
        assert self._private is not None
        old = self.epochs.known[-1]
        public = keys.create_key(self._directory, old.epoch + 1)
        epoch = Epoch(epoch=old.epoch + 1, after=seq, public=public)
        statement = keys.rotation_statement(self._log, epoch.epoch, seq, old.public, public)
        body: dict[str, Json] = {
            "epoch": epoch.epoch,
            "public": public.hex(),
            "previous": old.public.hex(),
            "by_old": self._private.sign(statement).hex(),
            "by_new": keys.load_key(self._directory, epoch.epoch).sign(statement).hex(),
        }
        return Turn(epoch=epoch, entry=Entry(kind=EntryKind.KEY_ROTATED, time=now, body=body))

    def finish_rotation(self, turn: Turn) -> None:
        """The entry is durable: sign with the new key from here on, and destroy the old one."""
        old = self.epochs.present
        epochs = Epochs(known=(*self.epochs.known, turn.epoch))
        try:
            private = keys.load_key(self._directory, turn.epoch.epoch)
            epochs.store(self._directory)
        except BaseException:
            # The old key signs no more, and the new one not before the list names it: the next opening completes it.
            self._stuck = True
            raise
        self.epochs, self._private = epochs, private
        keys.destroy_key(self._directory, old)
        self.write()

    def _begin(self) -> None:
        stored = read_checkpoint(self._directory)
        if stored is not None and not signed_by(stored, self._log, self.epochs.at(stored.size)):
            raise altered("the stored checkpoint is not signed by this log's key", f"{self._directory}/checkpoint")
        self._private = keys.load_key(self._directory, self.epochs.present)
        self.written = stored

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            if self._stop.wait(self._every / 1_000_000):
                return
            self._wake.clear()
            try:
                self.write()
                self.failure = None
            except (OSError, LedgerError) as error:
                self.failure = error
                self._wake.set()
