"""Fixtures: calls with the answer that the policy must give. Reading them is strict; running them is pure but for facts."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from ringfence.model.call import Context, ToolCall
from ringfence.model.decision import Decision
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy

Expectation = Literal["allow", "ask", "deny", "not_allow"]


class FixtureContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What ``when`` conditions see in a fixture."""

    agent: str | None = None
    env_class: str | None = None
    interactive: bool = False
    branch: str | None = None
    remotes: dict[str, str] = {}


class Fixture(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call and its right answer. ``kind`` says which fields name the call."""

    kind: Literal["shell", "argv", "file", "network", "tool"] = "shell"
    command: str | None = None
    argv: list[str] | None = None
    action: Literal["read", "write", "delete"] | None = None
    path: str | None = None
    content: str | None = None
    host: str | None = None
    port: int = 443
    method: str | None = None
    url_path: str | None = None
    body: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: dict[str, object] | None = None
    cwd: str = "."
    context: FixtureContext | None = None
    expect: Expectation | None = None
    expect_allow: bool | None = None
    rules: list[str] | None = None
    because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A fixture whose answer is not the expected one."""

    fixture: Fixture
    decision: Decision
    missing_rules: tuple[str, ...] = ()


def read_fixtures(data: bytes | str, *, file: str) -> tuple[Fixture, ...]:
    """The fixtures of a JSON text. Raises PolicyError that says which one is wrong and how."""
    try:
        rows = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _fault(f"the fixtures are not a JSON list: {_short(error)}", file) from None
    found = []
    for number, row in enumerate(rows, 1):
        try:
            fixture = msgspec.json.decode(row, type=Fixture, strict=True)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _fault(f"fixture {number}: {_short(error)}", file) from None
        problem = _problem(fixture)
        if problem:
            raise _fault(f"fixture {number}: {problem}", file)
        found.append(fixture)
    return tuple(found)


_CALL_FIELDS = frozenset(Fixture.__struct_fields__) - {"expect", "expect_allow", "rules", "because"}


def read_calls(data: bytes, *, file: str) -> tuple[Fixture, ...]:
    """Calls without expectations from JSON Lines; keys that do not describe a call (``id``, notes) are left out.

    Raises PolicyError that names the line.
    """
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=dict[str, msgspec.Raw], strict=True)
            kept = {key: value for key, value in row.items() if key in _CALL_FIELDS}
            if "kind" not in kept and "argv" in kept:
                kept["kind"] = msgspec.Raw(b'"argv"')
            fixture = msgspec.json.decode(msgspec.json.encode(kept), type=Fixture, strict=True)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _fault(f"line {number}: {_short(error)}", file) from None
        for field in _NEEDS[fixture.kind]:
            if getattr(fixture, field) is None:
                raise _fault(f"line {number}: a call of kind `{fixture.kind}` names `{field}`", file)
        found.append(fixture)
    return tuple(found)


def _short(error: Exception) -> str:
    return str(error)[:200]


def _fault(what: str, file: str) -> PolicyError:
    return PolicyError("bad-fixture", what, where=file, remedy="see docs/policy.md, section Fixtures")


_NEEDS = {
    "shell": ("command",),
    "argv": ("argv",),
    "file": ("action", "path"),
    "network": ("host",),
    "tool": ("server", "tool"),
}


def _problem(fixture: Fixture) -> str:
    if (fixture.expect is None) == (fixture.expect_allow is None):
        return "write either `expect` or `expect_allow`"
    for field in _NEEDS[fixture.kind]:
        if getattr(fixture, field) is None:
            return f"a fixture of kind `{fixture.kind}` names `{field}`"
    if fixture.argv is not None and not fixture.argv:
        return "`argv` is empty"
    return ""


def call_of(fixture: Fixture) -> ToolCall:
    """The call that a fixture describes."""
    given = fixture.context
    context = Context()
    if given is not None:
        context = Context(
            agent=given.agent,
            env_class=given.env_class,
            interactive=given.interactive,
            branch=given.branch,
            remotes=tuple(given.remotes.items()),
        )
    cwd = fixture.cwd
    match fixture.kind:
        case "shell":
            return ToolCall.shell(fixture.command or "", cwd=cwd, context=context)
        case "argv":
            return ToolCall.argv(fixture.argv or [], cwd=cwd, context=context)
        case "file":
            return ToolCall.file(
                fixture.action or "read", fixture.path or "", content=fixture.content, cwd=cwd, context=context
            )
        case "network":
            return ToolCall.network(
                fixture.host or "",
                fixture.port,
                method=fixture.method,
                path=fixture.url_path,
                body=fixture.body,
                cwd=cwd,
                context=context,
            )
        case "tool":
            return ToolCall.tool(fixture.server or "", fixture.tool or "", fixture.arguments, cwd=cwd, context=context)


def run_fixtures(policy: Policy, fixtures: tuple[Fixture, ...]) -> tuple[Disagreement, ...]:
    """Judge every fixture and return those with another answer than expected."""
    found = []
    for fixture in fixtures:
        decision = policy.decide(call_of(fixture))
        told = {str(reason.rule) for reason in decision.reasons}
        missing = tuple(rule for rule in fixture.rules or () if rule not in told)
        if missing or not as_expected(fixture, decision.tier):
            found.append(Disagreement(fixture=fixture, decision=decision, missing_rules=missing))
    return tuple(found)


def as_expected(fixture: Fixture, tier: Tier) -> bool:
    """Whether a tier is what a fixture expects."""
    if fixture.expect_allow is not None:
        return fixture.expect_allow is (tier is Tier.ALLOW)
    if fixture.expect == "not_allow":
        return tier is not Tier.ALLOW
    return fixture.expect == tier.word


def report(disagreements: tuple[Disagreement, ...]) -> list[dict[str, object]]:
    """Disagreements as JSON values: the fixture as written, the answer, the reasons."""
    rows: list[dict[str, object]] = []
    for item in disagreements:
        row: dict[str, object] = msgspec.to_builtins(item.fixture)
        row["tier"] = item.decision.tier.word
        row["reason"] = "; ".join(dict.fromkeys(r.because for r in item.decision.deciding))
        row["decided_by"] = [{"rule": str(r.rule), "at": str(r.place)} for r in item.decision.deciding]
        if item.missing_rules:
            row["missing_rules"] = list(item.missing_rules)
        rows.append(row)
    return rows
