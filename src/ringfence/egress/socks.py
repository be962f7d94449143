"""SOCKS5 requests as far as an egress proxy needs them: no authentication, CONNECT, names or addresses. Pure."""

import enum
import ipaddress
import struct
from dataclasses import dataclass

VERSION = 5
GREETING_OK = b"\x05\x00"
NO_METHOD = b"\x05\xff"
REJECTED_4 = b"\x00\x5b" + bytes(6)
CONNECT, COMMANDS = 1, {2: "BIND", 3: "UDP ASSOCIATE"}


class Answer(enum.IntEnum):
    """Reply codes of RFC 1928 that are sent."""

    GRANTED = 0
    FAILURE = 1
    NOT_ALLOWED = 2
    HOST_UNREACHABLE = 4
    REFUSED = 5
    NO_COMMAND = 7
    NO_ADDRESS_TYPE = 8


class BadSocksError(ValueError):
    """Not a SOCKS5 conversation that we speak: what to send back, and where the client wanted to go, if it said so."""

    def __init__(self, what: str, answer: bytes = b"", host: str = "", port: int = 0) -> None:
        super().__init__(what)
        self.answer, self.host, self.port = answer, host, port


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Where the client wants to go, as it wrote it, and how many bytes the request took."""

    host: str
    port: int
    length: int


def greeting_length(data: bytes) -> int | None:
    """Length of the client's greeting, ``None`` while incomplete. Raises BadSocksError unless it offers no authentication."""
    if data[:1] == b"\x04":
        raise BadSocksError("SOCKS4, which has no names over IPv6 and no errors: use SOCKS5", REJECTED_4)
    if data[:1] != b"\x05":
        raise BadSocksError("not SOCKS5")
    if len(data) < 2 or len(data) < 2 + data[1]:
        return None
    if 0 not in data[2 : 2 + data[1]]:
        raise BadSocksError("a client that insists on a password", NO_METHOD)
    return 2 + data[1]


def read_request(data: bytes) -> Request | None:
    """The request, ``None`` while incomplete. Raises BadSocksError with the reply to send."""
    if len(data) < 5:
        return None
    version, command, _reserved, kind = data[:4]
    if version != VERSION:
        raise BadSocksError("not SOCKS5")
    sizes = {1: 4, 4: 16, 3: 1 + data[4]}
    if kind not in sizes:
        raise BadSocksError("an unknown kind of address", reply(Answer.NO_ADDRESS_TYPE))
    end = 4 + sizes[kind]
    if len(data) < end + 2:
        return None
    raw = data[4:end]
    host, port = _host(kind, raw), struct.unpack_from(">H", data, end)[0]
    if command != CONNECT:
        said = COMMANDS.get(command, f"command {command}")
        raise BadSocksError(f"{said} is not served, only CONNECT", reply(Answer.NO_COMMAND), host, port)
    return Request(host=host, port=port, length=end + 2)


def reply(answer: Answer) -> bytes:
    """A reply without a bound address: none of ours is the box's business."""
    return bytes([VERSION, answer, 0, 1, 0, 0, 0, 0, 0, 0])


def _host(kind: int, raw: bytes) -> str:
    if kind == 1:
        return str(ipaddress.IPv4Address(raw))
    if kind == 4:
        return str(ipaddress.IPv6Address(raw))
    if not raw[1:].isascii():
        raise BadSocksError("a name with bytes outside ASCII", reply(Answer.NOT_ALLOWED))
    return raw[1:].decode("ascii")
