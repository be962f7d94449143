"""The folder of the socket goes with a log-out while the supervisor stays: the next client is served all the same."""

import pathlib
import shutil
import threading
import time

import pytest

pytestmark = pytest.mark.needs_userns


def gone(pid):
    deadline = time.monotonic() + 300
    while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not pathlib.Path(f"/proc/{pid}").exists()


def test_a_supervisor_that_no_client_finds_makes_room_for_the_next(cli):
    assert cli("run", "--", "true").returncode == 0
    lost = cli.supervisor_pid()
    shutil.rmtree(cli.root / "run")
    done = cli("run", "--", "true")
    assert done.returncode == 0, done.stderr
    assert gone(lost)
    # The one that ended took nobody's socket with it.
    found = cli.supervisor_pid()
    assert cli("run", "--", "true").returncode == 0
    assert cli.supervisor_pid() == found != lost
    assert cli("ledger", "verify").returncode in {0, 14}


def test_what_it_runs_is_finished_first(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace("max_runtime_ms: 8000", "max_runtime_ms: 120000"))
    assert cli("policy", "trust", "--yes").returncode == 0
    cli.task("sleep 7\necho done > done.txt\n")
    running = cli.start("run", "--", "sh", "task.sh")
    deadline = time.monotonic() + 300
    while '"tool.intent"' not in cli("ledger", "show", "--json").stdout and time.monotonic() < deadline:
        time.sleep(0.05)
    lost = cli.supervisor_pid()
    shutil.rmtree(cli.root / "run")
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert (cli.project / "done.txt").read_text() == "done\n"
    assert gone(lost)


def test_a_ledger_that_is_busy_for_a_moment_is_waited_for(cli):
    from ringfence.ledger.log import Ledger

    cli("stop")
    ledger = Ledger.open(str(cli.root / "state" / "ledger"))
    letting_go = threading.Timer(2.0, ledger.close)
    letting_go.start()
    done = cli("run", "--", "true")
    letting_go.join()
    assert done.returncode == 0, done.stderr
