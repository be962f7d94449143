"""What a record says, for who searches and for who exports: its request, rules, whether it tells of a violation. Pure.

Also what the search index keeps of it: columns, terms and searchable text.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ringfence.model.entry import Json

Fields: TypeAlias = Mapping[str, Json]
_EXPLICIT = frozenset({"rule", "protected", "hidden", "floor"})
"""Kinds of reasons for which a denial is a violation: somebody forbade just that."""


_ORDINARY = frozenset({"exec", "hidden-path", "credential-read"})
"""Kinds of observations that programs which do nothing odd cause too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What the index keeps of one record."""

    columns: tuple[int, str, str | None, str | None, str | None, int]
    terms: frozenset[tuple[str, str]]
    text: str


def describe(record: Fields) -> Described:
    """Columns, terms and searchable text of a record."""
    fields = part(record, "body")
    tier = part(fields, "decision").get("tier", fields.get("tier"))
    return Described(
        columns=(
            int(str(record["time"])),
            str(record["kind"]),
            _optional(record.get("mission")),
            _optional(record.get("call")),
            _optional(tier),
            int(is_violation(fields)),
        ),
        terms=frozenset(_terms(fields)),
        text=unicodedata.normalize("NFC", " ".join(_texts(dict(fields)))),
    )


def part(fields: Fields, name: str) -> Fields:
    """The object of that name, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def rules_of(fields: Fields) -> list[str]:
    """The rules that spoke, by their ids: of a decision, or the one of a connection."""
    found = [str(reason["rule"]) for reason in _rows(part(fields, "decision").get("reasons")) if "rule" in reason]
    own = fields.get("rule")
    return [*found, own] if isinstance(own, str) and own else found


def readable(value: Json) -> Json:
    """A text as a person reads it: bytes that are no Unicode by their numbers, and what was moved aside by its name."""
    if isinstance(value, dict) and value.keys() == {"hex"}:
        try:
            return bytes.fromhex(str(value["hex"])).decode("utf-8", "backslashreplace")
        except ValueError:
            return value
    return f"({value['kept']} is kept apart)" if isinstance(value, dict) and value.keys() == {"kept"} else value


def request_text(fields: Fields) -> str:
    """What was asked for, as one text."""
    request = part(fields, "request")
    for name in ("line", "argv", "path", "host", "tool"):
        value = readable(request.get(name))
        if isinstance(value, list):
            return " ".join(str(readable(word)) for word in value)
        if value is not None:
            return str(value) if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return ""


def told(fields: Fields) -> list[str]:
    """What a box was denied, or did that is a violation, and what the gate kept back, in words: violations first."""
    seen = [
        row for row in _rows(fields.get("observations")) if row.get("violation") or row.get("kind") not in _ORDINARY
    ]
    words = []
    for row in sorted(seen, key=lambda row: not row.get("violation")):
        count = row.get("count", 1)
        words.append(f"{row.get('kind')} {readable(row.get('detail'))}{f' ({count} times)' if count != 1 else ''}")
    gate = part(fields, "gate")
    for answers in (gate, part(gate, "history")):
        for answer in ("refused", "held", "conflicts"):
            words += [
                f"{answer} {readable(row.get('path', row.get('name')))} [{row.get('rule')}]"
                for row in _rows(answers.get(answer))
            ]
    return words


def is_violation(fields: Fields) -> bool:
    """Whether a body tells of a violation: a denial or a refused change by more than a default, or something seen that is one."""
    flags = fields.get("flags")
    return (
        bool(fields.get("violation"))
        or (isinstance(flags, list) and "violation" in flags)
        or any(observation.get("violation") for observation in _rows(fields.get("observations")))
        or any(
            reason.get("tier") == "deny" and reason.get("kind", "rule") in _EXPLICIT
            for reason in _rows(part(fields, "decision").get("reasons"))
        )
        or any(not str(row.get("rule", "")).endswith(".default") for row in _rows(part(fields, "gate").get("refused")))
    )


def _gated(fields: Fields) -> Iterator[Fields]:
    """Every path that a gate speaks of."""
    gate = part(fields, "gate")
    for answer in ("committed", "held", "refused", "conflicts"):
        yield from _rows(gate.get(answer))


def _optional(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _terms(fields: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    if isinstance(fields.get("agent"), str) and fields["agent"]:
        yield "agent", str(fields["agent"])
    yield from (
        ("rule", rule) for rule in (*rules_of(fields), *(str(row["rule"]) for row in _gated(fields) if row.get("rule")))
    )
    yield from _request_terms(part(fields, "request"))
    host = fields.get("host")
    if isinstance(host, str):
        yield "host", host.lower()
    root = fields.get("root")
    if isinstance(root, str):
        for row in _gated(fields):
            yield from (("path", above) for above in _folders(f"{root}/{readable(row.get('path'))}"))
    programs = fields.get("programs")
    yield from (("program", str(name).rsplit("/", 1)[-1]) for name in (programs if isinstance(programs, list) else ()))
    facts = part(fields, "facts")
    for program in _rows(facts.get("programs")):
        yield "program", str(program.get("name"))
    for path in _rows(facts.get("paths")):
        yield from (("path", above) for above in _folders(str(readable(path.get("real", "")))))


def _request_terms(request: Fields) -> Iterator[tuple[str, str]]:
    argv, line, host, tool, path = (readable(request.get(name)) for name in ("argv", "line", "host", "tool", "path"))
    words = [readable(argv[0])] if isinstance(argv, list) and argv else line.split() if isinstance(line, str) else []
    if words and isinstance(words[0], str):
        yield "program", words[0].rsplit("/", 1)[-1]
    if isinstance(host, str):
        yield "host", host.lower()
    if isinstance(tool, str):
        yield "tool", f"{request.get('server')}/{tool}"
    if request.get("kind") == "file" and isinstance(path, str):
        yield from (("path", above) for above in _folders(path))


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
        spelled = readable(value) if value.keys() == {"hex"} else value
        for inner in spelled.values() if isinstance(spelled, dict) else [spelled]:
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
