"""check, why, policy and init as a user runs them: what is printed, and the exit code."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.cli.main import main

HEAD = "version: 1\nfail_closed: true\n"
POLICY = (
    HEAD + "commands:\n  allow:\n    - argv_prefix: [git, status]\n    - argv_prefix: [ls]\n  deny_substrings: [sudo]\n"
)
GOOD = '[{"command": "git status", "expect_allow": true}, {"command": "git push", "expect_allow": false}]'

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "sub").mkdir()
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    state = tmp_path / "ringfence-state"
    state.mkdir(mode=0o700)

    def go(*words: str) -> tuple[int, str, str]:
        code = main(["--test-root", str(state), *words])
        out, err = capsys.readouterr()
        return code, out, err

    return go


def write(root: Path, policy: str = POLICY, fixtures: str | None = GOOD) -> None:
    (root / "sandbox_policy.yaml").write_text(policy)
    if fixtures is not None:
        (root / "sandbox_fixtures.json").write_text(fixtures)


class TestCheck:
    def test_green_is_one_line(self, run: Run, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(repository)
        assert run("check") == (0, "sandbox fixtures passed\n", "")
        monkeypatch.chdir(repository / "sub")
        assert run("check")[0] == 0

    def test_disagreements_are_json_and_exit_1(self, run: Run, repository: Path) -> None:
        write(
            repository,
            fixtures='[{"command": "git push", "expect": "allow"}, {"command": "ls", "expect": "allow", "rules": ["mine"]}]',
        )
        code, out, err = run("check")
        rows = json.loads(out)
        assert code == 1
        assert [(row["command"], row["tier"]) for row in rows] == [("git push", "deny"), ("ls", "allow")]
        assert rows[0]["reason"] == "no rule covers this command"
        assert rows[1]["missing_rules"] == ["mine"]
        assert "2 of 2" in err

    @pytest.mark.parametrize(
        ("policy", "fixtures", "code", "says"),
        [
            (None, None, 1, "policy-missing"),
            (POLICY, None, 1, "fixtures-missing"),
            (POLICY, "[]", 1, "fixtures-empty"),
            (POLICY, "{", 3, "bad-fixture"),
            (POLICY, '[{"command": "ls"}]', 3, "expect"),
            (POLICY, '[{"command": "ls", "expect_allow": "yes"}]', 3, "fixture 1"),
            (POLICY, '[{"command": "ls", "expect_allow": true, "expects": 1}]', 3, "expects"),
            (POLICY, '[{"kind": "file", "expect": "deny"}]', 3, "action"),
            ("version: 1\n", GOOD, 3, "fail-closed-missing"),
        ],
    )
    def test_what_proves_nothing_is_no_success(
        self, run: Run, repository: Path, policy: str | None, fixtures: str | None, code: int, says: str
    ) -> None:
        if policy is not None:
            write(repository, policy, fixtures)
        got, out, err = run("check")
        assert (got, out) == (code, "")
        assert says in err
        assert "fix:" in err

    def test_json(self, run: Run, repository: Path) -> None:
        write(repository)
        code, out, _ = run("check", "--json")
        assert (code, json.loads(out)["disagreements"]) == (0, [])

    def test_every_kind_of_call(self, run: Run, repository: Path) -> None:
        rows = [
            {"kind": "argv", "argv": ["ls", "a b"], "expect": "allow"},
            {
                "kind": "file",
                "action": "write",
                "path": ".git/config",
                "expect": "deny",
                "rules": ["builtin.protected"],
            },
            {"kind": "network", "host": "a.org", "expect": "not_allow", "because": "off"},
            {"kind": "tool", "server": "a", "tool": "b", "arguments": {"x": 1}, "expect": "deny"},
            {"command": "ls ..", "cwd": "sub", "expect": "allow"},
            {"command": "ls", "context": {"branch": "x", "remotes": {"origin": "y"}}, "expect": "allow"},
        ]
        write(repository, fixtures=json.dumps(rows))
        assert run("check") == (0, "sandbox fixtures passed\n", "")


class TestWhy:
    def test_a_person_sees_rule_place_and_way_on(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        code, out, _ = run("why", "--", "git", "push", "origin", "main")
        assert code == 11
        assert out.startswith("DENY\n  git push origin main\n  ^^^^")
        assert 'argv_prefix: ["git", "push"]' in out
        code, out, _ = run("why", "--", "ls", "-l")
        assert code == 0
        assert "sandbox_policy.yaml:6:7" in out

    def test_a_module_is_offered_by_its_name_and_what_is_offered_allows_it(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        line = "python3 -m app.cli --verbose"
        offered = json.loads(run("why", "--json", "--", line)[1])["would_allow"]["yaml"]
        assert offered == '- argv_prefix: ["python3", "-m", "app.cli"]'
        for other in ("python3 -m $X", "sudo python3 -m app.cli", "python3 -m app.cli > .git/config"):
            assert "would_allow" not in json.loads(run("why", "--json", "--", other)[1])
        (repository / "sandbox_policy.yaml").write_text(POLICY.replace("  allow:\n", f"  allow:\n    {offered}\n", 1))
        run("policy", "trust", "--yes")
        assert run("why", "--", line)[0] == 0

    def test_an_untrusted_policy_asks(self, run: Run, repository: Path) -> None:
        write(repository)
        code, out, _ = run("why", "--", "ls")
        assert code == 10
        assert "ringfence policy trust" in out

    def test_no_way_on_is_offered_for_what_is_protected_hidden_or_denied(self, run: Run, repository: Path) -> None:
        write(repository)
        for line in ("ls > .git/config", "cat ~/.ssh/id_rsa", "sudo ls", "bash -c 'frob $X'"):
            code, out, _ = run("why", "--json", "--", line)
            assert code == 11
            assert "would_allow" not in json.loads(out)

    def test_invisible_characters_are_shown(self, run: Run, repository: Path) -> None:
        write(repository)
        _, out, _ = run("why", "--", "ls \u202e\x1b[8m x")
        assert "\\u202e" in out
        assert "\\x1b" in out
        assert "\x1b" not in out

    def test_only_the_line_that_decides_is_marked(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        _, out, _ = run("why", "-c", "ls\ngit push\nls -l")
        assert "  git push\n  ^^^^^^^^\n" in out
        assert "ls -l" not in out.split("\n\n")[0]

    def test_json_fields(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        code, out, _ = run("why", "--json", "--", 'env CI=1 git "st"atus $X 2>/dev/null | frob; eval $Y')
        answer = json.loads(out)
        assert code == 11
        assert {"kind", "call", "cwd", "tier", "reasons", "policy_digest", "commands", "unexplained", "trusted"} <= set(
            answer
        )
        argvs = [command["argv"] for command in answer["commands"]]
        assert ["env", "CI=1", "git", "status", "$X"] in argvs
        assert ["git", "status", "$X"] in argvs
        inner = next(command for command in answer["commands"] if command["argv"][0] == "git")
        assert inner["dynamic"] == [2]
        assert any(r["target"] == "/dev/null" for c in answer["commands"] for r in c["redirections"])
        assert answer["unexplained"]
        for reason in answer["reasons"]:
            assert {"rule", "scope", "file", "line", "column", "tier", "kind", "matched", "because"} <= set(reason)

    def test_batch_answers_every_line_with_its_id(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        rows = [
            '{"id": "a", "command": "ls", "cwd": "sub"}',
            '{"id": 2, "argv": ["git", "push"]}',
            "not json",
            '{"id": 4, "command": 5}',
            '{"id": 5, "command": "ls", "colour": 1}',
            '{"id": 6, "command": "ls \\ud800"}',
            "[" * 10_000,
        ]
        path = repository / "batch.jsonl"
        path.write_text("\n".join(rows) + "\n")
        code, out, _ = run("why", "--batch", str(path))
        answers = [json.loads(line) for line in out.splitlines()]
        assert code == 0
        assert [answer["id"] for answer in answers] == ["a", 2, None, 4, 5, 6, None]
        assert [answer["tier"] for answer in answers][:5] == ["allow", "deny", "deny", "deny", "deny"]
        assert answers[0]["cwd"] == str(repository / "sub")
        assert all("error" in answers[number] for number in (2, 3, 4, 6))

    def test_usage(self, run: Run, repository: Path) -> None:
        write(repository)
        assert run("why")[0] == 2

    def test_no_policy(self, run: Run, repository: Path) -> None:
        code, _, err = run("why", "--", "ls")
        assert code == 3
        assert "policy-missing" in err


class TestTrust:
    def test_it_shows_what_would_be_allowed(self, run: Run, repository: Path) -> None:
        write(
            repository,
            HEAD + "extends: [git]\ncommands: {allow: [{argv_prefix: [ls]}]}\nnetwork: {allow: [{host: a.org}]}\n",
        )
        code, out, _ = run("policy", "trust", "--yes")
        assert code == 0
        assert "run      ls" in out
        assert "connect  a.org" in out
        assert "git status" not in out

    def test_without_a_terminal_nobody_agreed(self, run: Run, repository: Path) -> None:
        write(repository)
        code, _, err = run("policy", "trust")
        assert code == 1
        assert "not trusted" in err
        assert run("why", "--", "ls")[0] == 10

    def test_the_digest_must_be_the_one_shown(self, run: Run, repository: Path) -> None:
        write(repository)
        digest = run("policy", "trust")[1].splitlines()[1].split()[1]
        write(repository, POLICY.replace("ls", "cat"))
        code, _, err = run("policy", "trust", "--digest", digest)
        assert (code, "digest-differs" in err) == (3, True)
        write(repository)
        code, _, err = run("policy", "trust", "--digest", digest)
        assert (code, err) == (0, "")
        assert run("why", "--", "ls")[0] == 0

    def test_a_change_ends_the_trust_and_a_comment_does_not(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        write(repository, "# a remark\n" + POLICY)
        assert run("why", "--", "ls")[0] == 0
        write(repository, POLICY + "  default: ask\n")
        assert run("why", "--", "ls")[0] == 10

    def test_withdrawing(self, run: Run, repository: Path) -> None:
        write(repository)
        run("policy", "trust", "--yes")
        run("policy", "trust", "--withdraw")
        assert run("why", "--", "ls")[0] == 10


class TestInit:
    def test_it_writes_checks_and_trusts(self, run: Run, repository: Path) -> None:
        (repository / "pyproject.toml").write_text("")
        (repository / "package.json").write_text("{}")
        code, out, _ = run("init")
        assert code == 0
        assert "coding-agent, git, python, node" in out
        assert run("check") == (0, "sandbox fixtures passed\n", "")
        assert run("why", "--", "python -m pytest -q | tail -5")[0] == 0
        assert run("why", "--", "git push")[0] == 10
        assert run("policy", "lint")[0] == 0

    def test_it_tells_of_a_toolchain_that_boxes_would_not_use(
        self, run: Run, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "versions" / "node" / "v22" / "bin"
        folder.mkdir(parents=True)
        (folder / "node").write_text("#!/bin/sh\n")
        (folder / "node").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin")
        code, out, _ = run("init")
        assert code == 0
        assert f"your node lies in {folder}; boxes use it once `commands.toolchains` names that folder" in out

    def test_it_never_overwrites(self, run: Run, repository: Path) -> None:
        write(repository)
        code, _, err = run("init")
        assert (code, "already-there" in err) == (1, True)
        assert (repository / "sandbox_policy.yaml").read_text() == POLICY

    def test_it_refuses_what_holds_more_than_one_project(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ringfence.policy.load.home_of_user", lambda: str(tmp_path))
        code, _, err = run("init", str(tmp_path))
        assert (code, "root-too-broad" in err) == (3, True)
        assert not os.path.exists(tmp_path / "sandbox_policy.yaml")


class TestReview:
    def test_lint_exits_1_for_warnings(self, run: Run, repository: Path) -> None:
        write(repository, HEAD + "commands: {allow: [{argv_prefix: [bash]}]}\n")
        code, out, _ = run("policy", "lint", "--json")
        rows = json.loads(out)
        assert code == 1
        assert ("broad-rule", "sandbox_policy.yaml", 3) in [(row["code"], row["file"], row["line"]) for row in rows]
        assert json.loads(run("policy", "lint", "--sarif")[1])["version"] == "2.1.0"

    def test_schema_is_json(self, run: Run, repository: Path) -> None:
        assert json.loads(run("policy", "schema")[1])["type"] == "object"

    def test_presets(self, run: Run, repository: Path) -> None:
        assert "coding-agent" in run("policy", "presets")[1]
        assert run("policy", "presets", "git")[1].startswith("# version")
        assert run("policy", "presets", "nonesuch")[0] == 3

    def test_diff_fails_on_widening(self, run: Run, repository: Path) -> None:
        write(repository)
        (repository / "wider.yaml").write_text(POLICY.replace("[git, status]", "[git]"))
        (repository / "calls.jsonl").write_text('{"id": 1, "command": "git log"}\n')
        arguments = ("policy", "diff", "sandbox_policy.yaml", "wider.yaml", "--calls", "calls.jsonl")
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert ("git log", "deny", "allow") in [(row["call"], row["before"], row["after"]) for row in json.loads(out)]
        assert run(*arguments, "--fail-on-widening")[0] == 1
        assert run("policy", "diff", "wider.yaml", "sandbox_policy.yaml", "--fail-on-widening")[0] == 0
