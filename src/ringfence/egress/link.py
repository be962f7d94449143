"""The worker's end of the conversation with the supervisor: questions out, verdicts in, nothing allowed meanwhile."""

import contextlib
import socket
import time
from dataclasses import dataclass, field

from msgspec.structs import replace

from ringfence.egress.asking import (
    Ask,
    Ended,
    Held,
    Here,
    Look,
    Message,
    Refused,
    Reused,
    Stop,
    ToWorker,
    Try,
    Verdict,
    from_supervisor,
    pack,
)
from ringfence.egress.loop import Answer, Loop, Stream, TimedOut

MAX_QUEUE = 4096
MAX_STANDING, STANDING_CHARACTERS = 1024, 1024
MERGE_FROM = 4
PACKET = 256 * 1024
LAZY = 0.02  # seconds that the end of a connection may wait to be told
WIND_DOWN = 2.0  # seconds in which what the box tried before its end is still taken and told
GRACE = 5.0  # beyond the time a person is given, for the answer's way back


@dataclass(slots=True)
class Link:
    """Sends messages in batches, one packet a round of the loop; pairs verdicts with the questions they answer."""

    loop: Loop
    stream: Stream
    ask_seconds: float
    standing: dict[Try, tuple[float, Verdict]] = field(default_factory=dict)
    """Verdicts that hold for a moment, by what they are about."""
    _out: list[Message] = field(default_factory=list)
    _leaving: list[bytes] = field(default_factory=list)
    """Packets that wait for room, the next one last."""
    _open: dict[int, Answer] = field(default_factory=dict)
    _count: int = 0
    _urgent: bool = False
    _flusher: Answer | None = None

    @property
    def crowded(self) -> bool:
        """The supervisor does not keep up: take nothing new in, so that memory stays bounded."""
        return len(self._out) >= MAX_QUEUE or len(self._open) >= MAX_QUEUE

    def number(self) -> int:
        """An id for one question."""
        self._count += 1
        return self._count

    def tell(self, message: Message) -> None:
        """Queue a message; it leaves in this round, in order. Only the end of a connection may wait for company.

        The supervisor knows of every connection that is open, so an end that a kill swallows is still a counted try.
        """
        self._out.append(message)
        self._urgent = self._urgent or not isinstance(message, Ended)
        if self._flusher is not None and (self._urgent or len(self._out) == 1):
            self._flusher.deliver(True)

    async def ask_connection(self, question: Ask) -> Verdict:
        """The verdict on a connection; a standing one is told instead of asked for."""
        plain = replace(question.subject, source=("", 0), target=("", 0))
        kept = self.standing.get(plain)
        if kept is not None and kept[0] > time.monotonic():
            verdict = kept[1]
            if not verdict.allow:
                self.tell(Refused(subject=question.subject, rule=verdict.rule, because=verdict.because[:300]))
                return verdict
            self.tell(Reused(id=question.id, subject=question.subject, rule=verdict.rule, because=verdict.because))
            return verdict
        verdict = await self.ask(question)
        if verdict.reuse and len(plain.path) + len(plain.query or "") <= STANDING_CHARACTERS:
            if len(self.standing) >= MAX_STANDING:
                self.standing.clear()
            self.standing[plain] = time.monotonic() + verdict.reuse / 1000, verdict
        return verdict

    async def ask(self, question: Ask) -> Verdict:
        """The verdict. No answer in time is a refusal, and so is everything else that goes wrong."""
        answer = Answer(self.loop)
        self._open[question.id] = answer
        self.tell(question)
        deadline = time.monotonic() + self.ask_seconds
        try:
            while True:
                reply = await answer.wait(deadline)
                if isinstance(reply, Verdict):
                    return reply
                answer.value = None
                deadline = time.monotonic() + reply.millis / 1000 + GRACE
        except TimedOut:
            because = "the supervisor did not answer in time"
            return Verdict(id=question.id, allow=False, rule="egress/no-answer", because=because)
        finally:
            self._open.pop(question.id, None)

    async def write(self) -> None:
        """Task: send what is queued."""
        while True:
            while not self._urgent:
                self._flusher = Answer(self.loop)
                try:
                    await self._flusher.wait(time.monotonic() + LAZY if self._out else None)
                except TimedOut:
                    break
                finally:
                    self._flusher = None
            batch, self._out, self._urgent = self._out, [], False
            self._leaving = pack(merged(batch))[::-1]
            while self._leaving:
                await self._send(self._leaving[-1])
                self._leaving.pop()

    def drain(self) -> None:
        """Send what is still queued, for the last time; waits two seconds at most."""
        self.stream.sock.settimeout(2.0)
        with contextlib.suppress(OSError):
            for packet in [*self._leaving[::-1], *(pack(merged(self._out)) if self._out else ())]:
                self.stream.sock.send(packet)

    async def _send(self, packet: bytes) -> None:
        while True:
            try:
                self.stream.sock.send(packet)
            except BlockingIOError:
                await self.stream.writable()
            else:
                return

    async def read(self) -> None:
        """Task: take verdicts until the supervisor goes; then the worker ends, and with it every connection."""
        with contextlib.suppress(OSError):
            while packet := await self.stream.recv(PACKET):
                for message in from_supervisor(packet):
                    self._take(message)
        self.loop.stop()

    def _take(self, message: ToWorker) -> None:
        if isinstance(message, Verdict | Held):
            answer = self._open.get(message.id)
            if answer is not None:
                answer.deliver(message)
        elif isinstance(message, Look):
            self.tell(Here())
        elif isinstance(message, Stop):
            self.loop.wind_down(lambda: bool(self._open or self._leaving), WIND_DOWN)


def merged(batch: list[Message]) -> list[Message]:
    """Refusals that say the same become one with their count: a flood must not reach the supervisor one by one."""
    if len(batch) < MERGE_FROM:
        return batch
    counts: dict[tuple[str, int, str, str, str], int] = {}
    found: list[Message] = []
    for message in batch:
        if not isinstance(message, Refused):
            found.append(message)
            continue
        subject = message.subject
        key = (subject.host, subject.port, subject.protocol, subject.entry, message.rule)
        at = counts.get(key)
        if at is None:
            counts[key] = len(found)
            found.append(message)
        else:
            first = found[at]
            assert isinstance(first, Refused)
            found[at] = replace(first, count=first.count + message.count)
    return found


def channel() -> tuple[socket.socket, socket.socket]:
    """A pair that keeps the bounds of packets; first the supervisor's end."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (near, far):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 512 * 1024)
    return near, far
