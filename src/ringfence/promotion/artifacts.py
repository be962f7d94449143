"""The artefacts of both runs: digests from bytes, and tables of members where bytes may differ. Pure."""

import hashlib
import io
import tarfile
import zipfile
from dataclasses import dataclass

from ringfence.promotion.claim import Claim, is_digest
from ringfence.promotion.decode import BROKEN
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.policy import Policy
from ringfence.promotion.sandbox_report import Report
from ringfence.promotion.statements import Statements

_MEMBERS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBytes:
    """What was kept of both runs: the artefacts' bytes, None where there are none."""

    sandbox: bytes | None
    trusted: bytes | None


def check_digests(
    claim: Claim | None, report: Report | None, statements: Statements | None, kept: KeptBytes, policy: Policy
) -> list[Finding]:
    """Findings of gate 3 about digests: claimed, stated and recomputed must be one, and both runs must agree."""
    found: list[Finding] = []
    sandbox = _reported(report, policy, found)
    trusted = _stated(statements, policy, found)
    for side, stated, raw, said in (
        ("sandbox", sandbox, kept.sandbox, claim.sandbox_artifact_sha256 if claim else None),
        ("trusted", trusted, kept.trusted, claim.trusted_ci_artifact_sha256 if claim else None),
    ):
        if stated is None:
            continue
        where = f"artifacts/{side}/{policy.artifact.name}"
        if raw is None:
            found.append(finding("digest.mismatch", "the artefact's bytes are missing, nothing to recompute", where))
        elif hashlib.sha256(raw).hexdigest() != stated:
            found.append(finding("digest.mismatch", "the bytes have another digest than stated", where))
        if said is not None and said != stated:
            found.append(finding("digest.mismatch", f"promotion.json claims another {side} digest", "promotion.json"))
    if sandbox and trusted and sandbox != trusted:
        found.extend(_differ(kept, policy))
    return found


def _reported(report: Report | None, policy: Policy, found: list[Finding]) -> str | None:
    if report is None:
        return None
    if report.artifact is None:
        found.append(finding("digest.format", "the sandbox made no digest: it cannot propose", "sandbox.json"))
        return None
    if report.artifact.name != policy.artifact.name:
        found.append(finding("digest.mismatch", f"built {report.artifact.name[:60]!a}", "sandbox.json"))
    if not is_digest(report.artifact.sha256):
        found.append(finding("digest.format", f"{report.artifact.sha256[:80]!a}", "sandbox.json"))
        return None
    return report.artifact.sha256


def _stated(statements: Statements | None, policy: Policy, found: list[Finding]) -> str | None:
    if statements is None or len(statements.provenance) != 1:
        return None
    subject = statements.provenance[0].subject
    if len(subject) != 1 or subject[0].name != policy.artifact.name:
        found.append(finding("digest.mismatch", "the provenance is about another artefact", "ci.intoto.jsonl"))
        return None
    digest = subject[0].digest.get("sha256", "")
    if not is_digest(digest):
        found.append(finding("digest.format", f"{digest[:80]!a}", "ci.intoto.jsonl"))
        return None
    return digest


def _differ(kept: KeptBytes, policy: Policy) -> list[Finding]:
    where = "artifacts of both runs"
    if kept.sandbox is None or kept.trusted is None:
        return []
    one, two = members(kept.sandbox), members(kept.trusted)
    if not policy.artifact.reproducible and one is not None and one == two:
        return []
    said = "the bytes differ"
    if one is not None and two is not None:
        names = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
        said = f"differing members: {', '.join(names[:5])}" if names else "the members agree, the packing differs"
    return [finding("digest.differ", said, where), finding("delta.unexplained", said, where)]


def members(raw: bytes) -> dict[str, tuple[int, str]] | None:
    """Path to (kind and mode, digest) of a tar or zip archive.

    None for what is neither, and for what cannot be compared whole: more than 20 000 members, or a name that occurs twice.
    """
    try:
        if raw.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                listed = archive.infolist()
                if len(listed) > _MEMBERS or len({i.filename for i in listed}) < len(listed):
                    return None
                return {i.filename: (i.external_attr >> 16, _sha256(archive.read(i))) for i in listed}
        table: dict[str, tuple[int, str]] = {}
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            for info in tar:
                if len(table) >= _MEMBERS or info.name in table:
                    return None
                file = tar.extractfile(info) if info.isreg() else None
                body = file.read() if file else f"{info.linkname} {info.devmajor} {info.devminor}".encode()
                kind = int.from_bytes(info.type, "big") if not info.isreg() else 0
                table[info.name] = (kind << 16 | info.mode & 0o7777, _sha256(body))
    except BROKEN:
        return None
    return table


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
