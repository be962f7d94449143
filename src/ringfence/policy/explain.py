"""A decision as stable JSON values and as text that a person likes to read. Pure.

Everything that came from a call or a file is escaped before it is shown, so that no invisible or control character of
an agent's line reaches a terminal.
"""

from ringfence.model.call import Argv, FileAccess, NetworkAccess, ShellLine, ToolCall, ToolUse
from ringfence.model.decision import Reason
from ringfence.model.tier import Tier
from ringfence.policy.narrowest import narrowest_change
from ringfence.policy.policy import Explanation
from ringfence.policy.yaml_tree import show
from ringfence.shell.syntax import Redirection, SimpleCommand

MAX_SHOWN = 2_000


def as_json(call: ToolCall, explanation: Explanation) -> dict[str, object]:
    """The fields of ``why --json``; documented in docs/how-commands-are-judged.md."""
    decision = explanation.decision
    values: dict[str, object] = {
        "kind": call.kind,
        "call": described(call),
        "cwd": call.cwd,
        "tier": decision.tier.word,
        "reasons": [_reason(reason) for reason in decision.reasons],
        "policy_digest": decision.policy_digest,
    }
    prepared = explanation.prepared
    if prepared is not None:
        line = prepared.line
        values["commands"] = [_command(command) for command in line.commands]
        values["redirections"] = [_redirection(item) for item in line.redirections]
        values["assignments"] = [item.name for item in line.assignments]
        values["functions"] = list(line.functions)
        values["unexplained"] = [
            {"start": item.start, "end": item.end, "text": item.text, "why": item.why} for item in line.unexplained
        ]
    change = narrowest_change(call, explanation)
    if change is not None:
        values["would_allow"] = change
    return values


def described(call: ToolCall) -> str:
    """One line that names what a call does."""
    match call.request:
        case ShellLine(line=line):
            return line
        case Argv(argv=argv):
            return " ".join(argv)
        case FileAccess(action=action, path=path):
            return f"{action.value} {path}"
        case NetworkAccess(host=host, port=port, method=method):
            return f"{method + ' ' if method else ''}{host}:{port}"
        case ToolUse(server=server, tool=tool):
            return f"{server}/{tool}"


def _reason(reason: Reason) -> dict[str, object]:
    return {
        "rule": reason.rule,
        "scope": reason.scope.value,
        "file": reason.place.file,
        "line": reason.place.line,
        "column": reason.place.column,
        "tier": reason.tier.word,
        "kind": reason.kind,
        "matched": reason.matched,
        "because": reason.because,
        "span": list(reason.span) if reason.span is not None else None,
        "approvals": reason.approvals,
        "not_owner": reason.not_owner,
    }


def _command(command: SimpleCommand) -> dict[str, object]:
    return {
        "argv": [word.text for word in command.words],
        "dynamic": [number for number, word in enumerate(command.words) if word.dynamic],
        "redirections": [_redirection(item) for item in command.redirections],
        "assignments": [item.name for item in command.assignments],
        "directory": command.directory.path,
        "wrapper": command.wrapper,
        "remote": command.remote,
        "extra_arguments": command.extra_arguments,
        "start": command.start,
        "end": command.end,
    }


def _redirection(item: Redirection) -> dict[str, object]:
    return {
        "operator": item.operator,
        "access": item.access.value,
        "target": None if item.target is None else item.target.text,
        "dynamic": item.target is not None and item.target.dynamic,
    }


def as_text(call: ToolCall, explanation: Explanation, *, color: bool) -> str:
    """The answer, the line with the deciding part marked, each deciding rule with its place, and the way on."""
    decision = explanation.decision
    tier = decision.tier
    lines = [_paint(tier.name, tier, color=color)]
    lines += _marked(described(call), decision.deciding, tier, color=color)
    lines.append("")
    for reason in _unique(decision.deciding)[:20]:
        lines.append(f"  {reason.tier.word:5} {show(reason.rule)}  ({reason.scope.value})")
        lines.append(f"        {reason.place}")
        lines.append(f"        {show(reason.because, 400)}")
        if reason.matched:
            lines.append(f"        matched: {reason.matched}")
    others = [reason for reason in _unique(decision.reasons) if reason.tier is not tier]
    if others:
        lines.append("")
        lines.append("  also:")
        lines += [
            f"    {reason.tier.word:5} {show(reason.rule)} {reason.place}: {reason.matched}" for reason in others[:12]
        ]
    if explanation.prepared is not None and explanation.prepared.line.unexplained:
        lines.append("")
        lines.append("  not surely understood:")
        for item in explanation.prepared.line.unexplained[:8]:
            lines.append(f"    {item.start}-{item.end} `{show(item.text, 60)}`: {item.why}")
    change = narrowest_change(call, explanation)
    if change is not None:
        lines.append("")
        lines.append(f"  the narrowest change that would allow it ({change['where']}):")
        lines += [f"    {line}" for line in str(change["yaml"]).splitlines()]
    lines.append("")
    lines.append(f"  policy {decision.policy_digest}")
    return "\n".join(lines)


def _unique(reasons: tuple[Reason, ...]) -> list[Reason]:
    return list({(r.rule, r.place, r.matched, r.because): r for r in reasons}.values())


def _marked(text: str, deciding: tuple[Reason, ...], tier: Tier, *, color: bool) -> list[str]:
    """The line with carets under what decided; long or many-lined calls show the lines that decided."""
    spans = [reason.span for reason in deciding if reason.span is not None] if tier is not Tier.ALLOW else []
    lines = []
    at = 0
    for source in text.split("\n"):
        end = at + len(source)
        inside = [(max(a, at) - at, min(b, end) - at) for a, b in spans if a < end + 1 and b > at]
        if inside or not spans:
            lines += _one_line(source[:MAX_SHOWN], inside, tier, color=color)
        at = end + 1
        if len(lines) > 24:
            lines.append("  …")
            break
    return lines


def _one_line(source: str, spans: list[tuple[int, int]], tier: Tier, *, color: bool) -> list[str]:
    shown, marks = "", ""
    for place, character in enumerate(source):
        piece = show(character)
        marked = any(start <= place < end for start, end in spans)
        shown += piece
        marks += ("^" if marked else " ") * len(piece)
    found = [f"  {shown}"]
    if marks.strip():
        found.append("  " + _paint(marks.rstrip(), tier, color=color))
    return found


_COLORS = {Tier.ALLOW: "32", Tier.ASK: "33", Tier.DENY: "31"}


def _paint(text: str, tier: Tier, *, color: bool) -> str:
    return f"\x1b[{_COLORS[tier]}m{text}\x1b[0m" if color else text
