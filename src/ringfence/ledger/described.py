"""What the search index keeps of one record: columns, terms and searchable text. Pure."""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ringfence.model.entry import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What the index keeps of one record."""

    columns: tuple[int, str, str | None, str | None, str | None, int]
    terms: frozenset[tuple[str, str]]
    text: str


def describe(record: Mapping[str, Json]) -> Described:
    """Columns, terms and searchable text of a record."""
    body = record.get("body")
    fields = body if isinstance(body, dict) else {}
    decision = fields.get("decision")
    answer = decision if isinstance(decision, dict) else {}
    tier = answer.get("tier", fields.get("tier"))
    return Described(
        columns=(
            int(str(record["time"])),
            str(record["kind"]),
            _optional(record.get("mission")),
            _optional(record.get("call")),
            _optional(tier),
            int(b'"violation":true' in json.dumps(fields, separators=(",", ":")).encode()),
        ),
        terms=frozenset(_terms(fields, answer)),
        text=unicodedata.normalize("NFC", " ".join(_texts(fields))),
    )


def _optional(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _terms(fields: Mapping[str, Json], answer: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    if isinstance(fields.get("agent"), str) and fields["agent"]:
        yield "agent", str(fields["agent"])
    for reason in _rows(answer.get("reasons")):
        if "rule" in reason:
            yield "rule", str(reason["rule"])
    request = fields.get("request")
    if isinstance(request, dict):
        yield from _request_terms(request)
    host = fields.get("host")
    if isinstance(host, str):
        yield "host", host.lower()
    facts = fields.get("facts")
    if isinstance(facts, dict):
        for program in _rows(facts.get("programs")):
            yield "program", str(program.get("name"))
        for path in _rows(facts.get("paths")):
            yield from (("path", above) for above in _folders(str(path.get("real", ""))))


def _request_terms(request: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    argv = request.get("argv")
    if isinstance(argv, list) and argv and isinstance(argv[0], str):
        yield "program", argv[0].rsplit("/", 1)[-1]
    if isinstance(request.get("line"), str):
        words = str(request["line"]).split()
        if words:
            yield "program", words[0].rsplit("/", 1)[-1]
    if isinstance(request.get("host"), str):
        yield "host", str(request["host"]).lower()
    if isinstance(request.get("tool"), str):
        yield "tool", f"{request.get('server')}/{request['tool']}"
    if request.get("kind") == "file" and isinstance(request.get("path"), str):
        yield from (("path", above) for above in _folders(str(request["path"])))


def _folders(path: str) -> Iterator[str]:
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]


def _rows(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, list):
        yield from (row for row in value if isinstance(row, dict))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
