"""The box's name server: every name gets a synthetic pair, nothing is ever asked upstream from here.

A query is harmless to answer, because the answer says nothing and leads only back to the worker. What a query could carry
out (a tunnel) has nowhere to go.
"""

import contextlib
import ipaddress
from dataclasses import dataclass, field

from ringfence.egress import dns
from ringfence.egress.asking import Named, Noted, Refused, Try
from ringfence.egress.link import Link
from ringfence.egress.loop import Loop, Stream, TimedOut
from ringfence.egress.names import NameTable, PoolFullError, address4, address6
from ringfence.egress.rules import Address, BadHostError, canonical_host, odd_labels

LOCAL4, LOCAL6 = ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1")
BATCH = 64
STREAM_SECONDS = 5.0
MAX_DATAGRAM = 1232
TYPES = {12: "PTR", 15: "MX", 16: "TXT", 33: "SRV", 64: "SVCB", 65: "HTTPS", 10: "NULL", 255: "ANY", 252: "AXFR"}


@dataclass(slots=True)
class Stub:
    """Answers queries. What it refuses or finds odd is told, at most one message a query."""

    loop: Loop
    link: Link
    names: NameTable
    odd: dict[str, int] = field(default_factory=dict)

    def respond(self, message: bytes) -> bytes:
        """The reply to one query. Never raises: a query that cannot be served is answered with the reason."""
        try:
            query = dns.read_query(message)
        except dns.BadMessageError as error:
            self._refused("(unreadable)", str(error))
            return dns.refusal(message, dns.Rcode.FORMERR)
        try:
            host = canonical_host(query.name)
        except BadHostError as error:
            self._refused(query.name or ".", str(error))
            return dns.answer(query, dns.Rcode.NXDOMAIN)
        if query.klass != dns.CLASS_IN or query.type in {252, 251}:
            self._refused(host.text, f"a query of class {query.klass}, type {TYPES.get(query.type, query.type)}")
            return dns.answer(query, dns.Rcode.REFUSED)
        if host.address is not None:
            self._refused(host.text, "an address is no name")
            return dns.answer(query, dns.Rcode.NXDOMAIN)
        if query.type not in {dns.TYPE_A, dns.TYPE_AAAA}:
            self._noted(
                host.text, "egress/no-data", f"type {TYPES.get(query.type, query.type)} is answered with no data"
            )
            return dns.answer(query, dns.Rcode.NOERROR)
        return self._named(query, host.text)

    def _named(self, query: dns.Query, name: str) -> bytes:
        found: tuple[Address, ...] = (LOCAL4, LOCAL6)
        if name != "localhost" and not name.endswith(".localhost"):
            new = not self.names.knows(name)
            try:
                number = self.names.give(name)
            except PoolFullError:
                self._refused(name, "more names than a mission may ask for")
                return dns.answer(query, dns.Rcode.REFUSED)
            if new:
                self.link.tell(Named(number=number, name=name))
                if odd_labels(name):
                    self._noted(name, "egress/odd-labels", "labels that look like data; nothing was asked upstream")
            found = (address4(number), address6(number))
        return dns.answer(query, dns.Rcode.NOERROR, found)

    def _refused(self, name: str, because: str) -> None:
        subject = Try(host=name, port=53, protocol="dns", entry="dns")
        self.link.tell(Refused(subject=subject, rule="egress/dns", because=because))

    def _noted(self, name: str, rule: str, because: str) -> None:
        flags = ("odd-labels",) if odd_labels(name) else ()
        subject = Try(host=name, port=53, protocol="dns", entry="dns", flags=flags)
        self.link.tell(Noted(subject=subject, rule=rule, because=because))

    async def datagrams(self, stream: Stream) -> None:
        """Task: serve the UDP socket."""
        turns = 0
        while True:
            try:
                message, peer = stream.sock.recvfrom(4096)
            except BlockingIOError:
                await stream.readable()
                continue
            except OSError:
                if stream.closed:
                    return
                continue
            if self.link.crowded:
                continue
            with contextlib.suppress(OSError):  # the asker may be gone
                stream.sock.sendto(self.respond(message)[:MAX_DATAGRAM], peer)
            turns += 1
            if turns % BATCH == 0:
                await self.loop.breathe()

    async def stream(self, client: Stream) -> None:
        """One TCP connection: queries with lengths, until the asker ends or is slow."""
        data = b""
        try:
            while True:
                deadline = self.loop.now + STREAM_SECONDS
                while len(data) < 2 or len(data) < 2 + int.from_bytes(data[:2]):
                    piece = await client.recv(4096, deadline)
                    if not piece:
                        return
                    data += piece
                end = 2 + int.from_bytes(data[:2])
                reply = self.respond(data[2:end])
                data = data[end:]
                await client.send_all(len(reply).to_bytes(2) + reply, deadline)
        except (OSError, TimedOut):
            return
        finally:
            client.close()
