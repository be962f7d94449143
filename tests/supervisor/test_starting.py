"""How a supervisor starts, or says why it does not: under the fault's own code, once, and never in silence."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import sys

import pytest

from ringfence.supervisor.paths import user_paths


def said(done):
    """The codes of the faults that were printed."""
    return re.findall(r"error\[([a-z-]+)\]", done.stderr)


def test_a_fault_in_starting_is_told_under_its_own_code_and_exit_status(cli):
    cli("stop")
    (segment,) = (cli.root / "state" / "ledger").glob("**/*.seg*")
    with segment.open("r+b") as file:
        file.seek(200)
        byte = file.read(1)
        file.seek(200)
        file.write(bytes([byte[0] ^ 1]))
    done = cli("run", "--", "true")
    assert said(done) == ["ledger-altered"]
    assert done.returncode == 12


@pytest.mark.parametrize("name", ["run/supervisor.sock", "run/supervisor.lock", "state/supervisor.log"])
def test_what_stands_in_the_way_is_named(untrusted, name):
    place = untrusted.root / name
    place.mkdir(parents=True, mode=0o700)
    done = untrusted("run", "--", "true")
    assert said(done) == ["state-unusable"]
    assert str(place) in done.stderr
    assert done.returncode == 1


def test_a_pipe_in_the_place_of_the_log_is_not_waited_for(untrusted):
    (untrusted.root / "state").mkdir(mode=0o700)
    os.mkfifo(untrusted.root / "state" / "supervisor.log")
    assert said(untrusted("run", "--", "true")) == ["state-unusable"]


def test_serve_says_that_another_one_serves(cli):
    assert cli("mission", "list").returncode == 0
    done = cli("serve")
    assert (done.returncode, said(done), done.stdout) == (1, ["already-serving"], "")


def test_serve_says_why_it_does_not(untrusted):
    (untrusted.root / "run").mkdir()
    (untrusted.root / "run").chmod(0o777)
    done = untrusted("serve")
    assert (done.returncode, said(done), done.stdout) == (1, ["unsafe-path"], "")


@pytest.mark.parametrize("ignored", [False, True])
def test_serve_ends_in_order_with_its_terminal_unless_it_was_told_to_stay(untrusted, ignored):
    def begin():
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    serving = untrusted.start("serve", preexec_fn=begin)
    try:
        assert serving.stdout.readline().startswith("serving on ")
        serving.send_signal(signal.SIGHUP)
        if ignored:
            assert untrusted("mission", "list").returncode == 0
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0
        assert not pathlib.Path(user_paths(str(untrusted.root)).socket).exists()
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.parametrize(("limit", "value"), [(resource.RLIMIT_NOFILE, 40), (resource.RLIMIT_AS, 300 * 1024 * 1024)])
def test_a_session_with_too_low_limits_starts_none_that_others_would_meet(untrusted, limit, value):
    def bind():
        resource.setrlimit(limit, (value, value))

    client = untrusted.start("mission", "list", preexec_fn=bind)
    _, error = client.communicate(timeout=60)
    assert "error[limits-too-low]" in error
    assert untrusted("mission", "list").returncode == 0


@pytest.mark.parametrize("free", [0, 4, 5, 6, 7, 8])
def test_its_log_is_its_standard_error_whatever_descriptors_its_client_had_open(untrusted, free):
    """The numbers that a client's log and pipe get must not be among those that are filled on the way."""
    script = f"""
import os, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parents[2] / "src")!r})
from ringfence.supervisor import client
from ringfence.supervisor.paths import user_paths
for number in range(3, {free}):
    os.dup2(0, number)
if not {free}:
    os.closerange(0, 3)
client.connect(user_paths({str(untrusted.root)!r})).close()
"""
    pid = os.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-I", "-c", script])
    assert os.waitpid(pid, 0)[1] == 0
    supervisor = untrusted.supervisor_pid()
    with contextlib.suppress(PermissionError):  # closed to everybody but root, as it must be
        for number in (1, 2):
            assert os.readlink(f"/proc/{supervisor}/fd/{number}") == str(untrusted.root / "state" / "supervisor.log")


def test_a_ledger_that_was_taken_away_gets_no_more_entries(cli):
    """A person who removes the state folder while the supervisor runs: its records must not go where nobody finds them."""
    assert cli("mission", "list").returncode == 0
    state = cli.root / "state"
    (state / "ledger").rename(state / "away")
    assert cli("run", "--", "touch", "x").returncode == 11
    assert (state / "ledger" / "segments").is_dir()
    assert "touch" in cli("ledger", "show").stdout
