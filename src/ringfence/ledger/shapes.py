"""Fast recognition of canonical records that look like ones proven canonical before. Pure.

Nearly all records of one kind have the same members in the same order, some of them not always, and other values. The
shape of a kind is a regular expression made from records that were decoded and encoded again; what it matches is
canonical too, because names, their order and punctuation are literal, and a value is text whose every escape is the only
way to write its character, or an integer of at most 16 digits. It matches in a fraction of the time of decoding. What no shape matches proves
nothing: the caller decodes it.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from ringfence.ledger import canonical
from ringfence.model.entry import Json

MOST_SHAPES = 8
LONGEST_SHAPE = 8192
"""Bytes of the expression; a longer one is not learned, since compiling it would cost more than it saves."""
PATIENCE = 4096
"""Records that must have been seen for each shape learned beyond the first few: logs without shapes stay cheap."""
_PLAIN = bytes(code for code in range(0x20, 0x100) if code != 0x5C)
_DEEPEST, _SHORT = 16, 200
# Repeated characters are possessive, and whatever else may be left out or repeated shows by its first byte whether it is
# there: so going back finds nothing else at once, whatever a hostile record holds. Groups are not possessive, since Python
# before 3.11.5 takes such a group for matched although it failed half way (https://github.com/python/cpython/issues/106052).
_TEXT = rb'"[^"]*+"'
_ANY_TEXT = rb'"[ !#-[\]-\xff]*+(?:\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))[ !#-[\]-\xff]*+)*"'
"""Text with escapes: each of these is the only way to write its character."""
_NUMBER = rb"(?:0|-?[1-9][0-9]{0,14}+|[1-8][0-9]{15})"
_WORD = b"(?:true|false|null)"

Match = Callable[[bytes], object]


class _Unlike(Exception):
    """The record is not worth a shape."""


def plain(lines: Sequence[bytes], text: bytes) -> bool:
    """Whether ``text``, which is ``lines`` joined, is UTF-8 without backslashes and without control characters.

    A line feed ends every line and stands nowhere else, so nothing but their count may be left.
    """
    return len(text.translate(None, _PLAIN)) == len(lines) and is_text(text)


def is_text(text: bytes) -> bool:
    """Whether it is UTF-8."""
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
    return True


class Shapes:
    """The shapes of one pass, the last that matched first."""

    def __init__(self, *, any_text: bool = False) -> None:
        """None yet. With ``any_text`` for lines that are not ``plain``, which take twice the time."""
        self._text = _ANY_TEXT if any_text else _TEXT
        self._matches: list[tuple[str, Match]] = []
        self._places: dict[str, _Place] = {}
        self._seen = self._missed = self._learned = 0

    def unknown(self, numbered: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """The lines, with their numbers, that no shape matches. The lines must be valid UTF-8, and ``plain`` or ``any_text``."""
        self._seen += len(numbered)
        if self._missed * 4 > self._seen > PATIENCE:  # trying costs more than it saves; tried again when this has sunk
            return list(numbered)
        left: list[tuple[int, bytes]] = []
        match = self._matches[0][1] if self._matches else None
        for seq, line in numbered:
            if match is None or not match(line):
                match = self._another(line)
                if match is None:
                    left.append((seq, line))
        self._missed += len(left)
        return left

    def _another(self, line: bytes) -> Match | None:
        for position, (_, match) in enumerate(self._matches):
            if match(line):
                self._matches.insert(0, self._matches.pop(position))
                return match
        return None

    def learn(self, values: Sequence[Json]) -> None:
        """Widen the shapes of their kinds by records proven canonical; the kind not met for longest gives way."""
        kinds: dict[str, list[dict[str, Json]]] = {}
        for value in values:
            if isinstance(value, dict):
                kinds.setdefault(str(value.get("kind")), []).append(value)
        for kind, alike in kinds.items():
            if self._learned >= MOST_SHAPES + self._seen // PATIENCE:
                return
            self._learned += 1
            self._widen(kind, alike)

    def _widen(self, kind: str, values: Sequence[dict[str, Json]]) -> None:
        """One shape for all that was seen of a kind; where it would be too long, it is begun anew."""
        known = self._places.pop(kind, None)
        self._matches = [entry for entry in self._matches if entry[0] != kind]
        for place, more in ((known, values), (_Place(), values), (_Place(), values[-1:])):
            match = place and _compiled(place, more, self._text)
            if place and match:
                self._places[kind] = place
                self._matches.insert(0, (kind, match))
                break
        for dropped, _ in self._matches[MOST_SHAPES:]:
            del self._places[dropped]
        del self._matches[MOST_SHAPES:]


def _compiled(place: "_Place", values: Sequence[dict[str, Json]], text: bytes) -> Match | None:
    try:
        for value in values:
            place.admit(value, 0)
    except _Unlike:
        return None
    expression = place.expression(text) + b"\n"
    return re.compile(expression).fullmatch if len(expression) <= LONGEST_SHAPE else None


class _Place:
    """What was seen at one place of records: any of text, numbers, words, one object, one array."""

    __slots__ = ("always", "items", "members", "number", "text", "word")

    def __init__(self) -> None:
        self.text = self.number = self.word = False
        self.members: dict[str, _Place] | None = None
        self.always: set[str] = set()
        """Names of the members that no object lacked."""
        self.items: _Place | None = None

    def admit(self, value: Json, depth: int) -> None:
        """Take the shape of a value in. Raises _Unlike where it is too deep."""
        if depth > _DEEPEST:
            raise _Unlike
        if isinstance(value, str):
            self.text = True
        elif value is None or isinstance(value, bool):
            self.word = True
        elif isinstance(value, int):
            self.number = True
        elif isinstance(value, list):
            self.items = self.items or _Place()
            for inner in value:
                self.items.admit(inner, depth + 1)
        else:
            if self.members is None:
                self.members, self.always = {}, set(value)
            self.always &= value.keys()
            for name, inner in value.items():
                self.members.setdefault(name, _Place()).admit(inner, depth + 1)

    def expression(self, text: bytes) -> bytes:
        """What matches here; empty where nothing was seen. Alternatives differ in their first byte: no going back."""
        found = [
            expression for seen, expression in ((self.text, text), (self.number, _NUMBER), (self.word, _WORD)) if seen
        ]
        if self.members is not None:
            found.append(rb"\{" + self._in_order(self.members, text) + rb"\}")
        if self.items is not None:
            found.append(rb"\[" + _repeated(self.items.expression(text)) + rb"\]")
        return found[0] if len(found) == 1 else b"(?:" + b"|".join(found) + b")" if found else b""

    def _in_order(self, members: Mapping[str, "_Place"], text: bytes) -> bytes:
        """Members in canonical order, the ones not always there optional; a comma between two, however many are there."""
        written = [
            (name in self.always, re.escape(canonical.encode(name)) + b":" + members[name].expression(text))
            for name in sorted(members)
        ]
        last = max((position for position, (always, _) in enumerate(written) if always), default=-1)
        if last < 0:
            return b"".join(b"(?:" + member + rb'(?:,(?=")|(?=\})))?' for _, member in written)
        before = b"".join(member + b"," if always else b"(?:" + member + b",)?" for always, member in written[:last])
        after = b"".join(b"(?:," + member + b")?" for _, member in written[last + 1 :])
        return before + written[last][1] + after


def _repeated(item: bytes) -> bytes:
    """Any number of items. A long expression stands once, so that nested arrays do not double it at each depth."""
    if not item:
        return b""
    if len(item) <= _SHORT:
        return b"(?:" + item + b"(?:," + item + b")*)?"
    return b"(?:" + item + rb"(?:,(?!\])|(?=\])))*"
