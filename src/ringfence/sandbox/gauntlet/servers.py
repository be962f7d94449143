"""Servers that stand outside the box and keep what reached them: the effect by which network attacks are judged."""

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from ringfence.sandbox.gauntlet.ground import METADATA, OUTSIDE, OUTSIDE_V6, resolvers

IPV6_FREEBIND = 78
PATIENCE = 0.3
"""Seconds a server waits for the first bytes of a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One thing that reached a server. ``data`` is empty for a connection that sent nothing."""

    server: str
    data: bytes
    at: float


@dataclass(slots=True)
class Servers:
    """All servers of one gauntlet, answered by one thread; ``hits`` grows, ``answer`` is what a connection gets."""

    hits: list[Hit] = field(default_factory=list)
    answers: dict[str, bytes] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _thread: threading.Thread | None = None
    _stopped: bool = False

    def open_network(self) -> None:
        """Bind the addresses that attacks aim at. Must run where ports below 1024 are free to bind."""
        self._tcp("loopback", socket.AF_INET, ("127.0.0.1", 0))
        self._tcp("metadata", socket.AF_INET, (METADATA, 80))
        self._tcp("outside", socket.AF_INET, (OUTSIDE, 443))
        self._tcp("outside-v6", socket.AF_INET6, (OUTSIDE_V6, 80))
        self._udp("loopback-udp", ("127.0.0.1", 0))
        self._udp("outside-dns", (OUTSIDE, 53))
        self._udp("outside-quic", (OUTSIDE, 443))
        self._tcp("outside-dns-tcp", socket.AF_INET, (OUTSIDE, 53))
        self._icmp()
        for address in resolvers() or ["127.0.0.1"]:
            self._udp("resolver", (address, 53))

    def open_unix(self, server: str, path: str) -> None:
        """A Unix stream socket at the path (or abstract, when it starts with a NUL)."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(path)
        self._listen(server, sock)

    def open_unix_datagram(self, server: str, path: str) -> None:
        """A Unix datagram socket at the path, as a system log has."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.bind(path)
        self._watch(server, sock, self._receive)

    def start(self) -> None:
        """Answer until ``stop``."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close every socket."""
        self._stopped = True
        if self._thread is not None:
            self._thread.join(5)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]  # every one is a socket of ours
        self._selector.close()

    def close(self, *servers: str) -> None:
        """Close what one world opened."""
        for key in list(self._selector.get_map().values()):
            if key.data[0] in servers:
                self._selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]  # every one is a socket of ours

    def reached(self, server: str, since: float, word: bytes = b"") -> bool:
        """Whether something holding the word reached the server since then."""
        return any(hit.server == server and hit.at >= since and word in hit.data for hit in list(self.hits))

    def _tcp(self, server: str, family: socket.AddressFamily, address: tuple[str, int]) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 16)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)  # the address may still be settling
        sock.bind(address)
        self._listen(server, sock)

    def _udp(self, server: str, address: tuple[str, int]) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(address)
        self._watch(server, sock, self._receive)

    def _icmp(self) -> None:
        """Sees every ICMP packet that arrives in the harness's network; absent where raw sockets are refused."""
        with contextlib.suppress(OSError):
            self._watch("icmp", socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), self._receive)

    def _listen(self, server: str, sock: socket.socket) -> None:
        sock.listen(64)
        self._watch(server, sock, self._accept)

    def _watch(self, server: str, sock: socket.socket, handler: object) -> None:
        sock.setblocking(False)
        name = sock.getsockname()
        if isinstance(name, tuple):
            self.ports[server] = name[1]
        self._selector.register(sock, selectors.EVENT_READ, (server, handler))

    def _serve(self) -> None:
        while not self._stopped:
            for key, _ in self._selector.select(0.1):
                server, handler = key.data
                with contextlib.suppress(OSError):
                    handler(server, key.fileobj)

    def _accept(self, server: str, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            data = b""
            with contextlib.suppress(OSError):
                data = connection.recv(65536)
            self.hits.append(Hit(server=server, data=data, at=time.monotonic()))
            with contextlib.suppress(OSError):
                connection.sendall(self.answers.get(server, b"HTTP/1.0 200 OK\r\n\r\nhere"))

    def _receive(self, server: str, sock: socket.socket) -> None:
        data, sender = sock.recvfrom(65536)
        self.hits.append(Hit(server=server, data=data, at=time.monotonic()))
        if server in {"resolver", "outside-dns"} and len(data) > 12:
            sock.sendto(_dns_answer(data), sender)


def _dns_answer(query: bytes) -> bytes:
    """The address of ``OUTSIDE`` for whatever was asked."""
    end = query.index(0, 12) + 5
    header = query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 1, 0, 0)
    answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 5, 4) + socket.inet_aton(OUTSIDE)
    if query[end - 4 : end - 2] != b"\x00\x01":
        return query[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 0, 0, 0) + query[12:end]
    return header + query[12:end] + answer


def remove(path: str) -> None:
    """Remove a socket's file, if it is still there."""
    with contextlib.suppress(OSError):
        os.unlink(path)
