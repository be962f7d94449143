"""Readers of hostile bytes: DNS, TLS hello, HTTP/1, SOCKS5, netlink. Nothing but their own errors may come out."""

import ipaddress
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringfence.egress import asking, dns, http1, nflog, socks, tls
from ringfence.egress.opening import RefusedError, check, classify, same_authority
from ringfence.egress.refuse import page, plain, refusal_bytes
from ringfence.egress.rules import canonical_host

NAMES = st.from_regex(r"\A[a-z][a-z0-9-]{0,20}(\.[a-z][a-z0-9-]{0,20}){1,4}\Z")


@given(st.binary(max_size=600))
def test_readers_raise_only_their_own_errors(data):
    for read, error in (
        (dns.read_query, dns.BadMessageError),
        (lambda d: dns.read_reply(d, 1, "a.b", 1), dns.BadMessageError),
        (tls.read_hello, tls.BadHelloError),
        (http1.read_head, http1.BadRequestError),
        (http1.status_of, http1.BadRequestError),
        (socks.greeting_length, socks.BadSocksError),
        (socks.read_request, socks.BadSocksError),
        (classify, RefusedError),
        (asking.from_worker, asking.BadPacketError),
        (asking.from_supervisor, asking.BadPacketError),
    ):
        try:
            read(data)
        except error:
            pass
    nflog.read_packets(data)


@given(NAMES, st.sampled_from([1, 28]), st.integers(0, 65535))
def test_a_question_of_ours_is_read_as_it_was_meant(name, kind, ident):
    query = dns.read_query(dns.ask(ident, name, kind))
    assert (query.id, query.name, query.type, query.klass) == (ident, name, kind, 1)


@given(NAMES, st.lists(st.ip_addresses(v=4), max_size=5))
def test_an_answer_is_read_back(name, addresses):
    query = dns.read_query(dns.ask(9, name, 1))
    reply = dns.read_reply(dns.answer(query, dns.Rcode.NOERROR, tuple(addresses)), 9, name, 1)
    assert reply.addresses == tuple(addresses)
    assert not reply.truncated


@given(NAMES, st.integers(0, 200), st.integers(0, 255))
def test_one_changed_byte_gives_no_foreign_answer(name, at, value):
    query = dns.read_query(dns.ask(9, name, 1))
    message = bytearray(dns.answer(query, dns.Rcode.NOERROR, (ipaddress.IPv4Address("203.0.113.1"),)))
    message[at % 12] = value
    try:
        dns.read_reply(bytes(message), 9, name, 1)
    except dns.BadMessageError:
        pass


def reply_with(records: bytes, count: int, name: str = "a.example") -> bytes:
    question = dns.ask(9, name, 1)
    return question[:2] + struct.pack(">HHHHH", 0x8180, 1, count, 0, 0) + question[12:] + records


def record(owner: bytes, kind: int, data: bytes) -> bytes:
    return owner + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


def test_only_records_of_the_chain_are_taken():
    foreign = record(b"\4evil\0", 1, b"\xcb\x00\x71\x01")
    assert dns.read_reply(reply_with(foreign, 1), 9, "a.example", 1).addresses == ()
    chained = record(b"\xc0\x0c", 5, b"\4real\0") + record(b"\4real\0", 1, b"\xcb\x00\x71\x02") + foreign
    reply = dns.read_reply(reply_with(chained, 3), 9, "a.example", 1)
    assert [str(a) for a in reply.addresses] == ["203.0.113.2"]
    assert reply.chain == ("real",)


@pytest.mark.parametrize(
    "owner", [b"\xc0\xff", b"\xc0\x1b", b"\xff\xff", b"\x3f" + b"a" * 10], ids=["forward", "itself", "far", "short"]
)
def test_pointers_that_do_not_go_back_are_refused(owner):
    with pytest.raises(dns.BadMessageError):
        dns.read_reply(reply_with(record(owner, 1, b"\1\2\3\4"), 1), 9, "a.example", 1)


def test_a_cname_loop_ends():
    loop = record(b"\xc0\x0c", 5, b"\1b\0") + record(b"\1b\0", 5, b"\xc0\x0c")
    assert dns.read_reply(reply_with(loop, 2), 9, "a.example", 1).addresses == ()


@pytest.mark.parametrize("message", [b"", b"\0" * 11, dns.ask(1, "a.b", 1)[:-1], b"\0\0\x80\0\0\1" + bytes(12)])
def test_queries_that_are_none(message):
    with pytest.raises(dns.BadMessageError):
        dns.read_query(message)


def hello_of(name: bytes, pieces: int = 1) -> bytes:
    entry = struct.pack(">BH", 0, len(name)) + name
    alpn = struct.pack(">HHH", 16, 5, 3) + b"\x02h2"
    ext = struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry + alpn
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + struct.pack(">H", len(ext)) + ext
    message = b"\x01" + len(body).to_bytes(3) + body
    size = max(1, -(-len(message) // pieces))
    parts = [message[i : i + size] for i in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in parts)


@given(NAMES, st.integers(1, 9))
def test_a_hello_is_read_however_it_is_cut_into_records(name, pieces):
    hello = tls.read_hello(hello_of(name.encode(), pieces))
    assert hello == tls.Hello(server_name=name, alpn=("h2",), encrypted_hello=False)


@given(NAMES, st.integers(0, 200))
def test_a_beginning_of_a_hello_asks_for_more(name, cut):
    whole = hello_of(name.encode())
    assert tls.read_hello(whole[: min(cut, len(whole) - 1)]) is tls.MORE


GOOD = b"POST /a%7eb?q=1 HTTP/1.1\r\nHost: example.org\r\nContent-Length: 3\r\n\r\nabc"


def test_a_plain_request():
    head = http1.read_head(GOOD)
    assert (head.method, head.target, head.framing, head.content_length) == (
        "POST",
        "/a%7eb?q=1",
        http1.Framing.LENGTH,
        3,
    )
    assert head.length == len(GOOD) - 3
    assert http1.split_target(head.target) == ("/a~b", "q=1")
    assert http1.host_of(head) == "example.org"


@given(st.integers(0, len(GOOD) - 4))
def test_a_beginning_of_a_request_asks_for_more(cut):
    assert http1.read_head(GOOD[:cut]) is None
    assert classify(GOOD[:cut]) is None


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.integers(1, 40), st.binary(max_size=20))
@example(chunks=[b"hello"], step=1, after=b"GET / HTTP/1.1\r\n\r\n")
def test_a_chunked_body_ends_where_it_ends_however_it_arrives(chunks, step, after):
    wire = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX: y\r\n\r\n"
    body = http1.Body(framing=http1.Framing.CHUNKED)
    data, taken = wire + after, 0
    while not body.done:
        taken += body.take(data[taken : taken + step])
    assert taken == len(wire)
    assert body.take(after) == 0


@pytest.mark.parametrize(
    "wire", [b"5\nhello", b" 5\r\n", b"-1\r\n", b"0x5\r\n", b"5\r\nhelloX\r\n", b"5" * 20, b"5;a\0\r\n", b"a" * 5000]
)
def test_doubtful_chunks_are_refused(wire):
    body = http1.Body(framing=http1.Framing.CHUNKED)
    with pytest.raises(http1.BadRequestError):
        body.take(wire + b"\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "target",
    [
        "/..",
        "/a/..",
        "/%2e%2e/a",
        "/a/.%2e",
        "/./a",
        "/a\\b",
        "/a#b",
        "/a%00",
        "/a%2f..%2fb",
        "/a%5c..",
        "/team/..;/other",
        "/team/..;a=b/other",
        "/team/..%3b/other",
        "/team/.;/other",
        "/team/%252e%252e/other",
        "/team/%25252e%25252e/other",
        "/team/%252f..%252fother",
        "/" + "%25" * 5 + "25" * 5,
        "a",
        "/%zz",
        "/%4",
    ],
)
def test_paths_that_servers_read_differently_are_refused(target):
    with pytest.raises(http1.BadRequestError):
        http1.split_target(target)


@pytest.mark.parametrize("target", ["/a;b=..c/d", "/a...b", "/...", "/100%25", "/a%2Bb", "/a%20b;v=1", "/c%252Bd"])
def test_ordinary_paths_with_dots_and_escapes_are_read(target):
    assert http1.split_target(target) == (target, None)


def test_an_escaped_slash_has_two_readings():
    path, query = http1.split_target("/@scope%2fname")
    assert (path, query) == ("/@scope%2Fname", None)
    assert http1.other_reading(path) == "/@scope/name"
    assert http1.other_reading("/plain") is None


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("//admin///x", "/admin/x"),
        ("/admin;a=b/x", "/admin/x"),
        ("/admin%3Ba/x", "/admin/x"),
        ("/%2561dmin/x", "/admin/x"),
        ("/admin%252Fx", "/admin/x"),
        ("/admin%255Cx", "/admin/x"),
        ("/%25252561dmin%2F/x", "/admin/x"),
        ("/a%20b", None),
        ("/100%25", None),
        ("/a%2Bb/", None),
    ],
)
def test_servers_that_do_more_to_a_path_read_another(path, read):
    assert http1.other_reading(path) == read


@pytest.mark.parametrize(
    ("first", "http"),
    [
        (b"G", None),
        (b"GET /", None),
        (b"GET / HTTP/1.1\r\n", True),
        (b"GET /\r\n", True),
        (b"GET http://example.org/\r\n", True),
        (b"PRI * HTTP/2.0\r\n", True),
        (b"BREW / HTTP/1.1\r\n", True),
        (b"GET / " + b"x" * 40_000, True),
        (b"get /", False),
        (b"SSH-2.0-x", False),
        (b"\x16", False),
        (b"X", None),
        (b"X" * 40, False),
        (b"EHLO client\r\n", False),
        (b"USER anonymous\r\n", False),
        (b"QUIT\r\n", False),
        (b"NICK a\r\nUSER a 0 * :a\r\n", False),
        (b"CONNECT {}\r\nPING\r\n", False),
        (b"HEAD <1@example.org>\r\n", False),
    ],
)
def test_what_begins_a_request(first, http):
    assert http1.begins_request(first) is http


@pytest.mark.parametrize("blank", [b"\r\n", b"\n", b"\r\n\r\n\n"])
def test_a_request_behind_empty_lines_is_refused_however_it_is_cut(blank):
    whole = blank + b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
    for cut in range(1, len(blank) + 10):
        assert classify(whole[:cut]) is None
    with pytest.raises(RefusedError, match="empty lines"):
        classify(whole)
    with pytest.raises(RefusedError, match="empty lines"):
        classify(blank * 40_000)


HOST = canonical_host("example.org")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("example.org", True),
        ("EXAMPLE.org.:80", True),
        ("example.org:81", False),
        ("example.org:80:80", False),
        ("evil.example", False),
        ("", False),
        ("example.org, evil", False),
    ],
)
def test_host_headers(text, same):
    assert same_authority(HOST, 80, text) is same


def test_an_opening_on_a_web_port_must_be_of_the_web():
    opening = classify(b"\0\0\0\0")
    with pytest.raises(RefusedError) as caught:
        check(opening, HOST, 443, encrypted_hello=False)
    assert caught.value.rule == "egress/not-web"
    check(opening, HOST, 5432, encrypted_hello=False)


@given(st.text(max_size=200), st.text(max_size=200))
def test_refusals_stay_on_their_lines_whatever_the_names_hold(host, because):
    head, _, body = page(host, 80, "rule\r\nSet-Cookie: x", because).partition(b"\r\n\r\n")
    assert len(head.split(b"\r\n")) == 7
    assert head.startswith(b"HTTP/1.1 403 Refused by ringfence: ")
    assert body.count(b"\n") == 4
    assert all(byte in b"\n" or 32 <= byte < 127 for byte in body)
    assert plain(because).isprintable()


def test_every_protocol_is_refused_in_its_own_words():
    assert refusal_bytes("tls", "a", 443, "r", "b") == tls.ACCESS_DENIED
    told = refusal_bytes("ssh", "a", 22, "r", "b" * 999)
    assert told.startswith(b"SSH-2.0-ringfence\r\n")
    packet = told.partition(b"\n")[2]
    size, padding = struct.unpack_from(">IB", packet)
    assert (len(packet), len(packet) % 8, padding >= 4) == (size + 4, 0, True)
    assert b"ringfence refused a:22, rule r: bbb" in packet
    assert refusal_bytes("tls", "a", 443, "default", "b")[-1] == 49
    assert refusal_bytes("tls", "a", 443, "egress/not-resolved", "b")[-1] == 80
    assert refusal_bytes("tcp", "a", 1, "r", "b") == b""


def test_what_is_allowed_and_was_not_reached_is_a_fault_of_the_network():
    told = refusal_bytes("http", "example.org", 80, "egress/unreachable", "no route").decode()
    assert told.startswith("HTTP/1.1 502 Not reached by ringfence: egress/unreachable\r\n")
    assert "ringfence did not reach example.org:80" in told
    assert "refused" not in told


def test_socks_requests():
    assert socks.read_request(b"\x05\x01\x00\x03\x0bexample.org\x01\xbb") == socks.Request(
        host="example.org", port=443, length=18
    )
    assert socks.read_request(b"\x05\x01\x00\x04" + bytes(15) + b"\1\0\x50").host == "::1"
    assert socks.read_request(b"\x05\x01\x00\x03\x0bexample.or") is None
    assert socks.greeting_length(b"\x05\x02\x00\x02") == 4
    assert socks.greeting_length(b"\x05\x02\x00") is None


def test_messages_survive_the_wire_and_are_split_when_large():
    subject = asking.Try(host="example.org", port=443, protocol="tls", entry="capture")
    messages = [asking.Ask(id=n, subject=subject, also_path="x" * 10_000) for n in range(40)]
    packets = asking.pack(messages)
    assert len(packets) > 1
    assert all(len(packet) <= asking.MAX_PACKET for packet in packets)
    assert [m for packet in packets for m in asking.from_worker(packet)] == messages


def test_an_overlong_field_is_not_taken():
    subject = asking.Try(host="a" * 301, port=443, protocol="tls", entry="capture")
    with pytest.raises(asking.BadPacketError):
        asking.from_worker(asking.pack([asking.Ask(id=1, subject=subject)])[0])


def test_packets_of_the_fence_are_read():
    head = bytes([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]) + bytes([8, 8, 8, 8]) + bytes([8, 8, 4, 4])
    packet = nflog.read_packet(head + struct.pack(">HH", 1234, 53))
    assert packet == nflog.Logged(protocol="udp", source=("8.8.8.8", 1234), target=("8.8.4.4", 53))
    six = bytes([0x60, 0, 0, 0, 0, 8, 58, 64]) + ipaddress.IPv6Address("2001:db8::1").packed * 2
    assert nflog.read_packet(six).protocol == "icmp"
    assert nflog.read_packet(b"\x45") is None
