"""How a supervisor starts, or says why it does not: under the fault's own code, once, and never in silence."""

import contextlib
import gc
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import types

import pytest

from ringfence.sandbox import launcher, probe
from ringfence.supervisor import daemon
from ringfence.supervisor.paths import by_short_address, user_paths


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


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        (resource.RLIMIT_NOFILE, 40),
        (resource.RLIMIT_AS, 300 * 1024 * 1024),
        (resource.RLIMIT_DATA, 64 * 1024 * 1024),
        (resource.RLIMIT_FSIZE, 0),
    ],
)
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
from ringfence.supervisor.paths import by_short_address, user_paths
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


def test_doctor_tells_what_the_supervisor_would_meet(untrusted):
    assert "none runs" in untrusted("doctor").stdout
    assert untrusted("mission", "list").returncode == 0
    assert f"process {untrusted.supervisor_pid()}" in untrusted("doctor").stdout
    untrusted("stop")
    (untrusted.root / "state").chmod(0o777)
    done = untrusted("doctor")
    assert (done.returncode, said(done)) == (1, ["unsafe-path"])
    (untrusted.root / "state").chmod(0o700)


def test_doctor_needs_no_working_directory(untrusted, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    words = ["sh", "-c", f'cd "{gone}" && rmdir "{gone}" && exec "$@"', "sh", *untrusted.words, "doctor"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert "controls" in done.stdout, done.stderr


@pytest.mark.needs_userns
def test_a_home_with_a_long_path_is_served_as_any_other(tmp_path, untrusted):
    """The kernel takes a Unix socket's path of 107 bytes at most."""
    deep = tmp_path / ("l" * max(1, 110 - len(str(tmp_path))))
    deep.mkdir(mode=0o700)
    found = type(untrusted)(deep / "ringfence", untrusted.project)
    found.root.mkdir(mode=0o700)
    assert found("policy", "trust", "--yes").returncode == 0
    try:
        first = found("run", "--", "cat", "a.txt")
        assert (first.returncode, first.stdout) == (0, "hello\n"), first.stderr
        served = found.supervisor_pid()
        assert found("run", "--", "true").returncode == 0
        assert found.supervisor_pid() == served
        shutil.rmtree(found.root / "run")
        assert found("run", "--", "true").returncode == 0
        assert found.supervisor_pid() != served
    finally:
        assert found("stop").returncode == 0
    assert not (found.root / "run" / "supervisor.sock").exists()


def test_an_interrupt_before_anything_runs_ends_the_client_by_that_signal(untrusted):
    """A script that goes through many commands must end as well, which it does only for a signal."""
    (untrusted.root / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        by_short_address(str(untrusted.root / "run" / "supervisor.sock"), listener.bind)
        listener.listen()
        client = untrusted.start(
            "run", "--", "true", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
        )
        connection, _ = listener.accept()
        assert connection.recv(4)
        client.send_signal(signal.SIGINT)
        assert client.wait(60) == -signal.SIGINT
        connection.close()
        client.communicate()


@pytest.mark.parametrize(("backend", "descriptor", "idle"), [("", 3, 0), ("native", 3, 3600), ("", None, 3600)])
def test_one_that_could_make_no_box_ends_when_idle_so_that_the_next_one_looks_anew(
    tmp_path, monkeypatch, backend, descriptor, idle
):
    served = []

    class Server:
        def serve(self, _listener, _door, *, idle_seconds, look_at):
            served.append((idle_seconds, look_at()))

        def close(self):
            served.append("closed")

    monkeypatch.setattr(probe, "probe_host", lambda _state: types.SimpleNamespace(backend=backend))
    monkeypatch.setattr(launcher.Launcher, "spawn", lambda _state, *, backend: object())
    monkeypatch.setattr(daemon, "_open", lambda *_: Server())
    monkeypatch.setattr(daemon, "_undumpable", lambda: None)
    monkeypatch.setattr(daemon.Starter, "tell", lambda *_: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    (tmp_path / "ringfence").mkdir(mode=0o700)
    paths = user_paths(str(tmp_path / "ringfence"))
    listener, lock = daemon.prepare(paths)
    assert daemon._serve(paths, listener, lock, daemon.Starter(descriptor)) == 0
    assert served == [(idle, paths.socket), "closed"]


def test_a_thread_that_computes_holds_up_the_others_for_a_millisecond_at_most(tmp_path, monkeypatch):
    """Python's own interval is five: each of the many steps of a call would wait that long behind one that is judged."""
    while_serving: list[float] = []

    class Serving:
        def serve(self, *_: object, **__: object) -> None:
            while_serving.append(sys.getswitchinterval())

        def close(self) -> None:
            pass

    monkeypatch.setattr(daemon, "_open", lambda *_: Serving())
    monkeypatch.setattr("ringfence.sandbox.probe.probe_host", lambda _: types.SimpleNamespace(backend=""))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.delenv("AGENT_ENV_CLASS", raising=False)
    (tmp_path / "ringfence").mkdir(mode=0o700)
    paths = user_paths(str(tmp_path / "ringfence"))
    os.makedirs(paths.runtime, mode=0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    by_short_address(paths.socket, listener.bind)
    lock = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    told = os.open(tmp_path / "told", os.O_WRONLY | os.O_CREAT, 0o600)
    before = sys.getswitchinterval()
    try:
        assert daemon._serve(paths, listener, lock, daemon.Starter(told)) == 0
    finally:
        sys.setswitchinterval(before)
    assert len(while_serving) == 1
    assert while_serving[0] <= 0.001
