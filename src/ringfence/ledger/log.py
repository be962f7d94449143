"""The ledger's writer: one sequencer with group commit, an exclusive lock, signed checkpoints, fail closed.

``append`` returns only when its entries are durable. A caller that finds nobody writing writes its own, so that a single
one pays for no hand-over; who comes meanwhile waits for a thread, and many share one flush. After a failed
write nothing is appended until the ledger is opened, and thereby checked, again.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from ringfence.ledger import canonical, envelope, frame, note, scan, start
from ringfence.ledger.anchors import configured
from ringfence.ledger.apart import BODY_LIMIT, contents_apart, fit
from ringfence.ledger.checkpoint import Checkpointer, Epoch, Epochs
from ringfence.ledger.personal import PersonalStore
from ringfence.ledger.request import Prepared, Request, rank_of, ration, refuse
from ringfence.ledger.resume import State, follow, header_of, mark_of
from ringfence.ledger.scrub import SecretScrubber, load_key
from ringfence.ledger.segment import Segment
from ringfence.ledger.sequencer import Sequencer
from ringfence.ledger.settings import Head, Keeper, Scrubber, Settings
from ringfence.ledger.space import Space, space_of
from ringfence.ledger.start import Anchor, unwritable
from ringfence.ledger.tree import fold, leaf_hash
from ringfence.model.entry import Ack, Entry, EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros, Sha256

__all__ = ["Head", "Ledger", "Settings"]
MAX_REQUEST = frame.MAX_GROUP // 2
_INTENT = EntryKind.INTENT
STEP = 2_000_000
"""Microseconds that the clock may go back before an entry says so."""
STEP_AHEAD = 3_600_000_000
"""Microseconds that it may run ahead of the time since boot."""


class Ledger:
    """One open ledger. Thread-safe; a second writer, in this process or another, is refused."""

    def __init__(
        self,
        directory: str,
        state: State,
        segment: Segment,
        *,
        clock: Callable[[], Micros],
        settings: Settings,
        secrets: Scrubber | None,
        keeper: Keeper | None,
        epochs: Epochs,
        lock: int,
    ) -> None:
        """Use ``open``."""
        self.directory = directory
        self._state, self._segment, self._clock, self._settings = state, segment, clock, settings
        self._secrets, self._keeper, self._lock = secrets, keeper or PersonalStore(directory), lock
        self._closing = threading.Lock()
        self._scrubbing = threading.Lock()
        self._sequencer = Sequencer(directory, commit=self._commit, check=self._check)
        self._failure: LedgerError | None = None
        self._pid = os.getpid()
        self._head = (state.size, state.prev, tuple(state.tree.nodes))
        self._seen = state.last_time
        self._begun = 0
        self._checkpointer = Checkpointer(
            directory, log=state.log, head=lambda: self._head, epochs=epochs, every=settings.checkpoint_every
        )

    @classmethod
    def open(
        cls,
        directory: str,
        *,
        clock: Callable[[], Micros] | None = None,
        secrets: Scrubber | None = None,
        keeper: Keeper | None = None,
        anchors: Sequence[Anchor] | None = None,
        settings: Settings | None = None,
    ) -> "Ledger":
        """The ledger of ``directory``, made if there is none, compared with its last heads before anything is written.

        A torn tail that was never acknowledged is cut and recorded; intents left without a result are closed with
        ``tool.orphaned``. ``anchors`` None means those of the ledger's own list.
        Raises LedgerError: ``ledger-busy`` (another writer), ``ledger-altered`` (the stored bytes are not what was
        written, or an anchor remembers more), ``ledger-unwritable``, ``anchor-unreadable``.
        """
        real = os.path.realpath(directory)
        settings = settings or Settings()
        clock = clock or start.now
        lock = start.acquire(real)
        ledger: Ledger | None = None
        try:
            if anchors is None:
                anchors = configured(real)
            begun = start.begin(real, now=clock(), anchors=anchors, window=settings.window_bytes)
            ledger = cls(
                real,
                begun.state,
                begun.segment,
                clock=clock,
                settings=settings,
                secrets=secrets,
                keeper=keeper,
                epochs=begun.epochs,
                lock=lock,
            )
            ledger.append(start.closing_entries(begun, clock()))
        except BaseException as error:
            if ledger is None:
                start.release(real, lock)
            else:
                ledger.close()
            if isinstance(error, OSError):
                raise unwritable(error, real) from error
            raise
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def head(self) -> Head:
        """Where the log ends now; everything before it is durable."""
        size, last, nodes = self._head
        return Head(log=self._state.log, size=size, last=Sha256(last), root=fold(nodes))

    @property
    def failure(self) -> LedgerError | None:
        """Why the ledger takes no more entries, or None."""
        return self._failure

    @property
    def space(self) -> Space:
        """How full the disk is: ``used`` is a fraction, ``warning`` a text from 90 % on. Raises ``ledger-unwritable``."""
        try:
            return space_of(self.directory)
        except OSError as error:
            raise unwritable(error, self.directory) from error

    def read(self, start: int = 0, count: int | None = None) -> Iterator[scan.Stored]:
        """Durable records from ``start`` on, at most ``count``, none newer than the head at the time of the call."""
        end = self._head[0] if count is None else min(self._head[0], start + count)
        for record in scan.records(self.directory, start):
            if record.seq >= end:
                return
            yield record

    def append(self, entries: Sequence[Entry]) -> Sequence[Ack]:
        """Make the entries durable, in order and with nothing between them.

        Raises LedgerError: ``entry-not-canonical`` and ``entry-too-large`` leave the ledger as it was;
        ``ledger-full`` refuses starts of missions first, then intents, while results still fit; ``ledger-unwritable`` and ``ledger-closed``
        hold until the ledger is opened again.
        """
        if os.getpid() != self._pid:
            raise LedgerError("ledger-closed", "a forked process cannot append to its parent's ledger")
        request = Request(list(map(self._prepare, entries)))
        if not request.prepared:
            return ()
        if request.size > MAX_REQUEST or len(request.prepared) > frame.MAX_LINES // 2:
            raise LedgerError(
                "entry-too-large", f"{len(request.prepared)} entries at once are more than a group can have"
            )
        self._sequencer.submit(request)
        if request.error is not None:
            raise request.error.with_traceback(None)
        assert request.acks is not None
        return request.acks

    def use_secrets(self, secrets: Scrubber) -> None:
        """Scrub with these rules and values from now on: the policy or the credential store changed."""
        self._secrets = secrets

    def shows(self, text: str) -> bool:
        """Whether a record holds the text as it is: nothing in it is taken for a secret."""
        return (self._secrets or self._default_secrets()).clean(text) == text

    @property
    def keeper(self) -> Keeper:
        """The side store."""
        return self._keeper

    @property
    def now(self) -> Micros:
        """The ledger's clock."""
        return self._clock()

    @property
    def epochs(self) -> Sequence[Epoch]:
        """Every signing key the log had, oldest first (public parts)."""
        return self._checkpointer.epochs.known

    def checkpoint(self) -> note.Checkpoint:
        """Sign the head as it is now and store the checkpoint durably. Raises LedgerError."""
        try:
            return self._checkpointer.write()
        except OSError as error:
            raise unwritable(error, f"{self.directory}/checkpoint") from error

    def rotate_key(self) -> int:
        """Change to a new signing key and destroy the old one; returns the new epoch. Raises LedgerError."""
        with self._checkpointer.held(), self._sequencer.alone():
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            now = self._clock()
            try:
                turn = self._checkpointer.prepare_rotation(self._state.size, now)
            except OSError as error:
                raise unwritable(error, f"{self.directory}/keys") from error
            request = Request([self._prepare(turn.entry)])
            try:
                self._write([request])
                if request.error is not None:
                    raise request.error
                self._checkpointer.finish_rotation(turn)
            except OSError as error:
                self._failure = unwritable(error, f"{self.directory}/keys")
                raise self._failure from error
            return turn.epoch.epoch

    def close(self) -> None:
        """Write a last checkpoint, let go of files and lock. Safe to call twice.

        Raises LedgerError where the checkpoint could not be written; files and lock are let go of all the same. For want of room
        alone it does not: what was appended is durable, and the next opening signs for it.
        """
        with self._closing:
            if self._lock < 0:
                return
            self._failure = self._failure or LedgerError("ledger-closed", "the ledger was closed", where=self.directory)
            try:
                # A group that is being written now is finished first; what waits behind is refused.
                with self._sequencer.alone():
                    self._checkpointer.stop()
            except OSError as error:
                if not start.is_full(error):
                    raise unwritable(error, f"{self.directory}/checkpoint") from error
            finally:
                self._sequencer.stop()
                self._segment.close()
                start.release(self.directory, self._lock)
                self._lock = -1

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if isinstance(self._checkpointer.failure, LedgerError):  # the head cannot be signed: altered, or a key lost
            raise self._checkpointer.failure.with_traceback(None)

    def _prepare(self, entry: Entry) -> Prepared:
        if not envelope.MIN_TIME <= entry.time < envelope.MAX_TIME:
            raise LedgerError(
                "entry-not-canonical",
                "an entry's time must be microseconds since 1970, in 2001 to 2255",
                remedy="set the clock of this machine",
            )
        body, apart = contents_apart(entry.body) if entry.kind is _INTENT else (entry.body, {})
        secrets = self._secrets or self._default_secrets()
        encoded = canonical.encode(body if body.__class__ is dict else dict(body))
        if secrets.suspects(encoded):
            body = secrets.scrub(body)
            encoded = canonical.encode(dict(body))
        if len(encoded) > BODY_LIMIT:
            body, longer = fit(body)
            encoded = canonical.encode(dict(body))
            apart.update(longer)
        if entry.personal:
            apart = {**entry.personal, **apart}
        personal: Mapping[str, Json] = {}
        if apart:
            clean = {name: secrets.clean(value) for name, value in apart.items()}
            try:
                personal = self._keeper.keep(entry.subject or entry.mission or "", clean)
            except OSError as error:
                raise unwritable(error, f"{self.directory}/private") from error
        head = envelope.prepare(entry, body=encoded, personal=personal)
        mark = mark_of(entry.kind.value, entry.call, entry.mission or "", body)
        return Prepared(head, entry.time, rank_of(entry.kind, entry.body), mark)

    def _default_secrets(self) -> Scrubber:
        """Known token forms alone; made at first use, because its rules take a while to load."""
        with self._scrubbing:
            if self._secrets is None:
                self._secrets = SecretScrubber(load_key(self.directory))
            return self._secrets

    def _commit(self, batch: list[Request], meanwhile: Callable[[], None]) -> None:
        """Acknowledge or refuse each of a batch; after an unknown failure, refuse all from then on."""
        try:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            self._write(self._note_step(batch), meanwhile)
        except LedgerError as error:
            refuse(batch, error)
        except BaseException as error:
            self._failure = unwritable(error, self._segment.path)
            self._failure.__cause__ = error
            refuse(batch, self._failure)
            if not isinstance(error, Exception):  # a thread that writes for others goes on, and refuses
                raise

    def _write(self, batch: list[Request], meanwhile: Callable[[], None] = lambda: None) -> None:
        group, digests, hashes = self._chain(batch)
        meanwhile()
        if not self._make_room(len(group)):
            batch = self._ration(batch)
            if not batch:
                return
            group, digests, hashes = self._chain(batch)
        try:
            self._segment.write(group)
        except OSError:
            # What reached the disk is unknown after a failed flush: put zeros back where that still works, and stop.
            with contextlib.suppress(OSError):
                self._segment.wipe(len(group))
            raise
        self._advance(batch, digests, hashes)

    def _note_step(self, batch: list[Request]) -> list[Request]:
        """Put an entry first where the clock went back, or ahead of the time since boot: retention must know."""
        now, boot = self._clock(), int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1_000_000)
        back, self._seen = self._seen - now, now
        begun = now - boot  # when the host was started, by this clock: it moves with every step, and small ones add up
        self._begun = self._begun or begun
        ahead = begun - self._begun
        if back <= STEP and ahead <= STEP_AHEAD:
            return batch
        self._begun = begun
        body: dict[str, Json] = {"back_us": back} if back > 0 else {"ahead_us": ahead}
        return [Request([self._prepare(Entry(kind=EntryKind.CLOCK_STEPPED, time=now, body=body))]), *batch]

    def _make_room(self, need: int) -> bool:
        """Whether ``need`` bytes can be written with the reserve left whole behind them; False on a full disk."""
        segment, settings = self._segment, self._settings
        reserve = settings.window_bytes * 3 // 4
        try:
            if segment.offset + need > settings.segment_bytes and self._state.size > segment.first:
                self._roll()
            while self._segment.room < need + reserve:
                self._segment.extend()
        except OSError as error:
            if not start.is_full(error):
                raise
            return False
        return True

    def _ration(self, batch: list[Request]) -> list[Request]:
        rest = ration(batch, room=self._segment.room, kept=self._settings.window_bytes // 2)
        refuse(
            [request for request in batch if request not in rest],
            LedgerError(
                "ledger-full",
                "the disk has no room for new entries",
                where=self.directory,
                remedy="free space, or run `ringfence ledger archive`; results of running calls still have a reserve",
            ),
        )
        return rest

    def _roll(self) -> None:
        state = self._state
        start.carry_open_calls(self.directory, state)
        following = Segment.create(f"{self.directory}/segments", header_of(state), window=self._settings.window_bytes)
        sealed, self._segment = self._segment, following
        sealed.seal()
        start.forget_carried(self.directory, state.size)

    def _chain(self, batch: Sequence[Request]) -> tuple[bytes, list[bytes], list[str]]:
        """The group as it will be stored, and the hashes of its records, as bytes and as they are written."""
        prev, seq = self._state.prev, self._state.size
        lines: list[bytes] = []
        digests: list[bytes] = []
        hashes: list[str] = []
        for request in batch:
            for one in request.prepared:
                line = frame.complete(one.head, prev, seq, one.time)
                digest = leaf_hash(line)
                prev = digest.hex()
                lines.append(line)
                digests.append(digest)
                hashes.append(prev)
                seq += 1
        lines.append(frame.commit_line(seq, prev))
        return b"".join(lines), digests, hashes

    def _advance(self, batch: Sequence[Request], digests: Sequence[bytes], hashes: Sequence[str]) -> None:
        state, position = self._state, 0
        first = state.size
        for digest in digests:
            state.tree.add(digest)
        for request in batch:
            acks = []
            for one in request.prepared:
                record = hashes[position]
                acks.append(Ack(seq=first + position, record=Sha256(record)))
                position += 1
                if one.mark is not None:
                    follow(state.open_calls, one.mark, record)
            request.acks = acks
        state.size, state.prev = first + position, hashes[-1]
        self._head = (state.size, state.prev, tuple(state.tree.nodes))
        self._checkpointer.notice()
