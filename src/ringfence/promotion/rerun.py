"""Gate 3: what the trusted pipeline says it did, held against who it is and against the pinned commit. Pure."""

from dataclasses import replace

from ringfence.promotion.claim import Claim
from ringfence.promotion.decide import TrustedRun
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.identity import Identity
from ringfence.promotion.policy import Policy
from ringfence.promotion.statements import Provenance, Statements, TestResult

_WHERE = "ci.intoto.jsonl"


def check_rerun(
    statements: Statements, identity: Identity, *, claim: Claim | None, commit: str, policy: Policy, max_age: int
) -> tuple[TrustedRun, list[Finding]]:
    """What came of the re-run, and everything that does not fit."""
    found: list[Finding] = []
    if len(statements.provenance) != 1:
        said = f"{len(statements.provenance)} provenance statements, exactly one is asked"
        return TrustedRun.NOT_RUN, [finding("ci.not_run", said, _WHERE)]
    provenance = statements.provenance[0]
    identity = _of_parent(identity, provenance)
    found.extend(_check_run(provenance, identity, max_age))
    if claim is not None and claim.trusted_ci_run_id != identity.run_id:
        said = (
            f"promotion.json names run {claim.trusted_ci_run_id[:60]!a}, the token is of run {identity.run_id[:60]!a}"
        )
        found.append(finding("identity.wrong_claims", said, "promotion.json"))
        found.append(finding("evidence.stale", said, "promotion.json"))
    if provenance.artifact is not None and provenance.artifact != policy.artifact.name:
        found.append(finding("digest.mismatch", f"built {provenance.artifact[:60]!a}", _WHERE))
    if commit not in provenance.commits:
        return TrustedRun.OTHER_SHA, found
    state, more = _check_results(statements.results, commit, policy)
    return state, [*found, *more]


def _of_parent(identity: Identity, provenance: Provenance) -> Identity:
    """For a child pipeline's token: the parent's run, as the bound statements name it in the token's own project."""
    run_id = provenance.invocation.removeprefix(identity.invocation)
    if identity.run_id or not run_id.isdigit() or not run_id.isascii():
        return identity
    return replace(identity, run_id=run_id, invocation=provenance.invocation)


def _check_run(provenance: Provenance, identity: Identity, max_age: int) -> list[Finding]:
    found = []
    for name, said, proved in (
        ("invocationId", provenance.invocation, identity.invocation),
        ("builder", provenance.builder, identity.builder),
    ):
        if said != proved:
            found.append(finding("identity.wrong_claims", f"{name} {said[:120]!a} is not the token's run", _WHERE))
    number = identity.pull_request
    if None not in {number, provenance.pull_request} and number != provenance.pull_request:
        said = f"pull request {provenance.pull_request}, the token is of {number}"
        found.append(finding("identity.wrong_claims", said, _WHERE))
    if not provenance.finished <= identity.issued <= provenance.finished + max_age:
        said = "the run did not finish shortly before the token was made"
        found.append(finding("identity.expired", said, _WHERE))
    return found


def _check_results(results: tuple[TestResult, ...], commit: str, policy: Policy) -> tuple[TrustedRun, list[Finding]]:
    if not results:
        return TrustedRun.NOT_RUN, [finding("ci.not_run", "no test result is stated", _WHERE)]
    if any(result.commits != (commit,) for result in results):
        return TrustedRun.OTHER_SHA, []
    bad = [result for result in results if result.result != "PASSED" or result.failed]
    if bad:
        said = f"{bad[0].result[:40]!a}, not passed: {', '.join(bad[0].failed)[:120]}"
        return TrustedRun.FAILED, [finding("ci.failed", said, _WHERE)]
    missing = _missing({name for result in results for name in result.passed}, policy)
    if missing:
        said = f"PASSED is claimed, but {missing} did not run"
        return TrustedRun.FAILED, [finding("ci.not_run", said, _WHERE), finding("ci.failed", said, _WHERE)]
    return TrustedRun.PASSED, []


def _missing(passed: set[str], policy: Policy) -> str:
    required = policy.trusted_run.required
    if required:
        return ", ".join(name for name in required if name not in passed)
    scanners = {name for name in passed if "scan" in name.casefold()}
    if not passed - scanners:
        return "any test"
    return "" if scanners else "any scanner"
