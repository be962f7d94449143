"""DNS messages: the box's queries read and answered, and the questions put upstream after ALLOW. Pure.

Both sides are hostile: the box sends what it likes, and so may a server upstream. Every length is checked against the
message, compression pointers only go back, and nothing loops on what a message says.
"""

import enum
import ipaddress
import struct
from dataclasses import dataclass

from ringfence.egress.rules import Address

TYPE_A, TYPE_CNAME, TYPE_AAAA = 1, 5, 28
TTL = 60
"""Seconds that a box may keep an answer."""
CLASS_IN = 1
HEADER = struct.Struct(">HHHHHH")
MAX_RECORDS, MAX_CHAIN = 64, 8


class Rcode(enum.IntEnum):
    """How a query was answered."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    REFUSED = 5


class BadMessageError(ValueError):
    """Not a DNS message that we read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question of the box. ``raw_question`` is given back unchanged, letter case included."""

    id: int
    name: str
    type: int
    klass: int
    recursion: bool
    raw_question: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an upstream server said about one name."""

    rcode: int
    truncated: bool
    addresses: tuple[Address, ...]
    ttl: int
    chain: tuple[str, ...]
    """CNAME targets passed on the way."""


def read_query(message: bytes) -> Query:
    """The single question of a message. Raises BadMessageError for replies, other opcodes and malformed names."""
    if len(message) < HEADER.size:
        raise BadMessageError("shorter than a header")
    ident, flags, questions, _answers, _authority, _additional = HEADER.unpack_from(message)
    if flags & 0x8000 or flags & 0x7800 or questions != 1:
        raise BadMessageError("not a plain query with one question")
    name, end = _read_name(message, HEADER.size, pointers=False)
    if end + 4 > len(message):
        raise BadMessageError("question cut short")
    kind, klass = struct.unpack_from(">HH", message, end)
    return Query(
        id=ident,
        name=name,
        type=kind,
        klass=klass,
        recursion=bool(flags & 0x0100),
        raw_question=message[HEADER.size : end + 4],
    )


def answer(query: Query, rcode: Rcode, addresses: tuple[Address, ...] = ()) -> bytes:
    """A reply to the box: the question, and one record for each address of the asked type. None is NODATA."""
    flags = 0x8080 | (0x0100 if query.recursion else 0) | rcode
    records = [a for a in addresses if a.version == (4 if query.type == TYPE_A else 6)]
    head = HEADER.pack(query.id, flags, 1, len(records), 0, 0)
    body = b"".join(struct.pack(">HHHIH", 0xC00C, query.type, CLASS_IN, TTL, len(a.packed)) + a.packed for a in records)
    return head + query.raw_question + body


def refusal(message: bytes, rcode: Rcode) -> bytes:
    """A reply to something that could not be read: its id and the code, no question."""
    ident = message[:2].ljust(2, b"\0")
    return ident + struct.pack(">HHHHH", 0x8080 | rcode, 0, 0, 0, 0)


def ask(ident: int, name: str, kind: int) -> bytes:
    """A recursive question for one name (canonical spelling) and type."""
    labels = b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.split("."))
    return HEADER.pack(ident, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, CLASS_IN)


def read_reply(message: bytes, ident: int, name: str, kind: int) -> Reply:
    """The addresses an upstream server gives for exactly this question. Raises BadMessageError for anything else.

    Only records that the CNAME chain from ``name`` leads to are taken; additional records are never read.
    """
    if len(message) < HEADER.size:
        raise BadMessageError("shorter than a header")
    got, flags, questions, answers, _authority, _additional = HEADER.unpack_from(message)
    if got != ident or not flags & 0x8000 or questions != 1:
        raise BadMessageError("not the reply to this question")
    asked, at = _read_name(message, HEADER.size, pointers=False)
    if asked.lower() != name or struct.unpack_from(">HH", message.ljust(at + 4, b"\0"), at) != (kind, CLASS_IN):
        raise BadMessageError("a reply to another question")
    records = _records(message, at + 4, min(answers, MAX_RECORDS))
    current, ttl = name, 300
    chain: list[str] = []
    for _ in range(MAX_CHAIN):
        found = [r for r in records if r.name == current and r.type == kind]
        if found:
            addresses = tuple(a for r in found if (a := _address(r, kind)) is not None)
            ttl = min([ttl, *(r.ttl for r in found)])
            return Reply(
                rcode=flags & 0xF, truncated=bool(flags & 0x0200), addresses=addresses, ttl=ttl, chain=tuple(chain)
            )
        target = next((r.target for r in records if r.name == current and r.type == TYPE_CNAME), None)
        if target is None or target in chain:
            break
        chain.append(target)
        current = target
    return Reply(rcode=flags & 0xF, truncated=bool(flags & 0x0200), addresses=(), ttl=0, chain=tuple(chain))


@dataclass(frozen=True, slots=True)
class _Record:
    name: str
    type: int
    ttl: int
    data: bytes
    target: str


def _records(message: bytes, at: int, count: int) -> list[_Record]:
    found = []
    for _ in range(count):
        name, at = _read_name(message, at, pointers=True)
        if at + 10 > len(message):
            raise BadMessageError("record cut short")
        kind, klass, ttl, length = struct.unpack_from(">HHIH", message, at)
        at += 10
        if at + length > len(message):
            raise BadMessageError("record data cut short")
        target = _read_name(message, at, pointers=True)[0].lower() if kind == TYPE_CNAME else ""
        if klass == CLASS_IN:
            found.append(_Record(name.lower(), kind, min(ttl, 86400), message[at : at + length], target))
        at += length
    return found


def _address(record: _Record, kind: int) -> Address | None:
    if kind == TYPE_A and len(record.data) == 4:
        return ipaddress.IPv4Address(record.data)
    if kind == TYPE_AAAA and len(record.data) == 16:
        return ipaddress.IPv6Address(record.data)
    return None


def _read_name(message: bytes, at: int, *, pointers: bool) -> tuple[str, int]:
    """A name at an offset and where it ends. Labels with dots or bytes outside ASCII are refused."""
    labels: list[str] = []
    end = -1
    limit = len(message)
    total = 0
    while True:
        if at >= limit:
            raise BadMessageError("name runs past the end")
        length = message[at]
        if length == 0:
            return ".".join(labels), (at + 1 if end < 0 else end)
        if length & 0xC0 == 0xC0 and pointers:
            if at + 1 >= limit:
                raise BadMessageError("pointer cut short")
            target = (length & 0x3F) << 8 | message[at + 1]
            if target >= at:
                raise BadMessageError("a pointer that does not go back")
            end = at + 2 if end < 0 else end
            at, limit = target, at  # a pointed-at name must end before the pointer: no loops
            continue
        total += length + 1
        if length > 63 or at + 1 + length > limit or total > 255:
            raise BadMessageError("label too long")
        label = message[at + 1 : at + 1 + length]
        if not label.isascii() or b"." in label or any(c <= 32 or c == 127 for c in label):
            raise BadMessageError("a label with bytes that no host name has")
        labels.append(label.decode("ascii"))
        at += 1 + length
