"""Bytes that a careful client would not send: each is refused, quickly, with a line in the log, and reaches nobody."""

import struct
import sys
import time

import pytest

from ringfence.model.tier import Tier

RULES = ("example.org:80", "example.org:443", "example.org:2525", "203.0.113.99:443")


@pytest.fixture(scope="module")
def rig(rigs, kit):
    return rigs(kit.Rules(allow=RULES))


SPEAK = """
import socket, sys
host, port, data = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
parts = [bytes.fromhex(p) for p in sys.argv[4:]]
s = socket.create_connection((host, port), timeout=30)
got = b""
try:
    s.sendall(data)
    for part in parts:
        got += s.recv(65536)
        s.settimeout(0.15)
        try:
            while piece := s.recv(65536):
                got += piece
        except TimeoutError: pass
        s.settimeout(30)
        s.sendall(part)
    s.shutdown(1)
    while piece := s.recv(65536):
        got += piece
except OSError as error:
    print("error", error)
print(got.decode("latin-1"))
"""


def reached(rig, mark):
    """The hosts that the web's servers were asked for; the first may take its time, and is not to be taken for a later one's."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        hosts = [contact["host"] for contact in rig.world.internet.contacts(mark) if contact["server"] == "http"]
        if hosts:
            return hosts
        time.sleep(0.01)
    return []


def speak(rig, host, port, *data: bytes):
    """What came back: an answer or the connection's end, before the client's time is over."""
    words = [part.hex() for part in data]
    done = rig.box.python(SPEAK, host, str(port), *words)
    assert done.returncode == 0, done.stderr
    assert "error timed out" not in done.stdout
    return done.stdout


GET = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
REQUESTS = {
    "two-lengths": b"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
    "length-and-chunks": b"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n",
    "coding-in-capitals": b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
    "coding-behind-a-tab": b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
    "length-before-a-space": b"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 4 \r\n\r\nabcd",
    "odd-coding": b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "space-before-colon": b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "folded-header": b"GET / HTTP/1.1\r\nHost: example.org\r\nX: a\r\n b\r\n\r\n",
    "bare-line-feeds": b"GET / HTTP/1.1\nHost: example.org\n\n",
    "two-hosts": b"GET / HTTP/1.1\r\nHost: example.org\r\nHost: evil.example.net\r\n\r\n",
    "no-host": b"GET / HTTP/1.1\r\n\r\n",
    "nul-in-header": b"GET / HTTP/1.1\r\nHost: example.org\r\nX: a\0b\r\n\r\n",
    "user-in-host": b"GET / HTTP/1.1\r\nHost: example.org@evil.example.net\r\n\r\n",
    "dot-segments": b"GET /a/../b HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "escaped-dot-segments": b"GET /a/%2e%2e/b HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "absolute-target": b"GET http://evil.example.net/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "connect-inside": b"CONNECT evil.example.net:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "unknown-upgrade": b"GET / HTTP/1.1\r\nHost: example.org\r\nUpgrade: TLS/1.0\r\nConnection: upgrade\r\n\r\n",
    "http2-upgrade-beside-another": b"GET / HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    "length-to-be-dropped": b"POST / HTTP/1.1\r\nHost: example.org\r\nConnection: close, Content-Length\r\nContent-Length: 4\r\n\r\nabcd",
    "host-to-be-dropped": b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: HOST\r\n\r\n",
    "http2-in-the-clear": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "length-with-an-underscore": b"POST / HTTP/1.1\r\nHost: example.org\r\nContent_Length: 4\r\n\r\nabcd",
    "method-in-a-header-with-underscores": b"GET / HTTP/1.1\r\nHost: example.org\r\nX_HTTP_Method-Override: PUT\r\n\r\n",
    "http-version-9": b"GET / HTTP/0.9\r\nHost: example.org\r\n\r\n",
    "not-http-at-all": b"\x00\x01\x02\x03garbage",
    "ssh-on-80": b"SSH-2.0-x\r\n",
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_request_hidden_in_a_body_that_no_server_expects_is_served_by_nobody(rig, framing):
    hidden = b"DELETE /hidden HTTP/1.1\r\nHost: example.org\r\n\r\n"
    head = b"GET /lazy HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive\r\n"
    if framing == "length":
        data = head + b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden
    else:
        data = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(hidden) + hidden + b"\r\n0\r\n\r\n"
    mark = rig.world.internet.mark()
    assert speak(rig, "example.org", 80, data, GET).count("HTTP/1.1") <= 1
    seen = [c for c in rig.world.internet.contacts(mark) if c["server"] == "http"]
    assert [(c["method"], c["path"], c["headers"]["connection"]) for c in seen] == [("GET", "/lazy", "close")]


@pytest.mark.parametrize("port", [80, 443, 2525])
def test_a_connection_that_is_reset_before_it_spoke_is_told(rig, port):
    code = "import socket,struct,sys\ns=socket.create_connection((sys.argv[1],int(sys.argv[2])),5)\n"
    code += "s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,0)); s.close()"
    mark = rig.world.internet.mark()
    host = f"reset{port}.example.net"
    assert rig.box.python(code, host, str(port)).returncode == 0
    assert rig.log(host=host, port=port, rule="egress/no-hello", tier=Tier.DENY)
    assert not rig.world.internet.contacts(mark)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_doubtful_first_request_reaches_nobody(rig, name):
    mark = rig.world.internet.mark()
    speak(rig, "example.org", 80, REQUESTS[name])
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host="example.org", port=80, tier=Tier.DENY)


SECONDS = {
    "fronting-on-the-second-request": GET.replace(b"example.org", b"evil.example.net"),
    "smuggling-on-the-second-request": REQUESTS["length-and-chunks"],
    "connect-on-the-second-request": REQUESTS["connect-inside"],
    "upgrade-on-the-second-request": GET.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\n\r\n"),
}


@pytest.mark.parametrize("name", SECONDS)
def test_a_doubtful_later_request_does_not_leave(rig, name):
    mark = rig.world.internet.mark()
    said = speak(rig, "example.org", 80, GET, SECONDS[name])
    assert "hello from example.org" in said
    requests = [c for c in rig.world.internet.contacts(mark) if c["server"] == "http"]
    assert [c["host"] for c in requests][:1] == ["example.org"]
    assert all(c["host"] == "example.org" and c["method"] == "GET" for c in requests)
    assert rig.log(host="example.org", port=80, tier=Tier.DENY, outcome="refused")


def test_a_request_hidden_behind_a_chunked_body_is_read_as_one(rig):
    mark = rig.world.internet.mark()
    hidden = b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    speak(rig, "example.org", 80, hidden + GET.replace(b"example.org", b"evil.example.net"))
    assert reached(rig, mark) == ["example.org"]


def test_a_chunk_that_lies_about_its_length_ends_the_connection(rig):
    body = b"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloEVIL\r\n0\r\n\r\n"
    speak(rig, "example.org", 80, body)
    assert rig.log(host="example.org", rule="egress/bad-request", outcome="refused")


def test_websocket_goes_through_and_is_opaque_only_after_the_server_agreed(rig):
    upgrade = b"GET /websocket HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    assert "echo:frames" in speak(rig, "example.org", 80, upgrade, b"frames")
    refused = upgrade.replace(b"/websocket", b"/other")
    mark = rig.world.internet.mark()
    speak(rig, "example.org", 80, refused + GET.replace(b"example.org", b"evil.example.net"))
    assert reached(rig, mark) == ["example.org"]


@pytest.mark.parametrize(
    ("connection", "kept"),
    [
        (b"Upgrade, HTTP2-Settings", None),
        (b"close, Upgrade", "close"),
        (b"keep-alive,upgrade\r\nConnection: x", "keep-alive, x"),
    ],
)
def test_an_offer_of_http2_in_the_clear_is_not_passed_on(rig, connection, kept):
    offer = (
        b"\r\nConnection: "
        + connection
        + b"\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n\r\n"
    )
    mark = rig.world.internet.mark()
    assert "hello from example.org" in speak(rig, "example.org", 80, GET.replace(b"\r\n\r\n", offer))
    (seen,) = [c["headers"] for c in rig.world.internet.contacts(mark) if c["server"] == "http"]
    assert (seen.get("connection"), seen["host"]) == (kept, "example.org")
    assert not {"upgrade", "http2-settings"} & set(seen)


def test_a_server_that_does_not_change_the_protocol_is_heard_and_the_connection_goes_on(rig):
    offer = b"GET /offer HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    said = speak(rig, "example.org", 80, offer, GET)
    assert said.count("hello from example.org") == 2
    assert "ringfence" not in said


@pytest.mark.parametrize(
    "trailer", [b"Content-Length: 5", b"X-HTTP-Method-Override: PUT", b"Authorization: x", b"Host: a"]
)
def test_what_belongs_in_front_of_a_body_is_not_said_behind_it(rig, trailer):
    head = b"POST /lazy HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
    said = speak(rig, "example.org", 80, head, b"0\r\n" + trailer + b"\r\n\r\n")
    assert "a header behind a body that belongs in front of it" in said


def hello(name: bytes | None, *, ech: bool = False, twice: bool = False) -> bytes:
    extensions = b""
    if name is not None:
        entry = struct.pack(">BH", 0, len(name)) + name
        one = struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
        extensions += one * (2 if twice else 1)
    if ech:
        extensions += struct.pack(">HH", 0xFE0D, 8) + b"\0" * 8
    body = (
        b"\x03\x03"
        + bytes(32)
        + b"\0"
        + b"\0\x02\x13\x01"
        + b"\x01\0"
        + struct.pack(">H", len(extensions))
        + extensions
    )
    message = b"\x01" + len(body).to_bytes(3) + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


HELLOS = {
    "no-server-name": (hello(None), "egress/name-mismatch"),
    "another-server-name": (hello(b"evil.example.net"), "egress/name-mismatch"),
    "hidden-server-name": (hello(b"example.org", ech=True), "egress/encrypted-hello"),
    "server-name-twice": (hello(b"example.org", twice=True), "egress/bad-hello"),
    "empty-server-name": (hello(b""), "egress/bad-hello"),
    "name-with-nul": (hello(b"example.org\0.evil.example.net"), "egress/name-mismatch"),
    "cut-short": (hello(b"example.org")[:30] + b"\xff" * 400, "egress/bad-hello"),
    "not-a-hello": (b"\x16\x03\x01\x00\x05\x02aaaa", "egress/bad-hello"),
    "plain-text": (b"hello there\r\n", "egress/not-web"),
}


@pytest.mark.parametrize("name", HELLOS)
def test_a_doubtful_hello_reaches_nobody(rig, name):
    data, rule = HELLOS[name]
    mark = rig.world.internet.mark()
    speak(rig, "example.org", 443, data)
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host="example.org", port=443, tier=Tier.DENY, rule=rule)


def test_a_hello_in_small_pieces_is_put_together(rig):
    code = """
import socket, sys, time
s = socket.create_connection(("example.org", 443), timeout=30)
data = bytes.fromhex(sys.argv[1])
for i in range(0, len(data), 7):
    s.sendall(data[i:i+7]); time.sleep(0.001)
print(s.recv(10).hex())
"""
    mark = rig.world.internet.mark()
    rig.box.python(code, hello(b"example.org").hex())
    assert [c["name"] for c in rig.world.internet.contacts(mark) if c["server"] == "hello"] == ["example.org"]


def test_tls_that_begins_late_on_another_port_is_still_checked(rig):
    code = """
import socket, sys, time
s = socket.create_connection(("example.org", 2525), timeout=30)
print(s.recv(100)); time.sleep(0.3)
s.sendall(bytes.fromhex(sys.argv[1])); print(s.recv(100))
"""
    mark = rig.world.internet.mark()
    rig.box.python(code, hello(b"evil.example.net").hex())
    assert not [c for c in rig.world.internet.contacts(mark) if c.get("first")]
    assert rig.log(host="example.org", port=2525, rule="egress/name-mismatch")


PROXY_REQUESTS = {
    "no-port": b"CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "user-info": b"CONNECT user@example.org:443 HTTP/1.1\r\n\r\n",
    "two-colons": b"CONNECT example.org:443:80 HTTP/1.1\r\n\r\n",
    "port-0": b"CONNECT example.org:0 HTTP/1.1\r\n\r\n",
    "port-65536": b"CONNECT example.org:65536 HTTP/1.1\r\n\r\n",
    "host-differs": b"CONNECT example.org:443 HTTP/1.1\r\nHost: evil.example.net:443\r\n\r\n",
    "with-a-body": b"CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    "utf8-host": "CONNECT exämple.org:443 HTTP/1.1\r\n\r\n".encode(),
    "other-scheme": b"GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "https-in-the-clear": b"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "to-the-proxy-itself": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n",
    "zone-in-address": b"CONNECT [fe80::1%25eth0]:80 HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("name", PROXY_REQUESTS)
def test_a_doubtful_proxy_request_reaches_nobody(rig, name):
    mark = rig.world.internet.mark()
    assert "HTTP/1.1 403" in speak(rig, "127.0.0.1", 3128, PROXY_REQUESTS[name])
    assert not rig.world.internet.contacts(mark)
    assert rig.log(entry="http-proxy", rule="egress/bad-request", tier=Tier.DENY)


SOCKS_REQUESTS = {
    "version-4": b"\x04\x01\x00\x50\xcb\x00\x71\x63\x00",
    "password-only": b"\x05\x01\x02",
    "bind": b"\x05\x01\x00\x05\x02\x00\x01\xcb\x00\x71\x63\x01\xbb",
    "udp-associate": b"\x05\x01\x00\x05\x03\x00\x01\xcb\x00\x71\x63\x01\xbb",
    "unknown-address-type": b"\x05\x01\x00\x05\x01\x00\x09\xcb\x00\x71\x63\x01\xbb",
    "port-0": b"\x05\x01\x00\x05\x01\x00\x01\xcb\x00\x71\x63\x00\x00",
    "name-with-spaces": b"\x05\x01\x00\x05\x01\x00\x03\x0bexample org\x01\xbb",
}


@pytest.mark.parametrize("name", SOCKS_REQUESTS)
def test_a_doubtful_socks_request_reaches_nobody(rig, name):
    mark = rig.world.internet.mark()
    data = SOCKS_REQUESTS[name]
    parts = (data,) if data[0] == 4 or len(data) < 4 else (data[:3], data[3:])
    speak(rig, "127.0.0.1", 1080, *parts)
    assert not rig.world.internet.contacts(mark)
    host, port = ("203.0.113.99", 443) if name in {"bind", "udp-associate"} else ("(unreadable)", 0)
    assert rig.log(entry="socks", rule="egress/bad-request", tier=Tier.DENY, host=host)
    assert rig.log(entry="socks", host=host, port=port)


def test_an_older_socks_client_is_told_that_it_is_refused(rig):
    done = rig.box.run(["curl", "-sS", "--max-time", "5", "--socks4a", "127.0.0.1:1080", "http://example.org/"])
    assert "request rejected or failed" in done.stderr


UDP = """
import socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
try:
    s.connect((sys.argv[1], int(sys.argv[2]))); s.send(bytes.fromhex(sys.argv[3])); s.recv(100); print("answered")
except TimeoutError: print("hang")
except OSError as error: print("refused", error)
"""
DNS_QUESTION = "123401000001000000000000076578616d706c65036f72670000010001"


@pytest.mark.parametrize(
    ("address", "port"),
    [("8.8.8.8", 53), ("192.0.2.53", 53), ("2001:db8::10", 53), ("203.0.113.10", 443), ("192.0.2.1", 123)],
)
def test_datagrams_are_refused_at_once_and_logged(rig, address, port):
    mark = rig.world.internet.mark()
    done = rig.box.python(UDP, address, str(port), DNS_QUESTION)
    assert "refused" in done.stdout  # a silence is the other answer
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host=address, port=port, protocol="udp", entry="nflog", rule="egress/udp")


def test_quic_to_an_allowed_name_is_refused_and_logged_by_name(rig):
    code = "import socket; print(socket.getaddrinfo('example.org', 443, socket.AF_INET)[0][4][0])"
    address = rig.box.python(code).stdout.strip()
    rig.box.python(UDP, address, "443", "c0" * 40)
    assert rig.log(host="example.org", port=443, protocol="udp", rule="egress/udp")


PING = """
import socket, sys, time
begun = time.time()
six = ":" in sys.argv[1]
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_RAW, 58 if six else 1); s.settimeout(2)
head = bytes([128 if six else 8, 0]) + b"\\x00\\x00\\x12\\x34\\x00\\x01"
def checksum(d):
    n = sum(int.from_bytes(d[i:i+2], "big") for i in range(0, len(d), 2)); n = (n >> 16) + (n & 0xFFFF)
    return (~n & 0xFFFF).to_bytes(2, "big")
head = head[:2] + checksum(head) + head[4:]
try:
    s.sendto(head, (sys.argv[1], 0))
    while True:
        got = s.recv(200)
        if got[0] == 129 or (not six and got[20] == 0): print("answered"); break
except OSError as error: print("unanswered", error)
print(time.time() - begun)
"""


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:db8::10"])
def test_ping_is_not_answered_and_logged(rig, address):
    done = rig.box.python(PING, address)
    assert "unanswered" in done.stdout, done.stdout + done.stderr
    assert rig.log(host=address, protocol="icmp", entry="nflog", rule="egress/icmp")


def test_name_service_over_tcp_to_another_server_is_refused(rig):
    mark = rig.world.internet.mark()
    speak(rig, "192.0.2.53", 53, bytes.fromhex("001d" + DNS_QUESTION))
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host="192.0.2.53", port=53, tier=Tier.DENY)


def test_the_redirect_port_itself_is_no_way_round(rig):
    code = "import socket; s=socket.create_connection(('127.0.0.1', int(__import__('sys').argv[1])), 3); s.sendall(b'GET / HTTP/1.1\\r\\nHost: example.org\\r\\n\\r\\n'); print(s.recv(500))"
    import socket

    listening = socket.socket(fileno=rig.box.descriptors["tcp4"])
    port = listening.getsockname()[1]
    listening.detach()
    mark = rig.world.internet.mark()
    done = rig.box.python(code, str(port))
    assert "hello" not in done.stdout
    assert not rig.world.internet.contacts(mark)


def test_this_interpreter_is_the_one_meant():
    assert sys.version_info >= (3, 11)


@pytest.mark.parametrize("port", [3128, 1080])
def test_a_try_through_a_proxy_entry_is_told_though_its_client_went_at_once(world, kit, port):
    host = f"gone{port}.example.net"
    words = {
        3128: f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode(),
        1080: b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + b"\x01\xbb",
    }
    code = (
        "import socket,struct,sys\nfor _ in range(30):\n"
        " s=socket.create_connection(('127.0.0.1',int(sys.argv[1])),5)\n"
        " s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,0))\n"
        " data=bytes.fromhex(sys.argv[2])\n"
        " if _ % 2 and sys.argv[1]=='1080': s.sendall(data[:3]); s.recv(2); data=data[3:]\n"
        " s.sendall(data); s.close()"
    )
    rig = world.rig(kit.Rules())  # of its own: what an earlier test tried may be told late
    try:
        assert rig.box.python(code, str(port), words[port].hex()).returncode == 0
        deadline = time.monotonic() + 60
        while rig.worker.answerer.summary.total < 30 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert rig.worker.answerer.summary.total == 30
    finally:
        rig.close()
