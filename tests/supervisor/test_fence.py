"""The public API, the control verbs and missions, through a real supervisor."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from ringfence import Fence, RingfenceError
from ringfence.supervisor import client
from ringfence.supervisor.paths import check_trusted, user_paths

pytestmark = pytest.mark.needs_userns


def test_a_fence_runs_refuses_and_ends_its_mission(cli):
    with Fence.open(str(cli.project), task="try it", test_root=str(cli.root)) as fence:
        good = fence.run("cat a.txt")
        assert (good.ok, good.stdout, good.exit) == (True, b"hello\n", 0)
        words = fence.run(["cat", "a.txt"])
        assert words.stdout == b"hello\n"
        bad = fence.run("touch made.txt")
        assert (bad.tier, bad.ok, bad.exit) == ("deny", False, None)
        mission = fence.mission
    shown = cli.json("mission", "show", mission, "--json")
    assert (shown["state"], shown["task"]) == ("completed", "try it")
    assert cli("run", "--mission", mission, "--", "true").returncode == 1


def test_the_python_page_does_what_it_says(cli, monkeypatch, capsys):
    """Its blocks run in one repository with README's policy; a line that prints says what."""
    readme, page = (pathlib.Path(__file__).parents[2] / name for name in ("README.md", "docs/python.md"))
    (cli.project / "sandbox_policy.yaml").write_text(re.search(r"```yaml\n(.*?)```", readme.read_text(), re.DOTALL)[1])
    assert cli("policy", "trust", "--yes").returncode == 0
    monkeypatch.setattr("ringfence.supervisor.fence.user_paths", lambda _: user_paths(str(cli.root)))
    monkeypatch.chdir(cli.project)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"# -> (.*)", "".join(blocks))
    assert len(promised) == 5
    assert [line for line in printed if line in promised] == promised


def test_a_fence_without_a_policy_cannot_be_opened(cli, tmp_path):
    with pytest.raises(RingfenceError, match="policy"):
        Fence.open(str(tmp_path), test_root=str(cli.root))


def test_calls_of_one_mission_see_each_others_changes_and_hold_what_is_asked(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text() + "files:\n  write: {allow: ['**'], ask: ['migrations/**']}\n")
    assert cli("policy", "trust", "--yes").returncode == 0
    mission = cli("mission", "start", "--task", "t").stdout.strip()
    cli.task("mkdir -p migrations; echo 1 > migrations/one.sql; echo 2 > plain.txt; rm -f task-never\n")
    first = cli.json("run", "--json", "--mission", mission, "--", "sh", "task.sh")
    assert [item["path"] for item in first["gate"]["held"]] == ["migrations/one.sql"], first["gate"]
    assert (cli.project / "plain.txt").exists()
    assert not (cli.project / "migrations" / "one.sql").exists()
    (line,) = (item for item in first["gate"]["committed"] if item["path"] == "plain.txt")
    assert line["content"] == hashlib.sha256(b"2\n").hexdigest()
    records = [json.loads(text) for text in cli("ledger", "show", "--json", "--mission", mission).stdout.splitlines()]
    (result,) = (one["body"] for one in records if one["kind"] == "tool.result")
    assert result["changes_digest"] == result["gate"]["digest"] == first["gate"]["digest"]
    second = cli("run", "--mission", mission, "--", "cat", "migrations/one.sql")
    assert second.stdout == "1\n"
    assert "one.sql" in cli("mission", "diff", mission).stdout
    assert cli("mission", "commit", mission, "migrations/one.sql").returncode == 0
    assert (cli.project / "migrations" / "one.sql").read_text() == "1\n"
    assert cli("mission", "end", mission).returncode == 0


def test_a_mission_keeps_the_policy_it_started_with(cli):
    mission = cli("mission", "start").stdout.strip()
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace('["cat"]', '["nothing"]'))
    assert cli("run", "--mission", mission, "--", "cat", "a.txt").stdout == "hello\n"
    assert cli("run", "--", "cat", "a.txt").returncode != 0


def test_why_and_check_say_when_a_mission_runs_under_another_policy(cli):
    (cli.project / "sandbox_fixtures.json").write_text('[{"command": "ls", "expect_allow": true}]')
    mission = cli("mission", "start").stdout.strip()
    assert "note" not in cli("why", "--", "ls").stdout + cli("check").stderr
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace('["cat"]', '["head"]'))
    assert mission in cli("why", "--", "ls").stdout
    assert mission in cli("check").stderr
    assert cli("policy", "trust", "--yes").returncode == 0
    assert cli("policy", "reload", "--mission", mission).returncode == 0
    assert mission not in cli("why", "--", "ls").stdout
    assert cli("run", "--mission", mission, "--", "cat", "a.txt").returncode == 11


def test_a_mission_past_its_time_runs_nothing(cli):
    answer = client.request(
        user_paths(str(cli.root)),
        "mission",
        {"action": "start", "cwd": str(cli.project), "until": time.time_ns() // 1000 - 1},
    )
    done = cli("run", "--mission", str(answer["id"]), "--", "true")
    assert done.returncode == 1
    assert "mission-over" in done.stderr


def test_discard_wants_names_or_all(cli):
    cli.task("echo 1 > one.txt; echo 2 > two.txt\n")
    report = cli.json("run", "--json", "--review", "--", "sh", "task.sh")
    mission = report["mission"]
    assert cli("mission", "discard", mission).returncode == 2
    assert "one.txt" in cli("mission", "discard", mission, "one.txt").stdout
    listed = cli("mission", "diff", "--stat", mission).stdout
    assert "two.txt" in listed
    assert "one.txt" not in listed


def test_control_verbs_are_refused_to_a_caller_that_says_it_is_boxed(cli):
    cli("run", "--", "true")
    done = cli("stop", env={"AGENT_ENV_CLASS": "sandbox"})
    assert done.returncode == 1
    assert "control-refused" in done.stderr


def test_inside_a_box_ringfence_says_so(cli):
    done = cli("run", "--", "true", env={"AGENT_ENV_CLASS": "sandbox", "AGENT_RUN_ID": "m-1"})
    assert done.returncode == 1
    assert "already" in done.stderr


def test_a_fence_inside_an_allowed_root_refuses(cli, tmp_path):
    home = tmp_path / "inside"
    source = pathlib.Path(__file__).parent.parent.parent / "src"
    shutil.copytree(source, home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "sandbox_policy.yaml").write_text((cli.project / "sandbox_policy.yaml").read_text())
    code = (
        f"import sys; sys.path.insert(0, {str(home / 'src')!r}); from ringfence.cli.main import main; sys.exit(main())"
    )
    words = [sys.executable, "-I", "-c", code, "--test-root", str(tmp_path / "other")]
    (tmp_path / "other").mkdir(mode=0o700)
    done = subprocess.run([*words, "doctor"], cwd=home, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert "fence-inside-root" in done.stdout
    done = subprocess.run(
        [*words, "run", "--", "true"], cwd=home, capture_output=True, text=True, check=False, timeout=60
    )
    subprocess.run([*words, "stop"], cwd=home, capture_output=True, check=False, timeout=60)
    assert done.returncode == 3
    assert "fence-inside-root" in done.stderr


def test_doctor_reports_every_control(cli):
    report = cli.json("doctor", "--json")
    assert report["level"] == "namespaces"
    assert {control["state"] for control in report["controls"]} <= {"enforced", "downgraded", "absent"}
    assert len(report["controls"]) >= 8
    assert "namespaces" in cli("doctor").stdout


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_state_folder_open_to_others_is_refused(tmp_path, mode):
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(RingfenceError, match="another user"):
        check_trusted(str(folder))


def test_state_paths_ignore_the_environment(monkeypatch):
    before = user_paths()
    for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR"):
        monkeypatch.setenv(name, "/elsewhere")
    after = user_paths()
    assert [getattr(before, name) for name in before.__slots__] == [getattr(after, name) for name in after.__slots__]
    assert not before.state.startswith("/tmp")


def test_the_supervisors_report_is_json_with_documented_fields(cli):
    report = cli.json("run", "--json", "--", "cat", "a.txt")
    text = (pathlib.Path(__file__).parent.parent.parent / "docs" / "cli.md").read_text()
    assert [name for name in report if f"`{name}`" not in text] == []
    assert json.dumps(report)
    assert os.path.isabs(report["decision"]["reasons"][0]["place"]) or report["decision"]["reasons"][0]["place"]


@pytest.mark.parametrize("verb", ["end", "discard", "commit"])
def test_what_a_mission_leaves_takes_no_room_any_more(cli, verb):
    cli.task("mkdir -p big; echo x > big/file\n")
    mission = cli("mission", "start", "--commit", "never").stdout.strip()
    assert cli("run", "--mission", mission, "--", "sh", "task.sh").returncode == 0
    words = {"end": [], "discard": ["--all"], "commit": []}[verb]
    assert cli("mission", verb, mission, *words).returncode == 0
    assert cli("stop").returncode == 0  # what is done later is done before the supervisor ends
    assert not list((cli.root / "state" / "repositories").glob("*/carried-bin/*"))


def test_a_mission_in_which_nothing_ran_is_shown_and_ended(cli):
    mission = cli("mission", "start", "--commit", "end").stdout.strip()
    assert cli.json("mission", "diff", mission, "--json")["changes"] == []
    assert cli("mission", "commit", mission).returncode == 0
    assert cli("mission", "discard", mission, "--all").returncode == 0
    done = cli("mission", "end", mission)
    assert (done.returncode, done.stderr) == (0, "")
    assert "state          completed\n" in done.stdout
    assert cli("mission", "diff", mission).stdout == ""
    with Fence.open(repo=str(cli.project), test_root=str(cli.root)) as fence:
        assert fence.mission
    assert cli.json("mission", "show", fence.mission, "--json")["state"] == "completed"


def test_a_mission_is_shown_for_a_person(cli):
    mission = cli("mission", "start", "--until", "2h", "--commit", "end").stdout.strip()
    shown = cli("mission", "show", mission).stdout
    assert re.search(r"^until +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC$", shown, re.MULTILINE)
    assert re.search(r"^one_call +no$", shown, re.MULTILINE)
    cli.task("echo 1 > one.txt; mkdir .vscode; echo 2 > .vscode/tasks.json\n")
    cli("run", "--mission", mission, "--", "sh", "task.sh")
    ended = cli("mission", "end", mission)
    assert "committed one.txt\n" in ended.stdout
    assert "refused   .vscode/tasks.json: " in ended.stdout
    assert ended.returncode == 1
