"""HTTP/1 over one allowed connection: every further request is read, checked and asked before it leaves.

A connection that carries many requests is where a second Host (fronting) or a request hidden in a body (smuggling) would
slip through. The answers pass untouched; only where a change of protocol is awaited, the first status is read.
"""

import contextlib
import time

from ringfence.egress import http1
from ringfence.egress.loop import Answer, Stream, TimedOut
from ringfence.egress.opening import Opening, RefusedError, check_head
from ringfence.egress.placeholders import Watch, no_placeholder, tokens_in
from ringfence.egress.relay import reset
from ringfence.egress.session import Session
from ringfence.egress.sieve import Sieve

SWITCHING, NO_STATUS = 101, -1


async def carry_http(session: Session, upstream: Stream, opening: Opening) -> str:
    """Carry the requests of a connection, the first already allowed. Returns the log's word for its end."""
    head, data = opening.head, opening.data
    assert head is not None
    down = Downstream(session, upstream)
    session.services.loop.spawn(down.run())
    try:
        while True:
            last = http1.hides_a_request(head)
            await send(session, upstream, http1.closing(data, head) if last else data[: head.length])
            data = await send_body(session, upstream, http1.Body.of(head), data[head.length :])
            if head.upgrade is not None and await switched(session, down):
                await _opaque(session, upstream, data)
                break
            if last:
                break
            following = await next_head(session, data)
            if following is None:
                upstream.end_writing()
                break
            head, data = following
            later_request(head)
            check_head(head, session.host, session.port)
            no_placeholder(head, session.host.text, session.port)
            await session.ask_request(head)
        return await down.until_ended(session.services.idle)
    except RefusedError:
        down.stop()
        raise


async def send(session: Session, upstream: Stream, data: bytes) -> None:
    """Send bytes of the box on, counted."""
    if data:
        await upstream.send_all(data, time.monotonic() + session.services.idle)
        session.traffic.sent += len(data)


async def send_body(session: Session, upstream: Stream, body: http1.Body, data: bytes) -> bytes:
    """Send one body on; returns what follows it."""
    watch = Watch(session.host.text, session.port)
    while True:
        try:
            count = body.take(data)
        except http1.BadRequestError as error:
            raise RefusedError("egress/bad-request", str(error), "http") from None
        watch.see(data[:count], body.drain())
        await send(session, upstream, data[:count])
        if body.done:
            return data[count:]
        data = await session.from_box(65_536)
        if not data:
            raise ConnectionAbortedError("a body cut short")


async def next_head(session: Session, data: bytes) -> tuple[http1.Head, bytes] | None:
    """The next request head with the bytes it is in, ``None`` at the end of the connection."""
    while True:
        try:
            head = http1.read_head(data) if data else None
        except http1.BadRequestError as error:
            raise RefusedError("egress/bad-request", str(error), "http") from None
        if head is not None:
            return http1.without_offer(head, data)
        piece = await session.from_box(16_384)
        if not piece:
            return None
        data += piece


def later_request(head: http1.Head) -> None:
    """Raise RefusedError where a connection's second or later request wants another protocol: nobody follows which answer is its."""
    if head.upgrade is not None:
        raise RefusedError("egress/upgrade", "only a connection's first request may change the protocol", "http")


async def switched(session: Session, down: "Downstream") -> bool:
    """Whether the server agreed to another protocol (101), so that the rest is opaque. Until it is known nothing leaves."""
    status = await down.first_status(time.monotonic() + session.services.hello)
    if not status:
        raise RefusedError("egress/upgrade", "the server did not answer whether it changes the protocol", "http")
    return status == SWITCHING


async def _opaque(session: Session, upstream: Stream, data: bytes) -> None:
    await send(session, upstream, data)
    while data := await session.from_box(65_536):
        await send(session, upstream, data)
    upstream.end_writing()


class Downstream:
    """Answers on their way to the box: moved as they are."""

    def __init__(self, session: Session, upstream: Stream, *, watch: bool = False) -> None:
        """One for a connection. ``watch``: look for a model's token counts in the answers."""
        self.session, self.upstream, self.watch = session, upstream, watch
        self.sieve = Sieve()
        self._seam = b""
        self._answer = (0, 0)
        self.ended = Answer(session.services.loop)
        self._status = Answer(session.services.loop)
        self._head = b""
        self.sending = False
        """Whether an answer is on its way at this moment."""
        self._stopped = False

    async def run(self) -> None:
        """Task: move until the server ends, or ``stop``."""
        client, traffic, loop = self.session.client, self.session.traffic, self.session.services.loop
        word = "closed"
        try:
            while data := await self.upstream.recv(65_536):
                traffic.received += len(data)
                traffic.moved = loop.now
                self.sending = True
                await client.send_all(self.sieve.sift(data, self.session.host.text))
                self.sending = False
                if self._status.value is None:
                    self._watch(data)
                if self.watch:
                    self._count_tokens(data)
            await client.send_all(self.sieve.rest())
            with contextlib.suppress(OSError):  # the box may be gone: it has all that it asked for
                client.end_writing()
        except RefusedError as refusal:
            self.session.tell_refusal(refusal)
            word = "refused"
            reset(client)
            reset(self.upstream)
        except OSError:
            word = "reset"
            if not self._stopped:
                reset(client)
                reset(self.upstream)
        self.next_answer()
        if self._status.value is None:
            self._status.deliver(NO_STATUS)
        self.ended.deliver(word)

    def stop(self) -> None:
        """No further byte of the server: what follows is our refusal. In the middle of an answer, that is a reset."""
        self._stopped = True
        if self.sending:
            reset(self.session.client)
        self.upstream.close()

    async def until_ended(self, idle: float) -> str:
        """Wait for the server's end; returns the log's word."""
        while True:
            try:
                return str(await self.ended.wait(time.monotonic() + idle))
            except TimedOut:
                if time.monotonic() - self.session.traffic.moved >= idle:
                    return "idle"

    async def first_status(self, deadline: float) -> int:
        """Status of the first answer; 0 where it was none, or never came."""
        try:
            return int(await self._status.wait(deadline))
        except TimedOut:
            return 0

    def _count_tokens(self, data: bytes) -> None:
        """Counts in one answer only grow, so the largest of each is that answer's."""
        found = tokens_in(self._seam + data)
        self._seam = (self._seam + data)[-64:]
        self._answer = max(self._answer[0], found[0]), max(self._answer[1], found[1])

    def next_answer(self) -> None:
        """A further request leaves: what the last answer told is added up."""
        before, last = self.session.tokens, self._answer
        self.session.tokens = before[0] + last[0], before[1] + last[1]
        self._answer, self._seam = (0, 0), b""

    def _watch(self, data: bytes) -> None:
        self._head += data
        try:
            status = http1.status_of(self._head)
        except http1.BadRequestError:
            status = NO_STATUS
        if status is not None:
            self._status.deliver(status)
            self._head = b""
