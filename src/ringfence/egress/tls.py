"""The first bytes of a TLS connection: what name it asks for, before any key is agreed. Pure; reads hostile bytes.

Only as much as the decision needs: server name, protocols offered, and whether the real name is encrypted (ECH).
"""

import enum
import struct
from dataclasses import dataclass

HANDSHAKE, CLIENT_HELLO = 22, 1
EXT_SERVER_NAME, EXT_ALPN, EXT_ECH = 0, 16, 0xFE0D
MAX_HELLO = 16 * 1024
ACCESS_DENIED = bytes([21, 3, 1, 0, 2, 2, 49])
"""A fatal alert that clients show as "access denied"."""
NOT_REACHED = bytes([21, 3, 1, 0, 2, 2, 80])
"""A fatal alert that clients show as "internal error"."""


class Incomplete(enum.Enum):
    """More bytes are needed to tell."""

    MORE = "more"


MORE = Incomplete.MORE


class BadHelloError(ValueError):
    """Begins like TLS and is not a hello that we read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a ClientHello says in the clear."""

    server_name: str | None
    alpn: tuple[str, ...]
    encrypted_hello: bool


def looks_like_tls(first: bytes) -> bool:
    """Whether the first bytes (one is enough to say no) begin a TLS handshake record."""
    return first[:1] == b"\x16" and (len(first) < 2 or first[1] == 3)


def read_hello(data: bytes) -> Hello | Incomplete:
    """The hello in ``data``, MORE while it is cut short. Raises BadHelloError, also beyond 16 KiB."""
    handshake = _handshake(data)
    if handshake is MORE:
        if len(data) > MAX_HELLO:
            raise BadHelloError("a hello larger than 16 KiB")
        return MORE
    assert isinstance(handshake, bytes)
    body = _Reader(handshake)
    body.take(2 + 32)
    body.vector(1)
    body.vector(2)
    body.vector(1)
    if body.left == 0:
        return Hello(server_name=None, alpn=(), encrypted_hello=False)
    return _extensions(body.vector(2))


def _handshake(data: bytes) -> bytes | Incomplete:
    """The ClientHello's body, put together from as many records as it was cut into."""
    message = b""
    at = 0
    while True:
        if len(data) < at + 5:
            return MORE
        kind, major, length = data[at], data[at + 1], struct.unpack_from(">H", data, at + 3)[0]
        if kind != HANDSHAKE or major != 3 or not 0 < length <= MAX_HELLO:
            raise BadHelloError("not a handshake record")
        message += data[at + 5 : at + 5 + length]
        if message and message[0] != CLIENT_HELLO:
            raise BadHelloError("a handshake that does not begin with a hello")
        if len(message) >= 4:
            size = int.from_bytes(message[1:4])
            if size > MAX_HELLO:
                raise BadHelloError("a hello larger than 16 KiB")
            if len(message) >= 4 + size:
                return message[4 : 4 + size]
        if len(data) < at + 5 + length:
            return MORE
        at += 5 + length


def _extensions(data: bytes) -> Hello:
    names: list[str] = []
    alpn: tuple[str, ...] = ()
    encrypted = False
    seen: set[int] = set()
    rest = _Reader(data)
    while rest.left:
        kind = rest.number(2)
        value = rest.vector(2)
        if kind in seen:
            raise BadHelloError("an extension twice")
        seen.add(kind)
        if kind == EXT_SERVER_NAME:
            names = _server_names(value)
        elif kind == EXT_ALPN:
            alpn = _alpn(value)
        elif kind == EXT_ECH:
            encrypted = True
    if len(names) > 1:
        raise BadHelloError("more than one server name")
    return Hello(server_name=names[0] if names else None, alpn=alpn, encrypted_hello=encrypted)


def _server_names(value: bytes) -> list[str]:
    entries = _Reader(_Reader(value).vector(2))
    names = []
    while entries.left:
        kind, name = entries.number(1), entries.vector(2)
        if kind != 0 or not name.isascii() or not name:
            raise BadHelloError("a server name of an unknown kind")
        names.append(name.decode("ascii"))
    return names


def _alpn(value: bytes) -> tuple[str, ...]:
    entries = _Reader(_Reader(value).vector(2))
    found = []
    while entries.left:
        found.append(entries.vector(1).decode("latin-1"))
    return tuple(found)


class _Reader:
    """Takes lengths and vectors off the front; anything cut short raises BadHelloError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        if self.left < count:
            raise BadHelloError("a hello that is cut short inside")
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))
