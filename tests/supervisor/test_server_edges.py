"""Clients that are slow, or too many for the host: the supervisor answers what it can and goes on serving."""

import errno
import itertools
import socket
import subprocess
import threading
import time
import types

import pytest

from ringfence.supervisor import protocol, server
from ringfence.supervisor.paths import by_short_address, identity


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """A server without rooms behind it, and the path of its socket."""

    class Dispatcher:
        failed = False

        def answer(self, request, caller):
            return {"alive": True}

    made = server.Server(Dispatcher(), None)
    path = str(tmp_path / "s.sock")
    places = [path]
    with socket.socket(socket.AF_UNIX) as listener:
        by_short_address(path, listener.bind)
        listener.listen(16)
        looks = {"idle_seconds": 3600.0, "look_at": lambda: places[-1]}
        thread = threading.Thread(target=made.serve, args=(listener, identity(path)), kwargs=looks)
        thread.start()
        yield made, path
        made.stop()
        thread.join(30)
        assert not thread.is_alive()


def knock(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(30)
    by_short_address(path, connection.connect)
    return connection


def asked(path):
    """The answer that one client hears."""
    with knock(path) as connection:
        reader = protocol.Reader(connection)
        protocol.send(connection, {"verb": "status", "version": protocol.VERSION})
        first = reader.receive_bytes()
        assert first == protocol.TAKEN
        return reader.receive()


def test_a_client_that_says_a_byte_now_and_then_is_not_listened_to_for_ever(serving, monkeypatch):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    _, path = serving
    with knock(path) as drip:
        drip.sendall((1000).to_bytes(4, "big"))
        begun, heard = time.monotonic(), True
        while heard and time.monotonic() - begun < 60:
            time.sleep(0.1)
            try:
                drip.sendall(b" ")
            except OSError:
                heard = False  # the other side closed
    assert not heard
    assert asked(path) == {"alive": True}


def test_a_host_without_room_for_a_thread_is_a_fault_for_that_client_alone(serving, monkeypatch):
    _, path = serving
    assert asked(path) == {"alive": True}
    real = threading.Thread.start

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with knock(path) as turned_away:
        told = protocol.Reader(turned_away).receive()
    monkeypatch.setattr(threading.Thread, "start", real)
    assert told["error"]["code"] == "supervisor-busy"
    assert asked(path) == {"alive": True}


def test_without_descriptors_the_next_client_waits_and_the_processor_rests(serving, monkeypatch):
    made, path = serving
    looks = itertools.count()

    class Full:
        def __init__(self, listener):
            self._listener = listener

        def accept(self):
            next(looks)
            raise OSError(errno.EMFILE, "Too many open files")

    real = made._accept
    monkeypatch.setattr(made, "_accept", lambda listener: real(Full(listener)))
    with knock(path) as waiting:
        begun = time.monotonic()
        while time.monotonic() - begun < 1.0:
            time.sleep(0.1)
        spent = time.monotonic() - begun
        monkeypatch.setattr(made, "_accept", real)
        assert next(looks) <= spent / server.FULL_SECONDS + 2
        protocol.send(waiting, {"verb": "status", "version": protocol.VERSION})
        assert protocol.Reader(waiting).receive_bytes() == protocol.TAKEN


def test_a_supervisor_ends_when_clients_look_in_another_place(tmp_path, monkeypatch):
    """After a log-in they look below /run/user, and the ledger must be free for the one that they start there."""
    monkeypatch.setattr(server, "DOOR_SECONDS", 0.05)
    made = server.Server(types.SimpleNamespace(failed=False), None)
    path, places = str(tmp_path / "s.sock"), []
    with socket.socket(socket.AF_UNIX) as listener:
        by_short_address(path, listener.bind)
        listener.listen(16)
        looked = threading.Event()

        def look_at():
            looked.set()
            return places[0] if places else path

        looks = {"idle_seconds": 3600.0, "look_at": look_at}
        thread = threading.Thread(target=made.serve, args=(listener, identity(path)), kwargs=looks)
        thread.start()
        assert looked.wait(30)
        assert thread.is_alive()
        places.append(str(tmp_path / "elsewhere" / "s.sock"))
        thread.join(30)
        assert not thread.is_alive()


def test_a_supervisor_whose_ledger_failed_gives_the_request_to_the_next_one(serving, monkeypatch):
    made, path = serving
    assert asked(path) == {"alive": True}
    monkeypatch.setattr(made._dispatcher, "failed", True)
    with knock(path) as untaken:
        protocol.send(untaken, {"verb": "status", "version": protocol.VERSION})
        assert protocol.Reader(untaken).receive_bytes() is None
    assert made._stopping.wait(30)


class Busy:
    """Rooms in which an answer needs its box to end, and then a while; ``told`` holds in what order things happened."""

    failed = False

    def __init__(self):
        self.told = []
        self.began, self.boxes_ended = threading.Event(), threading.Event()

    def answer(self, request, caller):
        self.began.set()
        assert self.boxes_ended.wait(30)
        time.sleep(0.3)
        self.told.append("recorded")
        return {"ended": True}

    def end_boxes(self):
        self.boxes_ended.set()

    def close(self):
        self.told.append("closed")


@pytest.mark.parametrize("enough", [True, False])
def test_what_was_taken_is_recorded_and_told_before_the_ledger_closes(tmp_path, monkeypatch, enough):
    monkeypatch.setattr(server, "FINISH_SECONDS", 30.0 if enough else 0.05)
    rooms = Busy()
    made = server.Server(rooms, None)
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        by_short_address(path, listener.bind)
        listener.listen(16)
        looks = {"idle_seconds": 3600.0, "look_at": lambda: path}
        thread = threading.Thread(target=made.serve, args=(listener, identity(path)), kwargs=looks)
        thread.start()
        with knock(path) as running:
            protocol.send(running, {"verb": "status", "version": protocol.VERSION})
            assert rooms.began.wait(30)
            made.stop()
            thread.join(30)
            made.close()
            assert rooms.told == (["recorded", "closed"] if enough else ["closed"])
            reader = protocol.Reader(running)
            assert reader.receive_bytes() == protocol.TAKEN
            assert reader.receive() == {"ended": True}


def test_the_launcher_is_looked_at_again_and_again_and_its_end_ends_the_supervisor(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "DOOR_SECONDS", 0.01)
    process = subprocess.Popen(["sleep", "600"])
    looks = []

    class Launcher:
        pid = process.pid

        def look(self):
            looks.append(None)
            if len(looks) == 3:
                process.kill()

    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        by_short_address(path, listener.bind)
        listener.listen(1)
        server.Server(Busy(), Launcher()).serve(listener, identity(path), idle_seconds=3600.0, look_at=lambda: path)
    process.wait()
    assert len(looks) >= 3
