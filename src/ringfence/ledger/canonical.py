"""Canonical JSON of the ledger: one byte string for one value, equal to RFC 8785 on the values it admits.

Admitted are null, booleans, integers of at most 53 bits, valid Unicode text, arrays and objects with ASCII keys. Floating point, larger integers and other keys are refused: they are where two JSON
libraries disagree, and a record that reads in two ways proves nothing. Pure.
"""

import msgspec

from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 100
"""Objects and arrays inside each other in a record, itself the first: below what any JSON library gives up at."""

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode
_NESTING = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])
_FOREIGN = {*range(0xC4, 0xCC), 0xCF, 0xD3, *range(0xD4, 0xD9)}
_HARMLESS = bytes(code for code in range(256) if code not in _FOREIGN and code not in _NESTING)
"""MessagePack marks floats, 64 bit integers, bytes and extensions by the foreign codes alone, objects and arrays by those of
nesting. Where all text is ASCII, a value whose packed form has no foreign code has none of those, which is found in a
third of the time of a walk; a length or a number may look like one, and then the walk decides."""


def encode(value: Json, most: int = MAX_DEPTH - 1) -> bytes:
    """The canonical bytes of ``value``, which stands inside a record unless ``most`` levels are given.

    Raises LedgerError ``entry-not-canonical`` naming what is not admitted.
    """
    try:
        encoded = _encode(value)
        marks = _pack(value).translate(None, _HARMLESS)
    except (UnicodeEncodeError, msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _refused(f"what is no JSON, or text that is not valid Unicode ({type(error).__name__})") from error
    ascii_alone = encoded.isascii()
    if not ascii_alone or marks.strip(_NESTING):
        _admit(value)
    if not ascii_alone:
        # Only now can a key be outside ASCII, where code point order and RFC 8785's UTF-16 order part ways.
        admit_keys(value)
    if len(marks) > most and is_deeper(value, encoded, most):
        raise _refused(f"more than {most} objects and arrays inside each other")
    return encoded


def is_deeper(value: Json, encoded: bytes, most: int = MAX_DEPTH) -> bool:
    """Whether more than ``most`` objects and arrays stand inside each other. ``encoded`` is the value's bytes."""
    if encoded.count(b"{") + encoded.count(b"[") <= most:
        return False
    level, depth = [value], 0
    while level := [outer for outer in level if outer.__class__ is dict or outer.__class__ is list]:
        depth += 1
        if depth > most:
            return True
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return False


def decode(stored: bytes) -> Json:
    """The value of canonical bytes. Raises LedgerError where they are not exactly what ``encode`` would write.

    Encoding again and comparing also catches duplicate keys, spaces, escapes written in another way and floats.
    """
    try:
        value: Json = _decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refused("bytes that are not JSON") from error
    if encode(value, MAX_DEPTH) != stored:
        raise _refused("JSON that is written in another way than the canonical one")
    return value


def _admit(value: Json) -> None:
    # The hot path of every append: no calls, and class checks in the order of what records hold most.
    waiting: list[object] = [[value]]
    while waiting:
        outer = waiting.pop()
        for inner in outer.values() if outer.__class__ is dict else outer:  # type: ignore[attr-defined]  # one of both
            kind = inner.__class__
            if kind is str:
                continue
            if kind is dict or kind is list:
                waiting.append(inner)
            elif kind is int:
                if not -MAX_INTEGER <= inner <= MAX_INTEGER:
                    raise _refused("an integer beyond 53 bits")
            elif inner is not None and kind is not bool:
                raise _refused(f"a value of type {kind.__name__}")


def admit_keys(value: Json) -> None:
    """Refuse keys outside ASCII at any depth."""
    waiting: list[Json] = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if not all(key.isascii() for key in inner):
                raise _refused("an object key outside ASCII")
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner


def _refused(what: str) -> LedgerError:
    return LedgerError(
        "entry-not-canonical",
        f"a ledger record cannot hold {what}",
        remedy="use integers (microseconds, bytes), text for ratios, ASCII keys, few levels; see docs/ledger-format.md",
    )
