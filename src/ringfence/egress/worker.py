"""Starts one mission's egress worker, answers its questions in a thread, and brings it back when it is killed.

While no worker runs, connections that arrive are reset at once and names are answered SERVFAIL: nothing gets out and
nothing hangs.
"""

import contextlib
import datetime as dt
import os
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ringfence.egress import asking
from ringfence.egress.answering import Answerer, Approve, Attribute, Decide, Record, Waiting
from ringfence.egress.asking import Look, Message, Named, Setup, Stop
from ringfence.egress.authority import make_authority
from ringfence.egress.credentials import Credential, Vault
from ringfence.egress.link import PACKET
from ringfence.egress.options import Options, binding, open_outside, setup_for
from ringfence.egress.placeholders import placeholder_for
from ringfence.egress.spare import SHELF
from ringfence.egress.turning_away import turn_away
from ringfence.egress.upstream import Upstream, system_upstream
from ringfence.model.errors import BoxError
from ringfence.model.ids import Micros, MissionId

START_SECONDS, FLUSH_SECONDS = 15.0, 10.0
END_SECONDS = 10.0
"""In which a worker, its box being gone, tells what is left to tell."""
LOOK_SECONDS, LOOKS = 5.0, 4
"""A worker that left so many looks unanswered, one every so many seconds, stands still and is ended."""
BACKOFF = (0.0, 0.1, 0.5, 2.0, 5.0)


@dataclass(slots=True)
class Worker:
    """One mission's egress. Made by ``spawn``; every method may be called from any thread."""

    answerer: Answerer
    options: Options
    _setup: Setup
    _fds: dict[str, int]
    _approve: Approve | None = None
    _process: subprocess.Popen[bytes] | None = None
    _channel: socket.socket | None = None
    _wake: tuple[int, int] = field(default_factory=lambda: os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK))
    _answers: "queue.SimpleQueue[tuple[Waiting, bool, str]]" = field(default_factory=queue.SimpleQueue)
    _thread: threading.Thread | None = None
    _stopping: bool = False
    _started: threading.Event = field(default_factory=threading.Event)
    restarts: int = 0
    stood_still: int = 0
    """How many of its processes were ended because they answered nothing any more."""
    authority: str = ""
    """Certificate (PEM) of the mission's authority: goes into the box's trust store, and nowhere else."""
    placeholders: dict[str, str] = field(default_factory=dict)
    """What stands for each credential in the box, by name."""
    inbound_ports: dict[int, int] = field(default_factory=dict)
    """Port in the box to the port on the host's loopback that leads to it."""

    @classmethod
    def spawn(
        cls,
        descriptors: Mapping[str, int],
        *,
        mission: MissionId,
        decide: Decide,
        record: Record,
        credentials: Sequence[Credential] = (),
        on_secret: Callable[[str], None] | None = None,
        resolver: Upstream | None = None,
        options: Options | None = None,
        attribute: Attribute | None = None,
        approve: Approve | None = None,
        inspects: Callable[[str, int], bool] | None = None,
        clock: Callable[[], Micros] | None = None,
        placeholders: Mapping[str, str] | None = None,
        authority: tuple[str, str] | None = None,
    ) -> "Worker":
        """Start a worker over a box's descriptors and return once it serves. Raises BoxError where it does not start.

        The descriptors are duplicated: the caller closes its own. ``decide``, ``record`` and ``attribute`` are called in
        the worker's thread, one at a time; ``record`` returns once the line is durable and raises where it is not, and
        then nothing is allowed. ``on_secret`` is told a credential's value before the worker gets it. ``approve`` is called in a thread of its own for each ASK. ``placeholders`` (by the name of a
        credential) and ``authority`` (certificate and key) are given by a caller that had to put them into the box first.
        """
        options = options or Options()
        upstream = resolver or system_upstream()
        answerer = Answerer(
            mission=mission,
            decide=decide,
            record=record,
            clock=clock or _now,
            cwd=options.cwd,
            call=options.call,
            ask_millis=options.ask_millis,
            learning_until=options.learning_until,
            attribute=attribute,
            inspects=inspects,
            vaults={credential.name: Vault(credential, on_secret) for credential in credentials},
            grants=frozenset({("host-port", item[0]) for item in options.host_ports}),
        )
        placeholders = dict(
            placeholders or {c.name: placeholder_for(c.name, os.urandom(12).hex()) for c in credentials}
        )
        if authority is None and options.inspection:
            authority = make_authority(mission, dt.datetime.fromtimestamp(time.time(), dt.UTC))
        authority = authority or ("", "")
        if authority[0]:
            answerer.bound = frozenset((c.host, c.port) for c in credentials if not c.endpoint)
        outside = open_outside(options.inbound, mission)
        inbound_ports = {box_port: port for (port, box_port) in outside}
        answerer.grants |= {("inbound", port) for port in inbound_ports.values()}
        fds = {name: os.dup(fd) for name, fd in descriptors.items()}
        fds |= {f"outside:{port}:{box_port}": fd for (port, box_port), fd in outside.items()}
        bindings = [binding(credential, placeholders[credential.name]) for credential in credentials]
        setup = setup_for(options, mission=mission, upstream=upstream, bindings=bindings, authority=authority)
        worker = cls(answerer, options, setup, fds, approve)
        worker.authority, worker.placeholders, worker.inbound_ports = authority[0], placeholders, inbound_ports
        worker._thread = threading.Thread(target=worker._live, name=f"egress-{mission}", daemon=True)
        worker._thread.start()
        if not worker._started.wait(START_SECONDS):
            worker.stop()
            raise BoxError(
                "egress-worker-failed",
                "the egress worker did not start, so the box has no network and was not started",
                where=mission,
                remedy="run `ringfence doctor`; the worker's own words are in the supervisor's log",
            )
        return worker

    @property
    def alive(self) -> bool:
        """Whether a worker process serves right now."""
        process = self._process
        return process is not None and process.poll() is None and self.answerer.ready is not None

    @property
    def pid(self) -> int | None:
        """The worker's process id, ``None`` between two workers."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def stop(self) -> None:
        """End the worker and every connection, record what is still counted, close the descriptors. Idempotent."""
        self._stopping = True
        self._ring()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=END_SECONDS + 5)

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        failures = 0
        try:
            while not self._stopping:
                if failures:
                    until = time.monotonic() + BACKOFF[min(failures, len(BACKOFF) - 1)]
                    for told in turn_away(self._fds, self._wake[0], until, lambda: self._stopping):
                        self.answerer.take(told)
                begun = time.monotonic()
                with contextlib.suppress(OSError):  # no process to be had at this moment: tried again like after a kill
                    self._start()
                    self._converse()
                self._reap()
                self.answerer.worker_ended()
                if self._stopping:
                    break
                self.restarts += 1
                failures = 1 if time.monotonic() - begun > BACKOFF[-1] else failures + 1
            self._count_the_rest()
            self._own_up()
        finally:
            self._reap()
            for fd in (*self._fds.values(), *self._wake):
                with contextlib.suppress(OSError):
                    os.close(fd)
            self._fds.clear()

    def _count_the_rest(self) -> None:
        """What a worker that was not there to do so, or stood still, never took up."""
        until = time.monotonic() + LOOK_SECONDS  # the box has ended, but the host may go on to knock
        while time.monotonic() < until and (left := turn_away(self._fds, self._wake[0], 0.0, lambda: False)):
            for told in left:
                self.answerer.take(told)
        self.answerer.flush()

    def _own_up(self) -> None:
        """The mission ends and the ledger still refuses: the supervisor's log is told how much it will never hold."""
        left = self.answerer.unrecorded
        if left:
            text = f"egress of {self.answerer.mission}: {left} tries stand in no entry, the ledger took none at the end"
            print(text, file=sys.stderr, flush=True)

    def _start(self) -> None:
        self.answerer.ready = None
        started = SHELF.take(self.options.prefix)
        self._process, self._channel = started.process, started.channel
        with contextlib.suppress(OSError):  # gone already: the conversation ends at once, and another is started
            started.hand_over(self._fds)
        started.channel.setblocking(False)
        names: list[Message] = [Named(number=number, name=name) for number, name in self.answerer.names]
        self._send([*names, self._setup])

    def _converse(self) -> None:
        """Answer until the worker ends."""
        near = self._channel
        assert near is not None
        poller = select.poll()
        poller.register(near, select.POLLIN)
        poller.register(self._wake[0], select.POLLIN)
        flush_at, look_at, unanswered = time.monotonic() + FLUSH_SECONDS, time.monotonic() + LOOK_SECONDS, 0
        while not self._stopping:
            for fd, _mask in poller.poll(self._patience(min(flush_at, look_at))):
                if fd == near.fileno():
                    unanswered = 0
                    if not self._receive(near):
                        return
                if fd == self._wake[0]:
                    with contextlib.suppress(BlockingIOError):
                        os.read(fd, 4096)
            self._settle()
            if time.monotonic() >= flush_at:
                self.answerer.flush()
                flush_at = time.monotonic() + FLUSH_SECONDS
            if time.monotonic() >= look_at:
                # Looks are counted, not seconds: a host that slept, or a supervisor that did, misses a single one.
                if unanswered == LOOKS:
                    self.stood_still += 1
                    return
                self._send([Look()])
                look_at, unanswered = time.monotonic() + LOOK_SECONDS, unanswered + 1
        if self.answerer.ready is not None:
            self._hear_out(near)

    def _hear_out(self, near: socket.socket) -> None:
        """The box has ended: what its worker still has to tell comes before the worker's end. Nobody is asked any more."""
        self._send([Stop()])
        until = time.monotonic() + END_SECONDS
        while is_ready(near, select.POLLIN, until - time.monotonic()) and self._receive(near):
            for ident in list(self.answerer.waiting):
                because = "the box ended before a person had answered"
                self._send(self.answerer.settle(ident, approved=False, because=because))

    def _patience(self, due_at: float) -> int:
        """Milliseconds until something is due."""
        due = [held.until / 1000 - self.answerer.clock() / 1000 for held in self.answerer.waiting.values()]
        return max(0, int(min([(due_at - time.monotonic()) * 1000, *due])) + 1)

    def _receive(self, near: socket.socket) -> bool:
        """Take one packet; False at the end, or where the worker broke the protocol (it is killed then)."""
        try:
            packet = near.recv(PACKET)
            messages = asking.from_worker(packet) if packet else []
        except BlockingIOError:
            return True
        except (OSError, asking.BadPacketError):
            packet, messages = b"", []
        if not packet:
            return False
        replies: list[Message] = []
        for message in messages:
            answers = self.answerer.take(message)
            replies += answers
            for answer in answers:
                if isinstance(answer, asking.Held):
                    self._consult(answer.id)
        if self.answerer.ready is not None:
            self._started.set()
        self._send(replies)
        return True

    def _consult(self, ident: int) -> None:
        """Have a person asked, in a thread of its own."""
        if self._approve is None:
            return
        waiting = self.answerer.waiting[ident]
        approve, seconds = self._approve, self.options.ask_millis / 1000

        def ask() -> None:
            try:
                approved = approve(waiting.call, waiting.decision, seconds)
                because = "approved by a person" if approved else "refused by a person, or nobody answered"
            except Exception:  # noqa: BLE001 - an approval that fails is none
                approved, because = False, "the approval could not be asked for"
            self._answers.put((waiting, approved, because))
            self._ring()

        threading.Thread(target=ask, name=f"egress-ask-{ident}", daemon=True).start()

    def _settle(self) -> None:
        replies: list[Message] = []
        with contextlib.suppress(queue.Empty):
            while True:
                waiting, approved, because = self._answers.get_nowait()
                ident = waiting.message.id
                # A new worker numbers its questions from one again: an answer is for its own question alone.
                if self.answerer.waiting.get(ident) is waiting:
                    replies += self.answerer.settle(ident, approved=approved, because=because)
        seconds = self.options.ask_millis / 1000
        because = f"held {seconds:g} s for a person's answer, and none came"
        if self._approve is None:
            because = "a person has to allow this first, and nobody can be asked while a command runs"
        for ident in self.answerer.overdue(self.answerer.clock()):
            replies += self.answerer.settle(ident, approved=False, because=because)
        self._send(replies)

    def _send(self, messages: list[Message]) -> None:
        near = self._channel
        if not messages or near is None:
            return
        for packet in asking.pack(messages):
            with contextlib.suppress(OSError):
                while True:
                    try:
                        near.send(packet)
                        break
                    except BlockingIOError:
                        if not is_ready(near, select.POLLOUT, 2.0):
                            break  # a worker that does not read gets no verdict, and so allows nothing

    def _reap(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        process = self._process
        if process is not None:
            try:
                process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.answerer.ready = None

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake[1], b"!")


def is_ready(end: socket.socket, events: int, seconds: float) -> bool:
    """Whether this comes within the time. By poll: ``select`` knows no descriptor above 1,023, and a supervisor has 4,096."""
    poller = select.poll()
    poller.register(end, events)
    return bool(poller.poll(max(0.0, seconds) * 1000))


def warm() -> None:
    """Keep one worker process ready, with everything imported, so that the next box waits for none. Cheap to repeat."""
    SHELF.warm()


def cool() -> None:
    """End the process kept ready, as when the supervisor stops."""
    SHELF.clear()


def _now() -> Micros:
    return Micros(time.time_ns() // 1000)
