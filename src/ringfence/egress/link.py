"""The worker's end of the conversation with the supervisor: questions out, verdicts in, nothing allowed meanwhile."""

import contextlib
import socket
import time
from dataclasses import dataclass, field

from ringfence.egress.asking import Ask, Held, Message, Stop, ToWorker, Verdict, from_supervisor, pack
from ringfence.egress.loop import Answer, Loop, Stream, TimedOut

MAX_QUEUE = 4096
PACKET = 256 * 1024
GRACE = 5.0  # beyond the time a person is given, for the answer's way back


@dataclass(slots=True)
class Link:
    """Sends messages in batches, one packet a round of the loop; pairs verdicts with the questions they answer."""

    loop: Loop
    stream: Stream
    ask_seconds: float
    _out: list[Message] = field(default_factory=list)
    _open: dict[int, Answer] = field(default_factory=dict)
    _count: int = 0
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
        """Queue a message; it leaves in this round, in order."""
        self._out.append(message)
        if self._flusher is not None:
            self._flusher.deliver(True)

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
            while not self._out:
                self._flusher = Answer(self.loop)
                await self._flusher.wait(None)
                self._flusher = None
            batch, self._out = self._out, []
            for packet in pack(batch):
                await self._send(packet)

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
            while True:
                packet = await self.stream.recv(PACKET)
                if not packet:
                    break
                if any(self._take(message) for message in from_supervisor(packet)):
                    break
        self.loop.stop()

    def _take(self, message: ToWorker) -> bool:
        if isinstance(message, Verdict | Held):
            answer = self._open.get(message.id)
            if answer is not None:
                answer.deliver(message)
        return isinstance(message, Stop)


def channel() -> tuple[socket.socket, socket.socket]:
    """A pair that keeps the bounds of packets; first the supervisor's end."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (near, far):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 512 * 1024)
    return near, far
