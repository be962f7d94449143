"""What a named person may lift by signing: a hold that they explain, or everything but credentials by breaking the glass. Pure."""

from dataclasses import dataclass, replace

from ringfence.promotion.change import Change
from ringfence.promotion.decide import SandboxRun, Situation, TrustedRun
from ringfence.promotion.findings import Finding, Outcome, finding
from ringfence.promotion.ownership import wrote
from ringfence.promotion.signed import read_break_glass, read_explanation
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import Trust

_NEVER = frozenset({"secrets.in_change", "pii.in_change", "repository.unreadable", "policy.unreadable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """The evidence that may hold signed words, and what they are checked against."""

    files: dict[str, bytes]
    trust: Trust | None
    change: Change
    at: int


def explain(signed: Signed, found: list[Finding]) -> tuple[list[Finding], list[str]]:
    """Findings left, and notes: what only holds is lifted by signed words about exactly this head and these codes."""
    where = "explanation.dsse.json"
    raw = signed.files.get(where)
    if raw is None or signed.trust is None:
        return found, []
    try:
        name, reason, codes = read_explanation(
            raw, trust=signed.trust, head=signed.change.head.oid, base=signed.change.base.oid, at=signed.at
        )
    except Malformed as error:
        return [*found, finding("delta.unexplained", f"the explanation does not count: {error}", where)], []
    if wrote(signed.change, name, ()):
        return [*found, finding("delta.unexplained", f"{name[:60]!a} explains a change of their own", where)], []
    left = [item for item in found if item.outcome is not Outcome.HOLD or item.code not in codes]
    return left, [f"explained by {name[:60]!a}: {reason[:200]!a}"]


def as_explained(situation: Situation, left: list[Finding]) -> Situation:
    """The situation after an explanation: a delta that is no longer among the findings is as if the runs agreed."""
    delta = situation.sandbox is SandboxRun.FAIL and situation.trusted is TrustedRun.PASSED
    if delta and all(item.code != "delta.unexplained" for item in left):
        return replace(situation, sandbox=SandboxRun.PASS)
    return situation


def break_glass(signed: Signed, outcome: Outcome, found: list[Finding], *, allowed: bool) -> tuple[str, list[str]]:
    """Who lets it pass in spite of everything, and notes; only where the base allows it, and never past credentials."""
    raw = signed.files.get("break-glass.dsse.json")
    if raw is None or signed.trust is None:
        return "", []
    try:
        name, reason = read_break_glass(raw, trust=signed.trust, head=signed.change.head.oid, at=signed.at)
    except Malformed as error:
        return "", [f"break-glass refused: {error}"]
    if not allowed or outcome is Outcome.ROTATE or any(item.code in _NEVER for item in found):
        return "", [f"break-glass of {name[:60]!a} does not count here"]
    return f"{name[:60]!a}: {reason[:200]!a}", []
