"""What the gate answers with: outcomes, gates, and the closed table of reason codes. Pure."""

import enum
from dataclasses import dataclass


class Outcome(enum.IntEnum):
    """The four verdicts, ordered: the worst of several is ``max()``. None of them merges anything."""

    HUMAN_REVIEW = 0
    HOLD = 1
    REFUSE = 2
    ROTATE = 3

    @property
    def word(self) -> str:
        """The verdict as JSON and the decision table spell it."""
        return _WORDS[self]


_WORDS = {
    Outcome.HUMAN_REVIEW: "human_review",
    Outcome.HOLD: "hold_for_explanation",
    Outcome.REFUSE: "refuse",
    Outcome.ROTATE: "refuse_and_rotate",
}

GATES = (
    "environment and identity",
    "data and secrets",
    "network, writes, reads",
    "trusted re-run",
    "blast radius",
    "owner and rollback",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason: what was asked, what was found, decided from where, and the one next step. All text is for people."""

    code: str
    gate: int
    outcome: Outcome
    asked: str
    found: str
    source: str
    next_step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    gate: int
    outcome: Outcome
    asked: str
    next_step: str


def _kind(gate: int, asked: str, next_step: str, outcome: Outcome = Outcome.REFUSE) -> _Kind:
    return _Kind(gate=gate, outcome=outcome, asked=asked, next_step=next_step)


_RERUN = "let the trusted pipeline re-run this commit and attest it again"
_WRITE_EVIDENCE = "write promotion.json for this change in a commit of its own, on top of the re-run commit"
_SPLIT = "split the change so that each part stays within the base's limits"

KINDS: dict[str, _Kind] = {
    "env.class_not_allowed": _kind(0, "a host claims only the class it can prove", "label agent hosts sandbox"),
    "identity.missing": _kind(0, "a trusted CI identity, proved", _RERUN),
    "identity.bad_signature": _kind(0, "a token signed by a pinned issuer key", _RERUN),
    "identity.wrong_claims": _kind(0, "a token of the pinned repository, workflow, ref and commit", _RERUN),
    "identity.not_bound": _kind(0, "a token whose audience is the digest of the statements", _RERUN),
    "identity.expired": _kind(0, "a token valid when the run was attested, and recent", _RERUN),
    "identity.replayed": _kind(0, "a token that has vouched for no other head", _RERUN),
    "secrets.in_change": _kind(
        1, "no credential in any commit of the change", "rotate that credential, and rebuild the branch without it"
    ),
    "secrets.reachable": _kind(
        1, "a sandbox that could read no credential", "rotate what was readable, and repeat the run in a clean sandbox"
    ),
    "pii.in_change": _kind(1, "no personal data in the change", "use synthetic fixtures, and rebuild the branch"),
    "egress.no_allowlist": _kind(2, "an egress allowlist in force", "repeat the run under the base's allowlist"),
    "egress.too_wide": _kind(2, "only hosts that the base's policy names", "repeat the run under the base's allowlist"),
    "egress.violation": _kind(
        2, "no attempt at metadata or private addresses", "look into the attempt before anything"
    ),
    "files.outside": _kind(2, "reads and writes inside the declared roots", "repeat the run with declared roots only"),
    "evidence.not_a_file": _kind(3, "promotion.json as a regular file in the head tree", _WRITE_EVIDENCE),
    "evidence.malformed": _kind(3, "one strict JSON object in the asked layout", _WRITE_EVIDENCE),
    "evidence.stale": _kind(3, "evidence written for this change", _WRITE_EVIDENCE),
    "evidence.placeholder": _kind(3, "a true value in every field", _WRITE_EVIDENCE),
    "sha.format": _kind(3, "git_sha as a full lower-case object id", _WRITE_EVIDENCE),
    "sha.not_parent": _kind(3, "git_sha is the only parent of the evidence commit", _WRITE_EVIDENCE),
    "sha.content_after_pin": _kind(3, "nothing but the evidence changes after git_sha", _RERUN),
    "sha.statement_mismatch": _kind(3, "statements about this change's commit", _RERUN),
    "ci.not_run": _kind(3, "a trusted re-run of this commit", _RERUN),
    "ci.failed": _kind(3, "a trusted re-run that passed", "mend the change until the trusted re-run passes"),
    "sandbox.not_run": _kind(3, "a sandbox run with a result and a digest", "run the change in the sandbox first"),
    "tests.fewer": _kind(
        3,
        "no fewer tests than on the base, and none newly switched off",
        "a named person who is not the author records why (ringfence promote explain --record)",
        Outcome.HOLD,
    ),
    "delta.unexplained": _kind(
        3,
        "sandbox and trusted run agree",
        "a named person who is not the author records why they differ (ringfence promote explain --record)",
        Outcome.HOLD,
    ),
    "digest.format": _kind(3, "digests as 64 lower-case hex digits, not of nothing", _WRITE_EVIDENCE),
    "digest.mismatch": _kind(3, "digests of the stated artefacts, recomputed", _WRITE_EVIDENCE),
    "digest.differ": _kind(
        3, "equal bytes from sandbox and trusted run", "find the first differing members and explain them", Outcome.HOLD
    ),
    "base.moved": _kind(
        3,
        "a base that did not move under the touched paths",
        "rebase, and re-run (or use the merge queue)",
        Outcome.HOLD,
    ),
    "repository.unreadable": _kind(
        3,
        "full history with readable, honest objects",
        "name a repository with its full history, and a branch, a tag or a full id in it",
    ),
    "policy.unreadable": _kind(
        3,
        "a valid promotion policy in the base tree",
        "mend promotion/policy.json on the base, or make one (ringfence promote init) and commit it there",
    ),
    "trust.unreadable": _kind(0, "valid trust files given out of band", "mend the trust folder"),
    "check.fault": _kind(3, "a check that ends without a fault", "report this fault; until mended nothing is promoted"),
    "blast.paths": _kind(4, "paths within the cap", _SPLIT),
    "blast.services": _kind(4, "services within the cap", _SPLIT),
    "blast.bytes": _kind(4, "bytes within the cap, nothing opaque", _SPLIT),
    "blast.iam": _kind(
        4, "IAM actions added within the cap", "leave the IAM change to a person, in a change of its own"
    ),
    "blast.region": _kind(4, "regions, clusters and namespaces within the base's lists", _SPLIT),
    "blast.schema": _kind(4, "no schema or data drop", "leave the migration to a person, in a change of its own"),
    "blast.authz": _kind(4, "no authorisation change", "leave it to a person, in a change of its own"),
    "blast.secret_rotation": _kind(4, "no secret rotation", "leave it to a person, in a change of its own"),
    "blast.protected_path": _kind(4, "the gate, its policy, CI and owners untouched", "take these paths out"),
    "agents.instructed": _kind(
        4,
        "no change to what agents read as orders, or one that somebody read as such",
        "a named person who is not the author reads it as an agent would, and records why it may stay "
        "(ringfence promote explain --record)",
        Outcome.HOLD,
    ),
    "packages.source": _kind(
        4,
        "packages from hosts that the base names, with a digest where there was one",
        "name the host in egress.registry_hosts of the base, or a named person who is not the author records why it is right "
        "(ringfence promote explain --record)",
        Outcome.HOLD,
    ),
    "blast.submodule": _kind(4, "no submodule pointer added or moved", "leave it to a person"),
    "blast.cannot_tell": _kind(
        4, "changes whose effect can be read", "leave it to a person, or let the base except it"
    ),
    "flag.missing": _kind(4, "a feature flag defined in the change", "define the flag, off, in the flags file"),
    "flag.not_off": _kind(4, "a feature flag off for everybody", "make off the default and remove the targeting"),
    "flag.not_read": _kind(4, "a feature flag that the changed code reads", "guard the new behaviour by the flag"),
    "owner.unknown": _kind(5, "a reachable named person, not the author", "name a person of the base's owners file"),
    "rollback.not_a_command": _kind(5, "a rollback command that the base allows", "use one of the base's commands"),
    "rollback.unproven": _kind(5, "that command rehearsed in staging", "ringfence promote rehearse, then attest again"),
}


def finding(
    code: str, found: str, source: str, *, outcome: Outcome | None = None, next_step: str = "", asked: str = ""
) -> Finding:
    """A Finding of a known code; ``outcome`` may only make it worse, never milder."""
    kind = KINDS[code]
    return Finding(
        code=code,
        gate=kind.gate,
        outcome=kind.outcome if outcome is None else max(outcome, kind.outcome),
        asked=asked or kind.asked,
        found=shown(found),
        source=shown(source),
        next_step=next_step or kind.next_step,
    )


def shown(text: str, limit: int = 300) -> str:
    """Untrusted text made harmless for a terminal, a log line and an annotation: no control, format or bidi characters."""
    clipped = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in clipped)
