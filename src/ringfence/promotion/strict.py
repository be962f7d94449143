"""Strict JSON: one object or nothing. Pure.

Lenient parsers disagree on duplicate keys, NaN, byte order marks and very deep input; a change could show one meaning
to the gate and another to a person. Here each of them is malformed.
"""

import json
from typing import NoReturn, TypeAlias

Value: TypeAlias = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

SMALL = 65_536
"""Bytes: what a file written by hand may be."""
DEPTH = 32


class Malformed(ValueError):
    """The bytes are not the one strict value asked for; the message says why, in words safe to show."""


def parse(raw: bytes, *, limit: int = SMALL, depth: int = DEPTH) -> Value:
    """The one JSON value in ``raw``; raises Malformed for everything that two parsers could read differently."""
    if len(raw) > limit:
        raise Malformed(f"{len(raw)} bytes, at most {limit} are read")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise Malformed("begins with a byte order mark")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    _check_depth(text, depth)
    try:
        value: Value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except Malformed:
        raise
    except (ValueError, RecursionError):
        raise Malformed("not one JSON value") from None
    _check_text(value)
    return value


def parse_object(raw: bytes, *, limit: int = SMALL, depth: int = DEPTH) -> dict[str, Value]:
    """The one JSON object in ``raw``; raises Malformed."""
    value = parse(raw, limit=limit, depth=depth)
    if not isinstance(value, dict):
        raise Malformed("not a JSON object")
    return value


def _check_depth(text: str, depth: int) -> None:
    level, in_string, escaped = 0, False, False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char in "[{":
            level += 1
            if level > depth:
                raise Malformed(f"nested deeper than {depth}")
        elif char in "]}":
            level -= 1


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"key {twice[:40]!a} given twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not JSON")


def _check_text(value: Value) -> None:
    """Lone surrogates decode in Python but cannot be written out: refuse them where they come in."""
    stack: list[Value] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
            stack.extend(item)
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and not _encodable(item):
            raise Malformed("holds half of a surrogate pair")
        elif isinstance(item, float) and item in {float("inf"), float("-inf")}:
            raise Malformed("holds a number beyond range")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
