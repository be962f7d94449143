"""One call, one compiled policy, one set of facts: the reasons. Pure, and the same for ever for the same three.

Every scope's every rule speaks; the strictest answer wins (``Decision.tier``). Whatever cannot be judged is a DENY.
"""

from ringfence.model.call import Argv, FileAccess, NetworkAccess, ShellLine, ToolCall, ToolUse
from ringfence.model.decision import Place, Reason
from ringfence.model.facts import PathFacts
from ringfence.model.ids import RuleId
from ringfence.model.tier import Scope, Tier
from ringfence.policy.compile import Compiled, place
from ringfence.policy.conditions import Circumstances
from ringfence.policy.facts_index import FactsIndex, join, normal
from ringfence.policy.judge_commands import CommandJudge, substring_reason
from ringfence.policy.judge_paths import PathJudge, PathUse, relative_place
from ringfence.policy.judge_patterns import Pattern, texts_of
from ringfence.policy.prepare import Prepared
from ringfence.policy.yaml_tree import show

MAX_REASONS = 256
"""Reasons that one decision lists. A line of a megabyte must not become a ledger entry of a gigabyte."""


def file_path(call: ToolCall, home: str) -> str:
    """The absolute path that a file call means."""
    request = call.request
    if not isinstance(request, FileAccess):
        raise TypeError(request)
    path = request.path
    if path == "~" or path.startswith("~/"):
        return join(home, path[2:])
    return join(call.cwd, path)


def evaluate(
    compiled: Compiled, patterns: tuple[Pattern, ...], call: ToolCall, facts: PathFacts, prepared: Prepared | None
) -> tuple[Reason, ...]:
    """The reasons of one decision; never empty."""
    index = FactsIndex(facts)
    request = call.request
    uses: list[PathUse] = []
    match request:
        case ShellLine() | Argv():
            if prepared is None:
                return (fault("the line was not taken apart"),)
            reasons = CommandJudge(compiled, index, prepared, call.context).judge()
            if isinstance(request, ShellLine):
                reasons += _raw_substrings(compiled, request.line, reasons)
            if patterns:
                for command in prepared.commands:
                    uses += [*command.uses, *command.redirections]
                uses += prepared.redirections
        case FileAccess():
            reasons, use = _file(compiled, index, call, request)
            uses = [use]
        case NetworkAccess():
            from ringfence.policy.judge_network import judge_network

            reasons = judge_network(compiled, request, _here(call, index))
        case ToolUse():
            from ringfence.policy.judge_tools import judge_tool

            reasons = judge_tool(compiled, request, _here(call, index))
        case _:
            return (fault("this kind of call is not known"),)
    if patterns:
        reasons += _patterns(patterns, call, index, prepared, uses)
    if not compiled.trusted and max(reason.tier for reason in reasons) is Tier.ALLOW:
        reasons.append(_untrusted(compiled))
    return tuple(reasons) if len(reasons) <= MAX_REASONS else _bounded(reasons)


def _bounded(reasons: list[Reason]) -> tuple[Reason, ...]:
    """The strictest reasons first, up to the cap, and one that says how many more there are: the tier stays the same."""
    kept = sorted(dict.fromkeys(reasons), key=lambda reason: -reason.tier)
    if len(kept) <= MAX_REASONS:
        return tuple(kept)
    more = Reason(
        rule=RuleId("builtin.more"),
        scope=Scope.BUILTIN,
        place=Place(file="builtin"),
        tier=kept[MAX_REASONS].tier,
        matched="",
        because=f"{len(kept) - MAX_REASONS} more reasons, none stricter, are not listed",
        kind="default",
    )
    return (*kept[:MAX_REASONS], more)


def fault(because: str) -> Reason:
    """A DENY because something could not be judged."""
    return Reason(
        rule=RuleId("builtin.fault"),
        scope=Scope.BUILTIN,
        place=Place(file="builtin"),
        tier=Tier.DENY,
        matched="",
        because=because,
        kind="fault",
    )


def _file(compiled: Compiled, index: FactsIndex, call: ToolCall, request: FileAccess) -> tuple[list[Reason], PathUse]:
    asked = file_path(call, index.facts.home)
    use = PathUse(asked=asked, shown=request.path, access=request.action.value)
    if "\0" in request.path or not request.path:
        return [fault("the path is empty or holds a NUL character")], use
    judge = PathJudge(compiled, index, call.context, call.cwd)
    reasons = list(judge.judge(use))
    for root, scope in compiled.deny_written:
        if request.path.startswith(root.path) and not root.path.startswith("/"):
            reasons.append(
                Reason(
                    rule=RuleId("working_tree.deny_path_prefixes"),
                    scope=scope,
                    place=place(root.at),
                    tier=Tier.DENY,
                    matched=show(request.path, 200),
                    because=f"begins with the denied prefix `{root.path}`",
                )
            )
    if not reasons:
        allowed = judge.allowed_by(use)
        reasons.append(fault("nobody looked where this path leads") if allowed is None else allowed)
    return reasons, use


def _here(call: ToolCall, index: FactsIndex) -> Circumstances:
    return Circumstances(context=call.context, cwd=relative_place(index, call.cwd))


def _raw_substrings(compiled: Compiled, line: str, reasons: list[Reason]) -> list[Reason]:
    """``deny_substrings`` in the raw line, where no command's own words held the text already."""
    found = [(text, scope, where) for text, scope, where in compiled.substrings if text in line]
    if not found:
        return []
    told = {reason.place for reason in reasons if reason.rule == "commands.deny_substrings"}
    return [
        substring_reason(text, scope, where, text, (line.find(text), line.find(text) + len(text)))
        for text, scope, where in found
        if where not in told
    ]


def _patterns(
    patterns: tuple[Pattern, ...],
    call: ToolCall,
    index: FactsIndex,
    prepared: Prepared | None,
    uses: list[PathUse],
) -> list[Reason]:
    words = tuple(word.text for command in prepared.line.commands for word in command.words) if prepared else ()
    texts = texts_of(call, words, None)
    for use in uses:
        if use.asked is None:
            continue
        fact = index.path(use.asked)
        paths = [use.shown, normal(use.asked), *([fact.real] if fact is not None else [])]
        for access in ("read", "write") if use.access == "maybe" else (use.access,):
            texts.setdefault(f"file.{access}.path", []).extend(paths)
    here = _here(call, index)
    return [reason for pattern in patterns for reason in pattern.judge(texts, here)]


def _untrusted(compiled: Compiled) -> Reason:
    scoped = next(scoped for scoped in compiled.scopes if not scoped.trusted)
    return Reason(
        rule=RuleId("builtin.trust"),
        scope=Scope.BUILTIN,
        place=Place(file=scoped.document.file),
        tier=Tier.ASK,
        matched=scoped.document.file,
        because="nobody has trusted this policy yet; look at it and run `ringfence policy trust`",
        kind="trust",
    )
