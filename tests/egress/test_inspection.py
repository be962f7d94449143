"""Inspection, credentials and model endpoints: judged by method and path, replaced on the way out, never seen in the box."""

import base64
import gzip
import json
import subprocess
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.egress import http1
from ringfence.egress.credentials import Credential, Source, environment, netrc, parse_credentials, read_secret
from ringfence.egress.opening import RefusedError
from ringfence.egress.placeholders import Watch
from ringfence.egress.sieve import LOOKED_FOR, Sieve, shapes
from ringfence.model.errors import RingfenceError
from ringfence.model.tier import Tier

SECRET = "s3cret-value-of-the-test"
HOSTS = {"git.example.org", "api.example.com", "pkg.example.org", "example.org"}


@pytest.fixture(scope="module")
def secret_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("secret") / "token"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return str(path)


@pytest.fixture(scope="module")
def rig(world, kit, secret_file):
    rules = kit.Rules(
        allow=(*(f"{host}:443" for host in HOSTS), "example.org:80", "example.net:443", "example.net:80"),
        only=(
            ("git.example.org", "GET", "/git/*"),
            ("git.example.org", "POST", "*/git-upload-pack"),
            ("example.org", "GET", "/ok*"),
            ("example.org", "POST", "/ok*"),
            ("pkg.example.org", "GET", "/*"),
            ("api.example.com", "POST", "/v1/messages"),
            ("api.example.com", "POST", "/v1/echo"),
        ),
    )
    credentials = (
        Credential(name="git", host="git.example.org", path="/git", source=Source(file=secret_file)),
        Credential(name="pkg", host="pkg.example.org", source=Source(command=("/bin/echo", SECRET))),
        Credential(name="broken", host="example.org", source=Source(file="/nonexistent/secret")),
        Credential(
            name="model",
            host="api.example.com",
            path="/v1",
            source=Source(file=secret_file),
            endpoint="model",
            header="x-api-key",
            variable="MODEL_BASE_URL",
        ),
    )
    made = world.rig(
        rules,
        {"inspection": True, "judge_bodies": True, "trusted": str(world.ca), "body_cap": 200_000},
        inspects=lambda host, port: host in HOSTS and port in {80, 443},
        credentials=credentials,
        endpoints={"model": 18080},
    )
    made.bundle = world.folder / "mission-ca.pem"
    made.bundle.write_text(made.worker.authority)
    yield made
    made.close()


def curl(rig, *words):
    return rig.box.run(["curl", "-sS", "--max-time", "8", "--cacert", str(rig.bundle), *words])


def requests(rig, mark):
    return [c for c in rig.world.internet.contacts(mark) if c["server"] in {"http", "https"}]


def test_an_allowed_request_goes_through_judged_by_method_and_path(rig):
    mark = rig.world.internet.mark()
    done = curl(rig, "https://example.org/ok?q=1")
    assert "hello from example.org" in done.stdout, done.stderr
    assert requests(rig, mark)[0]["path"] == "/ok?q=1"
    line = rig.log(host="example.org", protocol="https", tier=Tier.ALLOW)[0]
    assert (line.method, line.path, line.flags) == ("GET", "/ok", ("inspected",))
    assert line.received > 0


@pytest.mark.parametrize(
    "words",
    [
        ("-X", "DELETE", "https://example.org/ok"),
        ("https://example.org/other",),
        ("--path-as-is", "https://example.org/ok/../other"),
        ("-d", "x", "-H", "X-HTTP-Method-Override: delete", "https://example.org/ok"),
        ("-d", "x", "-H", "X-HTTP-Method: DELETE /x", "https://example.org/ok"),
        ("-H", "X-Original-URL: /other", "https://example.org/ok"),
    ],
    ids=["method", "path", "dots", "method-in-a-header", "no-method-in-a-header", "path-in-a-header"],
)
def test_other_methods_and_paths_are_refused_and_reach_nobody(rig, words):
    mark = rig.world.internet.mark()
    done = curl(rig, *words)
    assert "ringfence refused example.org:443" in done.stdout
    assert not rig.world.internet.contacts(mark)
    assert rig.log(host="example.org", port=443, tier=Tier.DENY)


def test_a_body_with_a_method_that_has_none_is_the_last_of_its_connection(rig):
    hidden = "DELETE /hidden HTTP/1.1\r\nHost: example.org\r\n\r\n"
    mark = rig.world.internet.mark()
    for url in ("https://example.org/ok-lazy", "https://example.org/ok"):
        done = curl(rig, "-X", "GET", "--data-binary", hidden, url)
    assert "hello" in done.stdout
    seen = [(c["method"], c["path"], c["headers"]["connection"]) for c in requests(rig, mark)]
    assert seen == [("GET", "/ok-lazy", "close"), ("GET", "/ok", "close")]


@pytest.mark.parametrize("url", ["https://example.org/ok", "http://example.org/ok"])
def test_a_method_in_a_header_is_judged_like_the_requests_own(rig, url):
    mark = rig.world.internet.mark()
    assert "hello" in curl(rig, "-d", "x", "-H", "X-HTTP-Method-Override: GET", url).stdout
    assert "ringfence refused" in curl(rig, "-d", "x", "-H", "X-Method-Override: PUT", url).stdout
    assert len(requests(rig, mark)) == 1


def test_a_refusal_on_a_kept_connection_is_said_and_the_rest_was_served(rig):
    done = curl(rig, "https://example.org/ok", "https://example.org/other")
    assert "hello from example.org" in done.stdout
    assert "ringfence refused" in done.stdout


def test_the_authority_is_known_to_nobody_else(rig):
    done = rig.curl("https://example.org/ok")
    assert done.returncode == 60
    assert rig.log(host="example.org", rule="egress/not-inspectable", tier=Tier.DENY)


def test_a_server_with_a_foreign_certificate_is_refused(world, kit):
    rig = world.rig(kit.Rules(allow=("example.org:443",)), {"inspection": True}, inspects=lambda *_: True)
    try:
        bundle = world.folder / "other-ca.pem"
        bundle.write_text(rig.worker.authority)
        mark = world.internet.mark()
        done = rig.box.run(["curl", "-sS", "--max-time", "8", "--cacert", str(bundle), "https://example.org/"])
        assert "egress/upstream-tls" in done.stdout
        assert not [c for c in world.internet.contacts(mark) if c["server"] == "https"]
    finally:
        rig.close()


def test_the_certificate_stays_the_same_after_a_restart(world, kit):
    rig = world.rig(
        kit.Rules(allow=("example.org:443",)), {"inspection": True, "trusted": str(world.ca)}, inspects=lambda *_: True
    )
    try:
        bundle = world.folder / "kept-ca.pem"
        bundle.write_text(rig.worker.authority)
        rig.worker._process.kill()
        deadline = time.monotonic() + 60
        while not (rig.worker.alive and rig.worker.restarts) and time.monotonic() < deadline:
            time.sleep(0.05)
        done = rig.box.run(["curl", "-sS", "--max-time", "8", "--cacert", str(bundle), "https://example.org/"])
        assert "hello" in done.stdout, done.stderr
    finally:
        rig.close()


def test_a_program_that_speaks_http2_alone_is_told_so(rig):
    code = "import socket,ssl\nc=ssl.create_default_context(); c.check_hostname=False; c.verify_mode=0\nc.set_alpn_protocols(['h2'])\nc.wrap_socket(socket.create_connection(('git.example.org',443),5),server_hostname='git.example.org')"
    mark = rig.world.internet.mark()
    assert "access denied" in rig.box.python(code).stderr.lower()
    found = rig.log(host="git.example.org", rule="egress/not-inspectable", tier=Tier.DENY)
    assert "'h2' and not HTTP/1.1" in found[0].because
    assert not rig.world.internet.contacts(mark)


def test_a_program_that_speaks_an_old_tls_alone_is_told_so(rig):
    name = b"pkg.example.org"
    entry = b"\0" + len(name).to_bytes(2) + name
    value = len(entry).to_bytes(2) + entry
    extensions = b"\0\0" + len(value).to_bytes(2) + value
    body = b"\3\1" + bytes(32) + b"\0" + b"\0\2\xc0\x13" + b"\1\0" + len(extensions).to_bytes(2) + extensions
    hello = b"\x16\3\1" + (len(body) + 4).to_bytes(2) + b"\1" + len(body).to_bytes(3) + body
    code = "import socket,sys\ns=socket.create_connection(('pkg.example.org',443),5); s.sendall(bytes.fromhex(sys.argv[1])); s.recv(99)"
    mark = rig.world.internet.mark()
    assert rig.box.python(code, hello.hex()).returncode == 0
    lines = rig.log(host="pkg.example.org", rule="egress/not-inspectable")
    assert [line for line in lines if "could not be agreed on" in line.because], lines
    assert not rig.world.internet.contacts(mark)


def test_what_cannot_be_inspected_is_refused(rig):
    code = "import socket\ns=socket.create_connection(('example.org',443),5); s.sendall(b'SSH-2.0-x\\r\\n'); print(s.recv(99))"
    mark = rig.world.internet.mark()
    rig.box.python(code)
    assert not rig.world.internet.contacts(mark)


def test_a_body_is_judged_whole_and_capped(rig):
    mark = rig.world.internet.mark()
    big = "x" * 250_000
    code = f"import sys; sys.stdout.write('x'*{len(big)})"
    data = rig.world.folder / "big.txt"
    data.write_text(big)
    assert code
    done = curl(rig, "--data-binary", f"@{data}", "-H", "Expect:", "https://example.org/ok")
    assert "egress/body-too-large" in done.stdout
    assert not rig.world.internet.contacts(mark)
    data.write_text("y" * 150_000)
    assert "hello" in curl(rig, "--data-binary", f"@{data}", "-H", "Expect:", "https://example.org/ok").stdout
    assert len(requests(rig, mark)[0]["body"]) == 2000


def test_a_change_of_protocol_is_refused_where_bodies_are_judged(rig):
    words = ("-H", "Upgrade: websocket", "-H", "Connection: upgrade")
    mark = rig.world.internet.mark()
    done = curl(rig, *words, "https://example.org/ok")
    assert "egress/not-inspectable" in done.stdout
    assert "patterns over bodies" in done.stdout
    assert not rig.world.internet.contacts(mark)


UPGRADE = """
import socket, ssl, sys
c = ssl.create_default_context(cafile=sys.argv[1])
s = c.wrap_socket(socket.create_connection(("example.org", 443), 5), server_hostname="example.org")
def ask(path, more=""):
    s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: example.org\\r\\n{more}\\r\\n".encode())
    got = ""
    while not any(word in got for word in ("hello from", "fence refused", "101 ")): got += s.recv(65536).decode()
    return got
OFFER = "Upgrade: websocket\\r\\nConnection: upgrade\\r\\n"
if sys.argv[2] == "agreed":
    print(ask("/websocket", OFFER)); s.sendall(b"frames"); print(s.recv(99))
else:
    print(ask("/offer", OFFER)); print(ask("/plain")); print(ask("/late", OFFER))
"""


def test_an_inspected_websocket_is_opaque_only_where_the_server_agreed(world, kit):
    rig = world.rig(
        kit.Rules(allow=("example.org:443",)), {"inspection": True, "trusted": str(world.ca)}, inspects=lambda *_: True
    )
    try:
        bundle = world.folder / "socket-ca.pem"
        bundle.write_text(rig.worker.authority)
        assert "echo:frames" in rig.box.python(UPGRADE, str(bundle), "agreed").stdout
        said = rig.box.python(UPGRADE, str(bundle), "not").stdout
        assert said.count("200 OK") == 2
        assert "only a connection's first request" in said
    finally:
        rig.close()


def test_a_body_that_nobody_judges_may_be_large(world, kit):
    options = {"inspection": True, "trusted": str(world.ca), "body_cap": 100_000}
    rig = world.rig(kit.Rules(allow=("example.org:443",)), options, inspects=lambda *_: True)
    try:
        bundle = world.folder / "large-ca.pem"
        bundle.write_text(rig.worker.authority)
        data = world.folder / "large.bin"
        data.write_bytes(bytes(500_000))
        words = ["curl", "-sS", "--max-time", "8", "--cacert", str(bundle), "--data-binary", f"@{data}"]
        assert "hello" in rig.box.run([*words, "https://example.org/upload"]).stdout
    finally:
        rig.close()


def test_bodies_held_at_once_are_bounded_and_given_back(monkeypatch):
    from ringfence.egress import inspection
    from ringfence.egress.opening import RefusedError

    monkeypatch.setattr(inspection, "MAX_BUFFERED", 100)
    inspector = inspection.Inspector(authority=None, upstream=None, bindings=(), body_cap=1000, judge_bodies=True)
    first, second = (inspection.Exchange(inspector, None, secure=True) for _ in range(2))
    first._hold(90)
    with pytest.raises(RefusedError) as caught:
        second._hold(20)
    assert caught.value.rule == "egress/body-too-large"
    second._release()
    first._release()
    assert inspector.buffered == 0


def test_bodies_reach_the_policy_in_windows_that_overlap(world, kit):
    seen = []
    rules = kit.Rules(allow=("example.org:443",))

    class Judge:
        def decide(self, call):
            if call.request.body:
                seen.append(call.request.body)
            if call.request.body and "AKIA" in call.request.body:
                return kit.Rules(deny=("example.org:443",)).decide(call)
            return rules.decide(call)

    rig = world.rig(
        Judge(), {"inspection": True, "judge_bodies": True, "trusted": str(world.ca)}, inspects=lambda *_: True
    )
    try:
        bundle = world.folder / "body-ca.pem"
        bundle.write_text(rig.worker.authority)
        data = world.folder / "leak.txt"
        data.write_text("x" * (48 * 1024 - 2) + "AKIA" + "z" * 100)
        mark = world.internet.mark()
        done = rig.box.run(
            [
                "curl",
                "-sS",
                "--max-time",
                "8",
                "--cacert",
                str(bundle),
                "--data-binary",
                f"@{data}",
                "-H",
                "Expect:",
                "https://example.org/",
            ]
        )
        assert "deny-example.org:443" in done.stdout
        assert len(seen) == 2
        assert not world.internet.contacts(mark)
    finally:
        rig.close()


@pytest.fixture(scope="module")
def reading(world, kit):
    """A rig whose policy refuses bodies that hold a key."""

    class Judge:
        def decide(self, call):
            keyed = "AKIA0123" in (call.request.body or "")
            return kit.Rules(allow=("example.org:443",), deny=("example.org:443",) * keyed).decide(call)

    options = {"inspection": True, "judge_bodies": True, "trusted": str(world.ca), "body_cap": 200_000}
    made = world.rig(Judge(), options, inspects=lambda *_: True)
    made.bundle = world.folder / "reading-ca.pem"
    made.bundle.write_text(made.worker.authority)
    yield made
    made.close()


POST = """
import socket, ssl, sys
data = bytes.fromhex(sys.argv[2])
sock = socket.create_connection(("example.org", 443), 8)
sock = ssl.create_default_context(cafile=sys.argv[1]).wrap_socket(sock, server_hostname="example.org")
sock.sendall(data)
if len(sys.argv) > 3:
    print(sock.recv(1000).decode())
    sock.sendall(bytes.fromhex(sys.argv[3]))
while piece := sock.recv(100_000):
    print(piece.decode())
"""


def post(rig, headers, *parts):
    head = f"POST / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n{headers}\r\n\r\n".encode()
    words = [(head + parts[0]).hex(), *(part.hex() for part in parts[1:])]
    done = rig.box.python(POST, str(rig.bundle), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chunked(*pieces):
    return b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in (*pieces, b""))


KEY = b"AKIA0123"
CODED = {
    "chunks": ("Transfer-Encoding: chunked", chunked(*(KEY[at : at + 1] for at in range(len(KEY))))),
    "gzip": ("Content-Encoding: gzip", gzip.compress(KEY)),
    "x-gzip": ("Content-Encoding: identity, X-GZIP", gzip.compress(KEY)),
    "second-member": ("Content-Encoding: gzip", gzip.compress(b"a") + gzip.compress(KEY)),
    "deflate": ("Content-Encoding: deflate", zlib.compress(KEY)),
    "raw-deflate": ("Content-Encoding: deflate", zlib.compress(KEY, wbits=-15)),
    "in-the-name": (
        "Content-Encoding: gzip",
        gzip.compress(b"")[:3] + b"\x08" + gzip.compress(b"")[4:10] + KEY + b"\0" + gzip.compress(b"")[10:],
    ),
}


@pytest.mark.parametrize("name", CODED)
def test_no_coding_of_a_body_hides_it_from_the_policy(reading, name):
    header, body = CODED[name]
    if "chunked" not in header:
        header += f"\r\nContent-Length: {len(body)}"
    mark = reading.world.internet.mark()
    assert "deny-example.org:443" in post(reading, header, body)
    assert not requests(reading, mark)


UNREADABLE = {
    "unknown": ("br", b"abc", "egress/not-inspectable"),
    "twice": ("gzip, gzip", gzip.compress(gzip.compress(KEY)), "egress/not-inspectable"),
    "none": ("gzip", KEY, "egress/not-inspectable"),
    "cut-short": ("gzip", gzip.compress(KEY)[:-4], "egress/not-inspectable"),
    "many-parts": ("gzip", gzip.compress(b"") * 100, "egress/not-inspectable"),
    "bomb": ("gzip", gzip.compress(bytes(1_000_000)), "egress/body-too-large"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_body_that_cannot_be_read_is_refused(reading, name):
    coding, body, rule = UNREADABLE[name]
    mark = reading.world.internet.mark()
    assert rule in post(reading, f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}", body)
    assert not requests(reading, mark)


def test_a_harmless_body_arrives_as_it_was_sent_whatever_its_coding(reading):
    for header, body in (
        ("Transfer-Encoding: chunked", chunked(b"one", b"two")),
        ("Content-Encoding: gzip\r\nContent-Length: {}", gzip.compress(b"harmless")),
    ):
        mark = reading.world.internet.mark()
        assert "hello" in post(reading, header.format(len(body)), body)
        got = requests(reading, mark)[0]["body"].encode("latin-1")
        assert got == (b"onetwo" if "chunked" in header else body)


def test_a_program_that_waits_before_its_body_is_told_to_go_on(reading):
    answer = post(reading, "Expect: 100-continue\r\nContent-Length: 8", b"", b"harmless")
    assert "100 Continue" in answer
    assert "hello" in answer
    assert "deny-example.org" in post(reading, "Expect: 100-continue\r\nContent-Length: 8", b"", KEY)


# -- credentials ------------------------------------------------------------------------------------------------------


def test_a_placeholder_becomes_the_value_outside_and_only_there(rig):
    mark = rig.world.internet.mark()
    placeholder = rig.worker.placeholders["pkg"]
    done = curl(rig, "-H", f"Authorization: Bearer {placeholder}", "https://pkg.example.org/a")
    assert "hello" in done.stdout
    assert requests(rig, mark)[0]["headers"]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in done.stdout + done.stderr
    assert SECRET not in repr(rig.lines)


def test_a_placeholder_in_a_password_is_replaced_as_well(rig):
    mark = rig.world.internet.mark()
    curl(rig, "-u", f"someone:{rig.worker.placeholders['pkg']}", "https://pkg.example.org/a")
    got = requests(rig, mark)[0]["headers"]["authorization"]
    assert base64.b64decode(got.removeprefix("Basic ")).decode() == f"someone:{SECRET}"


ELSEWHERE = {
    "another-host": ("-H", "X-Token: {git}", "https://pkg.example.org/a"),
    "another-path": ("-H", "Authorization: Bearer {git}", "https://git.example.org/elsewhere"),
    "path-prefix-trick": ("-H", "Authorization: Bearer {git}", "https://git.example.org/github/x"),
    "in-the-clear": ("-H", "Authorization: Bearer {pkg}", "http://example.org/ok"),
    "in-the-clear-uninspected": ("-H", "Authorization: Bearer {pkg}", "http://example.net/"),
    "in-the-query": ("https://pkg.example.org/a?t={pkg}",),
    "in-a-body": ("--data", "token={pkg}", "https://example.org/ok"),
    "a-guess": ("-H", "Authorization: Bearer ringfence-placeholder-pkg-000000", "https://pkg.example.org/a"),
    "in-another-header": ("-H", "Origin: {pkg}", "https://pkg.example.org/a"),
    "in-a-cookie": ("-b", "session={pkg}", "https://pkg.example.org/a"),
    "in-a-password": ("-u", "x:{git}", "https://pkg.example.org/a"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_placeholder_sent_elsewhere_is_an_attempt_to_give_it_away(rig, name):
    words = [word.format(**rig.worker.placeholders) for word in ELSEWHERE[name]]
    mark = rig.world.internet.mark()
    done = curl(rig, *words)
    assert "egress/placeholder-elsewhere" in done.stdout, done
    assert not requests(rig, mark)
    found = rig.log(rule="egress/placeholder-elsewhere", tier=Tier.DENY)
    assert found
    assert all(line.violation for line in found)


@pytest.mark.parametrize(
    "words",
    [
        ("-H", "Authorization: Bearer {pkg}", "--compressed", "https://pkg.example.org/echo"),
        ("-u", "someone:{pkg}", "https://pkg.example.org/echo"),
        ("-H", "Authorization: {pkg}", "-X", "TRACE", "https://pkg.example.org/a"),
        ("-d", "x", "http://127.0.0.1:18080/v1/echo"),
        ("-X", "TRACE", "http://127.0.0.1:18080/v1/messages"),
    ],
    ids=["bearer", "basic", "trace", "endpoint", "trace-of-an-endpoint"],
)
def test_a_value_that_its_server_says_back_does_not_reach_the_box(rig, words):
    mark = rig.world.internet.mark()
    done = curl(rig, *(word.format(**rig.worker.placeholders) for word in words))
    assert SECRET not in done.stdout
    assert base64.b64encode(f"someone:{SECRET}".encode()).decode() not in done.stdout
    if "ringfence refused" in done.stdout:
        assert "egress/secret-returned" in done.stdout
        assert not requests(rig, mark)
    else:
        assert done.returncode != 0
        assert len(requests(rig, mark)) == 1
    found = rig.log(rule="egress/secret-returned", tier=Tier.DENY)
    assert found
    assert all(line.violation for line in found)


@given(st.text(alphabet='abcX/"<', min_size=8, max_size=20), st.binary(max_size=30), st.lists(st.integers(1, 9)))
def test_a_value_is_found_wherever_an_answer_is_cut_and_all_else_passes(secret, around, cuts):
    def through(answer):
        sieve, passed = Sieve(set(shapes(secret, f"Bearer {secret}"))), b""
        for size in [*cuts, len(answer)]:
            piece, answer = answer[:size], answer[size:]
            try:
                passed += sieve.sift(piece, "h")
            except RefusedError:
                return passed, True
        return passed + sieve.rest(), False

    harmless = around.replace(secret.encode(), b"") + secret[:-1].encode()
    if not any(shape in harmless for shape in shapes(secret, "")):
        assert through(harmless) == (harmless, False)
    passed, found = through(around + json.dumps({"a": secret}).encode() + around)
    assert found
    assert secret.encode() not in passed
    passed, found = through(around + secret.encode() + around)
    assert found
    assert len(passed) < len(around) + LOOKED_FOR + len(around)


SPELLINGS = (
    lambda c: c,
    lambda c: f"\\u00{ord(c):02x}",
    lambda c: f"\\x{ord(c):02X}",
    lambda c: f"%{ord(c):02x}",
    lambda c: f"&#{ord(c)};",
    lambda c: f"&#x{ord(c):02X};",
    lambda c: f"\r\n1f\r\n{c}",
    lambda c: f"\r\nA;name=x\r\n{c}",
    lambda c: c.replace("/", "\\/").replace("<", "&lt;").replace('"', "&quot;"),
)


@given(
    st.text(alphabet='abcX/"<-', min_size=8, max_size=20),
    st.lists(st.integers(0, len(SPELLINGS) - 1), min_size=20, max_size=20),
    st.lists(st.integers(1, 9)),
)
def test_a_value_is_found_in_any_mixture_of_escapes_and_chunks(secret, spellings, cuts):
    answer = "before " + "".join(SPELLINGS[how](c) for how, c in zip(spellings, secret, strict=False)) + " after"
    sieve, rest = Sieve(set(shapes(secret, ""))), answer.encode()

    def through(rest=rest):
        for size in [*cuts, len(rest)]:
            sieve.sift(rest[:size], "h")
            rest = rest[size:]

    with pytest.raises(RefusedError):
        through()


@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_placeholder_cut_into_chunks_or_packets_is_seen(step):
    text = b"token=ringfence-placeholder-pkg-000000"
    for wire in (text, chunked(*(text[at : at + 5] for at in range(0, len(text), 5)))):
        framing = http1.Framing.LENGTH if wire is text else http1.Framing.CHUNKED
        body, watch = http1.Body(framing=framing, left=len(text) * (wire is text)), Watch("example.org", 80)

        def pass_through(wire=wire, body=body, watch=watch):
            for at in range(0, len(wire), step):
                body.take(wire[at : at + step])
                watch.see(wire[at : at + step], body.drain())

        with pytest.raises(RefusedError, match="placeholder"):
            pass_through()


def test_a_credential_that_cannot_be_read_refuses_the_request(rig):
    done = curl(rig, "-H", f"Authorization: Bearer {rig.worker.placeholders['broken']}", "https://example.org/ok")
    assert "egress/no-credential" in done.stdout


def test_a_model_endpoint_adds_the_key_and_counts_tokens(rig):
    mark = rig.world.internet.mark()
    words = ("-H", "x-api-key: anything", "-H", "Accept-Encoding: gzip", "-d", '{"m":1}')
    done = curl(rig, *words, "http://127.0.0.1:18080/v1/messages", "http://127.0.0.1:18080/v1/messages")
    assert json.loads(done.stdout.partition("}}")[0] + "}}")["usage"]["input_tokens"] == 11
    first = requests(rig, mark)[0]
    assert first["host"] == "api.example.com"
    assert first["headers"]["x-api-key"] == SECRET
    assert "accept-encoding" not in first["headers"]
    line = rig.log(host="api.example.com", entry="endpoint", tier=Tier.ALLOW)[0]
    assert (line.tokens_in, line.tokens_out) == (22, 14)
    assert SECRET not in repr(rig.lines)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/other", ()),
        ("/admin", ()),
        ("/v1/../admin", ()),
        ("/v1/messages", ("-H", "X-Rewrite-URL: /admin")),
        ("/v1/messages", ("-H", "X-HTTP-Method-Override: DELETE")),
        ("/v1/messages", ("-H", "X-HTTP-Method-Override: no method")),
    ],
)
def test_a_model_endpoint_leads_only_where_the_policy_and_the_binding_say(rig, path, words):
    mark = rig.world.internet.mark()
    done = curl(rig, "--path-as-is", "-d", "x", *words, f"http://127.0.0.1:18080{path}")
    assert "ringfence refused" in done.stdout
    assert not requests(rig, mark)


def test_git_clones_with_a_placeholder_in_its_netrc_and_may_not_push(rig, world, tmp_path):
    bare = world.folder / "git" / "demo.git"
    work = tmp_path / "work"
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    for words in (
        ("init", "-q", "--bare", str(bare)),
        ("init", "-q", str(work)),
        ("-C", str(work), "commit", "-q", "--allow-empty", "-m", "one"),
        ("-C", str(work), "push", "-q", str(bare), "HEAD:refs/heads/main"),
        ("-C", str(bare), "symbolic-ref", "HEAD", "refs/heads/main"),
    ):
        subprocess.run(["git", *words], check=True, env=env)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(
        netrc((Credential(name="git", host="git.example.org", source=Source(file="/x")),), rig.worker.placeholders)
    )
    box_env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "GIT_SSL_CAINFO": str(rig.bundle),
        "GIT_TERMINAL_PROMPT": "0",
    }
    mark = world.internet.mark()
    target = str(tmp_path / "clone")
    done = rig.box.run(["git", "clone", "-q", "https://git.example.org/git/demo.git", target], env=box_env)
    assert done.returncode == 0, done.stderr
    subprocess.run(["git", "-C", target, "commit", "-q", "--allow-empty", "-m", "two"], check=True, env=env)
    done = rig.box.run(["git", "-C", target, "push", "-q", "origin", "HEAD:main"], env=box_env)
    assert done.returncode != 0
    assert "403" in done.stderr
    assert not [r for r in requests(rig, mark) if "receive-pack" in str(r["path"]) and r["method"] == "POST"]


# -- where the values are kept ----------------------------------------------------------------------------------------


def credential(**source):
    return Credential(name="x", host="example.org", source=Source(**source))


def test_values_come_from_files_of_ones_own_and_from_commands(tmp_path, secret_file):
    assert read_secret(credential(file=secret_file)) == SECRET
    assert read_secret(credential(command=("/bin/echo", "abc"))) == "abc"


@pytest.mark.parametrize(
    "source",
    [
        {"file": "/nonexistent"},
        {"command": ("echo", "x")},
        {"command": ("/bin/false",)},
        {"command": ("/bin/echo", "")},
        {"command": ("/bin/printf", "a\\nb")},
        {"command": ("/bin/sleep", "60")},
    ],
    ids=["missing", "relative", "fails", "empty", "two-lines", "slow"],
)
def test_values_that_cannot_be_had_are_faults_without_the_value(source, monkeypatch):
    monkeypatch.setattr("ringfence.egress.credentials.SECONDS", 0.3)
    with pytest.raises(RingfenceError) as caught:
        read_secret(credential(**source))
    assert caught.value.code == "credential-unreadable"


def test_a_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "token"
    path.write_text("leaky-value")
    path.chmod(0o644)
    with pytest.raises(RingfenceError) as caught:
        read_secret(credential(file=str(path)))
    assert "leaky-value" not in str(caught.value)


GOOD = {"name": "git", "host": "example.org", "source": {"file": "/x"}}


@pytest.mark.parametrize(
    "data",
    [
        [{**GOOD, "sauce": 1}],
        [GOOD, GOOD],
        [{**GOOD, "host": "Example.ORG."}],
        [{**GOOD, "host": "*.example.org"}],
        [{**GOOD, "source": {}}],
        [{**GOOD, "source": {"file": "/x", "command": ["/y"]}}],
        [{**GOOD, "port": 0}],
        [{**GOOD, "path": "x"}],
        [{**GOOD, "name": "a b"}],
        [{**GOOD, "port": "443"}],
        {"name": "x"},
    ],
)
def test_a_configuration_that_is_not_exactly_right_is_refused(data):
    with pytest.raises(RingfenceError) as caught:
        parse_credentials(data, where="config.yaml")
    assert caught.value.code == "credential-invalid"


def test_a_right_configuration_and_what_the_box_gets_of_it():
    (git,) = parse_credentials([GOOD], where="config.yaml")
    assert netrc([git], {"git": "P"}) == "machine example.org login x-access-token password P\n"
    model = Credential(name="m", host="a.example", source=Source(file="/x"), endpoint="m", variable="M_URL")
    assert environment([git, model], {"m": 18080}) == {"M_URL": "http://127.0.0.1:18080"}
    assert netrc([model], {"m": "P"}) == ""
