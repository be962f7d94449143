"""What does not belong into a record goes apart: contents always, and the longest texts of a body that is too large. Pure.

In the body ``{"kept": NAME}`` takes its place; the record's ``personal`` part holds the commitment of that name. Of a long
list the front stays, with that mark as its last item for the rest.
"""

import json
from collections.abc import Iterator, Mapping
from typing import cast

from ringfence.ledger import canonical
from ringfence.ledger.record import KEPT_APART
from ringfence.model.entry import Json

BODY_LIMIT = 60_000
"""Bytes of an encoded body; the rest of a record's 65,535 is for its members and commitments."""
SHORT = 256
WHOLE = ("facts", "gate", "observations", "context")
"""Parts that are moved as JSON text where no long text is left to move: a list only as far as it has to be."""
LISTS = (("request", "argv"), ("decision", "reasons"))
"""Lists inside a part of which the front stays, of reasons the strictest."""
MARK = 64
"""More than the bytes of a mark."""
COMMITMENT = 160
"""The same of a commitment in the record's `personal` part, without its name."""


def contents_apart(body: Mapping[str, Json]) -> tuple[Mapping[str, Json], dict[str, str]]:
    """The body with the contents of its request moved apart, and those contents by name."""
    moved: dict[str, str] = {}
    request = body.get("request")
    if not isinstance(request, dict) or request.keys().isdisjoint(KEPT_APART):
        return body, moved
    for field in KEPT_APART:
        value = request.get(field)
        if isinstance(value, dict) and value.keys() == {
            "hex"
        }:  # a content that is no valid Unicode is one all the same
            value = bytes.fromhex(str(value["hex"])).decode("utf-8", "surrogateescape")
        if isinstance(value, str):
            moved[f"request.{field}"] = value
            request = {**request, field: {"kept": f"request.{field}"}}
    return {**body, "request": request}, moved


def fit(body: Mapping[str, Json], limit: int = BODY_LIMIT) -> tuple[Mapping[str, Json], dict[str, str]]:
    """The body, small enough for a record, and what had to be moved apart. May still be too large: then it is refused."""
    size = len(canonical.encode(dict(body)))
    moved: dict[str, str] = {}
    if size <= limit:
        return body, moved
    copy = cast("dict[str, Json]", json.loads(json.dumps(body)))
    places = sorted(_texts(copy, ()), key=lambda place: len(place[1].encode()), reverse=True)
    for path, text in places:
        if size <= limit or len(text) < SHORT or len(moved) >= 64:
            break
        size -= _put(copy, path, text, moved)
    for part in WHOLE:
        if size <= limit or part not in copy:
            continue
        value = copy[part]
        if isinstance(value, list):
            size -= _shorten(copy, part, value, size - limit, moved)
        else:
            size -= _put(copy, (part,), _json(value), moved)
    for part, field in LISTS:
        inner = copy.get(part)
        if size > limit and isinstance(inner, dict) and isinstance(items := inner.get(field), list):
            ordered = sorted(items, key=_strictness) if field == "reasons" else items
            size -= _shorten(inner, f"{part}.{field}", ordered, size - limit, moved)
    return copy, moved


def _shorten(body: dict[str, Json], name: str, items: list[Json], much: int, moved: dict[str, str]) -> int:
    """Put a mark in the place of the last items, enough of them to save so much; returns about how many bytes that saves."""
    kept, saved = len(items), -MARK - COMMITMENT
    while kept and saved < much:
        kept -= 1
        saved += len(_json(items[kept]).encode()) + 1
    moved[name] = _json(items[kept:])
    body[name.rpartition(".")[2]] = [*items[:kept], {"kept": name}]
    return saved


def _strictness(item: Json) -> int:
    tiers = ("deny", "ask", "allow")
    tier = item.get("tier") if isinstance(item, dict) else None
    return tiers.index(tier) if tier in tiers else len(tiers)


def _json(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _put(body: dict[str, Json], path: tuple[str | int, ...], text: str, moved: dict[str, str]) -> int:
    """Put a mark in the place of a text; returns about how many bytes of the record that saves."""
    name = ".".join(str(step) for step in path)[:128]
    target: Json = body
    for step in path[:-1]:
        target = target[step]  # type: ignore[index]  # the path was found by walking this very value
    target[path[-1]] = {"kept": name}  # type: ignore[index]  # the same
    moved[name] = text
    return len(text.encode()) - 2 * len(name) - 16 - COMMITMENT


def _texts(value: Json, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _texts(inner, (*path, position))
