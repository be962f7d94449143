"""Patterns over bodies see every request that can be seen: in the clear as well, by every entry, inspected or not."""

import pytest

from ringfence.model.tier import Tier

WAYS = {
    "captured": (),
    "absolute-uri": ("-x", "http://127.0.0.1:3128"),
    "connect": ("-p", "-x", "http://127.0.0.1:3128"),
    "socks": ("--socks5-hostname", "127.0.0.1:1080"),
}
LATE = """
import socket, sys, time
s = socket.create_connection(("example.org", 7), 30)
time.sleep(0.8)
body = sys.argv[1].encode()
s.sendall(b"POST /x HTTP/1.1\\r\\nHost: example.org\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
got = b""
while body not in got and (piece := s.recv(65536)): got += piece  # head and body may come one after the other
print(got.decode())
"""


@pytest.fixture(scope="module", params=[True, False], ids=["inspected", "not-inspected"])
def rig(request, world, kit):
    allowed = ("example.org:80", "example.org:7")

    class Judge:
        def decide(self, call):
            bad = "AKIA" in (call.request.body or "")
            return kit.Rules(allow=allowed, deny=allowed if bad else ()).decide(call)

    options = {"judge_bodies": True, "inspection": request.param, "trusted": str(world.ca)}
    made = world.rig(Judge(), options, inspects=lambda _host, port: request.param and port == 80)
    yield made
    made.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_forbidden_body_in_the_clear_reaches_nobody(rig, way):
    mark = rig.world.internet.mark()
    sent = ("-d", "key=AKIAIOSFODNN7EXAMPLE", *WAYS[way], "http://example.org/x")
    assert "rule: deny-example.org:80" in rig.curl(*sent).stdout
    assert not [c for c in rig.world.internet.contacts(mark) if c["server"] == "http"]
    assert "hello from example.org" in rig.curl("-d", "harmless", *WAYS[way], "http://example.org/x").stdout
    assert rig.log(host="example.org", port=80, tier=Tier.DENY, rule="deny-example.org:80")


def test_a_forbidden_body_of_a_late_client_reaches_nobody(rig):
    mark = rig.world.internet.mark()
    assert "ringfence refused" in rig.box.python(LATE, "AKIA").stdout
    assert not [c for c in rig.world.internet.contacts(mark) if c.get("first")]
    assert "harmless" in rig.box.python(LATE, "harmless").stdout
