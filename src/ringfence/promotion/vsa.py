"""What leaves the gate: a SLSA verification summary and an own verdict predicate, both signed; and their check. Pure.

The summary is a pass for one head, one artefact, one target branch and one policy; a consumer compares all of them,
because a pass for a development branch is no pass for another.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ringfence.promotion.dsse import STATEMENT, Signed, seal, unseal
from ringfence.promotion.findings import Outcome
from ringfence.promotion.strict import Malformed, Value
from ringfence.promotion.trust import Trust
from ringfence.promotion.verdict import Verdict

VSA = "https://slsa.dev/verification_summary/v1"
VERDICT = "https://promotion.example/verdict/v1"
LEVEL = "PROMOTION_REVIEWABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """The gate's own key; ``verifier`` is the name that trust files pin it under."""

    key: Ed25519PrivateKey
    keyid: str
    verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A checked pair of statements: what was passed, for whom, by whom."""

    verifier: str
    result: str
    levels: tuple[str, ...]
    head: str
    artifact_sha256: str
    resource: str
    policy_sha256: str
    verified: str
    verdict: dict[str, Value]


def sign_verdict(verdict: Verdict, signer: Signer, resource: str) -> bytes:
    """Two DSSE envelopes, one a line: the summary, then the whole verdict. ``resource``: git URL with the target branch."""
    lines = (seal(statement, signer.key, signer.keyid) for statement in _statements(verdict, signer.verifier, resource))
    return b"".join(lines)


def _statements(verdict: Verdict, verifier: str, resource: str) -> tuple[dict[str, Value], dict[str, Value]]:
    subject: list[Value] = [{"name": "head", "digest": {"gitCommit": verdict.head}}]
    if verdict.artifact_sha256:
        subject.append({"name": "artifact", "digest": {"sha256": verdict.artifact_sha256}})
    passed = verdict.outcome is Outcome.HUMAN_REVIEW and not verdict.break_glass
    inputs: list[Value] = [{"uri": name, "digest": {"sha256": digest}} for name, digest in verdict.evidence]
    summary: dict[str, Value] = {
        "verifier": {"id": verifier},
        "timeVerified": datetime.fromtimestamp(verdict.checked_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resourceUri": resource,
        "policy": {"uri": "promotion/policy.json", "digest": {"sha256": verdict.policy_sha256}},
        "inputAttestations": inputs,
        "verificationResult": "PASSED" if passed else "FAILED",
        "verifiedLevels": [LEVEL] if passed else [],
        "slsaVersion": "1.1",
    }
    common: dict[str, Value] = {"_type": STATEMENT, "subject": subject}
    return (
        {**common, "predicateType": VSA, "predicate": summary},
        {**common, "predicateType": VERDICT, "predicate": verdict.to_json()},
    )


def verify_summary(raw: bytes, trust: Trust, at: int) -> Summary:
    """The summary, if both envelopes are signed by one pinned gate key and agree with each other; raises Malformed."""
    lines = raw.removesuffix(b"\n").split(b"\n")
    if len(lines) != 2:
        raise Malformed("not two envelopes")
    first, second = (unseal(line, trust, "gate", at) for line in lines)
    if first.by.keyid != second.by.keyid or first.statement.get("subject") != second.statement.get("subject"):
        raise Malformed("the two statements are of different signers or subjects")
    summary, verdict = _predicate(first, VSA), _predicate(second, VERDICT)
    verifier, policy = summary.get("verifier"), summary.get("policy")
    if not isinstance(verifier, dict) or verifier.get("id") != first.by.name:
        raise Malformed(f"the key is pinned for {first.by.name!a}, the summary names another verifier")
    result, levels = summary.get("verificationResult"), summary.get("verifiedLevels")
    words = verdict.get("verdict") == "human_review" and not verdict.get("break_glass")
    if result not in {"PASSED", "FAILED"} or (result == "PASSED") != words or not isinstance(levels, list):
        raise Malformed("the summary and the verdict disagree")
    digest = policy.get("digest") if isinstance(policy, dict) else None
    return Summary(
        verifier=first.by.name,
        result=str(result),
        levels=tuple(str(level) for level in levels),
        head=_subject(first, "gitCommit"),
        artifact_sha256=_subject(first, "sha256"),
        resource=str(summary.get("resourceUri")),
        policy_sha256=str(digest.get("sha256")) if isinstance(digest, dict) else "",
        verified=str(summary.get("timeVerified")),
        verdict=verdict,
    )


def _predicate(signed: Signed, kind: str) -> dict[str, Value]:
    predicate = signed.statement.get("predicate")
    if signed.statement.get("predicateType") != kind or not isinstance(predicate, dict):
        raise Malformed(f"not a statement of {kind}")
    return predicate


def _subject(signed: Signed, algorithm: str) -> str:
    subject = signed.statement.get("subject")
    for item in subject if isinstance(subject, list) else []:
        digest = item.get("digest") if isinstance(item, dict) else None
        if isinstance(digest, dict) and isinstance(digest.get(algorithm), str):
            return str(digest[algorithm])
    return ""


def canonical(statements: list[dict[str, Value]]) -> bytes:
    """Statements as lines of JSON, members in order: the bytes that a token is bound to."""
    return "".join(json.dumps(item, sort_keys=True, separators=(",", ":")) + "\n" for item in statements).encode()
