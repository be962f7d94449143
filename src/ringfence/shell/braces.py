"""Brace expansion, as bash does it before every other expansion. Pure.

A word arrives as pieces; only unquoted literal pieces can hold brace syntax. What is not surely expanded is reported
as ``None`` and becomes a dynamic word.
"""

import itertools
import re
from dataclasses import dataclass

MAX_WORDS = 256
_SEQUENCE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?\Z")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?\d{1,9}))?\Z")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word. ``kind``: L literal, Q quoted literal, D dynamic, B one brace character of an unquoted literal."""

    kind: str
    text: str
    raw: str
    splits: bool = False
    values: tuple[str, ...] = ()
    pattern: str = ""
    """The piece is one of the names that this pattern stands for."""


def expand(pieces: list[Piece]) -> list[list[Piece]] | None:
    """The words that brace expansion makes of one word; ``[pieces]`` where nothing expands, None past the cap."""
    if not any(piece.kind == "B" and piece.text == "{" for piece in pieces):
        return [pieces]
    try:
        return _expand(pieces, 0)
    except (OverflowError, RecursionError):
        return None


def _expand(pieces: list[Piece], depth: int) -> list[list[Piece]]:
    if depth > 40:
        raise OverflowError
    for start, piece in enumerate(pieces):
        if piece.kind != "B" or piece.text != "{":
            continue
        group = _group(pieces, start)
        if group is None:
            continue
        end, alternatives = group
        heads = pieces[:start]
        tails = _expand(pieces[end + 1 :], depth + 1)
        middles = [word for alternative in alternatives for word in _expand(alternative, depth + 1)]
        if len(middles) * len(tails) > MAX_WORDS:
            raise OverflowError
        return [heads + middle + tail for middle in middles for tail in tails]
    return [pieces]


def _group(pieces: list[Piece], start: int) -> tuple[int, list[list[Piece]]] | None:
    """End index and alternatives of the brace group that opens at ``start``, or None where it is literal."""
    depth = 0
    commas: list[int] = []
    for index in range(start, len(pieces)):
        if pieces[index].kind != "B":
            continue
        character = pieces[index].text
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return _alternatives(pieces, start, index, commas)
        elif depth == 1:
            commas.append(index)
    return None


def _alternatives(pieces: list[Piece], start: int, end: int, commas: list[int]) -> tuple[int, list[list[Piece]]] | None:
    if commas:
        edges = [start, *commas, end]
        return end, [pieces[left + 1 : right] for left, right in itertools.pairwise(edges)]
    inner = pieces[start + 1 : end]
    if any(piece.kind == "D" for piece in inner) and any(".." in piece.text for piece in inner):
        raise OverflowError
    if any(piece.kind != "L" for piece in inner):
        return None
    values = _sequence("".join(piece.text for piece in inner))
    if values is None:
        return None
    return end, [[Piece("L", value, value)] for value in values]


def _sequence(text: str) -> list[str] | None:
    if match := _SEQUENCE.match(text):
        first, last = int(match[1]), int(match[2])
        width = max(len(part) for part in match.groups()[:2]) if _padded(match[1]) or _padded(match[2]) else 0
        return [str(number).zfill(width) for number in _steps(first, last, match[3])]
    if match := _LETTERS.match(text):
        if match[1].isupper() != match[2].isupper():
            raise OverflowError  # passes through punctuation, the backslash and the backtick
        return [chr(number) for number in _steps(ord(match[1]), ord(match[2]), match[3])]
    return None


def _padded(number: str) -> bool:
    digits = number.lstrip("-")
    return len(digits) > 1 and digits[0] == "0"


def _steps(first: int, last: int, increment: str | None) -> range:
    step = abs(int(increment or 1)) or 1
    if abs(last - first) // step >= MAX_WORDS:
        raise OverflowError
    return range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
