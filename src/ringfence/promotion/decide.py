"""The decision table: what happened in both runs and at the gates, to findings; findings to one outcome. Pure.

Every row only adds a finding, and the worst finding wins: making an input worse can never make the outcome better.
A test walks the whole grid.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.promotion.findings import Finding, Outcome, finding


class SandboxRun(enum.IntEnum):
    """What came of the agent's own run, best first."""

    PASS = 0
    FAIL = 1
    NOT_RUN = 2


class TrustedRun(enum.IntEnum):
    """What came of the re-run by a proved identity, best first."""

    PASSED = 0
    FAILED = 1
    OTHER_SHA = 2
    NOT_RUN = 3


class GateState(enum.IntEnum):
    """Secrets and egress together, best first."""

    PASS = 0
    FAIL = 1
    MISSING = 2


class Label(enum.IntEnum):
    """The class the agent's host claims, best first. It proves none of them."""

    SANDBOX = 0
    TRUSTED_CI = 1
    PROD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The four inputs of the table."""

    sandbox: SandboxRun
    trusted: TrustedRun
    gates: GateState
    label: Label


def table(situation: Situation) -> list[Finding]:
    """The rows that the situation meets; label and a failed gate bring findings of their own."""
    found = []
    sandbox, trusted = situation.sandbox, situation.trusted
    if trusted is TrustedRun.NOT_RUN:
        found.append(finding("ci.not_run", "no trusted re-run is proved", "evidence"))
    if trusted is TrustedRun.OTHER_SHA:
        found.append(finding("sha.statement_mismatch", "the trusted re-run was of another commit", "ci.intoto.jsonl"))
    if situation.gates is GateState.MISSING:
        found.append(finding("secrets.reachable", "no report: cannot tell what the sandbox could read", "evidence"))
        found.append(finding("egress.no_allowlist", "no report: cannot tell what the sandbox could reach", "evidence"))
    if trusted is TrustedRun.FAILED:
        green = "false green: the sandbox passed, the trusted re-run failed"
        said = green if sandbox is SandboxRun.PASS else "agreed red: neither run passed"
        found.append(finding("ci.failed", said, "ci.intoto.jsonl"))
    if sandbox is SandboxRun.NOT_RUN:
        found.append(finding("sandbox.not_run", "no sandbox run with a result: it cannot propose", "sandbox.json"))
    if sandbox is SandboxRun.FAIL and trusted is TrustedRun.PASSED:
        found.append(finding("delta.unexplained", "the sandbox failed, the trusted re-run passed", "both runs"))
    if sandbox is SandboxRun.FAIL and trusted is not TrustedRun.PASSED:
        found.append(
            finding("sandbox.not_run", "the sandbox failed, and no trusted pass stands against it", "both runs")
        )
    return found


def outcome_of(findings: Iterable[Finding]) -> Outcome:
    """The worst of all; a person's review where there is none."""
    return max((item.outcome for item in findings), default=Outcome.HUMAN_REVIEW)


def judge(situation: Situation, findings: Iterable[Finding]) -> Outcome:
    """The outcome of the table together with what the gates found themselves.

    A label or gate that is bad sets a floor, so that a caller who forgot its finding still cannot get a pass.
    """
    floors = {Label.SANDBOX: Outcome.HUMAN_REVIEW, Label.TRUSTED_CI: Outcome.REFUSE, Label.PROD: Outcome.ROTATE}
    gate = Outcome.HUMAN_REVIEW if situation.gates is GateState.PASS else Outcome.REFUSE
    return max(outcome_of(findings), outcome_of(table(situation)), floors[situation.label], gate)


def headline(outcome: Outcome, situation: Situation | None) -> str:
    """One line for the top of the screen."""
    if situation is not None and situation.trusted is TrustedRun.FAILED:
        return "false green" if situation.sandbox is SandboxRun.PASS else "agreed red"
    words = {
        Outcome.HUMAN_REVIEW: "ready for a person's review, flag off; nothing is merged",
        Outcome.HOLD: "held until a named person explains the difference",
        Outcome.REFUSE: "refused",
        Outcome.ROTATE: "refused; rotate the credentials named below",
    }
    return words[outcome]
