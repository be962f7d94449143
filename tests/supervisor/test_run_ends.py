"""The end of a run: which signals reach the command, which not, and what is said when its report cannot be written."""

import json
import os
import signal
import subprocess

import pytest

pytestmark = pytest.mark.needs_userns

WAITS = "echo begun; read word; echo $word\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_a_signal_that_the_caller_ignores_does_not_reach_the_command(cli, number):
    """As under nohup, or behind `&` in a script."""
    cli.task(WAITS)
    running = cli.start(
        "run", "--", "sh", "task.sh", stdin=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN)
    )
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    out, error = running.communicate("done\n", timeout=60)
    assert (running.returncode, out) == (0, "done\n"), error


def test_any_other_still_does(cli):
    cli.task(WAITS)
    running = cli.start(
        "run",
        "--",
        "sh",
        "task.sh",
        stdin=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGHUP)
    assert running.wait(60) == -signal.SIGHUP
    running.communicate()


@pytest.mark.parametrize(("words", "came"), [(("true",), "ran (exit 0)"), (("touch", "x"), "did not run")])
def test_a_report_that_cannot_be_written_afterwards_says_what_came_of_the_command(cli, words, came):
    done = cli("run", "--report", "/dev/full", "--", *words)
    assert done.returncode == 1
    assert "error[report-not-written]" in done.stderr
    assert came in done.stderr
    assert "/dev/full" in done.stderr


def test_a_report_for_a_reader_that_has_gone_says_so_too(cli):
    full = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [*cli.words, "run", "--json", "--", "false"],
        cwd=cli.project,
        stdout=full,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(full)
    assert done.returncode == 1
    assert "ran (exit 1)" in done.stderr


def test_after_a_teardown_the_next_command_runs(cli):
    assert cli("run", "--", "true").returncode == 0
    done = cli("teardown")
    assert done.returncode == 0, done.stderr
    done = cli("run", "--", "cat", "a.txt")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_a_launcher_that_is_killed_while_the_command_runs_is_not_said_to_have_kept_it_from_running(cli):
    cli.task("echo > made.txt; echo begun; sleep 60\n")
    running = cli.start("run", "--", "sh", "task.sh")
    assert running.stdout.readline() == "begun\n"
    (launcher,) = children(cli.supervisor_pid())
    os.kill(launcher, signal.SIGKILL)
    _, error = running.communicate(timeout=60)
    assert "error[box-lost]" in error
    assert running.returncode == 13
    assert not (cli.project / "made.txt").exists()
    shown = cli("ledger", "show", "--json").stdout
    assert "box-lost" in json.dumps(shown)


def test_a_command_whose_box_is_killed_is_told_as_cut_short_with_all_that_was_seen_of_it(cli):
    cli.task("sleep 1; echo begun; sleep 60\n")  # so that the launcher has heard by then that it runs
    running = cli.start("run", "--", "sh", "task.sh")
    assert running.stdout.readline() == "begun\n"
    (launcher,) = children(cli.supervisor_pid())
    (box,) = [pid for pid in children(launcher) if children(pid)]
    os.kill(box, signal.SIGKILL)
    _, error = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGKILL
    assert "fault of the box's first process" in error
    records = [json.loads(line) for line in cli("ledger", "show", "--json").stdout.splitlines()]
    (result,) = (one["body"] for one in records if one["kind"] == "tool.result")
    assert "fault of the box's first process" in json.dumps(result)


def listed(cli):
    return [one["id"] for one in cli.json("mission", "list", "--json")["missions"]]


def cut_short(cli, script):
    """A command whose supervisor is killed while it runs."""
    cli.task(script)
    running = cli.start("run", "--", "sh", "task.sh")
    assert running.stdout.readline() == "begun\n"
    os.kill(cli.supervisor_pid(), signal.SIGKILL)
    running.communicate(timeout=60)


def test_a_command_that_was_cut_short_before_it_changed_anything_is_no_mission_for_ever(cli):
    cut_short(cli, "echo begun; sleep 60\n")
    assert listed(cli) == []
    assert os.listdir(cli.root / "state" / "missions") == []


def test_what_one_changed_waits_until_it_is_given_up(cli):
    cut_short(cli, "echo > made.txt; echo begun; sleep 60\n")
    (mission,) = listed(cli)
    assert "made.txt" in cli("mission", "diff", "--stat", mission).stdout
    assert cli("teardown", "--dry-run", "--discard", mission).returncode == 0
    assert listed(cli) == [mission]
    assert cli("teardown", "--discard", mission).returncode == 0
    assert listed(cli) == []


def children(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("place", ["pipe", "file"])
def test_what_goes_to_one_place_from_both_streams_keeps_its_order(cli, tmp_path, place):
    cli.task("for n in 1 2 3 4 5 6 7 8; do echo out $n; echo err $n >&2; done\n")
    wanted = "".join(f"out {n}\nerr {n}\n" for n in range(1, 9))
    words = [*cli.words, "run", "--", "sh", "task.sh"]
    if place == "pipe":
        both = subprocess.run(words, cwd=cli.project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
        assert both.stdout.decode() == wanted
    else:
        with (tmp_path / "both").open("wb") as file:
            subprocess.run(words, cwd=cli.project, stdout=file, stderr=file, check=True)
        assert (tmp_path / "both").read_text() == wanted
