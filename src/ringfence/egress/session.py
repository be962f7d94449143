"""One connection of the box: what it wants is found out, asked, answered, carried out and told. Same for every entry.

The order never changes: name and first bytes, the floor for literals, the verdict, only then resolving and dialling.
Every refusal is said in the protocol that was spoken.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from ringfence.egress import http1
from ringfence.egress.asking import Ask, Ended, Refused, Try, Verdict
from ringfence.egress.dial import Dialer, DialFailure
from ringfence.egress.link import Link
from ringfence.egress.loop import Loop, Stream, TimedOut, first_to_speak
from ringfence.egress.opening import WEB_PORTS, Opening, RefusedError, check, classify
from ringfence.egress.placeholders import no_placeholder
from ringfence.egress.refuse import refusal_bytes
from ringfence.egress.relay import Traffic, farewell, relay, reset
from ringfence.egress.rules import Address, Host, floor, odd_labels

SILENT = 0.15  # seconds that a client on a port that is not the web's is given to speak first


@dataclass(slots=True, kw_only=True)
class Services:
    """What a session works with; one set a worker. Times are seconds."""

    loop: Loop
    link: Link
    dialer: Dialer
    hello: float
    idle: float
    encrypted_hello: bool
    carry_http: "Callable[[Session, Stream, Opening], Awaitable[str]]"
    """Set from outside: HTTP is carried by a file that builds upon this one."""
    inspect: "Callable[[Session, Opening], Awaitable[None]] | None" = None
    judges_bodies: bool = False
    """The policy has patterns over bodies: requests in the clear are read whole as well."""


@dataclass(slots=True, kw_only=True)
class Session:
    """State of one connection. ``granted`` is what the entry's own protocol (CONNECT, SOCKS) says once it is allowed."""

    services: Services
    client: Stream
    host: Host
    port: int
    entry: str
    source: tuple[str, int] = ("", 0)
    target: tuple[str, int] = ("", 0)
    granted: bytes = b""
    denied: Callable[[str, str], bytes] | None = None
    """Words of refusal in the entry's own protocol, given rule and reason; ``None``: in the connection's."""
    seen: bytes = b""
    flags: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    id: int = 0
    protocol: str = "tcp"
    dialled: str = ""
    traffic: Traffic = field(default_factory=Traffic)
    started: float = field(default_factory=time.monotonic)

    def subject(self, protocol: str, head: http1.Head | None = None, body: str | None = None) -> Try:
        """What the supervisor is told of: the connection, or one request on it."""
        method, path, query = "", "", None
        if head is not None:
            method = head.method
            path, query = http1.split_target(head.target)
        named = self.host.address is None
        return Try(
            host=self.host.text,
            port=self.port,
            protocol=protocol,
            entry=self.entry,
            address="" if named else self.host.text,
            method=method,
            path=path,
            query=query,
            body=body,
            source=self.source,
            target=self.target,
            flags=("odd-labels",) if named and odd_labels(self.host.text) else (),
        )

    async def run(self, part: Callable[[], Awaitable[None]] | None = None) -> None:
        """From first bytes to last. Never raises for anything the box or a server does.

        ``part`` takes the place of finding out, asking and carrying, for entries that know better.
        """
        try:
            self.forbid_floor()
            await (part() if part is not None else self._run_granted() if self.granted else self._run_bare())
        except RefusedError as refusal:
            self.tell_refusal(refusal)
            await self.refuse(refusal.protocol, refusal.rule, refusal.because)
        except (OSError, TimedOut):
            reset(self.client)
        finally:
            self.end("reset")
            self.client.close()

    async def _run_bare(self) -> None:
        """Captured: the first bytes are there, or come, before anything is asked."""
        opening = await self.opening()
        self.check(opening)
        verdict = await self.ask(opening)
        if not verdict.allow:
            await self.refuse(opening.protocol, verdict.rule, verdict.because)
        elif verdict.inspect or self._reads(opening):
            await self._inspect(opening)
        else:
            if opening.head is not None:
                await self.ask_overrides(opening.head)
            upstream = await self.connect(opening.protocol)
            if upstream is not None:
                await self.carry(opening, upstream)

    async def _run_granted(self) -> None:
        """Through a proxy entry: the client speaks only once it is told that it may."""
        verdict = await self.ask(Opening(protocol="tcp"))
        if not verdict.allow:
            await self.refuse("tcp", verdict.rule, verdict.because)
            return
        upstream = None if verdict.inspect else await self.connect("tcp")
        if upstream is None and not verdict.inspect:
            return
        try:
            await self.client.send_all(self.granted)
            self.granted = b""
            opening = await self.opening()
            self.check(opening)
            if upstream is None or self._reads(opening):
                await self._inspect(opening)
                return
            if opening.head is not None:
                await self.ask_request(opening.head)
            await self.carry(opening, upstream)
        finally:
            if upstream is not None:
                upstream.close()

    def _reads(self, opening: Opening) -> bool:
        return opening.head is not None and self.services.judges_bodies

    async def _inspect(self, opening: Opening) -> None:
        if self.services.inspect is None:
            raise RefusedError(
                "egress/cannot-inspect", "the rule needs inspection, which is not set up", opening.protocol
            )
        await self.services.inspect(self, opening)

    def forbid_floor(self) -> None:
        """Refuse a literal address that nothing opens, before anybody is asked."""
        if self.host.address is not None:
            kind = floor(self.host.address)
            if kind is not None and not kind.liftable:
                raise RefusedError(f"floor/{kind.value}", f"{self.host.text} is a {kind.value} address", self._guess())

    def _guess(self) -> str:
        return "http" if self.port == 80 and not self.granted else "tcp"

    async def opening(self) -> Opening:
        """What the box says first, whole if it is a TLS hello or a request head."""
        web = self.port in WEB_PORTS
        begun = time.monotonic()
        deadline = begun + (self.services.hello if web else SILENT)
        data = self.seen
        while (found := classify(data)) is None:
            if data:
                deadline = begun + self.services.hello
            try:
                piece = await self.client.recv(16_384, deadline)
            except TimedOut:
                if web or data:
                    raise RefusedError("egress/no-hello", "said nothing that could be checked, in time") from None
                return Opening(protocol="tcp")
            except OSError:
                if self.id:
                    raise
                raise RefusedError("egress/no-hello", "reset before it said what could be checked") from None
            if not piece:
                if web or data:
                    raise RefusedError("egress/no-hello", "closed before it said what could be checked")
                return Opening(protocol="tcp")
            data += piece
        return found

    def check(self, opening: Opening) -> None:
        """Raise RefusedError unless the first bytes agree with the name decided upon."""
        self.protocol = opening.protocol
        check(opening, self.host, self.port, encrypted_hello=self.services.encrypted_hello)
        if opening.head is not None and self.protocol != "https":
            no_placeholder(opening.head, self.host.text, self.port)

    async def ask(self, opening: Opening) -> Verdict:
        """The supervisor's verdict on this connection."""
        self.id = self.services.link.number()
        self.protocol = opening.protocol
        subject = self.subject(opening.protocol, opening.head)
        also = http1.other_reading(subject.path) if subject.path else None
        verdict = await self.services.link.ask_connection(Ask(id=self.id, subject=subject, also_path=also))
        if not verdict.allow:
            self.id = 0
        return verdict

    @property
    def closed(self) -> bool:
        """Whether the box's end is gone."""
        return self.client.closed

    async def ask_request(self, head: http1.Head, *, credential: str = "", body: str | None = None) -> Verdict:
        """The verdict on one request of an allowed connection. Raises RefusedError unless it is ALLOW."""
        subject = self.subject("https" if self.protocol == "https" else "http", head, body)
        question = Ask(
            id=self.services.link.number(),
            subject=subject,
            whole=False,
            connection=self.id,
            credential=credential,
            also_path=http1.other_reading(subject.path),
        )
        verdict = await self.services.link.ask(question)
        if not verdict.allow:
            raise RefusedError(verdict.rule, verdict.because, "http")
        await self.ask_overrides(head)
        return verdict

    async def ask_overrides(self, head: http1.Head) -> None:
        """Ask about a request as servers see it that let a header take the method's place. Raises RefusedError."""
        for method in http1.overrides(head):
            kept = tuple(item for item in head.headers if item[0].lower() not in http1.METHOD_OVERRIDES)
            await self.ask_request(replace(head, method=method, headers=kept))

    async def carry(self, opening: Opening, upstream: Stream) -> None:
        """Move the bytes of an allowed, dialled connection until it ends."""
        idle = self.services.idle
        try:
            if not opening.data:
                opening = await self._late_opening(upstream)
            if self._reads(opening):
                await self._inspect(opening)
                return
            if opening.head is not None:
                self.end(await self.services.carry_http(self, upstream, opening))
                return
            if opening.data:
                await upstream.send_all(opening.data, time.monotonic() + idle)
                self.traffic.sent += len(opening.data)
            late = None if opening.data else self._late_check
            self.end(await relay(self.services.loop, self.client, upstream, self.traffic, idle=idle, check=late))
        except TimedOut:
            self.end("idle")
            raise
        finally:
            upstream.close()

    async def _late_opening(self, upstream: Stream) -> Opening:
        """What a client says that was silent at first, judged like any other; nothing where the server speaks before it."""
        speaker = await first_to_speak(self.client, upstream, time.monotonic() + self.services.idle)
        if speaker is upstream:
            return Opening(protocol="tcp")
        opening = await self.opening()
        self.check(opening)
        if opening.head is not None:
            await self.ask_request(opening.head)
        return opening

    async def connect(self, protocol: str) -> Stream | None:
        """A stream to the decided host, or ``None`` after having told both sides why not."""
        try:
            upstream, self.dialled = await self.services.dialer.dial(self.host, self.port, self._literal_allowed)
        except DialFailure as error:
            self.dialled = error.address
            self.end(error.outcome, rule=error.rule, because=error.because)
            await self.refuse(protocol, error.rule or f"egress/{error.outcome}", error.because)
            return None
        return upstream

    async def _literal_allowed(self, address: Address) -> bool:
        subject = Try(host=str(address), port=self.port, protocol="tcp", entry=self.entry)
        question = Ask(id=self.services.link.number(), subject=subject, whole=False, literal_only=True)
        return (await self.services.link.ask(question)).allow

    def _late_check(self, first: bytes) -> bool:
        """The first bytes of a client that let the server speak first; False ends the connection."""
        if not first:
            return True
        try:
            found = classify(first)
            if found is None:
                # A hello or head in pieces, after a silence: nobody careful sends that.
                raise RefusedError("egress/no-hello", "began late, and in pieces, what could have been checked")
            self.check(found)
        except RefusedError as refusal:
            self.tell_refusal(refusal)
            return False
        return True

    async def refuse(self, protocol: str, rule: str, because: str) -> None:
        """Tell the box, in the protocol it spoke, and close."""
        if self.granted:
            words = self.denied(rule, because) if self.denied is not None else b""
        else:
            words = refusal_bytes(protocol, self.host.text, self.port, rule, because)
        if words:
            await farewell(self.client, words)
        else:
            reset(self.client)

    async def from_box(self, count: int) -> bytes:
        """Up to ``count`` bytes of the box. Raises TimedOut once neither side has said anything for the idle time."""
        while True:
            try:
                return await self.client.recv(count, time.monotonic() + self.services.idle)
            except TimedOut:
                if time.monotonic() - self.traffic.moved >= self.services.idle:
                    raise

    def tell_refusal(self, refusal: RefusedError) -> None:
        """Tell the supervisor of something refused by construction, before or after an ALLOW."""
        if self.id:
            self.end("refused", rule=refusal.rule, because=refusal.because)
        else:
            subject = self.subject(refusal.protocol)
            self.services.link.tell(Refused(subject=subject, rule=refusal.rule, because=refusal.because[:300]))

    def end(self, outcome: str, *, rule: str = "", because: str = "", flags: tuple[str, ...] = ()) -> None:
        """Tell the supervisor that this allowed connection is over. Only the first call counts."""
        if not self.id:
            return
        ended = Ended(
            id=self.id,
            sent=self.traffic.sent,
            received=self.traffic.received,
            micros=int((time.monotonic() - self.started) * 1_000_000),
            outcome=outcome,
            protocol=self.protocol,
            address=self.dialled,
            rule=rule,
            because=because[:300],
            flags=(*self.flags, *flags),
            tokens=self.tokens,
        )
        self.id = 0
        self.services.link.tell(ended)
