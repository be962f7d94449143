"""What a client does while a supervisor is full, stuck, starting or ending: it waits so long, and says which it was."""

import argparse
import contextlib
import fcntl
import os
import socket
import threading

import pytest

from ringfence.cli import stop
from ringfence.model.errors import RingfenceError
from ringfence.supervisor import client, protocol
from ringfence.supervisor.paths import by_short_address, user_paths

BUSY = b'{"error":{"code":"supervisor-busy","what":"full","where":"","remedy":"try again","kind":"RingfenceError"}}'


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENT_ENV_CLASS", raising=False)
    (tmp_path / "r").mkdir(mode=0o700)
    found = user_paths(str(tmp_path / "r"))
    os.makedirs(found.runtime, mode=0o700)
    return found


@pytest.fixture
def listener(paths):
    with socket.socket(socket.AF_UNIX) as made:
        by_short_address(paths.socket, made.bind)
        made.listen(1)
        yield made


def serving(listener, talk):
    """Let ``talk`` have the first connection, in a thread of its own."""

    def serve():
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("size", [10, 4_000_000])
def test_one_that_is_turned_away_hears_why_however_much_it_had_to_say(paths, listener, size):
    thread = serving(listener, lambda connection: protocol.send_bytes(connection, BUSY))
    with pytest.raises(RingfenceError) as refused:
        client.request(paths, "decide", {"line": "x" * size})
    thread.join()
    assert refused.value.code == "supervisor-busy"


def test_where_the_queue_is_full_a_client_waits_for_its_place(paths, listener):
    waiting = fill(paths)
    begun = threading.Event()

    def take_all():
        begun.wait()
        with contextlib.suppress(OSError):
            while True:
                listener.accept()[0].close()

    thread = threading.Thread(target=take_all, daemon=True)
    thread.start()
    threading.Timer(0.1, begun.set).start()
    client.connect(paths, start=False).close()
    listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)
    for one in waiting:
        one.close()


def test_a_queue_that_stays_full_is_named(paths, listener, monkeypatch):
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.2)
    waiting = fill(paths)
    with pytest.raises(RingfenceError) as refused:
        client.connect(paths, start=False)
    assert refused.value.code == "supervisor-busy"
    for one in waiting:
        one.close()


def fill(paths):
    """Connections that nobody has accepted, as many as go."""
    found = []
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        found.append(one)
        try:
            by_short_address(paths.socket, one.connect)
        except BlockingIOError:
            return found


def test_a_supervisor_that_stands_still_is_named_with_its_process(paths, listener, monkeypatch):
    monkeypatch.setattr(client, "TAKEN_SECONDS", 0.2)
    with pytest.raises(RingfenceError) as slow:
        client.ask(paths, {"verb": "run"})
    assert slow.value.code == "supervisor-slow"
    assert f"kill -9 {os.getpid()}" in slow.value.remedy


@pytest.mark.parametrize("stuck", [True, False])
def test_a_client_that_waits_for_long_says_it_where_the_supervisor_stands_still(paths, listener, monkeypatch, stuck):
    monkeypatch.setattr(client, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(client, "TAKEN_SECONDS", 1.0 if stuck else 60.0)
    said, enough = [], threading.Event()

    def say(text):
        said.append(text)
        enough.set()

    def talk(connection):
        protocol.Reader(connection).receive_bytes()
        protocol.send_bytes(connection, protocol.TAKEN)
        for _ in range(0 if stuck else 3):  # at work: it answers those who look, and the command takes its time
            looker, _ = listener.accept()
            with looker:
                protocol.Reader(looker).receive_bytes()
                protocol.send_bytes(looker, protocol.TAKEN)
                protocol.send_bytes(looker, b'{"version":"1"}')
        assert not stuck or enough.wait(60)
        protocol.send_bytes(connection, b'{"event":"waiting","why":"its turn"}')
        protocol.send_bytes(connection, b'{"exit":0}')

    thread = serving(listener, talk)
    connection, reader = client.ask(paths, {"verb": "run"})
    try:
        assert client.answer(reader, paths, say) == {"exit": 0}
    finally:
        connection.close()
    thread.join()
    assert said[-1] == "its turn"
    assert [f"kill -9 {os.getpid()}" in one for one in said[:-1]] == [True] * stuck


def test_what_was_taken_may_last_as_long_as_it_does(paths, listener):
    over = threading.Event()

    def talk(connection):
        protocol.Reader(connection).receive_bytes()
        protocol.send_bytes(connection, protocol.TAKEN)
        over.wait(60)
        protocol.send_bytes(connection, b'{"event":"waiting","why":"its turn"}')
        protocol.send_bytes(connection, b'{"exit":0}')

    thread = serving(listener, talk)
    connection, reader = client.ask(paths, {"verb": "run"})
    try:
        assert connection.gettimeout() is None
        over.set()
        assert client.answer(reader, paths) == {"exit": 0}
    finally:
        connection.close()
    thread.join()


def test_stop_waits_for_one_that_starts_or_ends(paths, capsys):
    lock = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    over = []

    def end():
        over.append(True)
        os.close(lock)

    timer = threading.Timer(0.3, end)
    timer.start()
    assert stop.run(argparse.Namespace(), paths) == 0
    assert over
    timer.join()
    assert capsys.readouterr().out == "no supervisor is running\n"


def test_stop_says_when_it_could_not(paths, monkeypatch):
    monkeypatch.setattr(stop, "SECONDS", 0.2)
    lock = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(RingfenceError) as left:
            stop.run(argparse.Namespace(), paths)
        assert left.value.code == "no-supervisor"
    finally:
        os.close(lock)


def test_stop_where_nothing_was_ever_started(tmp_path, capsys):
    assert stop.run(argparse.Namespace(), user_paths(str(tmp_path / "nothing"))) == 0
    assert capsys.readouterr().out == "no supervisor is running\n"
