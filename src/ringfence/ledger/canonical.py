"""Canonical JSON of the ledger: one byte string for one value, equal to RFC 8785 on the values it admits.

Admitted are null, booleans, integers of at most 53 bits, valid Unicode text, arrays and objects with ASCII keys, at
most ``MAX_DEPTH`` deep. Floating point, larger integers and other keys are refused: they are where two JSON
libraries disagree, and a record that reads in two ways proves nothing. Pure.
"""

from collections.abc import Iterable

import msgspec

from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 16

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


def encode(value: Json) -> bytes:
    """The canonical bytes of ``value``. Raises LedgerError ``entry-not-canonical`` naming what is not admitted."""
    _admit((value,), 0)
    try:
        encoded = _encode(value)
    except (UnicodeEncodeError, msgspec.MsgspecError, TypeError, ValueError) as error:
        raise _refused(f"text that is not valid Unicode ({type(error).__name__})") from error
    if not encoded.isascii():
        # Only now can a key be outside ASCII, where code point order and RFC 8785's UTF-16 order part ways.
        _admit_keys(value)
    return encoded


def decode(stored: bytes) -> Json:
    """The value of canonical bytes. Raises LedgerError where they are not exactly what ``encode`` would write.

    Encoding again and comparing also catches duplicate keys, spaces, escapes written in another way and floats.
    """
    try:
        value: Json = _decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refused("bytes that are not JSON") from error
    if encode(value) != stored:
        raise _refused("JSON that is written in another way than the canonical one")
    return value


def _admit(values: Iterable[object], depth: int) -> None:
    # The hot path of every append: class checks in the order of what records hold most.
    if depth > MAX_DEPTH:
        raise _refused(f"nesting deeper than {MAX_DEPTH}")
    for value in values:
        kind = value.__class__
        if kind is str:
            continue
        if kind is dict:
            _admit(value.values(), depth + 1)  # type: ignore[attr-defined]  # a dict, by the line above
        elif kind is list:
            _admit(value, depth + 1)  # type: ignore[arg-type]  # a list, by the line above
        elif kind is int:
            if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]  # an int, by the line above
                raise _refused("an integer beyond 53 bits")
        elif value is not None and kind is not bool:
            raise _refused(f"a value of type {kind.__name__}")


def _admit_keys(value: Json) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.isascii():
                raise _refused("an object key outside ASCII")
            _admit_keys(inner)
    elif isinstance(value, list):
        for inner in value:
            _admit_keys(inner)


def _refused(what: str) -> LedgerError:
    return LedgerError(
        "entry-not-canonical",
        f"a ledger record cannot hold {what}",
        remedy="use integers (microseconds, bytes), text for ratios, ASCII keys; see docs/ledger-format.md",
    )
