"""IAM policies of AWS: which grants a document adds, by comparing sets, not texts. Pure.

A grant of the head is covered when one Allow of the base contains its action, resource, principal and asks no more
conditions. Containment of patterns is decided structurally (sound: never wrongly "covered"); the catalogue of action
names only counts how many a wildcard means. What is not modelled is not covered.
"""

import functools
import importlib.resources
from collections.abc import Iterable
from dataclasses import dataclass, field

from ringfence.promotion.blast.documents import Unreadable, as_list
from ringfence.promotion.strict import Value

_KNOWN_KEYS = frozenset(
    {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Principal", "NotPrincipal", "Condition"}
)
_PAIRS = 20_000
_WILDCARDS = 100
"""Actions with wildcards that one document may add: each is held against the whole catalogue."""
_LONGEST = 2_048
_DOCUMENT_KEYS = frozenset({"Version", "Id", "Statement"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One statement, normalised. ``exact`` is the whole of a statement that is only understood when unchanged."""

    effect: str
    actions: frozenset[str]
    resources: frozenset[str]
    principals: frozenset[str]
    conditions: frozenset[str]
    exact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IamDelta:
    """What was added. ``actions`` counts names of the catalogue; ``notes`` say what cannot be told or was loosened."""

    actions: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Document:
    grants: list[Grant] = field(default_factory=list)
    rest: dict[str, Value] = field(default_factory=dict)


def looks_like_iam(value: Value) -> bool:
    """Whether the document holds statements with an effect, at the top or one step below."""
    if not isinstance(value, dict):
        return False
    statements = as_list(value.get("Statement", value.get("statement", [])))
    return any(isinstance(s, dict) and {"Effect", "effect"} & s.keys() for s in statements)


def compare_iam(old: Value, new: Value) -> IamDelta:
    """Grants that ``new`` gives and ``old`` did not; either may be None for a file that is not there. Raises Unreadable."""
    before, after = _read(old), _read(new)
    notes = []
    if _loose(before.rest) != _loose(after.rest) and (after.rest or old is not None):
        changed = sorted(k for k in before.rest.keys() | after.rest.keys() if before.rest.get(k) != after.rest.get(k))
        if not (old is None and changed == ["Version"]) and new is not None:
            notes.append(f"changes {', '.join(changed)[:100]}, whose effect cannot be told")
    denied = {grant for grant in after.grants if grant.effect == "Deny"}
    lost = [grant for grant in before.grants if grant.effect == "Deny" and not _still_denied(grant, denied)]
    notes.extend("a Deny was removed or narrowed" for _ in lost)
    uncovered: set[str] = set()
    allows = [grant for grant in before.grants if grant.effect == "Allow"]
    given = [grant for grant in after.grants if grant.effect == "Allow"]
    if sum(len(grant.actions) * len(grant.resources) * len(grant.principals) for grant in given) > _PAIRS:
        raise Unreadable(f"more than {_PAIRS} grants")
    for grant in given:
        more, note = _not_covered(grant, allows)
        uncovered |= more
        notes.extend(note)
    return IamDelta(actions=frozenset(_meant(uncovered, allows)), notes=tuple(notes))


def _loose(rest: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in rest.items() if name != "Id"}


def _read(value: Value) -> _Document:
    if value is None:
        return _Document()
    if not isinstance(value, dict):
        raise Unreadable("not one IAM document")
    rest = {name: item for name, item in value.items() if name != "Statement"}
    statements = as_list(value.get("Statement", []))
    if not statements and rest.keys() - _DOCUMENT_KEYS:
        return _Document([], rest)
    return _Document([_grant(statement) for statement in statements], rest)


def _grant(statement: Value) -> Grant:
    if not isinstance(statement, dict):
        raise Unreadable("a statement is not an object")
    effect = statement.get("Effect")
    if effect not in {"Allow", "Deny"}:
        raise Unreadable("a statement has no effect")
    unknown = statement.keys() - _KNOWN_KEYS or {"NotAction", "NotResource", "NotPrincipal"} & statement.keys()
    exact = ""
    if unknown or "Action" not in statement:
        exact = repr(_sorted({name: item for name, item in statement.items() if name != "Sid"}))
    return Grant(
        effect=str(effect),
        actions=frozenset(action.casefold() for action in _texts(statement.get("Action", []))),
        resources=frozenset(_texts(statement.get("Resource", ["\0none"]))),
        principals=frozenset(_principals(statement.get("Principal"))),
        conditions=frozenset(_conditions(statement.get("Condition"))),
        exact=exact,
    )


def _texts(value: Value) -> list[str]:
    items = as_list(value)
    if not all(isinstance(item, str) and len(item) <= _LONGEST for item in items):
        raise Unreadable(f"an action or resource is not text of at most {_LONGEST} characters")
    return [item for item in items if isinstance(item, str)]


def _principals(value: Value) -> Iterable[str]:
    if value is None:
        return ["\0none"]
    if isinstance(value, str):
        return [f"AWS={value}"]
    if not isinstance(value, dict):
        raise Unreadable("a principal is neither text nor an object")
    return [f"{kind}={name}" for kind, names in value.items() for name in _texts(names)]


def _conditions(value: Value) -> Iterable[str]:
    """Each operator with key and set of values is one condition: adding one narrows, dropping or widening one does not."""
    if value is None:
        return []
    if not isinstance(value, dict):
        raise Unreadable("a condition is not an object")
    found: list[str] = []
    for operator, tests in value.items():
        if not isinstance(tests, dict):
            raise Unreadable("a condition is not an object")
        found.extend(f"{operator}|{key}|{sorted(map(repr, as_list(wanted)))}" for key, wanted in tests.items())
    return found


def _sorted(value: Value) -> Value:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=repr)
    return value


def _still_denied(old: Grant, denied: set[Grant]) -> bool:
    """Whether one Deny of the head forbids at least what the old one did."""
    if old.exact:
        return any(new.exact == old.exact for new in denied)
    return any(
        not new.exact
        and all(any(contains(b, a) for b in new.actions) for a in old.actions)
        and all(any(contains(b, a) for b in new.resources) for a in old.resources)
        and (old.principals <= new.principals or "AWS=*" in new.principals)
        and new.conditions <= old.conditions
        for new in denied
    )


def _not_covered(grant: Grant, allows: list[Grant]) -> tuple[set[str], list[str]]:
    if grant.exact:
        if any(old.exact == grant.exact for old in allows):
            return set(), []
        return set(), ["an Allow with NotAction, NotResource, NotPrincipal or unknown members was added or changed"]
    added: set[str] = set()
    for action in grant.actions:
        for resource in grant.resources:
            for principal in grant.principals:
                if not any(_covers(old, action, resource, principal, grant.conditions) for old in allows):
                    added.add(action)
    return added, []


def _covers(old: Grant, action: str, resource: str, principal: str, conditions: frozenset[str]) -> bool:
    return (
        not old.exact
        and old.conditions <= conditions
        and (principal in old.principals or "AWS=*" in old.principals)
        and _any_contains(old.resources, resource)
        and _any_contains(old.actions, action)
    )


def _any_contains(patterns: frozenset[str], narrow: str) -> bool:
    return narrow in patterns or any(contains(pattern, narrow) for pattern in patterns)


def _meant(uncovered: set[str], allows: list[Grant]) -> set[str]:
    """Names that uncovered actions stand for, without those the base grants somewhere; never none of an action."""
    wild = {action for action in uncovered if "*" in action or "?" in action}
    if len(wild) > _WILDCARDS:
        raise Unreadable(f"more than {_WILDCARDS} actions with wildcards")
    known = [action for old in allows if not old.exact for action in old.actions]
    meant = uncovered - wild
    for action in wild:
        names = {name for name in catalogue() if contains(action, name)}
        meant |= {name for name in names if not any(contains(old, name) for old in known)} or {action}
    return meant


@functools.lru_cache(maxsize=65_536)
def contains(wide: str, narrow: str) -> bool:
    """Whether every text that ``narrow`` matches is matched by ``wide``; ``*`` and ``?`` are wildcards in both."""
    first = next((at for at, letter in enumerate(wide) if letter in "*?"), None)
    if first is None:
        return wide == narrow
    if not narrow.startswith(wide[:first]):
        return False
    reached = {0}
    for step in range(len(narrow) + 1):
        _skip_stars(wide, reached)
        if step == len(narrow):
            break
        letter = narrow[step]
        moved = set()
        for at in reached:
            if at < len(wide) and wide[at] == "*":
                moved.add(at)
            elif at < len(wide) and letter != "*" and (wide[at] == letter or wide[at] == "?"):
                moved.add(at + 1)
        reached = moved
    return len(wide) in reached


def _skip_stars(wide: str, reached: set[int]) -> None:
    for at in sorted(reached):
        while at < len(wide) and wide[at] == "*":
            at += 1
            reached.add(at)


@functools.cache
def catalogue() -> frozenset[str]:
    """Known actions, lower case, as ``service:action``."""
    text = importlib.resources.files("ringfence.promotion.data").joinpath("iam-actions.txt").read_text("utf-8")
    names: set[str] = set()
    for line in text.splitlines():
        if not line.startswith("#"):
            prefix, *actions = line.casefold().split(" ")
            names.update(f"{prefix}:{action}" for action in actions)
    return frozenset(names)
