"""A command that arrives while the supervisor ends is given to the next one; what was taken is never sent again."""

import contextlib
import fcntl
import json
import os
import pathlib
import queue
import select
import signal
import socket
import threading
import time

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client, daemon, protocol
from ringfence.supervisor.paths import by_short_address, user_paths

TIMES = 20


def launcher_of(cli):
    pid = cli.supervisor_pid()
    (child,) = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def kill_and_wait(pid):
    """A signal only begins the end of a process: on a busy machine it lives on for a while."""
    process = os.pidfd_open(pid)
    signal.pidfd_send_signal(process, signal.SIGKILL)
    select.select([process], [], [], 60)
    os.close(process)


def entries_of(cli):
    return [json.loads(line) for line in cli("ledger", "show", "--json", "--limit", "1000").stdout.splitlines()]


def lines_asked_for(cli):
    intents = [entry for entry in entries_of(cli) if entry["kind"] == "tool.intent"]
    return [entry["body"]["request"].get("argv", [""])[-1] for entry in intents]


@pytest.mark.needs_userns
@pytest.mark.parametrize("times", [4, pytest.param(TIMES, marks=pytest.mark.slow)])
def test_a_command_right_after_the_launcher_died_runs_once(cli, times):
    cli.task("echo $1 >> ran.txt\n")
    policy = cli.project / "sandbox_policy.yaml"
    assert cli("run", "--", "sh", "task.sh", "first").returncode == 0, policy.read_text()
    for number in range(times):
        kill_and_wait(launcher_of(cli))
        done = cli("run", "--", "sh", "task.sh", f"n{number}")
        assert done.returncode == 0, f"{number}: {done.stderr}"
    ran = (cli.project / "ran.txt").read_text().split()
    assert ran == ["first", *(f"n{number}" for number in range(times))]
    assert sorted(lines_asked_for(cli)) == sorted(ran)


@pytest.mark.needs_userns
@pytest.mark.parametrize("times", [5, pytest.param(TIMES, marks=pytest.mark.slow)])
def test_commands_that_meet_a_kill_run_at_most_once_and_say_when_they_did_not(cli, times):
    cli.task("echo $1 >> ran.txt\n")
    assert cli("run", "--", "sh", "task.sh", "first").returncode == 0
    ended = {"first": 0}
    for number in range(times):
        name = f"n{number}"
        launcher = launcher_of(cli)
        process = cli.start("run", "--", "sh", "task.sh", name)
        time.sleep(number * 0.12 / times)  # from before the client speaks until after its command ended
        os.kill(launcher, signal.SIGKILL)
        process.communicate(timeout=60)
        ended[name] = process.returncode
        cli("run", "--", "true")
    ran = (cli.project / "ran.txt").read_text().split()
    assert len(ran) == len(set(ran))
    asked = [line for line in lines_asked_for(cli) if line != "true"]
    assert len(asked) == len(set(asked))
    assert {name for name, code in ended.items() if code == 0} <= set(ran)


@pytest.mark.needs_userns
def test_commands_go_on_while_supervisors_are_stopped(cli):
    stops: queue.Queue[bool] = queue.Queue(maxsize=2)  # however slow they are: of one command, less than MOST_STARTS

    def stop_again_and_again():
        while stops.get():
            cli("stop")

    def while_stopped(*words):
        with contextlib.suppress(queue.Full):
            while True:
                stops.put_nowait(True)
        return cli(*words)

    thread = threading.Thread(target=stop_again_and_again)
    assert cli("run", "--", "true").returncode == 0
    thread.start()
    try:
        done = [
            while_stopped(*(("mission", "list"), ("policy", "trust", "--yes"))[number == 5]) for number in range(15)
        ]
    finally:
        stops.put(False)
        thread.join()
    assert [one.stderr for one in done if one.returncode] == []


class Scripted:
    """A supervisor's socket on which each request gets the next of some replies; ``requests`` holds what was read."""

    def __init__(self, paths, replies, *, unread=False):
        os.makedirs(paths.runtime, mode=0o700, exist_ok=True)
        self.requests = []
        self._replies = list(replies)
        self._unread = unread
        self.listener = socket.socket(socket.AF_UNIX)
        by_short_address(paths.socket, self.listener.bind)
        self.listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                if self._unread:
                    continue
                body = protocol.Reader(connection).receive_bytes()
                if body is not None:
                    self.requests.append(body)
                    for reply in self._replies:
                        protocol.send_bytes(connection, reply)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self.listener.close()


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.3)
    monkeypatch.delenv("AGENT_ENV_CLASS", raising=False)
    made = []

    def make(replies, **how):
        paths = user_paths(str(tmp_path / "ringfence"))
        os.makedirs(tmp_path / "ringfence", mode=0o700, exist_ok=True)
        made.append(Scripted(paths, replies, **how))
        return made[-1], paths

    yield make
    for one in made:
        one.close()


def test_a_supervisor_that_takes_long_to_listen_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(client, "_start", lambda _paths: None)
    monkeypatch.setattr(daemon, "_undumpable", lambda: None)
    monkeypatch.delenv("AGENT_ENV_CLASS", raising=False)
    (tmp_path / "ringfence").mkdir(mode=0o700)
    paths = user_paths(str(tmp_path / "ringfence"))
    listener, lock = daemon.prepare(paths)
    try:
        timer = threading.Timer(1.0, listener.listen)
        timer.start()
        client.connect(paths).close()
        timer.join()
    finally:
        listener.close()
        os.close(lock)
    with pytest.raises(RingfenceError) as gone:
        client.connect(paths)
    assert gone.value.code == "no-supervisor"


def test_a_look_at_the_lock_does_not_keep_a_supervisor_from_starting(tmp_path, monkeypatch):
    monkeypatch.setattr(daemon, "_undumpable", lambda: None)
    (tmp_path / "ringfence").mkdir(mode=0o700)
    paths = user_paths(str(tmp_path / "ringfence"))
    os.makedirs(paths.runtime, mode=0o700)
    looking = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, (looking,)).start()
    listener, lock = daemon.prepare(paths)
    assert listener is not None
    listener.close()
    os.close(lock)


def test_what_was_taken_is_never_sent_again(scripted):
    fake, paths = scripted([protocol.TAKEN])
    with pytest.raises(RingfenceError) as gone:
        client.request(paths, "status")
    assert gone.value.code == "supervisor-gone"
    assert len(fake.requests) == 1


@pytest.mark.parametrize("unread", [True, False])
def test_the_same_supervisor_is_not_asked_twice(scripted, unread):
    fake, paths = scripted([], unread=unread)
    with pytest.raises(RingfenceError) as gone:
        client.request(paths, "status")
    assert gone.value.code == "supervisor-gone"
    assert "nothing ran" in gone.value.what
    assert len(fake.requests) == (not unread)


def test_the_next_supervisors_are_asked_but_not_for_ever(scripted, monkeypatch):
    fake, paths = scripted([])
    pids = iter(range(1, 100))
    real = protocol.peer
    monkeypatch.setattr(protocol, "peer", lambda connection: (next(pids) // 2, *real(connection)[1:]))
    with pytest.raises(RingfenceError) as gone:
        client.request(paths, "status")
    assert f"{client.MOST_STARTS} supervisors" in gone.value.what
    assert len(fake.requests) == client.MOST_STARTS
    assert len(set(fake.requests)) == 1


def test_a_supervisor_that_ends_before_its_client_reaches_it_is_started_again(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_ENV_CLASS", raising=False)
    os.makedirs(tmp_path / "ringfence", mode=0o700)
    paths = user_paths(str(tmp_path / "ringfence"))
    made = []

    def start(_paths):
        os.makedirs(paths.runtime, mode=0o700, exist_ok=True)
        made.append(None)  # the first ones have ended again, and given up the lock
        if len(made) == client.MOST_STARTS:
            made[-1] = Scripted(paths, [])

    monkeypatch.setattr(client, "_start", start)
    with monkeypatch.context() as within:
        within.setattr(time, "sleep", lambda _seconds: pytest.fail("it waited for one that has ended"))
        client.connect(paths).close()
    made[-1].close()
    os.unlink(paths.socket)
    made.append(None)
    with pytest.raises(RingfenceError) as gone:
        client.connect(paths)
    assert gone.value.code == "no-supervisor"


def test_a_fault_that_is_told_without_taking_is_the_answer(scripted):
    fault = b'{"error":{"code":"other-version","what":"w","where":"","remedy":"r","kind":"RingfenceError"}}'
    fake, paths = scripted([fault])
    with pytest.raises(RingfenceError) as refused:
        client.request(paths, "status")
    assert refused.value.code == "other-version"
    assert len(fake.requests) == 1


def test_an_answer_follows_what_was_taken(scripted):
    _, paths = scripted([protocol.TAKEN, b'{"entries":3}'])
    assert client.request(paths, "status") == {"entries": 3}
