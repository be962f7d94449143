"""What was replaced in a call must not stand in what deciding noted about it. Pure.

A word of a line is also looked for as a file and as a program, and named in a reason, where nothing before it shows that
it is a secret. Of what is there the name is no secret; the rest says nothing that the call, as it is recorded, does not say.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from ringfence.model.entry import Json

Mark = Callable[[str], str]
_THERE = {"file", "directory", "other"}
_NAMES = ("asked", "real", "name")
_WORD = re.compile(r"[^\s`'\"=:,;/\\…]+")


def withhold(before: Mapping[str, Json], after: dict[str, Json], mark: Mark) -> dict[str, Json]:
    """``after``, the body ``before`` with its secrets replaced, with their words replaced in its facts and reasons too."""
    typed, said = (" ".join(_texts(body.get("request"))) for body in (before, after))
    if typed == said:
        return after
    found = dict(after)
    facts, decision = after.get("facts"), after.get("decision")
    if isinstance(facts, dict):
        known = " ".join([said, *(str(facts.get(name, "")) for name in ("cwd", "home", "root"))])
        found["facts"] = {
            name: [_fact(row, known, mark) for row in _list(rows)] or rows for name, rows in facts.items()
        }
    if isinstance(decision, dict) and "reasons" in decision:
        reasons = [_reason(reason, typed, said, mark) for reason in _list(decision.get("reasons"))]
        found["decision"] = {**decision, "reasons": reasons}
    return found


def _fact(fact: Json, known: str, mark: Mark) -> Json:
    """A path, pattern or program that nothing stands for, without the parts that the call does not say."""
    if (
        not isinstance(fact, dict)
        or fact.get("kind") in _THERE
        or fact.get("matches")
        or ("name" in fact and fact.get("real"))
    ):
        return fact

    def spoken(text: str) -> str:
        return "/".join(part if part in known else mark(part) for part in text.split("/"))

    return {name: spoken(value) if name in _NAMES and isinstance(value, str) else value for name, value in fact.items()}


def _reason(reason: Json, typed: str, said: str, mark: Mark) -> Json:
    if not isinstance(reason, dict):
        return reason

    def spoken(word: re.Match[str]) -> str:
        return mark(word[0]) if word[0] in typed and word[0] not in said else word[0]

    words: dict[str, Json] = {
        name: _WORD.sub(spoken, str(reason[name])) for name in ("matched", "because") if name in reason
    }
    return {**reason, **words}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
