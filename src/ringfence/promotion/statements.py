"""The trusted re-run's own words: in-toto statements, one per line, bound as a whole by a token or a signature. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from ringfence.promotion.dsse import STATEMENT
from ringfence.promotion.strict import Malformed, parse_object

PROVENANCE = "https://slsa.dev/provenance/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
REHEARSAL = "https://promotion.example/rollback-rehearsal/v1"
MAX_STATEMENTS = 1_048_576
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\Z")


class _Struct(msgspec.Struct, frozen=True, kw_only=True):
    """in-toto asks consumers to pass over members they do not know."""


class Resource(_Struct, frozen=True):
    """A thing named by digests."""

    digest: dict[str, str]
    name: str = ""
    uri: str = ""


class _Head(_Struct, frozen=True):
    type_: str = msgspec.field(name="_type")
    subject: tuple[Resource, ...]
    predicate_type: str = msgspec.field(name="predicateType")
    predicate: dict[str, object]


class _Definition(_Struct, frozen=True):
    external_parameters: dict[str, object] = msgspec.field(name="externalParameters")
    resolved: tuple[Resource, ...] = msgspec.field(name="resolvedDependencies")


class _Builder(_Struct, frozen=True):
    id: str


class _Metadata(_Struct, frozen=True):
    invocation: str = msgspec.field(name="invocationId")
    finished: str = msgspec.field(name="finishedOn")


class _Run(_Struct, frozen=True):
    builder: _Builder
    metadata: _Metadata


class _Provenance(_Struct, frozen=True):
    definition: _Definition = msgspec.field(name="buildDefinition")
    run: _Run = msgspec.field(name="runDetails")


class _TestResult(_Struct, frozen=True):
    result: str
    passed: tuple[str, ...] = msgspec.field(name="passedTests", default=())
    failed: tuple[str, ...] = msgspec.field(name="failedTests", default=())
    warned: tuple[str, ...] = msgspec.field(name="warnedTests", default=())


class _Rehearsal(_Struct, frozen=True):
    environment: str
    command: str
    exit_code: int = msgspec.field(name="exitCode")
    tree_before: str = msgspec.field(name="treeBefore")
    tree_after: str = msgspec.field(name="treeAfter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What was built, from which commits, by whom. ``finished`` is seconds since the epoch."""

    subject: tuple[Resource, ...]
    commits: tuple[str, ...]
    pull_request: int | None
    artifact: str | None
    builder: str
    invocation: str
    finished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """One suite's result about one commit."""

    __test__ = False  # not a test class, whatever pytest thinks of the name
    commits: tuple[str, ...]
    result: str
    passed: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A rollback command carried out once."""

    commits: tuple[str, ...]
    environment: str
    command: str
    exit_code: int
    tree_before: str
    tree_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """All statements of one re-run. ``others`` counts kinds that the gate does not read, such as SBOMs."""

    provenance: tuple[Provenance, ...]
    results: tuple[TestResult, ...]
    rehearsals: tuple[Rehearsal, ...]
    others: int


def parse_statements(raw: bytes) -> Statements:
    """The statements; raises Malformed if any line is not one."""
    if len(raw) > MAX_STATEMENTS:
        raise Malformed(f"more than {MAX_STATEMENTS} bytes")
    provenance: list[Provenance] = []
    results: list[TestResult] = []
    rehearsals: list[Rehearsal] = []
    others = 0
    for number, line in enumerate(raw.removesuffix(b"\n").split(b"\n"), 1):
        try:
            head = msgspec.convert(parse_object(line, limit=MAX_STATEMENTS), _Head, strict=True)
            if head.type_ != STATEMENT or not head.subject:
                raise Malformed("not an in-toto v1 statement with a subject")
            match head.predicate_type:
                case "https://slsa.dev/provenance/v1":
                    provenance.append(_provenance(head))
                case "https://in-toto.io/attestation/test-result/v0.1":
                    results.append(_result(head))
                case "https://promotion.example/rollback-rehearsal/v1":
                    rehearsals.append(_rehearsal(head))
                case _:
                    others += 1
        except (Malformed, msgspec.ValidationError) as error:
            raise Malformed(f"line {number}: {error}") from None
    return Statements(provenance=tuple(provenance), results=tuple(results), rehearsals=tuple(rehearsals), others=others)


def _commits(resources: tuple[Resource, ...]) -> tuple[str, ...]:
    return tuple(resource.digest["gitCommit"] for resource in resources if "gitCommit" in resource.digest)


def _provenance(head: _Head) -> Provenance:
    body = msgspec.convert(head.predicate, _Provenance, strict=True)
    number = body.definition.external_parameters.get("pullRequest")
    artifact = body.definition.external_parameters.get("artifact")
    return Provenance(
        subject=head.subject,
        commits=_commits(body.definition.resolved),
        pull_request=number if isinstance(number, int) and not isinstance(number, bool) else None,
        artifact=artifact if isinstance(artifact, str) else None,
        builder=body.run.builder.id,
        invocation=body.run.metadata.invocation,
        finished=parse_instant(body.run.metadata.finished),
    )


def _result(head: _Head) -> TestResult:
    body = msgspec.convert(head.predicate, _TestResult, strict=True)
    return TestResult(
        commits=_commits(head.subject), result=body.result, passed=body.passed, failed=(*body.failed, *body.warned)
    )


def _rehearsal(head: _Head) -> Rehearsal:
    body = msgspec.convert(head.predicate, _Rehearsal, strict=True)
    return Rehearsal(
        commits=_commits(head.subject),
        environment=body.environment,
        command=body.command,
        exit_code=body.exit_code,
        tree_before=body.tree_before,
        tree_after=body.tree_after,
    )


def parse_instant(text: str) -> int:
    """Whole seconds since the epoch of an RFC 3339 instant in UTC (``Z``); raises Malformed."""
    if not _INSTANT.match(text):
        raise Malformed(f"{text[:40]!a} is not an instant like 2026-06-01T12:00:00Z")
    try:
        return int(datetime.fromisoformat(text[:19]).replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise Malformed(f"{text[:40]!a} is not a date") from None
