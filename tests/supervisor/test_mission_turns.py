"""What a person decides about a mission while a command of it runs stands when the command ends."""

import time

import pytest

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def mission(cli):
    return cli.json("mission", "start", "--task", "t", "--json")["id"]


def intents(cli):
    return cli("ledger", "show", "--json", "--limit", "1000").stdout.count('"tool.intent"')


def begun(cli, mission, *words):
    """A command of the mission, judged already."""
    before = intents(cli)
    process = cli.start("run", "--mission", mission, "--", *words)
    deadline = time.monotonic() + 30
    while intents(cli) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


def test_a_reload_while_a_command_runs_stays(cli, mission):
    running = begun(cli, mission, "sleep", "4")
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace('    - argv_prefix: ["cat"]\n', ""))
    assert cli("policy", "trust", "--yes").returncode == 0
    reloaded = cli("policy", "reload", "--mission", mission)
    assert reloaded.returncode == 0, reloaded.stderr
    pinned = cli.json("mission", "show", mission, "--json")["policy_digest"]
    running.communicate(timeout=60)
    shown = cli.json("mission", "show", mission, "--json")
    assert shown["policy_digest"] == pinned
    assert shown["calls"] == 1
    assert cli("run", "--mission", mission, "--", "cat", "a.txt").returncode == 11


def test_a_mission_that_was_ended_while_commands_wait_stays_ended(cli, mission):
    first = begun(cli, mission, "sleep", "4")
    ending = cli.start("mission", "end", mission)
    waiting = [begun(cli, mission, "true") for _ in range(3)]
    for process in (first, ending, *waiting):
        process.communicate(timeout=60)
    assert ending.returncode == 0
    assert cli.json("mission", "show", mission, "--json")["state"] == "completed"
    assert cli("run", "--mission", mission, "--", "true").returncode != 0


def test_a_command_whose_client_was_killed_while_it_waited_does_not_begin(cli, mission):
    cli.task("echo > made-$(date +%N); sleep 3\n")
    first = begun(cli, mission, "sleep", "4")
    waiting = begun(cli, mission, "sh", "task.sh")
    waiting.kill()
    waiting.communicate()
    first.communicate(timeout=60)
    shown, deadline = "", time.monotonic() + 30
    while "client-gone" not in shown and time.monotonic() < deadline:
        shown = cli("ledger", "show", "--json", "--limit", "1000").stdout
    assert "client-gone" in shown
    assert list(cli.project.glob("made-*")) == []
