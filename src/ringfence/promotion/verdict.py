"""The answer to one check, as a value and as JSON. Pure."""

from dataclasses import dataclass, field

from ringfence.promotion.decide import Situation, headline
from ringfence.promotion.findings import Finding, Outcome
from ringfence.promotion.strict import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the gate says about one head. ``numbers`` are the measured blast radius; ``notes`` never change the outcome."""

    outcome: Outcome
    reasons: tuple[Finding, ...]
    numbers: dict[str, int]
    limits: dict[str, int]
    base: str = ""
    head: str = ""
    commit: str = ""
    """The commit that the trusted pipeline re-ran."""
    checked_at: int = 0
    """Seconds since the epoch."""
    dry_run: bool = False
    identity: str = ""
    """Platform, issuer and run of the proved identity; empty if none was proved."""
    artifact_sha256: str = ""
    policy_sha256: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of each evidence file read."""
    notes: tuple[str, ...] = ()
    break_glass: str = ""
    """Who let it pass against the reasons, and why; empty normally."""
    headline: str = ""
    gates: dict[int, str] = field(default_factory=dict)
    """What is said of a gate without a finding; one that is not named was not asked."""

    def to_json(self) -> dict[str, Value]:
        """The verdict as plain JSON; ``verdict``, ``reasons`` and ``numbers`` are stable."""
        return {
            "verdict": self.outcome.word,
            "headline": self.headline,
            "reasons": [
                {
                    "code": item.code,
                    "gate": item.gate,
                    "asked": item.asked,
                    "found": item.found,
                    "from": item.source,
                    "next": item.next_step,
                }
                for item in self.reasons
            ],
            "numbers": dict(self.numbers),
            "limits": dict(self.limits),
            "base": self.base,
            "head": self.head,
            "commit": self.commit,
            "checked_at": self.checked_at,
            "dry_run": self.dry_run,
            "identity": self.identity,
            "artifact_sha256": self.artifact_sha256,
            "policy_sha256": self.policy_sha256,
            "evidence": [{"name": name, "sha256": digest} for name, digest in self.evidence],
            "notes": list(self.notes),
            "break_glass": self.break_glass,
        }


def unique(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each finding once, worst first, then by gate."""
    seen = dict.fromkeys(findings)
    return tuple(sorted(seen, key=lambda item: (-item.outcome, item.gate, item.code)))


def head_line(outcome: Outcome, situation: Situation | None, *, dry_run: bool) -> str:
    """The top line; a dry run says so."""
    text = headline(outcome, situation)
    return f"dry run, no evidence: {text}" if dry_run else text
