"""Inspection on request: TLS is ended here with the mission's own certificate, every request is judged, then sent on.

Only where a rule asks for it. HTTP/1.1 is spoken on both sides; what cannot be inspected is refused, never let pass.
"""

import ssl
import time
from dataclasses import dataclass, replace

from ringfence.egress import bodies, http1, placeholders
from ringfence.egress.asking import Binding
from ringfence.egress.authority import Authority
from ringfence.egress.httpflow import Downstream, later_request, next_head, switched
from ringfence.egress.loop import Stream, TimedOut
from ringfence.egress.opening import Opening, RefusedError, check_head, check_overrides
from ringfence.egress.placeholders import Use
from ringfence.egress.session import Session
from ringfence.egress.sieve import shapes
from ringfence.egress.tlsstream import TlsStream

WINDOW = 48 * 1024
MAX_BUFFERED = 64 * 1024 * 1024
HOP = frozenset({"proxy-connection", "proxy-authorization"})
ECHOING = frozenset({"TRACE", "TRACK"})
UNREADABLE = frozenset({"accept-encoding", "te"})
"""Headers that ask for answers which could not be read for token counts, or for a value that comes back."""
SPOKEN = "http/1.1"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class Inspector:
    """Ends and begins TLS for inspected connections, and for a mission's model endpoints."""

    authority: Authority | None
    upstream: ssl.SSLContext
    bindings: tuple[Binding, ...]
    body_cap: int
    judge_bodies: bool
    buffered: int = 0
    """Bytes of bodies held at this moment, over all connections."""

    async def inspect(self, session: Session, opening: Opening) -> None:
        """Serve one inspected connection to its end."""
        if opening.hello is not None and opening.hello.alpn and SPOKEN not in opening.hello.alpn:
            offered = ", ".join(opening.hello.alpn)
            because = f"the program speaks {offered[:100]!r} and not HTTP/1.1, which inspection needs"
            raise RefusedError("egress/not-inspectable", because, "tls")
        if opening.hello is not None and self.authority is not None:
            data = await self._end_tls(session, self.authority, opening)
        elif opening.head is not None:
            data = opening.data
        else:
            because = "this rule needs inspection, and only HTTP and TLS can be inspected"
            raise RefusedError("egress/cannot-inspect", because, opening.protocol)
        session.flags = (*session.flags, "inspected")
        exchange = Exchange(self, session, secure=opening.hello is not None)
        await exchange.serve(data)

    async def endpoint(self, session: Session, binding: Binding) -> None:
        """Serve one connection to a model endpoint: plain HTTP in the box, TLS and the real key outside."""
        verdict = await session.ask(Opening(protocol="http"))
        if not verdict.allow:
            raise RefusedError(verdict.rule, verdict.because, "http")
        session.protocol = "https"
        exchange = Exchange(self, session, secure=True, binding=binding)
        await exchange.serve(b"")

    async def _end_tls(self, session: Session, authority: Authority, opening: Opening) -> bytes:
        context = authority.context(session.host.text)
        tls = TlsStream(session.client, context, server=True, seen=opening.data)
        try:
            await tls.handshake(time.monotonic() + session.services.hello)
        except (OSError, TimedOut) as error:  # ssl.SSLError is an OSError
            raise RefusedError("egress/not-inspectable", _why_not(error)) from error
        session.client = tls
        session.protocol = "https"
        return b""


class Exchange:
    """The requests of one inspected connection."""

    def __init__(self, inspector: Inspector, session: Session, *, secure: bool, binding: Binding | None = None) -> None:
        """``binding`` is set for a model endpoint: where all of its requests go."""
        self.inspector, self.session, self.secure, self.binding = inspector, session, secure, binding
        self.upstream: Stream | None = None
        self.down: Downstream | None = None
        self._held = 0

    async def serve(self, data: bytes) -> None:
        """Judge and carry requests until the box or the server ends. Ends the session."""
        session = self.session
        try:
            while (following := await next_head(session, data)) is not None:
                head, data = following
                data = await self._request(head, data)
                if session.closed:
                    return
                if http1.hides_a_request(head) and self.down is not None:
                    session.end(await self.down.until_ended(session.services.idle))
                    return
                if head.upgrade is not None and self.down is not None and await switched(session, self.down):
                    await self._opaque(data)
                    break
            session.end(await self._rest())
        except RefusedError:
            if self.down is not None:
                self.down.stop()
            raise
        finally:
            self._release()
            if self.upstream is not None:
                self.upstream.close()

    async def _request(self, head: http1.Head, data: bytes) -> bytes:
        """One request: judged, sent, and what follows it returned."""
        session = self.session
        if self.binding is None:
            check_head(head, session.host, session.port)
        elif head.method == "CONNECT" or head.upgrade is not None:
            raise RefusedError("egress/bad-request", "a model endpoint takes plain requests only", "http")
        check_overrides(head)
        if head.upgrade is not None and self.inspector.judge_bodies:
            because = "what follows a change of protocol cannot be read, and the policy has patterns over bodies"
            raise RefusedError("egress/not-inspectable", because, "http")
        if self.down is not None:
            later_request(head)
        path = self._path(head)
        use = placeholders.find(head, self.inspector.bindings, session.host.text, session.port, path)
        body, texts, data = await self._whole_body(head, data)
        secret = await self._judge(head, use, texts)
        if self.down is None:
            if not await self._connect():
                return b""
        else:
            self.down.next_answer()
        await self._send(self._outgoing(head, use, secret, drop=HOP if body is None else HOP | {"expect"}))
        if body is not None:
            await self._send(body)
            self._release()
            return data
        return await self._stream_body(head, data)

    def _path(self, head: http1.Head) -> str:
        try:
            return http1.split_target(head.target)[0]
        except http1.BadRequestError as error:
            raise RefusedError("egress/bad-request", str(error), "http") from None

    async def _judge(self, head: http1.Head, use: Use | None, texts: tuple[bytes, ...]) -> str:
        """Ask about the request, with its body in windows where bodies are judged. Returns the secret, if one is due."""
        name = use.binding.name if use is not None else self.binding.name if self.binding is not None else ""
        if name and head.method in ECHOING:
            raise RefusedError("egress/secret-returned", f"{head.method} would send a credential's value back", "http")
        windows = [window for text in texts for window in _windows(text)]
        verdict = await self.session.ask_request(head, credential=name, body=windows[0] if windows else None)
        for window in windows[1:]:
            await self.session.ask_request(head, body=window)
        if name and not verdict.secret:
            because = verdict.without or "the credential for this request could not be had"
            raise RefusedError("egress/no-credential", because, "http")
        return verdict.secret

    async def _whole_body(self, head: http1.Head, data: bytes) -> tuple[bytes | None, tuple[bytes, ...], bytes]:
        """The head's body read to its end where bodies are judged (else ``None``), what it says, and what follows it."""
        rest = data[head.length :]
        if not self.inspector.judge_bodies:
            return None, (), rest
        taken = bytearray()
        body = http1.Body.of(head)
        if not body.done and not rest and (head.one("expect") or "").lower() == "100-continue":
            await self._invite()
        while True:
            count = _take(body, rest)
            taken += rest[:count]
            self._hold(count)
            self._cap(len(taken))
            if body.done:
                break
            rest = await self._more()
        payload = body.drain()
        placeholders.Watch(self.session.host.text, self.session.port).see(bytes(taken), payload)
        return bytes(taken), self._readings(head, payload), rest[count:]

    async def _invite(self) -> None:
        """Have the body sent by a program that waits to be told so: the server is not asked before it was judged."""
        if self.down is None or not self.down.sending:
            await self.session.client.send_all(CONTINUE, time.monotonic() + self.session.services.idle)

    def _readings(self, head: http1.Head, payload: bytes) -> tuple[bytes, ...]:
        """The payload as it is, and as a server reads it that undoes its compression."""
        try:
            plain = bodies.decoded(payload, head.all("content-encoding"), limit=self.inspector.body_cap)
        except bodies.TooLargeError:
            raise self._too_large() from None
        except bodies.BadBodyError as error:
            raise RefusedError("egress/not-inspectable", str(error), "http") from None
        self._hold(0 if plain is None else len(plain))
        return (payload,) if plain is None else (payload, plain)

    async def _stream_body(self, head: http1.Head, rest: bytes) -> bytes:
        """Send a body on as it comes, looking for placeholders across the seams of its pieces."""
        watch = placeholders.Watch(self.session.host.text, self.session.port)
        body = http1.Body.of(head)
        while True:
            count = _take(body, rest)
            watch.see(rest[:count], body.drain())
            await self._send(rest[:count])
            if body.done:
                return rest[count:]
            rest = await self._more()

    def _hold(self, count: int) -> None:
        """Account for bytes held for judging. Many large bodies at once must not fill the worker's memory."""
        self._held += count
        self.inspector.buffered += count
        if self.inspector.buffered > MAX_BUFFERED:
            raise RefusedError("egress/body-too-large", "too many large request bodies at once", "http")

    def _release(self) -> None:
        self.inspector.buffered -= self._held
        self._held = 0

    def _cap(self, total: int) -> None:
        if total > self.inspector.body_cap:
            raise self._too_large()

    def _too_large(self) -> RefusedError:
        return RefusedError("egress/body-too-large", f"a request body above {self.inspector.body_cap} bytes", "http")

    async def _more(self) -> bytes:
        piece = await self.session.from_box(65_536)
        if not piece:
            raise ConnectionAbortedError("a body cut short")
        return piece

    async def _send(self, data: bytes) -> None:
        if data and self.upstream is not None:
            await self.upstream.send_all(data, time.monotonic() + self.session.services.idle)
            self.session.traffic.sent += len(data)

    async def _connect(self) -> bool:
        """Dial and, for TLS, check the server's certificate. False: refused and told."""
        session = self.session
        raw = await session.connect("http")
        if raw is None:
            return False
        self.upstream = raw
        if self.secure:
            tls = TlsStream(raw, self.inspector.upstream, server=False, hostname=session.host.text)
            try:
                await tls.handshake(time.monotonic() + session.services.hello)
            except (OSError, TimedOut) as error:
                because = f"TLS with {session.host.text} failed: {_reason(error)}"
                raise RefusedError("egress/upstream-tls", because, "http") from error
            self.upstream = tls
        self.down = Downstream(session, self.upstream, watch=self.binding is not None)
        session.services.loop.spawn(self.down.run())
        return True

    def _outgoing(self, head: http1.Head, use: Use | None, secret: str, *, drop: frozenset[str]) -> bytes:
        session, binding = self.session, self.binding
        if http1.hides_a_request(head):
            kept = tuple(item for item in head.headers if item[0].lower() not in {"connection", "keep-alive"})
            head = replace(head, headers=(*kept, ("Connection", "close")))
        default = 443 if self.secure else 80
        host = session.host.text if session.port == default else f"{session.host.text}:{session.port}"
        if binding is None and use is None:
            return placeholders.rewrite(head, head.target, host, None, "", drop=drop)
        drop |= UNREADABLE
        if binding is None:
            assert use is not None
            self._look_for(secret, placeholders.sent_by(head, use, secret))
            return placeholders.rewrite(head, head.target, host, use, secret, drop=drop)
        drop |= {"authorization", "x-api-key", binding.header.lower()}
        bare = placeholders.rewrite(head, head.target, host, None, "", drop=drop)
        value = f"Bearer {secret}" if binding.header.lower() == "authorization" else secret
        self._look_for(secret, value)
        return bare[:-2] + f"{binding.header}: {value}\r\n\r\n".encode("latin-1", "replace")

    def _look_for(self, secret: str, sent: str) -> None:
        assert self.down is not None
        self.down.sieve.values.update(shapes(secret, sent))

    async def _opaque(self, data: bytes) -> None:
        await self._send(data)
        while piece := await self.session.from_box(65_536):
            await self._send(piece)

    async def _rest(self) -> str:
        if self.upstream is None or self.down is None:
            return "closed"
        self.upstream.end_writing()
        return await self.down.until_ended(self.session.services.idle)


def _take(body: http1.Body, data: bytes) -> int:
    try:
        return body.take(data)
    except http1.BadRequestError as error:
        raise RefusedError("egress/bad-request", str(error), "http") from None


def _windows(text: bytes) -> list[str]:
    """Pieces that a question has room for, each with the end of the one before."""
    return [text[max(0, at - 1024) : at + WINDOW].decode("utf-8", "replace") for at in range(0, len(text), WINDOW)]


def _why_not(error: BaseException) -> str:
    """Why a program and the worker did not agree on TLS. What a program does not like it says by an alert, or by going."""
    reason = (isinstance(error, ssl.SSLError) and error.reason) or ""
    if reason and "ALERT" not in reason and "EOF" not in reason:
        return f"TLS with the program could not be agreed on: {reason.lower().replace('_', ' ')}"
    return (
        "the program did not accept the mission's certificate: it pins its own, or does not read the box's trust store"
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return "no answer in time" if isinstance(error, TimedOut) else type(error).__name__
