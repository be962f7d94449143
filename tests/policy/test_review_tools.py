"""lint, schema, diff and examples: what a reviewer is told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence import Policy, ToolCall
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Scope
from ringfence.policy import lint_report, reading
from ringfence.policy.compare import as_json, compare
from ringfence.policy.fixtures import call_of, read_calls, read_fixtures
from ringfence.policy.lint import lint
from ringfence.policy.read_document import read_document
from ringfence.policy.schema import policy_schema

HEAD = "version: 1\nfail_closed: true\n"


def findings(text: str, fixtures: str | None = None, scope: Scope = Scope.REPOSITORY) -> list[tuple[str, int]]:
    given = None if fixtures is None else read_fixtures(fixtures, file="f")
    found = lint(read_document(HEAD + text, file="p"), scope=scope, fixtures=given, fixtures_file="f")
    return [(finding.code, finding.at[1]) for finding in found]


def allow(*prefixes: str) -> str:
    return "commands:\n  allow:\n" + "".join(f"    - argv_prefix: {prefix}\n" for prefix in prefixes)


@pytest.mark.parametrize(
    "name", ["bash", "python3.12", "env", "xargs", "git", "find", "node", "make", "/usr/bin/perl", "sudo"]
)
def test_a_bare_runner_is_broad(name: str) -> None:
    assert ("broad-rule", 5) in findings(allow(f"[{name}]"))
    assert ("broad-rule", 5) not in findings(allow(f"[{name}, status]"))


@pytest.mark.parametrize(
    "prefix", ["['git status']", "['A=1', make]", "[git, '&&', ls]", "[do]", "[ls, '~/x']", "[ls, 'a && b']"]
)
def test_a_rule_that_never_matches_is_told(prefix: str) -> None:
    assert "dead-rule" in [code for code, _ in findings(allow(prefix))]


def test_relations_between_rules() -> None:
    text = (
        "commands:\n  allow:\n    - argv_prefix: [git, push]\n    - argv_prefix: [cat, x]\n    - argv_prefix: [cat]\n"
        "  deny:\n    - argv_prefix: [git]\n  ask:\n    - argv_prefix: [cat]\n"
    )
    codes = findings(text)
    assert ("never-decides", 5) in codes
    assert ("shadowed", 6) in codes or ("never-decides", 6) in codes
    assert ("contradiction", 7) in codes


def test_conditions_tell_rules_apart() -> None:
    text = "commands:\n  allow: [{argv_prefix: [ls]}]\n  deny: [{argv_prefix: [ls], any_args: ['-R']}]\n"
    assert [code for code, _ in findings(text) if code != "options-not-known"] == []


def test_an_unknown_program_is_noted_and_a_known_one_is_not() -> None:
    assert "options-not-known" in [code for code, _ in findings(allow("[frobnicate]"))]
    assert "options-not-known" not in [code for code, _ in findings(allow("[cat]"))]


def test_other_findings() -> None:
    assert "substring-refuses-work" in [c for c, _ in findings("commands: {deny_substrings: ['rm -rf']}\n")]
    assert "environment-is-code" in [c for c, _ in findings("process: {env: {assign: [LD_PRELOAD]}}\n")]
    assert "not-honoured" in [c for c, _ in findings("process: {env: {pass: [TOKEN]}}\n")]
    assert "not-honoured" not in [c for c, _ in findings("process: {env: {pass: [TOKEN]}}\n", scope=Scope.USER)]
    assert "not-honoured" in [c for c, _ in findings("minimum_enforcement: landlock\n")]
    assert "broad-host" in [c for c, _ in findings("network: {allow: [{host: '**'}]}\n")]
    assert "broad-host" in [c for c, _ in findings("network: {allow: [{host: '*.org'}]}\n")]
    assert "broad-host" not in [c for c, _ in findings("network: {allow: [{host: '*.example.org'}]}\n")]
    assert "broad-tool" in [c for c, _ in findings("tools: {allow: [{server: a, tool: '*'}]}\n")]


def test_fixtures_must_refuse_an_escape_a_network_case_and_a_subcommand() -> None:
    weak = '[{"command": "git status", "expect_allow": true}]'
    assert [code for code, _ in findings("", weak)] == ["fixture-missing"] * 3
    good = json.dumps(
        [
            {"command": "git status", "expect_allow": True},
            {"command": "git push", "expect": "ask"},
            {"command": "ls ../x", "expect": "not_allow"},
            {"kind": "network", "host": "a.org", "expect": "deny"},
        ]
    )
    assert findings("", good) == []


def test_presets_have_no_findings_of_their_own(policy_of: Callable[..., Policy]) -> None:
    policy = policy_of("extends: [coding-agent, git, python, node]\n")
    for scope, document in policy.scopes:
        assert lint(document, scope=scope, fixtures=None, fixtures_file="f") == []


def test_sarif_names_every_place() -> None:
    found = lint(
        read_document(HEAD + allow("[bash]"), file="p.yaml"), scope=Scope.USER, fixtures=None, fixtures_file="f"
    )
    log = lint_report.as_sarif(found, version="1")
    run: Any = log["runs"]
    region = run[0]["results"][0]["locations"][0]["physicalLocation"]
    assert region == {"artifactLocation": {"uri": "p.yaml"}, "region": {"startLine": 5, "startColumn": 7}}
    assert [rule["id"] for rule in run[0]["tool"]["driver"]["rules"]] == ["broad-rule"]
    assert lint_report.as_json(found)[0]["line"] == 5
    assert "p.yaml:5:7" in lint_report.as_text(found)


FULL = (
    HEAD
    + """
extends: [git]
working_tree: {allowed_roots: ["."], deny_path_prefixes: ["/etc"]}
network:
  allow: [{host: a.org, ports: [443], methods: [GET], paths: ["/x"], id: a, because: b, when: {cwd: x, branch: x, remote: x, agent: x, env_class: x, interactive: true}}]
  ask: [{preset: pypi, approvals: 2, not_owner: true}]
  deny: [{host: b.org}]
process:
  {max_runtime_ms: 1, max_output_bytes: 1, max_memory_bytes: 1, max_processes: 1, max_disk_bytes: 1, max_cpu_ms: 1,
   max_open_files: 1, max_file_size_bytes: 1, env: {pass: [A], assign: [B], set: {C: d}, local: true}}
commands:
  default: ask
  allow: [{argv_prefix: [ls, [a, b]], id: x, because: why, unless_args: [z], any_args: [b], grants: [writes], match: [ls a b], no_match: [cat], when: {cwd: x}}]
  ask: [{argv_prefix: [rm], approvals: 2, not_owner: true}]
  deny: [{argv_prefix: [dd]}]
  deny_substrings: [x]
  aliases: {python: [python3]}
  toolchains: [/opt/x/bin]
files:
  read: {allow: [a, {path: b, id: c, because: d, when: {cwd: x}}], ask: [e], deny: [f]}
  write: {allow: [a]}
  delete: {deny: [a]}
tools:
  allow: [{server: a, tool: b, arguments: {x: z}, id: c, because: d, when: {cwd: x}}]
  ask: [{server: a, tool: c, approvals: 2, not_owner: true}]
  deny: [{server: a, tool: d}]
patterns: [{id: a, on: [net.body], regex: x, tier: deny, because: why, when: {cwd: x}}]
minimum_enforcement: namespaces
locked: [commands]
ceiling: ask
audit: {retention: {operational_days: 90, compliance_days: 400}}
"""
)


def test_the_schema_knows_the_keys_that_the_reader_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: set[frozenset[str]] = set()
    real = reading.fields

    def spy(source: Any, node: Any, what: str, allowed: Any) -> Any:
        asked.add(frozenset(allowed))
        return real(source, node, what, allowed)

    monkeypatch.setattr(reading, "fields", spy)
    (tmp_path / "policy.yaml").write_text(FULL)
    Policy.load(str(tmp_path / "policy.yaml"), scope=Scope.ORGANISATION)

    listed: set[frozenset[str]] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("additionalProperties") is False:
                listed.add(frozenset(value["properties"]))
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(policy_schema())
    preset_only = {keys | {"preset"} for keys in listed}
    assert asked <= listed | preset_only
    assert listed <= asked


@pytest.mark.parametrize("key", ["match", "no_match"])
def test_an_example_that_fails_stops_the_load(policy_of: Callable[..., Policy], key: str) -> None:
    wrong = {"match": "python -m pip install x", "no_match": "python -m pytest -q"}[key]
    text = f"commands:\n  allow:\n    - argv_prefix: [python, '-m', [pytest, unittest]]\n      {key}: ['{wrong}']\n"
    with pytest.raises(PolicyError) as caught:
        policy_of(text)
    assert (caught.value.code, caught.value.where) == ("example-fails", "sandbox_policy.yaml:5:7")


def test_examples_that_hold_load(policy_of: Callable[..., Policy]) -> None:
    policy_of(
        "commands:\n  allow:\n    - argv_prefix: [python, '-m', [pytest, unittest]]\n      unless_args: ['--pdb']\n"
        "      match: ['python -m pytest -q', 'cd x && python -m unittest']\n"
        "      no_match: ['python -m pip install x', 'python -m pytest --pdb']\n"
    )


class TestDiff:
    def changes(
        self, policy_of: Callable[..., Policy], before: str, after: str, *lines: str
    ) -> dict[str, tuple[str, str]]:
        calls = [("call", ToolCall.shell(line)) for line in lines]
        found = as_json(compare(policy_of(before), policy_of(after), calls))
        return {str(row["call"]): (str(row["before"]), str(row["after"])) for row in found}

    def test_a_wider_prefix_is_found_without_being_given(self, policy_of: Callable[..., Policy]) -> None:
        found = self.changes(policy_of, allow("[frob, status]"), allow("[frob]"))
        assert found["frob x"] == ("deny", "allow")

    def test_layout_and_order_change_nothing(self, policy_of: Callable[..., Policy]) -> None:
        assert self.changes(policy_of, allow("[ls]", "[cat]"), "# words\n" + allow("[cat]", "[ls]"), "ls") == {}

    def test_given_calls_are_judged_by_both(self, policy_of: Callable[..., Policy]) -> None:
        before = allow("[ls]") + "network: {allow: [{host: a.org}]}\n"
        after = allow("[ls]") + "working_tree: {deny_path_prefixes: [src]}\nnetwork: {deny: [{host: a.org}]}\n"
        found = self.changes(policy_of, before, after, "ls src/x", "ls")
        assert found == {"ls src/x": ("allow", "deny"), "a.org:443": ("allow", "deny")}


def test_calls_are_read_from_json_lines() -> None:
    rows = b'{"id": 1, "command": "ls", "cwd": "src"}\n\n{"argv": ["ls"], "note": "x"}\n{"kind": "tool", "server": "a", "tool": "b"}\n'
    assert [call_of(row).kind for row in read_calls(rows, file="f")] == ["shell", "argv", "tool"]
    for broken in (b"{", b"[]", b'{"kind": "tool"}', b'{"kind": "nonesuch"}', b'{"command": 1}', b"\xff"):
        with pytest.raises(PolicyError, match="line 1"):
            read_calls(broken, file="f")
