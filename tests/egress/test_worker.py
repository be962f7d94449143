"""The worker's life: held questions, faults on the way to an answer, learning, killed workers, floods, no nft."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ringfence.model.ids import Micros
from ringfence.model.tier import Tier

WEB = ("example.org:80", "example.org:443")


def soon(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def test_the_worker_has_given_up_files_and_new_privileges(rigs, kit):
    rig = rigs(kit.Rules(allow=WEB))
    assert {"no-new-privs", "landlock"} <= set(rig.worker.answerer.ready.confined)
    with open(f"/proc/{rig.worker.pid}/status", encoding="ascii") as file:
        assert "NoNewPrivs:\t1" in file.read()


def test_ask_holds_the_connection_until_its_time_is_over_and_says_so(rigs, kit):
    rig = rigs(kit.Rules(allow=WEB, ask=("example.com:80",)))
    mark = rig.world.internet.mark()
    begun = time.monotonic()
    done = rig.curl("http://example.com/")
    assert time.monotonic() - begun > 0.6
    assert "nobody can be asked while a command runs" in done.stdout
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host="example.com", tier=Tier.ASK, outcome="refused", rule="ask-example.com:80")


@pytest.mark.parametrize("answer", [True, False])
def test_ask_waits_for_a_persons_answer(world, kit, answer):
    asked = []

    def approve(call, decision, seconds):
        asked.append((call.request.host, decision.tier, seconds))
        time.sleep(0.2)
        return answer

    rig = world.rig(kit.Rules(ask=("example.com:80",)), {"ask_millis": 5000}, approve=approve)
    try:
        done = rig.curl("http://example.com/")
        assert ("hello from example.com" in done.stdout) == answer, done
        assert asked == [("example.com", Tier.ASK, 5.0)]
        outcome = "closed" if answer else "refused"
        assert rig.log(host="example.com", tier=Tier.ASK, outcome=outcome)
    finally:
        rig.close()


def test_an_answer_is_for_its_own_question_alone_whatever_happens_to_the_worker(world, kit):
    asked, go_on, got = [], {"example.com": threading.Event(), "example.net": threading.Event()}, []

    def approve(call, _decision, _seconds):
        asked.append(call.request.host)
        go_on[call.request.host].wait(30)
        return call.request.host == "example.com"

    rig = world.rig(kit.Rules(ask=("example.com:80", "example.net:80")), {"ask_millis": 20_000}, approve=approve)
    second = threading.Thread(target=lambda: got.append(rig.curl("--max-time", "20", "http://example.net/").stdout))
    try:
        mark = world.internet.mark()
        first = threading.Thread(target=rig.curl, args=("http://example.com/",))
        first.start()
        soon(lambda: asked == ["example.com"])
        os.kill(rig.worker.pid, signal.SIGKILL)
        soon(lambda: rig.worker.restarts and rig.worker.alive)
        second.start()
        soon(lambda: asked == ["example.com", "example.net"])
        go_on["example.com"].set()
        soon(lambda: [t.name for t in threading.enumerate() if t.name.startswith("egress-ask")] == ["egress-ask-1"])
        soon(rig.worker._answers.empty)
        go_on["example.net"].set()
        second.join(60)
        first.join(60)
        assert "refused by a person" in got[0]
        assert not [c for c in world.internet.contacts(mark) if c["server"] == "http"]
    finally:
        for event in go_on.values():
            event.set()
        rig.close()


MEANWHILE = """
import socket
def ask(host):
    s = socket.create_connection((host, 80))
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host.encode() + b"\\r\\n\\r\\n")
    return s
held = ask("example.com")
print(ask("example.org").recv(10), flush=True)
print(held.recv(10))
"""


def test_a_slow_person_does_not_hold_up_other_connections(world, kit):
    answered = threading.Event()
    rules = kit.Rules(allow=WEB, ask=("example.com:80",))
    rig = world.rig(rules, {"ask_millis": 120_000}, approve=lambda *_: answered.wait(100))
    try:
        command = [*rig.box.prefix, sys.executable, "-I", "-S", "-c", MEANWHILE]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert "HTTP/1.1" in running.stdout.readline()
        answered.set()
        assert "HTTP/1.1" in running.communicate(timeout=60)[0]
    finally:
        answered.set()
        rig.close()


def test_a_fault_in_deciding_denies(rigs, kit):
    rig = rigs(kit.Rules(allow=WEB, fault=True))
    assert "egress/decide-failed" in rig.curl("http://example.org/").stdout
    assert rig.log(rule="egress/decide-failed", tier=Tier.DENY)


def test_nothing_is_allowed_while_the_ledger_refuses_and_nothing_is_lost(world, kit):
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        rig.ledger_fails = True
        mark = world.internet.mark()
        assert "egress/not-recorded" in rig.curl("http://example.org/").stdout
        assert "egress/not-recorded" in rig.curl("http://example.org/").stdout
        assert not world.internet.contacts(mark)
        rig.ledger_fails = False
        assert "hello" in rig.curl("http://example.org/").stdout
        rig.worker.stop()
        assert sum(line.count for line in rig.lines) == 3
    finally:
        rig.close()


def test_a_slow_supervisor_is_a_refusal(world, kit):
    rules = kit.Rules(allow=WEB)
    slow = type("Slow", (), {"decide": lambda _self, call: time.sleep(1.5) or rules.decide(call)})()
    rig = world.rig(slow, {"answer_millis": 400})
    try:
        mark = world.internet.mark()
        assert "egress/no-answer" in rig.curl("http://example.org/").stdout
        assert not world.internet.contacts(mark)
    finally:
        rig.close()


def test_learning_lets_defaults_pass_and_logs_what_they_were(world, kit):
    until = Micros(time.time_ns() // 1000 + 3_600_000_000)
    rules = kit.Rules(allow=WEB, ask=("example.com:80",), deny=("evil.example.net:80",))
    rig = world.rig(rules, {"learning_until": until})
    try:
        assert "hello from example.net" in rig.curl("http://example.net/").stdout
        assert "hello from example.com" in rig.curl("http://example.com/").stdout
        assert "deny-evil" in rig.curl("http://evil.example.net/").stdout
        assert "floor/metadata" in rig.curl("http://169.254.169.254/").stdout
        assert "floor/own-address" in rig.curl("http://203.0.113.200:8000/").stdout
        assert rig.log(host="example.net", tier=Tier.DENY, outcome="closed", flags=("learning",))
        assert rig.log(host="example.com", tier=Tier.ASK, outcome="closed", flags=("learning",))
    finally:
        rig.close()


def test_learning_ends_with_its_time(world, kit):
    rig = world.rig(kit.Rules(), {"learning_until": Micros(time.time_ns() // 1000 - 1)})
    try:
        assert "rule: default" in rig.curl("http://example.net/").stdout
    finally:
        rig.close()


KEEP = """
import socket, sys, time
s = socket.create_connection(("example.org", 80), 5)
s.sendall(b"GET / HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n")
s.recv(4096); print("up", flush=True)
try:
    while s.recv(4096): pass
    print("ended")
except OSError as error: print("ended", error)
bad = []
for _ in range(60):
    begun = time.time()
    try:
        c = socket.create_connection(("example.net", 80), 20)
        c.sendall(b"GET / HTTP/1.1\\r\\nHost: example.net\\r\\n\\r\\n")
        if b"hello" in c.recv(4096): bad.append("through")
    except OSError: pass
    if time.time() - begun > 19: bad.append("hang")
    time.sleep(0.01)
print("bad", bad)
"""


def test_a_killed_worker_lets_nothing_out_and_comes_back(world, kit):
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        import subprocess

        rig.curl("http://example.org/")
        before = rig.box.python("import socket; print(socket.gethostbyname('example.org'))").stdout
        running = subprocess.Popen(
            [*rig.box.prefix, sys.executable, "-I", "-S", "-c", KEEP], stdout=subprocess.PIPE, text=True
        )
        assert running.stdout.readline() == "up\n"
        old = rig.worker.pid
        mark = world.internet.mark()
        os.kill(old, signal.SIGKILL)
        said = running.communicate(timeout=120)[0]
        assert "ended" in said
        assert "bad []" in said
        assert not [c for c in world.internet.contacts(mark) if c["server"] != "http" or c["host"] != "example.org"]
        soon(lambda: rig.worker.alive and rig.worker.pid != old)
        assert "hello" in rig.curl("http://example.org/").stdout
        assert rig.box.python("import socket; print(socket.gethostbyname('example.org'))").stdout == before
        assert rig.log(host="example.org", outcome="worker-ended")
        assert rig.worker.restarts == 1
    finally:
        rig.close()


def test_a_worker_that_cannot_be_started_at_once_is_tried_again(world, kit, monkeypatch):
    from ringfence.egress.worker import SHELF

    rig = world.rig(kit.Rules(allow=WEB))
    failed = []

    class Shelf:
        def take(self, prefix):
            if len(failed) < 3:
                failed.append(prefix)
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return SHELF.take(prefix)

    try:
        monkeypatch.setattr("ringfence.egress.worker.SHELF", Shelf())
        monkeypatch.setattr("ringfence.egress.worker.BACKOFF", (0.0, 0.05))
        os.kill(rig.worker.pid, signal.SIGKILL)
        soon(lambda: len(failed) == 3 and rig.worker.alive, 20)
        assert "hello" in rig.curl("http://example.org/").stdout
    finally:
        rig.close()


KNOCK = """
import socket
print("up", flush=True)
resets = 0
while resets < 3:
    s = socket.create_connection(("198.51.100.20", 80), 5)
    s.settimeout(20)
    try:
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: 198.51.100.20\\r\\n\\r\\n")
        resets += not s.recv(4096)
    except OSError: resets += 1
    s.close()
"""


def test_what_is_refused_while_no_worker_runs_is_counted(world, kit, monkeypatch):
    monkeypatch.setattr("ringfence.egress.worker.BACKOFF", (0.0, 5.0))
    rig = world.rig(kit.Rules(allow=WEB))
    try:
        command = [*rig.box.prefix, sys.executable, "-I", "-S", "-c", KNOCK]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout.readline() == "up\n"
        os.kill(rig.worker.pid, signal.SIGKILL)
        running.communicate(timeout=120)
        soon(lambda: rig.log(rule="egress/no-worker", tier=Tier.DENY, entry="capture"), 20)
    finally:
        rig.close()


def test_stopping_records_what_was_only_counted_and_closes_everything(world, kit):
    rig = world.rig(kit.Rules(allow=WEB))
    for _ in range(5):
        rig.curl("http://example.net/")
        rig.curl("http://example.org/")
    soon(lambda: rig.worker.answerer.summary.total == 10)
    rig.close()
    denied = [line for line in rig.lines if line.host == "example.net"]
    assert [line.stage for line in denied] == ["ended", "summary"]
    assert [line.count for line in denied] == [1, 4]
    open_ = [line for line in rig.lines if line.host == "example.org"]
    assert [line.stage for line in open_] == ["decided", "ended", "summary"]
    assert sum(line.count for line in open_) == 5
    assert open_[-1].received == 4 * open_[1].received


FLOOD = """
import socket, sys, time
ok = bad = 0
until = time.time() + float(sys.argv[1])
while time.time() < until:
    s = socket.socket()
    try:
        s.connect((sys.argv[2], 80)); s.sendall(b"x"); ok += 1
    except OSError: bad += 1
    s.close()
print(ok, bad)
"""


def test_a_flood_is_counted_and_kept_to_its_bucket(world, kit):
    rig = world.rig(kit.Rules(allow=WEB), {"rate": 50.0, "burst": 20.0})
    try:
        begun = time.monotonic()
        done = rig.box.python(FLOOD, "2", "203.0.113.77")
        made = sum(map(int, done.stdout.split()))
        rig.worker.stop()
        seconds = time.monotonic() - begun  # in which its bucket filled up again
        counted = sum(line.count for line in rig.lines)
        limited = sum(line.count for line in rig.lines if line.rule == "egress/rate")
        assert counted == made
        assert limited >= made - 20 - 50 * seconds
        assert len(rig.lines) < 40
    finally:
        rig.close()


def test_many_destinations_stay_bounded_in_the_log(world, kit, monkeypatch):
    rig = world.rig(kit.Rules(allow=WEB))
    rig.worker.answerer.summary.limit = 20
    try:
        code = "import socket\nfor i in range(60):\n s=socket.create_connection((f'203.0.113.{i}', 81)); s.sendall(b'x'); s.recv(1) if 0 else None; s.close()"
        rig.box.python(code)
        soon(lambda: rig.worker.answerer.summary.total >= 60)
        rig.worker.stop()
        assert sum(line.count for line in rig.lines) == 60
        assert len(rig.lines) <= 22
    finally:
        rig.close()


def test_without_nft_the_listed_ports_are_captured_and_the_rest_refused(world, kit):
    rig = world.rig(kit.Rules(allow=WEB), nft=False)
    try:
        assert "hello" in rig.curl("http://example.org/").stdout
        assert "hello" in rig.curl("https://example.org/").stdout
        assert "default" in rig.curl("http://203.0.113.10/").stdout
        assert rig.log(host="203.0.113.10", tier=Tier.DENY)
        assert rig.curl("http://example.org:8081/").returncode == 7  # 28 would be a silence
    finally:
        rig.close()


def test_programs_are_named_by_the_launchers_answer(world, kit):
    seen = []

    def attribute(source, target):
        seen.append((source, target))
        return ("/usr/bin/curl", "/bin/bash")

    rig = world.rig(kit.Rules(allow=WEB), attribute=attribute)
    try:
        rig.curl("http://example.org/")
        rig.curl("http://example.net/")
        assert rig.log(host="example.org")[0].programs == ("/usr/bin/curl", "/bin/bash")
        assert rig.log(host="example.net")[0].programs == ("/usr/bin/curl", "/bin/bash")
        assert all(target[1] == 80 for _source, target in seen)
    finally:
        rig.close()


def test_a_process_kept_ready_is_taken_replaced_and_ended():
    from ringfence.egress.spare import Shelf

    shelf = Shelf()
    try:
        shelf.warm()
        ready = shelf._ready.process.pid
        taken = shelf.take()
        assert taken.process.pid == ready
        soon(lambda: shelf._ready is not None and shelf._ready.process.pid != ready)
        taken.end()
        dead = shelf._ready
        dead.process.kill()
        dead.process.wait()
        fresh = shelf.take()
        assert fresh.process.poll() is None
        fresh.end()
    finally:
        time.sleep(0.3)
        shelf.clear()
    assert shelf._ready is None


def test_a_granted_port_that_is_taken_is_a_clear_fault(world, kit):
    import socket

    from ringfence.model.errors import BoxError

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(BoxError, match="granted") as caught:
        world.rig(kit.Rules(), {"inbound": ((taken.getsockname()[1], 3000),)})
    assert caught.value.code == "grant-port-taken"
