"""Text that a person reviewing a diff does not see as it is: turned around, not drawn, out of sight, or looking like other letters. Pure.

Marks that ordinary text of other scripts needs stay allowed: closed isolates, ideographic variants, flags of regions, joiners.
"""

import re

_OVERRIDES = "\u202d\u202e"
_OPENS = {"\u202a": "\u202c", "\u202b": "\u202c", "\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_CLOSES = frozenset(_OPENS.values())
_DRAWN = re.compile(
    "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\U000e0100-\U000e01ef]"
    "|\U0001f3f4[\U000e0020-\U000e007e]{2,7}\U000e007f"
)
_NOT_DRAWN = re.compile(
    "[\u115f\u1160\u3164\uffa0\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    # Variants of variants, and marks without width in the middle of a plain word.
    "|[\ufe00-\ufe0f]{2}"
    "|(?<=[0-9A-Za-z_])[\u034f\u061c\u180b-\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+(?=[0-9A-Za-z_])"
)
# What some take for the end of a line, and controls that a terminal obeys; colours are left, concealed text is not.
_CONTROL = re.compile(
    "\r(?!\\Z)|[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029]|\x1b(?!\\[[0-9;]*m)|\x1b\\[(?:[0-9]*;)*8(?:;[0-9]*)*m"
)
_FAR = re.compile(r"(?<![ \t\u00a0\u2000-\u200a\u3000])[ \t\u00a0\u2000-\u200a\u3000]{200,}+\S")
_WORD = re.compile(r"\w*[A-Za-z]\w*")
# Cyrillic and Greek letters drawn as Latin ones.
_ALIKE = frozenset(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0405\u0406\u0408"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd"
)


def unseen_lines(content: bytes, *, prose: bool = False) -> frozenset[tuple[str, int]]:
    """Each line that does not look like what it is, with the code point that makes it so; empty for what is no text.

    In ``prose`` (tables, other people's words) wide gaps and mixed letters are ordinary.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return frozenset()
    return frozenset((line, mark) for line in text.split("\n") if (mark := _mark(line, prose=prose)))


def _mark(line: str, *, prose: bool) -> int:
    control = _CONTROL.search(line)
    if control:
        return ord(control.group()[0])
    if not prose and _FAR.search(line):
        return ord(" ")
    if line.isascii():
        return 0
    hidden = _NOT_DRAWN.search(_DRAWN.sub("", line))
    if hidden:
        return ord(hidden.group()[0])
    waiting: list[str] = []
    for char in line:
        if char in _OVERRIDES:
            return ord(char)
        if char in _OPENS:
            waiting.append(char)
        elif char in _CLOSES and waiting and _OPENS[waiting[-1]] == char:
            waiting.pop()
    return ord(waiting[-1]) if waiting else 0 if prose else _alike(line)


def _alike(line: str) -> int:
    """A letter in the middle of a Latin word that is drawn like another one; a word with more of its script is a word."""
    for word in _WORD.findall(line):
        strange = [char for char in word if not char.isascii() and char.isalpha()]
        if strange and _ALIKE.issuperset(strange):
            return ord(strange[0])
    return 0
