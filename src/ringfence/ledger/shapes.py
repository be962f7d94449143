"""Fast recognition of canonical records that look like ones proven canonical before. Pure.

Nearly all records of a log have one of a few shapes: the same members in the same order, other values. A shape is a
regular expression made from a record that was decoded and encoded again; what it matches is canonical too, because
names and punctuation are literal, and a value is text with the short escapes at most or an integer of at most 16 digits.
It matches in a fraction of the time of decoding. What no shape matches proves nothing: the caller decodes it.
"""

import re
from collections.abc import Callable, Sequence

from ringfence.ledger import canonical
from ringfence.model.entry import Json

MOST_SHAPES = 8
LONGEST_SHAPE = 8192
"""Bytes of the expression; a longer one is not learned, since compiling it would cost more than it saves."""
PATIENCE = 4096
"""Records that must have been seen for each shape learned beyond the first few: logs without shapes stay cheap."""
_PLAIN = bytes(code for code in range(0x20, 0x80) if code != 0x5C)
_DEEPEST = 16
# Every repetition is possessive, so that matching takes linear time whatever a hostile record holds.
_TEXT = rb'"[^"]*+"'
_ANY_TEXT = rb'"[ !#-[\]-\xff]*+(?:\\["\\bfnrt][ !#-[\]-\xff]*+)*+"'
"""Text of a line that is valid UTF-8: each of these escapes is the only way to write its character."""
_SIXTEEN, _NEGATIVE, _OTHER = rb"[1-8][0-9]{15}", rb"-[1-9][0-9]{0,14}+", rb"(?!0[0-9])[0-9]{1,15}+"

Match = Callable[[bytes], object]


class _Unlike(Exception):
    """The record is not worth a shape."""


def plain(lines: Sequence[bytes], text: bytes) -> bool:
    """Whether ``text``, which is ``lines`` joined, is ASCII without backslashes and without control characters.

    A line feed ends every line and stands nowhere else, so nothing but their count may be left.
    """
    return len(text.translate(None, _PLAIN)) == len(lines)


class Shapes:
    """The shapes of one pass, the last that matched first."""

    def __init__(self, *, any_text: bool = False) -> None:
        """None yet. With ``any_text`` for lines that are not ``plain``, which take twice the time."""
        self._text = _ANY_TEXT if any_text else _TEXT
        self._matches: list[Match] = []
        self._seen = self._missed = self._learned = 0

    def unknown(self, numbered: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """The lines, with their numbers, that no shape matches. The lines must be ``plain``, or valid UTF-8."""
        self._seen += len(numbered)
        if self._missed * 4 > self._seen > PATIENCE:  # trying costs more than it saves; tried again when this has sunk
            return list(numbered)
        left: list[tuple[int, bytes]] = []
        match = self._matches[0] if self._matches else None
        for seq, line in numbered:
            if match is None or not match(line):
                match = self._another(line)
                if match is None:
                    left.append((seq, line))
        self._missed += len(left)
        return left

    def _another(self, line: bytes) -> Match | None:
        for place, match in enumerate(self._matches):
            if match(line):
                self._matches.insert(0, self._matches.pop(place))
                return match
        return None

    def learn(self, value: Json) -> None:
        """Take the shape of a record that was proven canonical; the one not used for longest gives way."""
        if self._learned >= MOST_SHAPES + self._seen // PATIENCE:
            return
        self._learned += 1
        try:
            expression = _shape(value, self._text, 0) + b"\n"
        except _Unlike:
            return
        if len(expression) <= LONGEST_SHAPE:
            self._matches.insert(0, re.compile(expression).fullmatch)
            del self._matches[MOST_SHAPES:]


def _shape(value: Json, text: bytes, depth: int) -> bytes:
    if depth > _DEEPEST:
        raise _Unlike
    if isinstance(value, dict):
        members = (
            re.escape(canonical.encode(name)) + b":" + _shape(inner, text, depth + 1) for name, inner in value.items()
        )
        return rb"\{" + b",".join(members) + rb"\}"
    if isinstance(value, list):
        return rb"\[" + _items([_shape(inner, text, depth + 1) for inner in value]) + rb"\]"
    if isinstance(value, str):
        return text
    if isinstance(value, bool):
        return b"(?:true|false)"
    if value is None:
        return b"null"
    if value < 0:
        return _NEGATIVE
    return _OTHER if value < 10**15 else _SIXTEEN


def _items(shapes: list[bytes]) -> bytes:
    """Items of one shape may be any number; of several, they must come as they came. No choice, so no going back."""
    if not shapes or any(shape != shapes[0] for shape in shapes):
        return b",".join(shapes)
    return b"(?:" + shapes[0] + b"(?:," + shapes[0] + b")*+)?+"
