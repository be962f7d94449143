"""How long audit records are kept is the organisation's to say: there alone, within bounds, and never shorter unseen."""

import json
import os
from pathlib import Path

import pytest

from ringfence import Policy, ToolCall
from ringfence.cli.main import main
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Scope
from ringfence.policy.compare import compare_retention
from ringfence.policy.document import Retention
from ringfence.policy.in_force import organisation_in_force
from ringfence.policy.lint import lint
from ringfence.policy.read_document import read_document

HEAD = "version: 1\nfail_closed: true\n"
BOTH = "audit: {retention: {operational_days: 120, compliance_days: 730}}\n"


def organisation(folder: Path, text: str) -> Policy:
    path = folder / "organisation.yaml"
    path.write_text(HEAD + text)
    return Policy.load(str(path), scope=Scope.ORGANISATION)


def days(operational: int | None, compliance: int | None) -> str:
    given = {"operational_days": operational, "compliance_days": compliance}
    written = ", ".join(f"{key}: {value}" for key, value in given.items() if value is not None)
    return f"audit: {{retention: {{{written}}}}}\n"


def test_the_organisation_states_both_classes_or_one(tmp_path: Path) -> None:
    both = organisation(tmp_path, BOTH).retention
    assert both == Retention(at=(both.at if both else ("", 0, 0)), operational_days=120, compliance_days=730)
    one = organisation(tmp_path, days(None, 730)).retention
    assert one is not None
    assert (one.operational_days, one.compliance_days) == (None, 730)
    assert organisation(tmp_path, "").retention is None
    assert organisation(tmp_path, "audit: {}\n").retention is None


@pytest.mark.parametrize("scope", [Scope.REPOSITORY, Scope.USER, Scope.MISSION])
def test_in_another_scope_it_is_a_fault_that_says_where_it_belongs(tmp_path: Path, scope: Scope) -> None:
    (tmp_path / "sandbox_policy.yaml").write_text(HEAD + (BOTH if scope is Scope.REPOSITORY else ""))
    other = tmp_path / "other.yaml"
    other.write_text(HEAD + BOTH)
    given = {} if scope is Scope.REPOSITORY else {scope.value: str(other)}
    with pytest.raises(PolicyError) as refused:
        Policy.load(str(tmp_path / "sandbox_policy.yaml"), **given)  # type: ignore[arg-type]
    assert refused.value.code == "not-in-this-scope"
    assert refused.value.where.endswith(":3:20")
    assert "/etc/ringfence/policy.yaml" in refused.value.remedy
    with pytest.raises(PolicyError):
        Policy.parse(HEAD + BOTH, root=str(tmp_path))


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        (days(0, None), "out-of-range", "3:39"),
        (days(None, 364), "out-of-range", "3:38"),
        (days(400, None), "out-of-range", "3:39"),
        (days(800, 730), "out-of-range", "3:39"),
        (days(None, 99_999_999), "out-of-range", "3:38"),
        ("audit: {retention: {operational_days: '90'}}\n", "wrong-type", "3:39"),
        ("audit: {retention: {operational_days: 90.5}}\n", "wrong-type", "3:39"),
        ("audit: {retention: {days: 90}}\n", "unknown-key", "3:21"),
        ("audit: {keep: 90}\n", "unknown-key", "3:9"),
        ("audit: 90\n", "wrong-type", "3:8"),
    ],
)
def test_days_that_cannot_be_are_refused_with_the_place_and_the_remedy(
    tmp_path: Path, text: str, code: str, at: str
) -> None:
    with pytest.raises(PolicyError) as refused:
        organisation(tmp_path, text)
    assert (refused.value.code, refused.value.where) == (code, f"organisation.yaml:{at}")
    assert refused.value.remedy


def test_it_changes_neither_a_decision_nor_the_digest_of_policies_without_it(tmp_path: Path) -> None:
    small = 'working_tree: {allowed_roots: ["."]}\ncommands: {allow: [{argv_prefix: [ls]}]}\n'
    plain, kept = organisation(tmp_path, small), organisation(tmp_path, small + BOTH)
    calls = [ToolCall.shell(line) for line in ("ls", "bash -c ls", "env ls", "rm x")]
    assert [plain.decide(call).tier for call in calls] == [kept.decide(call).tier for call in calls]
    assert plain.digest != kept.digest
    assert b"retention" not in plain.effective()
    assert Policy.from_effective(kept.effective()).retention == kept.retention


def test_no_file_says_nothing_and_a_file_that_cannot_be_believed_is_a_fault(tmp_path: Path) -> None:
    assert organisation_in_force(str(tmp_path / "none" / "policy.yaml")) is None
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD + BOTH)
    path.chmod(0o644)
    if os.getuid() == 0:
        found = organisation_in_force(str(path))
        assert found is not None
        assert found.retention is not None
        path.chmod(0o666)
    with pytest.raises(PolicyError):
        organisation_in_force(str(path))


@pytest.mark.skipif(os.getuid() == 0, reason="root may look into every folder")
def test_a_file_that_cannot_be_looked_at_counts_as_there(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    (tmp_path / "sandbox_policy.yaml").write_text(HEAD)
    try:
        for load in (
            lambda: organisation_in_force(str(closed / "policy.yaml")),
            lambda: Policy.load(str(tmp_path / "sandbox_policy.yaml"), organisation=str(closed / "policy.yaml")),
        ):
            with pytest.raises(PolicyError) as refused:
                load()
            assert refused.value.code == "policy-unreadable"
    finally:
        closed.chmod(0o700)


@pytest.mark.parametrize(
    ("before", "after", "widens"),
    [
        (days(90, 730), days(90, 365), {"compliance_days": True}),
        (days(90, 730), days(60, 800), {"operational_days": True, "compliance_days": False}),
        (days(90, 730), "", {"operational_days": True, "compliance_days": True}),
        ("", days(30, None), {"operational_days": True}),
        ("", days(120, 365), {"operational_days": False}),
        (days(None, 365), "", {}),
        (BOTH, BOTH, {}),
    ],
)
def test_a_change_that_lets_records_leave_sooner_is_a_widening(
    tmp_path: Path, before: str, after: str, widens: dict[str, bool]
) -> None:
    found = compare_retention(organisation(tmp_path, before), organisation(tmp_path, after))
    assert {kept.name: kept.widens for kept in found} == widens


def test_the_diff_reports_it_and_fails_on_a_widening(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("old.yaml", BOTH), ("new.yaml", days(120, 365))):
        (tmp_path / name).write_text(HEAD + text)
    words = ["policy", "diff", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"), "--root", str(tmp_path)]
    assert main(words) == 3
    assert "not-in-this-scope" in capsys.readouterr().err
    words += ["--scope", "organisation", "--fail-on-widening"]
    assert main(words) == 1
    shown = capsys.readouterr().out
    assert "WIDER    audit.retention.compliance_days: 730 days -> 365 days" in shown
    assert "1 wider, 0 narrower" in shown
    assert main([*words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"kind": "retention", "call": "compliance_days", "before": 730, "after": 365, "widens": True}
    ]
    assert main(["policy", "diff", *reversed(words[2:4]), *words[4:]]) == 0


def test_lint_notes_a_short_stay_and_none_in_the_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def codes(text: str) -> list[str]:
        document = read_document(HEAD + text, file="p.yaml")
        return [f.code for f in lint(document, scope=Scope.ORGANISATION, fixtures=None, fixtures_file="f")]

    assert codes(BOTH) == []
    assert codes(days(7, 365)) == ["retention-short"]
    assert codes(days(400, 400)) == ["retention-without-archive"]
    (tmp_path / "policy.yaml").write_text(HEAD + days(7, 365))
    words = ["policy", "lint", "--policy", str(tmp_path / "policy.yaml"), "--scope", "organisation"]
    assert main(words) == 0
    assert "retention-short" in capsys.readouterr().out
    assert main([*words, "--strict"]) == 1
