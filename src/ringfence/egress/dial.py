"""From an allowed name to a connected socket: resolved once, every address checked against the floor, that one dialled."""

import contextlib
import errno
import ipaddress
import os
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ringfence.egress import dns
from ringfence.egress.loop import Answer, Loop, Stream, TimedOut
from ringfence.egress.rules import Address, FloorClass, Host, canonical_address, floor

MAX_ADDRESSES = 8
MAX_PINNED = 4096


class DialFailure(Exception):
    """No connection came about. ``outcome`` is the log's word; ``rule`` is set where the floor forbade it."""

    def __init__(self, outcome: str, because: str, rule: str = "", address: str = "") -> None:
        super().__init__(because)
        self.outcome, self.because, self.rule, self.address = outcome, because, rule, address


@dataclass(slots=True)
class Resolver:
    """Asks the host's name servers, only for names that were allowed. Answers are kept for their time to live."""

    loop: Loop
    servers: tuple[tuple[str, int], ...]
    hosts: dict[str, tuple[Address, ...]]
    _pinned: dict[str, tuple[float, tuple[Address, ...]]] = field(default_factory=dict)
    _asking: dict[str, list[Answer]] = field(default_factory=dict)

    async def resolve(self, name: str, deadline: float) -> tuple[Address, ...]:
        """Addresses of a name, IPv4 and IPv6. Raises DialFailure where there are none.

        Many connections to one name at once share one question.
        """
        if name in self.hosts:
            return self.hosts[name]
        kept = self._pinned.get(name)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        if name in self._asking:
            shared = Answer(self.loop)
            self._asking[name].append(shared)
            found = await shared.wait(deadline)
        else:
            self._asking[name] = []
            found = ()
            try:
                found = await self._ask(name, deadline)
            finally:
                for shared in self._asking.pop(name):
                    shared.deliver((found,))
            found = (found,)
        if not found[0]:
            raise DialFailure("not-resolved", f"{name} has no address")
        addresses: tuple[Address, ...] = found[0]
        return addresses

    async def _ask(self, name: str, deadline: float) -> tuple[Address, ...]:
        found: list[Address] = []
        ttl = 300
        for kind in (dns.TYPE_A, dns.TYPE_AAAA):
            reply = await self._query(name, kind, deadline)
            if reply is not None and reply.addresses:
                found.extend(reply.addresses[:MAX_ADDRESSES])
                ttl = min(ttl, reply.ttl)
        addresses = tuple(found)
        if addresses:
            if len(self._pinned) >= MAX_PINNED:
                self._pinned.clear()
            self._pinned[name] = (time.monotonic() + max(1, min(ttl, 300)), addresses)
        return addresses

    async def _query(self, name: str, kind: int, deadline: float) -> dns.Reply | None:
        for server in self.servers[:3]:
            with contextlib.suppress(OSError, TimedOut, dns.BadMessageError):
                reply = await self._exchange(server, name, kind, min(deadline, time.monotonic() + 2.5))
                if reply.truncated:
                    reply = await self._exchange_stream(server, name, kind, deadline)
                if reply.rcode in {dns.Rcode.NOERROR, dns.Rcode.NXDOMAIN}:
                    return reply
        return None

    async def _exchange(self, server: tuple[str, int], name: str, kind: int, deadline: float) -> dns.Reply:
        """One datagram each way; replies that do not fit the question are ignored until the deadline."""
        ident = int.from_bytes(os.urandom(2))
        with _opened(self.loop, server[0], socket.SOCK_DGRAM) as stream:
            stream.sock.connect(server)
            stream.sock.send(dns.ask(ident, name, kind))
            while True:
                message = await stream.recv(4096, deadline)
                with contextlib.suppress(dns.BadMessageError):
                    return dns.read_reply(message, ident, name, kind)

    async def _exchange_stream(self, server: tuple[str, int], name: str, kind: int, deadline: float) -> dns.Reply:
        ident = int.from_bytes(os.urandom(2))
        question = dns.ask(ident, name, kind)
        with _opened(self.loop, server[0], socket.SOCK_STREAM) as stream:
            await _connect(stream, server, deadline)
            await stream.send_all(len(question).to_bytes(2) + question, deadline)
            data = b""
            while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2]):
                piece = await stream.recv(65_537, deadline)
                if not piece:
                    raise dns.BadMessageError("answer cut short")
                data += piece
            return dns.read_reply(data[2 : 2 + int.from_bytes(data[:2])], ident, name, kind)


@dataclass(slots=True)
class Dialer:
    """Connects to what was allowed, and to nothing the floor forbids.

    ``literal_allowed`` asks whether a rule names this very private address; without such a rule the floor stands.
    """

    loop: Loop
    resolver: Resolver
    dial_seconds: float
    _not_own: dict[Address, float] = field(default_factory=dict)

    async def dial(
        self, host: Host, port: int, literal_allowed: Callable[[Address], Awaitable[bool]]
    ) -> tuple[Stream, str]:
        """A connected stream and the address it leads to. Raises DialFailure."""
        deadline = time.monotonic() + self.dial_seconds
        try:
            candidates = (host.address,) if host.address else await self.resolver.resolve(host.text, deadline)
        except TimedOut:
            raise DialFailure("not-resolved", f"{host.text} was not resolved in time") from None
        usable = await self._above_floor(host, candidates, literal_allowed)
        last = "no address answered"
        for address in usable:
            try:
                return await self._try(address, port, deadline), str(address)
            except TimedOut:
                last = "no answer in time"
            except OSError as error:
                last = os.strerror(error.errno) if error.errno else "failed"
        raise DialFailure("unreachable", f"{host.text} port {port}: {last}", address=str(usable[0]))

    async def _above_floor(
        self, host: Host, candidates: tuple[Address, ...], literal_allowed: Callable[[Address], Awaitable[bool]]
    ) -> list[Address]:
        """The candidates that may be dialled. One forbidden address spoils the whole answer: that is how rebinding looks."""
        usable: list[Address] = []
        for raw in candidates:
            address = canonical_address(raw)
            kind = floor(address) or (FloorClass.OWN if self._own(address) else None)
            lifted = kind is not None and kind.liftable and await literal_allowed(address)
            if kind is not None and not lifted:
                raise DialFailure(
                    "refused",
                    f"{host.text} leads to {address}, a {kind.value} address: a name never opens one",
                    rule=f"floor/{kind.value}",
                    address=str(address),
                )
            usable.append(address)
        return usable

    def _own(self, address: Address) -> bool:
        """``is_own``, asked of the kernel at most once a second for each address."""
        now = self.loop.now
        if self._not_own.get(address, 0.0) > now:
            return False
        if is_own(address):
            return True
        if len(self._not_own) >= MAX_PINNED:
            self._not_own.clear()
        self._not_own[address] = now + 1.0
        return False

    async def _try(self, address: Address, port: int, deadline: float) -> Stream:
        text = str(address)
        stream = Stream(self.loop, socket.socket(_family(text), socket.SOCK_STREAM))
        try:
            stream.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Half the time at most, so that a dead address leaves room for the next one.
            now = time.monotonic()
            await _connect(stream, (text, port), now + (deadline - now) / 2)
        except BaseException:
            stream.close()
            raise
        return stream


def is_own(address: Address) -> bool:
    """Whether an address is this machine's: the kernel would then send from the very address it sends to.

    No packet leaves: connecting a datagram socket only asks for the route.
    """
    text = str(address)
    with socket.socket(_family(text), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((text, 9))
            own: str = probe.getsockname()[0]
        except OSError:
            return False
    return ipaddress.ip_address(own) == address


async def _connect(stream: Stream, address: tuple[str, int], deadline: float) -> None:
    code = stream.sock.connect_ex(address)
    if code == errno.EINPROGRESS:
        while True:
            await stream.writable(deadline)
            code = stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code or _connected(stream.sock):
                break
    if code:
        raise OSError(code, os.strerror(code))


def _connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


def _family(text: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in text else socket.AF_INET


@contextlib.contextmanager
def _opened(loop: Loop, server: str, kind: socket.SocketKind):  # type: ignore[no-untyped-def] # noqa: ANN202
    stream = Stream(loop, socket.socket(_family(server), kind))
    try:
        yield stream
    finally:
        stream.close()
