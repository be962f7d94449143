"""Connections that live long, are quiet on one side, or of which one side stops reading."""

import pytest

from ringfence.model.tier import Tier

IDLE = {"idle_millis": 3000}
PIECES = 26  # more than six seconds


@pytest.mark.parametrize("kind", ["plain", "inspected", "relayed"])
def test_an_answer_may_take_longer_than_a_quiet_connection_is_kept(world, kit, kind):
    options = {**IDLE, "inspection": kind == "inspected", "trusted": str(world.ca)}
    rules = kit.Rules(allow=("example.org:80", "example.org:443"))
    rig = world.rig(rules, options, inspects=lambda *_: kind == "inspected")
    try:
        scheme = "http" if kind == "plain" else "https"
        bundle = world.folder / f"long-{kind}.pem"
        bundle.write_text(rig.worker.authority or world.ca.read_text())
        url = f"{scheme}://example.org/drip/{PIECES}"
        done = rig.box.run(["curl", "-sS", "--max-time", "20", "--cacert", str(bundle), url], timeout=30)
        assert (done.returncode, done.stdout.count("drip")) == (0, PIECES), done.stderr
        assert [line.outcome for line in rig.log(host="example.org")] == ["closed"], rig.lines
    finally:
        rig.close()


QUIET = """
import socket, sys, time
s = socket.create_connection(("example.org", int(sys.argv[1])), 5)
s.sendall(b"GET / HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n" if sys.argv[1] == "80" else b"hello")
s.settimeout(20)
begun = time.time()
try:
    while s.recv(4096): pass  # the answer comes in as many pieces as it likes
except ConnectionResetError: pass
print(time.time() - begun)
"""


@pytest.mark.parametrize("port", [80, 7])
def test_a_connection_on_which_nobody_speaks_ends(world, kit, port):
    rig = world.rig(kit.Rules(allow=(f"example.org:{port}",)), IDLE)
    try:
        assert 2.5 < float(rig.box.python(QUIET, str(port), timeout=40).stdout) < 18
    finally:
        rig.close()


PUSH = """
import socket, time
s = socket.create_connection(("example.org", 2600), 5)
s.settimeout(15)
begun = time.time()
try:
    while True: s.sendall(b"x" * 65536)
except TimeoutError: print("stuck")
except OSError: print("ended")
"""


def test_a_server_that_stops_reading_does_not_keep_its_connection(world, kit):
    rig = world.rig(kit.Rules(allow=("example.org:2600",)), IDLE)
    try:
        assert rig.box.python(PUSH, timeout=40).stdout == "ended\n"
        assert rig.log(host="example.org", tier=Tier.ALLOW, outcome="idle")
    finally:
        rig.close()


HALF = """
import socket, ssl, sys
s = socket.create_connection(("example.org", 443), 5)
c = ssl.create_default_context(cafile=sys.argv[1])
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
t = c.wrap_bio(incoming, outgoing, server_hostname="example.org")
def more():
    if outgoing.pending: s.sendall(outgoing.read())
    data = s.recv(65536)
    incoming.write(data) if data else incoming.write_eof()
while True:
    try: t.do_handshake(); break
    except ssl.SSLWantReadError: more()
t.write(b"GET /drip/6 HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n")
if sys.argv[2] == "said":
    try: t.unwrap()
    except ssl.SSLError: pass
s.sendall(outgoing.read())
s.shutdown(socket.SHUT_WR)
got = b""
try:
    while True:
        try: piece = t.read(4096)
        except ssl.SSLWantReadError: more(); continue
        if not piece: break
        got += piece
except (ssl.SSLError, OSError) as error: print(error)
print(got.count(b"drip"))
"""


@pytest.mark.parametrize("end", ["said", "unsaid"])
def test_an_inspected_request_after_which_the_box_says_no_more_is_answered(world, kit, end):
    rules = kit.Rules(allow=("example.org:443",))
    rig = world.rig(rules, {"inspection": True, "trusted": str(world.ca)}, inspects=lambda *_: True)
    try:
        bundle = world.folder / "half.pem"
        bundle.write_text(rig.worker.authority)
        assert rig.box.python(HALF, str(bundle), end).stdout.split()[-1] == "6"
    finally:
        rig.close()
