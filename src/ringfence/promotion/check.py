"""The gate: two commits, a trust folder and an evidence folder in; one Verdict out, whatever happens.

This file opens the repository and the folders and hands their bytes to the pure ``gates``. A fault anywhere is a
refusal with a reason, never a traceback and never a pass.
"""

import hashlib
import time
from dataclasses import dataclass

from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.ports import Recorder
from ringfence.promotion.blast.measure import measure
from ringfence.promotion.change import Reader, base_file
from ringfence.promotion.decide import outcome_of
from ringfence.promotion.evidence import Evidence, read_evidence, read_folder
from ringfence.promotion.findings import Finding, Outcome, finding
from ringfence.promotion.gates import Question, TokenUse, ask
from ringfence.promotion.gather import gather, without
from ringfence.promotion.objects import BadObject
from ringfence.promotion.policy import POLICY_PATH, Policy, parse_policy
from ringfence.promotion.repository import Repository
from ringfence.promotion.scan import scan_change
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import Trust, parse_trust
from ringfence.promotion.verdict import Verdict, unique


def check(
    repo: str,
    base: str,
    head: str,
    trust_dir: str | None,
    evidence_dir: str | None,
    *,
    at: int | None = None,
    record: Recorder | None = None,
    live: bool = False,
    used_once: TokenUse | None = None,
    objects: tuple[str, ...] = (),
) -> Verdict:
    """The verdict on ``head`` against ``base``; never raises for anything the change, evidence or repository holds.

    ``at``: seconds since the epoch, now if None. ``live``: the token must also be unexpired. ``used_once``: remembers
    tokens, so that one cannot vouch for two heads. ``objects``: further object folders, as a receiving server has.
    Without ``evidence_dir`` it is a dry run, which never passes. With ``record`` the verdict is durable before it is
    returned; where it cannot be recorded, it is a refusal.
    """
    now = int(time.time()) if at is None else at
    asked = _Asked(
        repo=repo,
        base=base,
        head=head,
        trust_dir=trust_dir,
        evidence_dir=evidence_dir,
        at=now,
        live=live,
        used_once=used_once,
        objects=objects,
    )
    try:
        verdict = _check(asked)
    except BadObject as error:
        verdict = _refusal([finding("repository.unreadable", str(error), "the repository")], now)
    except Malformed as error:
        verdict = _refusal([finding("policy.unreadable", str(error), POLICY_PATH)], now)
    except Exception as error:  # noqa: BLE001 - the outer edge of the gate: a fault of ours must refuse, never escape
        verdict = _refusal([finding("check.fault", f"{type(error).__name__} while deciding", "ringfence")], now)
    return _record(verdict, record, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    repo: str
    base: str
    head: str
    trust_dir: str | None
    evidence_dir: str | None
    at: int
    live: bool
    used_once: TokenUse | None
    objects: tuple[str, ...]


def _check(asked: _Asked) -> Verdict:
    with Repository(asked.repo, objects=asked.objects) as opened:
        base_id, head_id = opened.resolve(asked.base), opened.resolve(asked.head)
        reader = opened.reader()
        raw = _policy_bytes(base_id, reader)
        policy = parse_policy(raw)
        between = opened.commits_between(base_id, head_id, policy.limits.commits)
        change = gather(base_id, head_id, between, reader, limit=policy.limits.commits)
        problems: list[Finding] = []
        question = Question(
            change=change,
            policy=policy,
            policy_sha256=hashlib.sha256(raw).hexdigest(),
            evidence=_evidence(asked.evidence_dir, policy, problems),
            trust=_trust(asked.trust_dir, problems),
            at=asked.at,
            live=asked.live,
            used_once=asked.used_once,
            problems=tuple(problems),
        )
        return ask(question, reader)


def blast(repo: str, base: str, head: str) -> Verdict:
    """The blast radius alone, against the base's limits; for a person's own machine. It is no check and proves nothing."""
    now = int(time.time())
    try:
        with Repository(repo) as opened:
            base_id, head_id = opened.resolve(base), opened.resolve(head)
            reader = opened.reader()
            policy = parse_policy(_policy_bytes(base_id, reader))
            between = opened.commits_between(base_id, head_id, policy.limits.commits)
            change = gather(base_id, head_id, between, reader, limit=policy.limits.commits)
            found, numbers = measure(without(change, policy.evidence_file), policy)
            found.extend(scan_change(change, reader))
    except BadObject as error:
        return _refusal([finding("repository.unreadable", str(error), "the repository")], now)
    except Malformed as error:
        return _refusal([finding("policy.unreadable", str(error), POLICY_PATH)], now)
    limits = policy.limits
    return Verdict(
        outcome=outcome_of(found),
        reasons=unique(found),
        numbers=numbers,
        limits={name: getattr(limits, name) for name in limits.__struct_fields__},
        base=base_id,
        head=head_id,
        checked_at=now,
        dry_run=True,
        headline="within the base's limits" if not found else "beyond the base's limits",
        gates={1: "nothing found in the change", 4: "passed"},
    )


def _policy_bytes(base: str, reader: Reader) -> bytes:
    try:
        return base_file(reader.commit(base), POLICY_PATH, reader)
    except BadObject as error:
        raise Malformed(str(error)) from None


def _evidence(folder: str | None, policy: Policy, problems: list[Finding]) -> Evidence | None:
    if folder is None:
        return None
    try:
        return read_evidence(folder, policy.artifact.name)
    except (Malformed, OSError) as error:
        said = str(error) if isinstance(error, Malformed) else f"cannot be read ({error.strerror})"
        problems.append(finding("evidence.malformed", said, "the evidence folder"))
        return Evidence(files={}, sandbox_artifact=None, trusted_artifact=None, others=())


def _trust(folder: str | None, problems: list[Finding]) -> Trust | None:
    if folder is None:
        return None
    try:
        return parse_trust(read_folder(folder))
    except (Malformed, OSError) as error:
        said = str(error) if isinstance(error, Malformed) else f"cannot be read ({error.strerror})"
        problems.append(finding("trust.unreadable", said, "the trust folder"))
        return None


def _refusal(reasons: list[Finding], now: int) -> Verdict:
    return Verdict(
        outcome=Outcome.REFUSE,
        reasons=tuple(reasons),
        numbers={},
        limits={},
        checked_at=now,
        headline="cannot tell",
    )


def _record(verdict: Verdict, record: Recorder | None, now: int) -> Verdict:
    if record is None:
        return verdict
    body: dict[str, Json] = {"verdict": _jsonable(verdict.to_json())}
    try:
        record.append([Entry(kind=EntryKind.PROMOTION, time=Micros(now * 1_000_000), body=body)])
    except LedgerError as error:
        reason = finding("check.fault", f"the verdict could not be recorded ({error.code})", "ledger")
        return _refusal([reason, *verdict.reasons], now)
    return verdict


def _jsonable(value: object) -> Json:
    """The verdict holds no floats; this tells the type checker so, and would fail loudly if it ever did."""
    if isinstance(value, dict):
        return {str(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{type(value).__name__} does not go into the ledger")
