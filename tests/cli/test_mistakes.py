"""What people get wrong, and what hosts refuse: an error with a remedy, the documented exit code, never a traceback."""

import argparse
import json
import os
import pathlib
import pty
import sqlite3
import subprocess
import sys

import pytest

from ringfence.cli import run
from ringfence.cli.main import build_parser, main
from ringfence.ledger.index import Index
from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import user_paths

POLICY = "version: 1\nfail_closed: true\ncommands:\n  allow:\n    - argv_prefix: [ls]\n"
FIXTURES = '[{"command": "ls", "expect_allow": true}, {"command": "git push", "expect_allow": false}]'


class Person:
    """Types ringfence's words in a folder, with all state below another one."""

    def __init__(self, folder: pathlib.Path, state: pathlib.Path) -> None:
        self.folder = folder
        self.words = [sys.executable, "-I", "-m", "ringfence.cli.main", "--test-root", str(state)]

    def __call__(self, *words, **kwargs):
        kwargs = {"stdin": subprocess.DEVNULL, "capture_output": True, "cwd": self.folder} | kwargs
        done = subprocess.run([*self.words, *words], check=False, text=True, errors="replace", timeout=60, **kwargs)
        assert "Traceback" not in (done.stderr or "")
        return done

    def shell(self, line, **kwargs):
        """A line for a shell, in which ``"$@"`` stands for ringfence."""
        kwargs = {"capture_output": True, "cwd": self.folder} | kwargs
        words = ["sh", "-c", line, "sh", *self.words]
        done = subprocess.run(words, check=False, text=True, errors="replace", timeout=60, **kwargs)
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def person(tmp_path):
    state, folder = tmp_path / "state", tmp_path / "project"
    state.mkdir(mode=0o700)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    found = Person(folder, state)
    yield found
    if (state / "run" / "supervisor.sock").exists():
        found("stop", cwd=tmp_path)


@pytest.fixture
def settled(person):
    """The same in a folder with a policy."""
    (person.folder / "sandbox_policy.yaml").write_text(POLICY)
    (person.folder / "sandbox_fixtures.json").write_text(FIXTURES)
    return person


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (["check"], 1, "policy-missing"),
        (["why", "--", "ls"], 3, "policy-missing"),
        (["policy", "trust"], 3, "policy-missing"),
        (["policy", "diff", "one.yaml", "two.yaml"], 3, "policy-missing"),
        (["policy", "presets", "nope"], 3, "unknown-preset"),
        (["init", "not-there"], 1, "not-a-directory"),
        (["init", "--preset", "nope"], 3, "unknown-preset"),
        (["init", "/"], 3, "root-too-broad"),
        (["run"], 2, "usage"),
        (["run", "--jsno", "--", "ls"], 2, "usage"),
        (["run", "--report", "not-there/report.json", "--", "ls"], 1, "file-unusable"),
        (["run", "--report", ".", "--", "ls"], 1, "file-unusable"),
        (["ledger", "show"], 1, "ledger-missing"),
        (["ledger", "verify"], 1, "ledger-missing"),
        (["ledger", "lag"], 1, "ledger-missing"),
        (["ledger", "export", "--out", "evidence"], 1, "ledger-missing"),
        (["ledger", "export"], 2, "usage"),
        (["ledger", "checkpoint", "--ledger", "not-there"], 1, "ledger-missing"),
        (["ledger", "proof", "--entry", "0"], 1, "ledger-missing"),
        (["promote", "init", "--repo", "not-there"], 1, "promotion-unreadable"),
        (["promote", "explain", "not-there"], 1, "promotion-unreadable"),
        (["promote", "rehearse", "--base", "a", "--head", "b", "--command", "x"], 1, "promotion-unreadable"),
        (["gauntlet", "--only", "nope"], 1, "gauntlet-unknown-attack"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(person, words, code, name):
    done = person(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"error[{name}]: ")
    assert "\n  fix: " in done.stderr
    assert os.listdir(person.folder) == [".git"]


@pytest.mark.parametrize(
    "words", [["ledger", "proof"], ["ledger", "proof", "--entry", "0", "--from", "1"], ["stop", "x"]]
)
def test_words_that_a_subcommand_does_not_take_are_usage(person, words):
    done = person(*words)
    assert done.returncode == 2
    assert "ringfence" in done.stderr.splitlines()[0]
    assert "--help` says what there is" in done.stderr


def test_every_fault_names_a_next_step():
    assert "\n  fix: see docs/errors.md#internal" in str(RingfenceError("internal", "a fault"))


def test_a_report_that_cannot_be_written_lets_nothing_run(settled):
    done = settled("run", "--report", "/dev/null/x", "--", "ls")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_file_of_calls_that_is_not_there_is_named(settled):
    done = settled("why", "--batch", "not-there.jsonl")
    assert done.returncode == 1
    assert "not-there.jsonl" in done.stderr


@pytest.mark.parametrize("words", ["why -- ls", "check", "policy presets", "policy lint --json", "run --help"])
@pytest.mark.parametrize("how", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-", "| true", ">/dev/full", "2>/dev/full"])
def test_streams_that_are_closed_or_full_are_no_crash(settled, words, how):
    assert settled.shell(f'"$@" {words} {how}').returncode in {0, 1, 10, 11}


def test_the_connection_never_takes_the_number_of_a_closed_stream(settled):
    """Else what the command prints would reach the supervisor as words of its client."""
    settled.shell('"$@" policy trust --yes')
    done = settled.shell('"$@" run -- ls 1>&- 0<&-')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", ["run --help", "policy presets", "mission start --help", "why -- 'ls \u4f60'"])
def test_a_narrow_character_set_is_no_crash(settled, words):
    narrow = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PATH": os.environ["PATH"]}
    assert settled.shell(f'"$@" {words}', env=narrow).returncode in {0, 10, 11}
    assert settled.shell(f'"$@" {words}', env=narrow | {"COLUMNS": "1"}).returncode in {0, 10, 11}


def test_a_word_that_is_not_utf8_is_refused_with_a_remedy(settled):
    done = settled("run", "--", "ls", os.fsdecode(b"\xff"))
    assert done.returncode == 1
    assert "error[not-text]" in done.stderr
    assert "  fix: " in done.stderr


@pytest.mark.parametrize("name", ["LANG", "LC_TIME", "TERM"])
def test_a_variable_that_is_not_utf8_is_left_behind(settled, name):
    done = settled("run", "--", "ls", env={**os.environ, name: "\udcff"})
    assert done.returncode == 10, done.stderr  # judged as any other: this policy is not trusted yet
    assert "not-text" not in done.stderr


def test_a_working_directory_that_is_gone_is_named(person):
    done = person.shell('mkdir gone && cd gone && rmdir ../gone && "$@" check')
    assert done.returncode == 1
    assert "error[no-directory]" in done.stderr


def test_a_user_without_an_account_is_told(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with pytest.raises(RingfenceError, match="no entry in the user database") as told:
        user_paths()
    assert told.value.code == "no-account"


def test_an_untrusted_policy_says_how_to_trust_it(settled):
    done = settled("run", "--", "ls")
    assert done.returncode == 10
    assert "  fix: ringfence policy trust" in done.stderr


def test_no_answer_is_no_trust(settled):
    ours, theirs = pty.openpty()
    os.write(ours, b"\x04")
    done = settled("policy", "trust", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    assert done.stderr.endswith("not trusted\n")


def test_teardown_knows_the_missions_it_is_told_to_discard(settled):
    done = settled("teardown", "--discard", "m-0123456789abcdef")
    assert done.returncode == 1
    assert "error[no-mission]" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--json"],
        ["why", "--json", "--", "ls"],
        ["policy", "lint", "--json"],
        ["policy", "lint", "--sarif"],
        ["policy", "schema"],
        ["policy", "diff", "sandbox_policy.yaml", "sandbox_policy.yaml", "--json"],
        ["policy", "presets", "--json"],
        ["policy", "presets", "git", "--json"],
        ["policy", "presets", "crates", "--json"],
        ["doctor", "--json"],
        ["doctor", "--host", "--json"],
        ["gauntlet", "--list", "--json"],
        ["mission", "list", "--json"],
        ["mission", "start", "--json"],
        ["teardown", "--dry-run", "--json"],
        ["run", "--json", "--", "ls"],
        ["promote", "blast", "--base", "a", "--head", "b", "--json"],
        ["promote", "check", "--base", "a", "--head", "b", "--json", "--annotations"],
        ["ledger", "verify", "--json"],
        ["ledger", "lag", "--json"],
        ["ledger", "checkpoint", "--json"],
        ["ledger", "rebuild-index", "--json"],
        ["ledger", "proof", "--entry", "0", "--json"],
        ["ledger", "hold", "list", "--json"],
        ["ledger", "retention", "--json"],
        ["ledger", "purge", "--dry-run", "--json"],
        ["ledger", "archive", "--dry-run", "--json"],
    ],
)
def test_json_is_one_document(settled, words):
    settled("policy", "trust", "--yes")
    json.loads(settled(*words).stdout)


def test_text_in_any_place_of_a_request_is_looked_at(tmp_path):
    for message in ({"paths": ["a", "\udcff"]}, {"env": {"LANG": "\udcff"}}, {"cwd": "\udcff"}):
        with pytest.raises(RingfenceError, match="not UTF-8"):
            client.ask(user_paths(str(tmp_path)), message)


def test_the_ledger_is_shown_where_its_index_has_no_room(settled, tmp_path, monkeypatch, capsys):
    settled("policy", "trust", "--yes")
    real = Index._open

    def full(index):
        if index._path != ":memory:":
            raise sqlite3.OperationalError("database or disk is full")
        return real(index)

    monkeypatch.setattr(Index, "_open", full)
    assert main(["--test-root", str(tmp_path / "state"), "ledger", "show"]) == 0
    assert "policy.change" in capsys.readouterr().out
    assert main(["--test-root", str(tmp_path / "state"), "ledger", "rebuild-index"]) == 1
    assert "error[index-unusable]" in capsys.readouterr().err


NASTY = """\
version: 1
fail_closed: true
commands:
  allow:
    - {argv_prefix: ["l\\e[2Js\\u202e"], because: "x\\e]0;t\\ay"}
  deny_substrings: ["a\\eb", "c\\u202e"]
"""


@pytest.mark.parametrize(
    "words",
    [
        "policy trust --yes",
        "policy trust --withdraw",
        "policy lint",
        "policy diff sandbox_policy.yaml sandbox_policy.yaml",
        "check",
        "why -- ls",
        "doctor",
        "mission start",
        "init sub",
        "promote init",
        "run -- ls",
    ],
)
def test_nothing_of_a_repository_reaches_the_terminal_raw(tmp_path, words):
    folder = tmp_path / "r\x1b]0;owned\x07\u202ex"
    (folder / "sub").mkdir(parents=True)
    (folder / "sandbox_policy.yaml").write_text(NASTY)
    (folder / "sandbox_fixtures.json").write_text('[{"command": "ls \\u001b[31m", "expect": "allow"}]')
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    person = Person(folder, state)
    done = person(*words.split())
    person("stop", cwd=tmp_path)
    assert done.stdout + done.stderr
    assert not set("\x1b\x07\u202e") & set(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["polcy"], "did you mean `policy`?"),
        (["policy", "lnt"], "did you mean `lint`?"),
        (["promote", "chek"], "did you mean `check`?"),
        (["check", "--nosuch"], "not understood: --nosuch"),
        (["why", "--nosuch\x1b[2J", "--", "ls"], "not understood: --nosuch"),
        (["mission", "commit"], "the following arguments are required: id\n"),
        (["promote", "check", "--head", "x"], "the following arguments are required: --base"),
    ],
)
def test_mistaken_words_are_answered_with_the_way_to_the_help(words, told, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(words)
    said = capsys.readouterr().err
    assert leaving.value.code == 2
    assert told in said
    assert "--help` says what there is" in said
    assert "\x1b" not in said


def _verbs(parser, words=()):
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, verb in action.choices.items():
                yield from _verbs(verb, (*words, name))


@pytest.mark.parametrize(("words", "parser"), [v for v in _verbs(build_parser()) if v[0][:1] != ("run",)], ids=str)
def test_every_verb_says_what_it_does_and_what_each_of_its_words_means(words, parser):
    assert len(parser.description) > 10
    if words[:1] != ("ledger",):
        assert [
            a.dest for a in parser._actions if a.help is None and not isinstance(a, argparse._SubParsersAction)
        ] == []


def test_a_search_that_finds_nothing_says_so(settled):
    settled("policy", "trust", "--yes")
    assert "-- no entry fits" in settled("ledger", "show", "--mission", "m-none").stderr
    assert "-- no connection was tried that fits" in settled("egress", "log").stderr


def test_a_repository_without_a_working_tree_gets_no_policy(person):
    subprocess.run(["git", "init", "-q", "--bare", "bare.git"], cwd=person.folder, check=True)
    done = person("init", "bare.git")
    assert done.returncode == 1
    assert done.stderr.startswith("error[bare-repository]: ")
    assert "sandbox_policy.yaml" not in os.listdir(person.folder / "bare.git")


def test_a_network_preset_that_does_not_exist_is_named_with_its_line(settled):
    policy = settled.folder / "sandbox_policy.yaml"
    policy.write_text(policy.read_text() + "network:\n  allow:\n    - preset: pipy\n")
    for words in (["why", "--", "ls"], ["check"], ["policy", "lint"]):
        done = settled(*words)
        assert done.returncode == 3
        assert "  --> sandbox_policy.yaml:8:" in done.stderr
        assert "\n  fix: " in done.stderr


def test_changes_that_are_kept_back_are_said_to_be(monkeypatch, capsys):
    options = run.parse(["--review", "--", "ls"])
    run._finish({"ran": True, "exit": 0, "mission": "m-1", "messages": []}, options, (0, 1, 2))
    assert "ringfence mission commit m-1" in capsys.readouterr().err
    run._finish({"ran": False, "exit": 10, "mission": "m-1", "messages": []}, options, (0, 1, 2))
    assert capsys.readouterr().err == ""
