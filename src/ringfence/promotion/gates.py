"""All gates over one change, as values in and a Verdict out. Pure: evidence, trust and objects arrive as arguments.

Each gate reports everything it finds, so that a person mends it in one round.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from ringfence.promotion import overrides, ownership, sandbox_report
from ringfence.promotion.artifacts import KeptBytes, check_digests
from ringfence.promotion.blast.flags import check_flags, is_read
from ringfence.promotion.blast.measure import measure
from ringfence.promotion.blast.paths import altered_inputs
from ringfence.promotion.blast.suites import gone_by_name
from ringfence.promotion.change import Change, Reader, base_file
from ringfence.promotion.claim import Claim
from ringfence.promotion.decide import GateState, Label, SandboxRun, Situation, TrustedRun, judge, table
from ringfence.promotion.evidence import Evidence
from ringfence.promotion.findings import Finding, Outcome, finding, shown
from ringfence.promotion.gather import without
from ringfence.promotion.globs import matches_any
from ringfence.promotion.identity import Identity, check_token
from ringfence.promotion.objects import BadObject, find_path
from ringfence.promotion.pin import Pinned, read_pin, tested_commit
from ringfence.promotion.policy import Owners, Policy, parse_owners
from ringfence.promotion.rerun import check_rerun
from ringfence.promotion.sandbox_report import Report, parse_report
from ringfence.promotion.scan import scan_change, scan_records
from ringfence.promotion.signed import check_attestor
from ringfence.promotion.statements import Statements, parse_statements
from ringfence.promotion.strict import Malformed
from ringfence.promotion.trust import Trust
from ringfence.promotion.verdict import Verdict, head_line, unique

TokenUse = Callable[[str, str], bool]
"""Given a token's id and a head: whether the token has vouched for no other head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One check. ``at``: seconds since the epoch; ``evidence`` and ``trust`` None where they were not given."""

    change: Change
    policy: Policy
    policy_sha256: str
    evidence: Evidence | None
    trust: Trust | None
    at: int
    live: bool
    used_once: TokenUse | None
    problems: tuple[Finding, ...] = ()
    """What went wrong while the question was put together."""


@dataclass(slots=True)
class _Run:
    """What became known of both runs."""

    found: list[Finding] = field(default_factory=list)
    identity: Identity | None = None
    statements: Statements | None = None
    trusted: TrustedRun = TrustedRun.NOT_RUN
    report: Report | None = None
    artifact: str = ""


def ask(question: Question, reader: Reader) -> Verdict:
    """The verdict. Raises BadObject only for objects without which nothing can be said."""
    pinned = read_pin(question.change, question.policy.evidence_file, reader)
    change = without(question.change, pinned.path)
    run = _Run(found=[*question.problems, *pinned.found])
    _prove(question, pinned, reader, run)
    _read_report(question, pinned, run)
    run.found.extend(_check_class(pinned.claim, run.identity))
    run.found.extend(_moved(change))
    run.found.extend(scan_change(question.change, reader))
    found, numbers = measure(change, question.policy)
    run.found.extend(found)
    run.found.extend(_check_flag(question, change, pinned.claim, reader))
    run.found.extend(_check_ownership(question, change, pinned, run, reader))
    return _conclude(question, change, pinned, run, numbers)


def _prove(question: Question, pinned: Pinned, reader: Reader, run: _Run) -> None:
    """Gate 0 and the trusted half of gate 3: nothing that is stated counts before it is known who states it."""
    files = question.evidence.files if question.evidence else {}
    raw = files.get("ci.intoto.jsonl")
    if question.trust is None or raw is None or not {"ci.jwt", "ci.dsse.json"} & files.keys():
        run.found.append(finding("identity.missing", "no token or signature over statements of a re-run", "evidence"))
        return
    digest = hashlib.sha256(raw).hexdigest()
    if "ci.jwt" in files:
        run.identity, found = check_token(
            files["ci.jwt"],
            trust=question.trust,
            statements_digest=digest,
            at=question.at,
            live=question.live,
            tested=lambda sha: tested_commit(sha, commit=pinned.commit, change=question.change, reader=reader),
        )
    else:
        run.identity, found = check_attestor(
            files["ci.dsse.json"], trust=question.trust, statements_digest=digest, commit=pinned.commit, at=question.at
        )
    run.found.extend(found)
    if run.identity is None:
        return
    _use_once(question, run.identity, run)
    try:
        run.statements = parse_statements(raw)
    except Malformed as error:
        run.found.append(finding("evidence.malformed", str(error), "ci.intoto.jsonl"))
        return
    run.trusted, found = check_rerun(
        run.statements,
        run.identity,
        claim=pinned.claim,
        commit=pinned.commit,
        policy=question.policy,
        max_age=question.trust.max_age,
    )
    run.found.extend(found)


def _use_once(question: Question, identity: Identity, run: _Run) -> None:
    if question.used_once is not None and not question.used_once(
        f"{identity.issuer} {identity.token_id}", question.change.evidence.oid
    ):
        run.found.append(finding("identity.replayed", "this token has vouched for another head before", "ci.jwt"))


def _read_report(question: Question, pinned: Pinned, run: _Run) -> None:
    evidence = question.evidence
    raw = evidence.files.get("sandbox.json") if evidence else None
    if evidence is None or raw is None:
        return
    try:
        report = parse_report(raw)
    except Malformed as error:
        run.found.append(finding("evidence.malformed", str(error), sandbox_report.WHERE))
        run.found.extend(_partial_label(raw))
        return
    run.report = report
    run.found.extend(sandbox_report.check_label(report))
    if report.git_sha != pinned.commit:
        said = f"the sandbox ran {report.git_sha[:40]!a}, not the pinned commit"
        run.found.append(finding("sha.statement_mismatch", said, sandbox_report.WHERE))
    if pinned.claim is not None and pinned.claim.sandbox_run_id != report.run_id:
        said = f"promotion.json names sandbox run {pinned.claim.sandbox_run_id[:60]!a}, the report is of {report.run_id[:60]!a}"
        run.found.append(finding("evidence.stale", said, "promotion.json"))
    run.found.extend(
        check_digests(
            pinned.claim,
            report,
            run.statements,
            KeptBytes(sandbox=evidence.sandbox_artifact, trusted=evidence.trusted_artifact),
            question.policy,
        )
    )


def _partial_label(raw: bytes) -> list[Finding]:
    """A report that is not in the asked layout still says what it says about prod."""
    if b'"prod"' in raw:
        said = "a malformed report speaks of prod"
        return [finding("env.class_not_allowed", said, sandbox_report.WHERE, outcome=Outcome.ROTATE)]
    return []


def _check_class(claim: Claim | None, identity: Identity | None) -> list[Finding]:
    """The class is derived from the proved identity; what the change claims is only compared with it."""
    if claim is None or (claim.env_class_attested == "trusted_ci" and identity is not None):
        return []
    if claim.env_class_attested == "trusted_ci":
        return []  # nobody proved it: identity.missing, or what is wrong with the proof, says so
    worst = Outcome.ROTATE if claim.env_class_attested == "prod" and identity is None else None
    said = f"attested as {claim.env_class_attested[:40]!a}; only trusted_ci may attest"
    return [finding("env.class_not_allowed", said, "promotion.json", outcome=worst)]


def _moved(change: Change) -> list[Finding]:
    if not change.moved:
        return []
    said = f"since the fork the base changed {', '.join(change.moved[:4])}"
    return [finding("base.moved", said, f"{change.fork.oid[:12]}..{change.base.oid[:12]}")]


def _removed(gate: str, question: Question, change: Change) -> str:
    """Why the base takes this gate away for this change, or nothing."""
    for item in question.policy.removed_gates:
        if item.gate == gate and change.touched and all(matches_any(t.path, item.only_paths) for t in change.touched):
            return item.because
    return ""


def _check_flag(question: Question, change: Change, claim: Claim | None, reader: Reader) -> list[Finding]:
    if _removed("flag", question, change):
        return []
    path, rules = question.policy.flags, question.policy.flag_rules
    name = claim.feature_flag if claim else None
    found = check_flags(
        name,
        path=path,
        old=_file(change.fork.tree, path, reader),
        new=_file(change.evidence.tree, path, reader),
        may_exist=rules.may_exist,
        label=change.label,
    )
    sources = [item.new.content for item in change.touched if item.path != path and item.new and item.new.content]
    if rules.must_be_read and name is not None and not is_read(name, sources):
        found.append(finding("flag.not_read", f"{name[:60]!a} occurs in no changed file", change.label))
    return found


def _file(tree: str, path: str, reader: Reader) -> bytes | None:
    node = find_path(tree, path, reader.tree)
    return reader.blob(node.oid) if node is not None and node.mode in {"100644", "100755"} else None


def _check_ownership(question: Question, change: Change, pinned: Pinned, run: _Run, reader: Reader) -> list[Finding]:
    claim, found = pinned.claim, []
    if claim is None:
        return []
    where = pinned.path
    if not _removed("owner", question, change):
        try:
            owners = parse_owners(base_file(change.base, question.policy.owners, reader))
        except (Malformed, BadObject) as error:
            found.append(
                finding("owner.unknown", f"the base's directory cannot be read: {error}", question.policy.owners)
            )
            owners = Owners(humans={})
        actor = run.identity.actor if run.identity else ""
        found.extend(
            ownership.check_owner(claim.owner, owners=owners, change=change, actor=actor, at=question.at, where=where)
        )
    if not _removed("rollback", question, change):
        found.extend(
            ownership.check_rollback(
                claim.rollback,
                policy=question.policy,
                change=change,
                rehearsals=run.statements.rehearsals if run.statements else None,
                commit=pinned.commit,
                where=where,
            )
        )
    return found


def _situation(question: Question, run: _Run) -> Situation:
    results = {"pass": SandboxRun.PASS, "fail": SandboxRun.FAIL}
    labels = {"sandbox": Label.SANDBOX, "prod": Label.PROD}
    report = run.report
    if report is None:
        return Situation(sandbox=SandboxRun.NOT_RUN, trusted=run.trusted, gates=GateState.MISSING, label=Label.SANDBOX)
    gates = [
        *sandbox_report.check_secrets(report),
        *sandbox_report.check_egress(report, question.policy),
        *sandbox_report.check_files(report),
        *scan_records(report, question.evidence.others if question.evidence else ()),
    ]
    run.found.extend(gates)
    return Situation(
        sandbox=results.get(report.result, SandboxRun.NOT_RUN),
        trusted=run.trusted,
        gates=GateState.FAIL if gates else GateState.PASS,
        label=labels.get(report.env_class, Label.TRUSTED_CI),
    )


def _conclude(question: Question, change: Change, pinned: Pinned, run: _Run, numbers: dict[str, int]) -> Verdict:
    situation = _situation(question, run)
    run.found.extend(table(situation))
    notes = [
        f"gate {gate} is removed by the base for this change: {why}"
        for gate in ("flag", "owner", "rollback")
        if (why := _removed(gate, question, change))
    ]
    files = question.evidence.files if question.evidence else {}
    signed = overrides.Signed(files=files, trust=question.trust, change=change, at=question.at)
    found, explained = overrides.explain(signed, run.found)
    outcome = judge(overrides.as_explained(situation, found), found)
    broken, said = overrides.break_glass(signed, outcome, found, allowed=question.policy.break_glass)
    explained.extend(said)
    limits = question.policy.limits
    return Verdict(
        outcome=Outcome.HUMAN_REVIEW if broken else outcome,
        reasons=unique(found),
        numbers=numbers,
        limits={name: getattr(limits, name) for name in limits.__struct_fields__},
        base=change.base.oid,
        head=question.change.head.oid,
        commit=pinned.commit,
        checked_at=question.at,
        dry_run=question.evidence is None,
        identity=f"{run.identity.platform} {run.identity.issuer} run {run.identity.run_id}" if run.identity else "",
        artifact_sha256=_trusted_digest(run.statements),
        policy_sha256=question.policy_sha256,
        evidence=tuple((name, hashlib.sha256(raw).hexdigest()) for name, raw in sorted(files.items())),
        notes=(*notes, *explained, *_reviewer_notes(change, numbers)),
        break_glass=broken,
        gates=dict.fromkeys(range(5), "passed") | ({5: "passed"} if pinned.claim is not None else {}),
        headline=f"BREAK GLASS: {broken}"
        if broken
        else head_line(outcome, situation, dry_run=question.evidence is None),
    )


def _trusted_digest(statements: Statements | None) -> str:
    subject = statements.provenance[0].subject if statements and statements.provenance else ()
    return subject[0].digest.get("sha256", "") if subject else ""


def _reviewer_notes(change: Change, numbers: dict[str, int]) -> list[str]:
    notes = []
    altered = altered_inputs(change)
    if altered:
        named = shown(", ".join(altered[:6]))
        notes.append(f"{len(altered)} inputs that both runs share were altered ({named}): equal digests prove less")
    if change.mentioned:
        named = shown(", ".join(change.mentioned[:6]))
        notes.append(
            f"the base's CI names {len(change.mentioned)} of the changed files, and may run them with its own rights: {named}"
        )
    gone = gone_by_name(change)
    if gone:
        notes.append(f"{len(gone)} tests of the base are gone by name: {', '.join(gone[:6])}")
    if numbers["assertions_fewer"]:
        notes.append(f"the test files hold {numbers['assertions_fewer']} fewer assertions")
    return notes
