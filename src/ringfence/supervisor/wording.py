"""What goes back to a client: decisions and executions as JSON, and the lines a person reads. Pure."""

from collections.abc import Iterable, Mapping

from ringfence.model.box import Execution
from ringfence.model.call import Argv, ShellLine, ToolCall
from ringfence.model.decision import Decision, Reason
from ringfence.model.tier import Tier
from ringfence.supervisor.gate_answer import GateAnswer

Report = dict[str, object]
NOBODY_LISTENS = "nobody listens"
"""The end of what is said of a try on the box's own loopback, which is no part of a network."""
LATE = "hidden-late"
"""Kind of observation: a path that the policy hides came into the worktree while a box ran, which could see it."""


def refusal(call: ToolCall, decision: Decision, shown: Mapping[str, object]) -> Report:
    """The answer where nothing ran: exit 10 for ASK (nobody can approve yet), 11 for DENY."""
    asked = decision.tier is Tier.ASK
    messages = list(refusal_lines(call, decision))
    if asked:
        messages.append(f"  fix: {_way_out(decision)}")
    return {
        "tier": decision.tier.word,
        "ran": False,
        "exit": 10 if asked else 11,
        "signal": None,
        "ended_by": "",
        "messages": messages,
        "decision": decision_fields(decision),
        **shown,
    }


def _way_out(decision: Decision) -> str:
    if all(reason.kind == "trust" for reason in decision.deciding):
        return "ringfence policy trust shows what the policy allows, and puts it in force"
    return "a person must allow this by a rule; approvals of single calls do not exist yet"


def refusal_lines(call: ToolCall, decision: Decision) -> Iterable[str]:
    """Two lines for each deciding reason, the strictest first; at most five reasons, the rest counted."""
    word = {Tier.ASK: "held", Tier.DENY: "denied"}.get(decision.tier, decision.tier.word)
    deciding = decision.deciding
    for reason in deciding[:5]:
        yield f"{word}[{reason.rule}]: {_one_line(reason.matched) or _one_line(named(call))}"
        yield f"  --> {reason.place} ({reason.scope.value})  {_one_line(reason.because)}"
    if len(deciding) > 5:
        yield f"  and {len(deciding) - 5} more reasons; `ringfence why` shows all"


def decision_fields(decision: Decision) -> Report:
    """A decision as JSON; the field names are those of ``ringfence why --json``."""
    return {
        "call": decision.call_id,
        "tier": decision.tier.word,
        "policy": decision.policy_digest,
        "reasons": [reason_fields(reason) for reason in decision.reasons],
    }


def reason_fields(reason: Reason) -> Report:
    """One reason as JSON."""
    return {
        "rule": reason.rule,
        "kind": reason.kind,
        "scope": reason.scope.value,
        "place": str(reason.place),
        "tier": reason.tier.word,
        "matched": reason.matched,
        "because": reason.because,
        "span": list(reason.span) if reason.span else None,
    }


def execution_fields(execution: Execution) -> Report:
    """An execution as JSON."""
    return {
        "level": execution.level.name.lower(),
        "exit": execution.exit,
        "signal": execution.signal,
        "ended_by": execution.ended_by,
        "duration_us": int(execution.duration),
        "stdout_bytes": execution.stdout_bytes,
        "stderr_bytes": execution.stderr_bytes,
        "dropped_bytes": execution.dropped_bytes,
        "controls": [
            {"name": control.name, "state": control.state.value, "detail": control.detail}
            for control in execution.controls
        ],
        "observations": [
            {"kind": seen.kind, "detail": seen.detail, "count": seen.count, "violation": seen.violation}
            for seen in execution.observations
        ],
        "observations_dropped": execution.observations_dropped,
    }


def outcome(
    execution: Execution, gate: GateAnswer | None, shown: Mapping[str, object], *, refused: Iterable[str] = ()
) -> Report:
    """The answer where a box ran. ``refused`` is what its network did not let out."""
    messages = []
    if execution.ended_by:
        messages.append(f"ringfence ended it: {execution.ended_by}")
    if execution.dropped_bytes:
        unread = execution.ended_by.startswith("output could not be written")
        why = "not all of the output was taken" if unread else "ringfence kept the output to the policy's cap"
        messages.append(f"{why}: {execution.dropped_bytes} bytes were dropped")
    messages += [
        f"{_one_line(ascii(seen.detail))} came while this ran, so it was not hidden: renew what it holds if that is a secret"
        for seen in execution.observations
        if seen.kind == LATE
    ]

    if execution.exit != 0:
        messages += hints(execution)
    messages += refused
    if gate is not None:
        messages += gate.lines()
    return {
        "tier": Tier.ALLOW.word,
        "ran": True,
        "exit": execution.exit if execution.exit is not None else None,
        "signal": execution.signal,
        "ended_by": execution.ended_by,
        "messages": messages,
        "execution": execution_fields(execution),
        "gate": None if gate is None else gate.fields(),
        **shown,
    }


def hints(execution: Execution) -> Iterable[str]:
    """Why a command may have failed, where its own words ("not permitted", "try again") do not say that it was the fence."""
    details = [seen.detail for seen in execution.observations if seen.kind == "limit"]
    yield from (
        f"ringfence: a limit of the policy was reached: {detail}" for detail in details if detail != execution.ended_by
    )
    if any(seen.kind == "refused-syscall" and seen.detail.split()[0] == "ptrace" for seen in execution.observations):
        yield "ringfence: tracing was refused: a debugger works in no box, and leak checks need ASAN_OPTIONS=detect_leaks=0"
    if any(control.name == "egress-log" and control.detail == "none" for control in execution.controls):
        yield from _without_network(execution)


def _without_network(execution: Execution) -> Iterable[str]:
    """What a box without network tried to reach; programs say only that a name or a server was not found."""
    tried = [seen for seen in execution.observations if seen.kind in {"egress", "floor"}]
    outside = [seen for seen in tried if not seen.detail.endswith(NOBODY_LISTENS)]
    if outside:
        more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
        yield f"ringfence: this command has no network, and tried {_one_line(outside[0].detail)}{more}"
    if any(seen.kind == "egress" for seen in outside):
        yield "  fix: a person can allow hosts in the policy (docs/network.md)"
    elif outside:
        yield "  no rule opens an address where clouds hand out credentials"


def named(call: ToolCall) -> str:
    """The command as a person wrote it."""
    import shlex

    match call.request:
        case ShellLine(line=line):
            return line
        case Argv(argv=argv):
            return shlex.join(argv)
        case _:
            return call.kind


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else flat[:197] + "..."
