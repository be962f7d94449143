"""The statements that a trusted re-run makes, as values. Pure: what was run and by whom arrives as arguments.

Only the attest job calls this, with no code of the change on its machine: it hashes what the re-run job left behind.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from ringfence.promotion.dsse import STATEMENT
from ringfence.promotion.statements import PROVENANCE, REHEARSAL, TEST_RESULT
from ringfence.promotion.strict import Malformed, Value

BUILD_TYPE = "https://promotion.example/rerun/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """One finished re-run. ``finished``: seconds since the epoch."""

    commit: str
    artifact_name: str
    artifact_sha256: str
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    builder: str
    invocation: str
    repository: str
    pull_request: int | None
    finished: int
    rehearsal: dict[str, Value] | None


def build_statements(rerun: Rerun) -> list[dict[str, Value]]:
    """Provenance, test result, and the rehearsal where there was one."""
    commit: list[Value] = [{"name": "change", "digest": {"gitCommit": rerun.commit}}]
    passed = bool(rerun.passed) and not rerun.failed
    parameters: dict[str, Value] = {"artifact": rerun.artifact_name}
    if rerun.pull_request is not None:
        parameters["pullRequest"] = rerun.pull_request
    when = datetime.fromtimestamp(rerun.finished, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    source: Value = {"uri": f"git+{rerun.repository}", "digest": {"gitCommit": rerun.commit}}
    provenance: Value = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": parameters,
            "resolvedDependencies": [source],
        },
        "runDetails": {
            "builder": {"id": rerun.builder},
            "metadata": {"invocationId": rerun.invocation, "finishedOn": when},
        },
    }
    subject: list[Value] = [{"name": rerun.artifact_name, "digest": {"sha256": rerun.artifact_sha256}}]
    result: Value = {
        "result": "PASSED" if passed else "FAILED",
        "configuration": [],
        "passedTests": list(rerun.passed),
        "failedTests": list(rerun.failed),
    }
    statements: list[dict[str, Value]] = [
        {"_type": STATEMENT, "subject": subject, "predicateType": PROVENANCE, "predicate": provenance},
        {"_type": STATEMENT, "subject": commit, "predicateType": TEST_RESULT, "predicate": result},
    ]
    if rerun.rehearsal is not None:
        statements.append(
            {"_type": STATEMENT, "subject": commit, "predicateType": REHEARSAL, "predicate": rerun.rehearsal}
        )
    return statements


def read_results(value: dict[str, Value]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Passed and failed names of a re-run's ``results.json``; anything but "passed" counts as failed. Raises Malformed."""
    results = value.get("results")
    if not isinstance(results, dict) or not results:
        raise Malformed('results.json: {"results": {"unit": "passed", "secret-scan": "passed"}} is asked')
    passed = tuple(sorted(name for name, word in results.items() if word == "passed"))
    return passed, tuple(sorted(name for name in results if name not in passed))
