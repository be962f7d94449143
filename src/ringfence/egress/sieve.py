"""Keeps a credential's value from coming back into the box with a server's answer: whole, in chunks or escaped. Pure."""

import bisect
import html
import json
import re
import urllib.parse
from dataclasses import dataclass, field

from ringfence.egress.opening import RefusedError

LOOKED_FOR = 8
"""Shorter values, and shorter beginnings of values, may stand in any answer by chance."""
NAMES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
ESCAPE = re.compile(  # one set of first bytes, so that the search goes from one to the next
    rb"[\r\\%&](?:"
    rb"(?<=\r)\n[0-9A-Fa-f]{1,8}(?:;[^\r\n]{0,200})?\r\n"  # the seam between two chunks
    rb"|(?:(?<=%)|(?<=\\)(?:u00|x))(?P<hex>[0-9A-Fa-f]{2})"
    rb"|(?<=\\)(?P<char>[^ux\r\n])"
    rb"|(?<=&)\#(?:x0*(?P<ref>[0-9A-Fa-f]{1,2})|0*(?P<number>[0-9]{1,3}));"
    rb"|(?<=&)(?P<name>amp|lt|gt|quot|apos);)"
)
UNFINISHED = re.compile(
    rb"(?:\r|\r\n[0-9A-Fa-f]{0,8}(?:;[^\r\n]{0,200})?\r?|\\(?:u0{0,2}[0-9A-Fa-f]?|x[0-9A-Fa-f]?)?|%[0-9A-Fa-f]?|&[#0-9A-Za-z]{0,8})\Z"
)
LONGEST_ESCAPE = 220


def shapes(secret: str, sent: str) -> tuple[bytes, ...]:
    """What is looked for: the value as it is, as the header sent it, and escaped for JSON, HTML or an address."""
    texts = {secret, sent.rpartition(" ")[2], json.dumps(secret)[1:-1], html.escape(secret)}
    texts |= {urllib.parse.quote(secret), urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret)}
    return tuple(sorted(text.encode() for text in texts if len(text) >= LOOKED_FOR))


@dataclass(slots=True)
class Sieve:
    """Keeps values that left with requests from coming back with answers. Bytes go through as they come.

    Only a beginning of a value, of eight bytes or more, is held until the next bytes show what it is. An answer is looked
    through as it is, and without the seams of its chunks and the escapes of JSON, HTML and addresses.
    """

    values: set[bytes] = field(default_factory=set)
    _passed: bytes = b""
    _held: bytes = b""

    def sift(self, data: bytes, host: str) -> bytes:
        """What may go on to the box now. Raises RefusedError where a value is in it."""
        if not self.values:
            return data
        window = self._passed + self._held + data
        plain, marks = _undone(window)
        if any(value in window or value in plain for value in self.values):
            because = f"the answer of {host} says a credential's value, which stays outside the box"
            raise RefusedError("egress/secret-returned", because, "http")
        cut = max(len(self._passed), min(self._before_value(window), self._before_escaped(window, plain, marks)))
        ready, self._held = window[len(self._passed) : cut], window[cut:]
        self._passed = window[:cut][-2 * max(map(len, self.values)) - LONGEST_ESCAPE :]
        return ready

    def rest(self) -> bytes:
        """What was held, at the end: a beginning without its end."""
        held, self._held = self._held, b""
        return held

    def _before_value(self, text: bytes) -> int:
        """Where the beginning of a value starts with which the text ends; its length where there is none."""
        begun = max(_begun(text, value) for value in self.values)
        return len(text) - begun if begun >= LOOKED_FOR else len(text)

    def _before_escaped(self, window: bytes, plain: bytes, marks: list[tuple[int, int]]) -> int:
        """The same, seams and escapes undone, one at the very end that is not yet whole left out."""
        unfinished = UNFINISHED.search(window, max(0, len(window) - LONGEST_ESCAPE))
        if unfinished is not None and unfinished.start() >= marks[-1][1]:
            plain = plain[: len(plain) - (len(window) - unfinished.start())]
        at = self._before_value(plain)
        if at == len(plain):
            return len(window)
        text_at, raw_at = marks[bisect.bisect_right(marks, (at, len(window))) - 1]
        return raw_at + at - text_at


def _undone(raw: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes without seams and escapes, and where stretches of them begin: in the result, in the original."""
    plain, marks, at = bytearray(), [(0, 0)], 0
    for found in ESCAPE.finditer(raw):
        plain += raw[at : found.start()]
        marks.append((len(plain), found.start()))
        plain += _meant(found)
        at = found.end()
        marks.append((len(plain), at))
    plain += raw[at:]
    return bytes(plain), marks


def _meant(found: re.Match[bytes]) -> bytes:
    """The byte that an escape stands for; nothing for a seam."""
    if found["char"] is not None:
        return found["char"]
    if found["name"] is not None:
        return NAMES[found["name"]]
    if found["number"] is not None:
        return bytes([min(int(found["number"]), 255)])
    digits = found["hex"] or found["ref"]
    return bytes([int(digits, 16)]) if digits else b""


def _begun(window: bytes, value: bytes) -> int:
    """How many bytes at the end of the window are a beginning of the value."""
    longest = min(len(window), len(value) - 1)
    return next((size for size in range(longest, 0, -1) if window.endswith(value[:size])), 0)
