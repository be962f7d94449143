"""A worker that is late or stands still: what its box tried is told all the same, and nobody waits for ever."""

import os
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

from ringfence.egress import asking, credentials, worker
from ringfence.egress.credentials import Credential, Source
from ringfence.egress.options import Options
from ringfence.model.tier import Tier

WEB = ("example.org:80",)
LAST_MOMENT = """
import socket
def knock(host, port):
    s = socket.socket()
    s.connect((host, port))
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
    s.close()
for number in range(70):
    knock("169.254.169.254", 80)
knock("198.51.100.20", 80)
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("203.0.113.9", 9999))
except OSError: pass
"""


@pytest.fixture
def told(monkeypatch):
    """Set once the worker was told to stop."""
    event, send = threading.Event(), worker.Worker._send

    def note(self, messages):
        send(self, messages)
        if any(isinstance(message, asking.Stop) for message in messages):
            event.set()

    monkeypatch.setattr(worker.Worker, "_send", note)
    return event


def test_what_a_box_tried_in_its_last_moment_is_judged_and_told_though_its_worker_is_late(world, kit, told):
    rig = world.rig(kit.Rules(allow=WEB), {"rate": 1.0, "burst": 80.0})
    try:
        os.kill(rig.worker.pid, signal.SIGSTOP)  # it gets no processor until it is told that the box has ended
        rig.box.python(LAST_MOMENT)
        ending = threading.Thread(target=rig.worker.stop)
        ending.start()
        assert told.wait(60)
        os.kill(rig.worker.pid, signal.SIGCONT)
        ending.join(60)
        counts = {line.rule: 0 for line in rig.lines}
        for line in rig.lines:
            counts[line.rule] += line.count
        assert counts == {"floor/metadata": 70, "default": 1, "egress/udp": 1}
    finally:
        rig.close()


def test_what_was_refused_by_count_is_told_at_the_end(world, kit):
    rig = world.rig(kit.Rules(allow=WEB), {"rate": 0.001, "burst": 2.0})
    try:
        rig.box.python("import socket\nfor _ in range(9): socket.create_connection(('198.51.100.20', 81)).close()")
        rig.worker.stop()
        assert sum(line.count for line in rig.lines) == 9
        assert sum(line.count for line in rig.lines if line.rule == "egress/rate") == 7
    finally:
        rig.close()


def test_what_a_worker_that_stood_still_to_the_end_never_took_up_is_counted(world, kit, monkeypatch):
    monkeypatch.setattr(worker, "END_SECONDS", 0.2)
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        old = rig.worker.pid
        os.kill(old, signal.SIGSTOP)
        rig.box.python("import socket\nfor _ in range(9): socket.create_connection(('198.51.100.20', 81)).close()")
        rig.worker.stop()
        assert not os.path.exists(f"/proc/{old}")
        assert {line.rule for line in rig.lines} == {"egress/no-worker"}
        assert sum(line.count for line in rig.lines) == 9
    finally:
        rig.close()


WAIT = """
import socket
s = socket.create_connection(("198.51.100.20", 80))
s.sendall(b"GET / HTTP/1.1\\r\\nHost: 198.51.100.20\\r\\n\\r\\n")
print("up", flush=True)
try: print("got", s.recv(4096))
except OSError as error: print("ended", error)
"""


def test_a_worker_that_stands_still_is_ended_and_another_one_begun(world, kit, monkeypatch):
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        old = rig.worker.pid
        os.kill(old, signal.SIGSTOP)
        monkeypatch.setattr(worker, "LOOK_SECONDS", 0.3)
        command = [*rig.box.prefix, sys.executable, "-I", "-S", "-c", WAIT]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said, _ = running.communicate(timeout=120)
        assert "ended" in said
        monkeypatch.undo()
        assert rig.worker.stood_still == 1
        assert not os.path.exists(f"/proc/{old}")
        assert "hello" in rig.curl("--retry", "9", "--retry-all-errors", "http://example.org/").stdout
        assert rig.log(rule="egress/no-worker", tier=Tier.DENY)
    finally:
        rig.close()


def test_a_clock_that_leaps_ends_no_worker(world, kit, monkeypatch):
    ahead = [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0], time_ns=time.time_ns)
    monkeypatch.setattr(worker, "time", clock)
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        old = rig.worker.pid
        for _ in range(3):
            ahead[0] += 3600.0
            assert "hello" in rig.curl("http://example.org/").stdout
        assert (rig.worker.pid, rig.worker.stood_still) == (old, 0)
    finally:
        rig.close()


def test_a_worker_whose_channel_has_a_high_number_is_heard_out(world, kit):
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        assert rig.worker._channel.fileno() > 1023
        assert "hello" in rig.curl("http://example.org/").stdout
        rig.worker.stop()
        assert [line.stage for line in rig.lines] == ["decided", "ended"]
    finally:
        rig.close()
        for one in held:
            os.close(one)


def test_a_keyring_that_waits_for_its_person_is_waited_for_and_its_own_reason_told(world, kit, monkeypatch):
    assert Options().answer_millis > credentials.SECONDS * 1000
    monkeypatch.setattr(credentials, "SECONDS", 6)
    slow = Credential(name="slow", host="example.org", source=Source(command=("/bin/sleep", "600")))
    options = {"inspection": True, "trusted": str(world.ca)}
    rig = world.rig(kit.Rules(allow=("example.org:443",)), options, credentials=[slow])
    try:
        bundle = world.folder / "slow-keyring.pem"
        bundle.write_text(rig.worker.authority)
        header = f"Authorization: Bearer {rig.worker.placeholders['slow']}"
        done = rig.curl("--cacert", str(bundle), "-H", header, "https://example.org/")
        assert "egress/no-credential" in done.stdout
        assert "not in time" in done.stdout
    finally:
        rig.close()
