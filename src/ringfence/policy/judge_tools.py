"""Calls of API and MCP tools against the tool rules. Pure."""

import json

from ringfence.model.call import ToolUse
from ringfence.model.decision import Reason
from ringfence.model.ids import RuleId
from ringfence.model.tier import Tier
from ringfence.policy.compile import Compiled, builtin_reason, place
from ringfence.policy.conditions import Circumstances, holds
from ringfence.policy.document import ToolRule
from ringfence.policy.globs import text_matches
from ringfence.policy.yaml_tree import show

MAX_ARGUMENTS = 4 << 20


def judge_tool(compiled: Compiled, request: ToolUse, circumstances: Circumstances) -> list[Reason]:
    """Every reason about one tool call; never empty."""
    shown = show(f"{request.server}/{request.tool}", 200)
    arguments, fault = _arguments(request)
    if fault:
        return [builtin_reason(compiled, shown, "fault", fault, Tier.DENY)]
    found = []
    for rule, scope, tier in compiled.tools:
        strict = tier is not Tier.ALLOW
        if not (_names((rule.server,), request.server, strict) and _names((rule.tool,), request.tool, strict)):
            continue
        if not _arguments_fit(rule, arguments, strict=strict):
            continue
        if rule.when is not None and not holds(rule.when, circumstances, unknown=strict):
            continue
        found.append(
            Reason(
                rule=RuleId(rule.id),
                scope=scope,
                place=place(rule.at),
                tier=tier,
                matched=shown,
                because=rule.because or f"tool rule `{rule.server}/{rule.tool}`",
                approvals=rule.approvals,
                not_owner=rule.not_owner,
            )
        )
    if all(reason.tier is Tier.ASK and (reason.scope, "tools") in compiled.locked for reason in found):
        # Nothing speaks, or only the questions of a scope that a wider one has locked.
        found.append(builtin_reason(compiled, shown, "default", "no rule covers this tool", compiled.default))
    return found


def _names(patterns: tuple[str, ...], name: str, strict: bool) -> bool:
    """Names exactly for ALLOW; whatever the case for the rest."""
    if text_matches(patterns, name):
        return True
    return strict and text_matches(tuple(pattern.lower() for pattern in patterns), name.lower())


def _arguments(request: ToolUse) -> tuple[object, str]:
    if len(request.arguments) > MAX_ARGUMENTS:
        return None, f"the arguments are larger than {MAX_ARGUMENTS} characters"
    try:
        return json.loads(request.arguments, object_pairs_hook=_pairs), ""
    except (ValueError, RecursionError):
        return None, "the arguments are not readable JSON, or name a key twice"


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a key twice is a way to show one value and use another."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _arguments_fit(rule: ToolRule, arguments: object, *, strict: bool) -> bool:
    """All argument rules must fit. A missing argument fits no allow rule; a list fits when all (or, strictly, any) do."""
    for path, patterns in rule.arguments:
        values = _values(arguments, path)
        if values is None:
            return False
        answers = [text_matches(patterns, value) for value in values]
        if not (any(answers) if strict else bool(answers) and all(answers)):
            return False
    return True


def _values(arguments: object, path: str) -> list[str] | None:
    value = arguments
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else json.dumps(item, sort_keys=True) for item in items]
