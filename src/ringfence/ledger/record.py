"""What the bodies of records say: the model's nouns as canonical JSON, and back for deciding again. Pure.

Text that is not valid Unicode (file names are bytes) is stored as ``{"hex": …}``; text that was moved to the side
store, for its length or because it is a content, as ``{"kept": name}``.
"""

import dataclasses
import enum
import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import msgspec

from ringfence.model.box import Execution, Observation
from ringfence.model.call import (
    KINDS,
    Argv,
    Context,
    FileAccess,
    FileAction,
    NetworkAccess,
    Request,
    ShellLine,
    ToolCall,
    ToolUse,
)
from ringfence.model.decision import Decision, Place
from ringfence.model.entry import Json
from ringfence.model.facts import GlobFact, PathFact, PathFacts, PathKind, ProgramFact
from ringfence.model.ids import CallId
from ringfence.model.person import Person
from ringfence.model.tier import Tier

Body: TypeAlias = dict[str, Json]
Loader: TypeAlias = Callable[[str], str | None]
"""Gives a text from the side store by its name in the record, or None where it was erased."""
KEPT_APART = ("content", "body")
"""Contents, of a request: only a commitment of them enters a record, whatever their length."""
SCRUBBED = re.compile(r"hmac:[0-9]+:[0-9a-f]{32}")
"""What stands in the place of a secret."""
_REQUESTS: dict[str, type[Request]] = {word: cast("type[Request]", kind) for kind, word in KINDS.items()}


class NotReplayable(Exception):
    """The record lacks a part that deciding again needs; the text says which."""


class Malformed(NotReplayable):
    """A part is not what a record of ours has; the text says which."""


def intent_body(
    call: ToolCall, facts: PathFacts, decision: Decision, *, extra: Mapping[str, Json] | None = None
) -> Body:
    """What is asked for in full, the facts it was judged by, and the answer with every reason."""
    return {
        **(extra or {}),
        "request": {"kind": call.kind, **_fields(call.request)},
        "cwd": text(call.cwd),
        "context": _fields(call.context),
        "facts": _fields(facts),
        "decision": decision_fields(decision),
    }


def decision_fields(decision: Decision) -> Body:
    """Tier, policy digest, and the reasons in order."""
    reasons: list[Json] = [_fields(reason) for reason in decision.reasons]
    return {"tier": decision.tier.word, "policy": decision.policy_digest, "reasons": reasons}


def result_body(execution: Execution, *, gate: Mapping[str, Json] | None = None) -> Body:
    """How a call ended, which controls stood, what was seen in the box, and what the gate did with its changes."""
    body = _fields(execution)
    del body["call_id"]
    body["level"] = execution.level.name.lower()
    return body if gate is None else {**body, "gate": dict(gate)}


def observed_body(observation: Observation) -> Body:
    """One thing that the kernel or a watcher outside saw."""
    return _fields(observation)


def fault_body(code: str, what: str) -> Body:
    """A call that could not be carried out: nothing of it ran, or it was ended."""
    return {"fault": {"code": code, "what": text(what)}, "exit": None, "signal": None}


def approval_body(
    *, answer: str, by: Person, rationale: str, subject: str, expires: int, extra: Mapping[str, Json] | None = None
) -> Body:
    """An operator's decision: ``answer`` is approved, refused, expired or withdrawn; ``subject`` the digest it binds."""
    who: Json = {"name": text(by.name), "uid": by.uid, "how": by.how}
    fields: Body = {"answer": answer, "by": who, "rationale": text(rationale), "subject": subject, "expires": expires}
    return {**(extra or {}), **fields}


def telemetry_body(*, claimed: Mapping[str, Json], observed: Mapping[str, Json]) -> Body:
    """Counts of tokens and tools: what the agent said of itself, and what the fence saw, kept apart."""
    return {"claimed": dict(claimed), "observed": dict(observed)}


def text(value: str) -> Json:
    """A text as a record holds it: itself, or its bytes in hexadecimal where it is not valid Unicode.

    Also where it has in it what stands for a secret: such a mark in a record is none that somebody typed.
    """
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        return {"hex": value.encode("utf-8", "surrogateescape" if _escaped(value) else "surrogatepass").hex()}
    return {"hex": raw.hex()} if "hmac:" in value and SCRUBBED.search(value) else value


def _escaped(value: str) -> bool:
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in value)


def _plain(value: object) -> Json:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Place):
        return text(str(value))
    if isinstance(value, Tier):
        return value.word
    if isinstance(value, enum.Enum):
        return cast("Json", value.value)
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        return _fields(value)
    return cast("Json", value)


def _fields(value: object) -> Body:
    """A noun's fields; those that say nothing (None, empty) are left out where their default is the same."""
    body: Body = {}
    for name, default in _members(value.__class__):  # type: ignore[arg-type]  # a class can be hashed
        found = getattr(value, name)
        if found != default:
            body[name] = _plain(found)
    return body


@functools.cache
def _members(noun: type) -> tuple[tuple[str, object], ...]:
    """The fields of a noun of the model with their defaults; read once."""
    if issubclass(noun, msgspec.Struct):
        return tuple((field.name, field.default) for field in msgspec.structs.fields(noun))
    return tuple((field.name, field.default) for field in dataclasses.fields(noun))  # type: ignore[arg-type]  # it is one


def call_from_record(record: Mapping[str, Json], load: Loader | None = None) -> ToolCall:
    """The call of a recorded intent. Raises NotReplayable where a part was scrubbed, erased or cannot be read."""
    body = _object(record.get("body"), "body")
    context = body.get("context")
    if isinstance(context, dict) and context.keys() == {"kept"}:
        context = _parsed(_text(context, load, "context"), "context")
    fields = dict(_object(body.get("request"), "request"))
    kind = _REQUESTS.get(str(fields.pop("kind", "")))
    if kind is None:
        raise Malformed("the kind of request")
    given = {name: _text(value, load, name) for name, value in fields.items()}
    request = _request(kind, given)
    return ToolCall(
        request=request,
        cwd=str(_text(body.get("cwd"), load, "cwd")),
        id=CallId(str(record.get("call", ""))),
        context=_context(_object(context, "context"), load),
    )


def _request(kind: type[Request], given: dict[str, object]) -> Request:
    try:
        if kind is ShellLine:
            return ShellLine(line=str(given["line"]))
        if kind is Argv:
            return Argv(argv=tuple(cast("list[str]", given["argv"])))
        if kind is FileAccess:
            given["action"] = FileAction(given["action"])
            return FileAccess(**given)  # type: ignore[arg-type]  # fields of our own record; a wrong one raises below
        if kind is NetworkAccess:
            return NetworkAccess(**given)  # type: ignore[arg-type]  # the same
        return ToolUse(**given)  # type: ignore[arg-type]  # the same
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"the request ({type(error).__name__})") from error


def _context(fields: Mapping[str, Json], load: Loader | None) -> Context:
    found = {name: _text(value, load, name) for name, value in fields.items()}
    try:
        remotes = tuple((str(name), str(url)) for name, url in cast("list[list[str]]", found.pop("remotes", [])))
        return Context(remotes=remotes, **found)  # type: ignore[arg-type]  # fields of our own record
    except (TypeError, ValueError) as error:
        raise Malformed("the context") from error


def facts_from_record(record: Mapping[str, Json], load: Loader | None = None) -> PathFacts:
    """The facts that a recorded intent was judged by. Raises NotReplayable."""
    body = _object(record.get("body"), "body")
    stored = body.get("facts")
    if isinstance(stored, dict) and stored.keys() == {"kept"}:
        stored = _parsed(_text(stored, load, "facts"), "facts")
    found = cast("dict[str, object]", {k: _text(v, load, k) for k, v in _object(stored, "facts").items()})
    try:
        return PathFacts(
            cwd=str(found["cwd"]),
            home=str(found["home"]),
            root=str(found["root"]),
            paths=tuple(PathFact(**{**row, "kind": PathKind(row["kind"])}) for row in _rows(found, "paths")),
            programs=tuple(ProgramFact(**row) for row in _rows(found, "programs")),
            globs=tuple(
                GlobFact(**{**row, "matches": tuple(cast("list[str]", row.get("matches", ())))})
                for row in _rows(found, "globs")
            ),
            homes=tuple((str(a), str(b)) for a, b in cast("list[list[str]]", found.get("homes", []))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"the facts ({type(error).__name__})") from error


def _parsed(text: object, name: str) -> Json:
    try:
        return cast("Json", json.loads(str(text)))
    except (ValueError, RecursionError) as error:
        raise Malformed(name) from error


def _rows(found: Mapping[str, object], name: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", found.get(name, []))


def _object(value: Json, name: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise Malformed(f"the record's {name}")
    return value


def _whole(items: list[Json], load: Loader | None, name: str) -> list[Json]:
    """The items with those in the place of which the last one is a mark: that names the list, and no item of it."""
    last = items[-1] if items else None
    if not isinstance(last, dict) or last.keys() != {"kept"} or str(last["kept"]).rpartition(".")[2].isdigit():
        return items
    rest = _parsed(_text(last, load, name), name)
    if not isinstance(rest, list):
        raise Malformed(name)
    return [*items[:-1], *rest]


def _text(value: Json, load: Loader | None, name: str) -> object:
    """Undo ``text`` and the moving aside, at any depth."""
    if isinstance(value, list):
        return [_text(item, load, name) for item in _whole(value, load, name)]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hex"}:
        try:
            return bytes.fromhex(str(_text(value["hex"], load, name))).decode("utf-8", "surrogateescape")
        except ValueError as error:
            raise Malformed(name) from error
    if value.keys() == {"kept"}:
        kept = None if load is None else load(str(value["kept"]))
        if kept is None:
            raise NotReplayable(f"{name}, which was moved aside and is erased or not at hand")
        return kept
    return {key: _text(item, load, name) for key, item in value.items()}
