"""What a person decides about a mission while a command of it runs stands when the command ends."""

import contextlib
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def mission(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace("max_runtime_ms: 8000", "max_runtime_ms: 120000"))
    assert cli("policy", "trust", "--yes").returncode == 0
    return cli.json("mission", "start", "--task", "t", "--json")["id"]


def intents(cli):
    return cli("ledger", "show", "--json", "--limit", "1000").stdout.count('"tool.intent"')


def begun(cli, mission, *words, **how):
    """A command of the mission, judged already."""
    before = intents(cli)
    process = cli.start("run", "--mission", mission, "--", *words, **how)
    deadline = time.monotonic() + 60
    while intents(cli) == before and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@contextlib.contextmanager
def held(cli, mission):
    """A command of the mission that has the turn until the block ends."""
    process = begun(cli, mission, "cat", "-", stdin=subprocess.PIPE)
    process.stdin.write("up\n")
    process.stdin.flush()
    assert process.stdout.readline() == "up\n"
    try:
        yield process
    finally:
        process.communicate(timeout=60)


def test_a_reload_while_a_command_runs_stays(cli, mission):
    with held(cli, mission):
        policy = cli.project / "sandbox_policy.yaml"
        policy.write_text(policy.read_text().replace('    - argv_prefix: ["cat"]\n', ""))
        assert cli("policy", "trust", "--yes").returncode == 0
        reloaded = cli("policy", "reload", "--mission", mission)
        assert reloaded.returncode == 0, reloaded.stderr
        pinned = cli.json("mission", "show", mission, "--json")["policy_digest"]
    shown = cli.json("mission", "show", mission, "--json")
    assert shown["policy_digest"] == pinned
    assert shown["calls"] == 1
    assert cli("run", "--mission", mission, "--", "cat", "a.txt").returncode == 11


def test_a_mission_that_was_ended_while_commands_wait_stays_ended(cli, mission):
    with held(cli, mission):
        ending = cli.start("mission", "end", mission)
        waiting = [begun(cli, mission, "true") for _ in range(3)]
    for process in (ending, *waiting):
        process.communicate(timeout=60)
    assert ending.returncode == 0
    assert cli.json("mission", "show", mission, "--json")["state"] == "completed"
    assert cli("run", "--mission", mission, "--", "true").returncode != 0


def test_a_command_whose_client_was_killed_while_it_waited_does_not_begin(cli, mission):
    cli.task("echo > made-$(date +%N)\n")
    with held(cli, mission):
        waiting = begun(cli, mission, "sh", "task.sh")
        waiting.kill()
        waiting.communicate()
    shown, deadline = "", time.monotonic() + 60
    while "client-gone" not in shown and time.monotonic() < deadline:
        shown = cli("ledger", "show", "--json", "--limit", "1000").stdout
    assert "client-gone" in shown
    assert list(cli.project.glob("made-*")) == []


def test_a_command_that_waits_for_its_turn_says_so_and_is_ended_by_ctrl_c(cli, mission):
    cli.task("echo > made-$(date +%N)\n")
    with held(cli, mission) as first:
        waiting = begun(cli, mission, "sh", "task.sh")
        assert "waits for its turn" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=60)
        assert "error[client-gone]" in said
        assert waiting.returncode == 1
    assert first.returncode == 0
    assert "client-gone" in cli("ledger", "show", "--json", "--limit", "1000").stdout
    assert list(cli.project.glob("made-*")) == []


def test_a_persons_verb_that_waits_for_its_turn_says_so_and_is_not_done_once_the_person_gave_up(cli, mission):
    with held(cli, mission):
        ending = cli.start("mission", "end", mission)
        assert "waits for its turn" in ending.stderr.readline()
        ending.send_signal(signal.SIGINT)
        ending.communicate(timeout=60)
        assert ending.returncode != 0
    assert cli("run", "--mission", mission, "--", "true").returncode == 0
    assert cli.json("mission", "show", mission, "--json")["state"] == "running"


def test_a_command_that_waits_for_its_turn_runs_when_it_comes(cli, mission):
    cli.task("echo > made\n")
    with held(cli, mission):
        waiting = begun(cli, mission, "sh", "task.sh")
        assert "waits for its turn" in waiting.stderr.readline()
    assert waiting.communicate(timeout=60)[0] == ""
    assert waiting.returncode == 0
    assert (cli.project / "made").exists()
