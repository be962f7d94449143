"""Clients that let a moment pass before they speak, on ports where a server may speak first: judged like the others."""

import pytest

from ringfence.model.tier import Tier

SPEAK = """
import socket, sys, time
s = socket.create_connection(("example.org", 7), 5)
s.settimeout(30)
got = b""
time.sleep(0.8)
try:
    for word in sys.argv[1:]:
        s.sendall(bytes.fromhex(word))
        got += s.recv(65536)
except OSError as error: print(error)
print(got.decode("latin-1"))
"""
OK = b"GET /ok HTTP/1.1\r\nHost: example.org\r\n\r\n"


@pytest.fixture(scope="module")
def rig(world, kit):
    rules = kit.Rules(allow=("example.org:7", "example.org:2525"), only=(("example.org", "GET", "/ok*"),))
    made = world.rig(rules)
    yield made
    made.close()


def speak(rig, *words):
    """What an echo server gave back, and what reached it."""
    mark = rig.world.internet.mark()
    said = rig.box.python(SPEAK, *(word.hex() for word in words)).stdout
    return said, [c["first"] for c in rig.world.internet.contacts(mark) if c.get("first")]


def test_a_late_request_is_carried_when_it_is_allowed(rig):
    said, reached = speak(rig, OK, OK)
    assert said.count("GET /ok") == 2
    assert len(reached) == 2
    assert rig.log(host="example.org", protocol="http", tier=Tier.ALLOW)


LATE = {
    "another-path": ((OK.replace(b"/ok", b"/other"),), 0),
    "another-path-on-the-second-request": ((OK, OK.replace(b"/ok", b"/other")), 1),
    "another-host-on-the-second-request": ((OK, OK.replace(b"example.org", b"evil.example.net")), 1),
    "a-placeholder-on-the-second-request": (
        (OK, OK.replace(b"\r\n\r\n", b"\r\nX: ringfence-placeholder-a-1\r\n\r\n")),
        1,
    ),
    "a-request-that-two-servers-read-differently": ((OK.replace(b"Host", b"Host "),), 0),
}


@pytest.mark.parametrize("name", LATE)
def test_a_late_request_is_judged_like_an_early_one(rig, name):
    words, through = LATE[name]
    said, reached = speak(rig, *words)
    assert "ringfence refused example.org:7" in said
    assert reached == [OK.decode()[:40]] * through


def test_a_late_hello_may_come_in_pieces(rig):
    hello = bytes.fromhex(
        "16030100440100004003030000000000000000000000000000000000000000000000000000000000000000000002"
        "13010100001500000010000e00000b6578616d706c652e6f726700170000"
    )
    said, reached = speak(rig, hello[:20])
    assert reached == []
    assert "ringfence" not in said


TALK = """
import socket, sys
s = socket.create_connection(("example.org", int(sys.argv[1])), 5)
if sys.argv[1] == "2525": s.recv(99)
data = bytes.fromhex(sys.argv[2])
s.sendall(data)
got = b""
while len(got) < len(data) and (piece := s.recv(9999)): got += piece
print(got)
"""


@pytest.mark.parametrize("port", ["7", "2525"])
@pytest.mark.parametrize(
    "line", [b"EHLO client\r\n", b"USER anonymous\r\n", b"QUIT\r\n", b"NICK a\r\nUSER a 0 * :a\r\n"]
)
def test_a_text_protocol_with_words_of_its_own_is_no_http(rig, port, line):
    assert rig.box.python(TALK, port, line.hex()).stdout == f"{line!r}\n"


@pytest.mark.parametrize("blank", [b"\r\n", b"\n\n"])
def test_a_request_behind_empty_lines_reaches_nobody(rig, blank):
    mark = rig.world.internet.mark()
    assert "after empty lines" in rig.box.python(TALK, "7", (blank + OK).hex()).stdout
    assert not rig.world.internet.contacts(mark)
