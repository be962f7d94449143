"""Text that a person reviewing a diff does not see as it is: turned around, or not drawn at all. Pure.

Marks that ordinary text of other scripts needs stay allowed: closed isolates, ideographic variants, flags of regions.
"""

import re

_OVERRIDES = "\u202d\u202e"
_OPENS = {"\u202a": "\u202c", "\u202b": "\u202c", "\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_CLOSES = frozenset(_OPENS.values())
_DRAWN = re.compile(
    "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\U000e0100-\U000e01ef]"
    "|\U0001f3f4[\U000e0020-\U000e007e]{2,7}\U000e007f"
)
_NOT_DRAWN = re.compile("[\u115f\u1160\u3164\uffa0\U000e0000-\U000e007f\U000e0100-\U000e01ef]")


def unseen_lines(content: bytes) -> frozenset[tuple[str, int]]:
    """Each line that does not look like what it is, with the code point that makes it so; empty for what is no text."""
    if content.isascii():
        return frozenset()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return frozenset()
    return frozenset((line, mark) for line in text.splitlines() if (mark := _mark(line)))


def _mark(line: str) -> int:
    if line.isascii():
        return 0
    hidden = _NOT_DRAWN.search(_DRAWN.sub("", line))
    if hidden:
        return ord(hidden.group())
    waiting: list[str] = []
    for char in line:
        if char in _OVERRIDES:
            return ord(char)
        if char in _OPENS:
            waiting.append(char)
        elif char in _CLOSES and waiting and _OPENS[waiting[-1]] == char:
            waiting.pop()
    return ord(waiting[-1]) if waiting else 0
