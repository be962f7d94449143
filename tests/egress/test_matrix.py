"""(rules, program, destination): the verdict as seen from outside the box, and the line in the log.

Every case states whether the program succeeds, whether a server of the test internet was reached, and which line the log
must hold. No refused case may take longer than three seconds: a refusal is never a hang.
"""

import dataclasses
import shutil
import sys
import time

import pytest

from ringfence.model.tier import Tier

ALLOWED = (
    "example.org:80",
    "example.org:443",
    "example.org:22",
    "example.org:2525",
    "example.org:2600",
    "example.org:2601",
    "example.org:9",
    "files.example.org:80",
    "www.example.org:443",
    "six.example.org:443",
    "big.example.org:80",
    "*.wild.example.org:443",
    "xn--bcher-kva.example:443",
    "203.0.113.99:443",
    "203.0.113.99:80",
    "198.51.100.0/28:80",
    "rebind.example.org:80",
    "mixed.example.org:80",
    "private.example.org:80",
    "loopback.example.org:80",
    "meta.example.org:80",
    "meta6.example.org:80",
    "mapped.example.org:80",
    "cgnat.example.org:80",
    "own.example.org:8000",
    "nowhere.example.org:80",
    "evil.example.net:443",
)
DENIED = ("evil.example.net:443",)
PROXY, SOCKS = "http://127.0.0.1:3128", "socks5h://127.0.0.1:1080"
DATA_LABEL = "k3jd92mxl1q8zv7wr5tn6ybc4hgf0paseuo2idkqmzx"


@pytest.fixture(scope="module")
def rig(rigs, kit):
    return rigs(kit.Rules(allow=ALLOWED, deny=DENIED), {"hello_millis": SILENCE, "dial_millis": SILENCE})


@dataclasses.dataclass(frozen=True)
class Case:
    """``words`` of curl (or a whole command line with ``argv``), and what must come of it."""

    name: str
    words: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    ok: bool = False
    reached: bool = False
    said: str = ""
    """Part of what the program printed."""
    log: tuple[tuple[str, object], ...] = ()
    rule: str = ""
    queried: str = ""
    """The one name that may have been asked upstream."""
    env: tuple[tuple[str, str], ...] = ()


def line(host: str, port: int, tier: Tier, **more: object) -> tuple[tuple[str, object], ...]:
    return (("host", host), ("port", port), ("tier", tier), *more.items())


def allowed(name, *words, host, port=443, queried=None, said="", **more):
    asked = host if queried is None else queried
    return Case(name, words, ok=True, reached=True, said=said, log=line(host, port, Tier.ALLOW, **more), queried=asked)


def refused(name, *words, host, port=443, rule="default", said="", reached=False, queried="", ok=False, **more):
    return Case(
        name,
        words,
        ok=ok,
        reached=reached,
        said=said,
        log=line(host, port, Tier.DENY, **more),
        rule=rule,
        queried=queried,
    )


def number(text: str) -> int:
    return int.from_bytes(bytes(map(int, text.split("."))))


AT_ONCE, SILENCE = 25.0, 40_000
"""Seconds and milliseconds. Whatever this worker waits for lasts longer than curl does, and than a refusal on any machine."""
META, OPEN = number("169.254.169.254"), number("203.0.113.99")

CURL = [
    # plain names
    allowed("http", "http://example.org/a", host="example.org", port=80, protocol="http", entry="capture"),
    allowed("https", "https://example.org/a", host="example.org", protocol="tls", entry="capture"),
    allowed("alias-in-dns", "https://www.example.org/", host="www.example.org"),
    allowed("answer-over-tcp", "http://big.example.org/", host="big.example.org", port=80),
    allowed("name-with-ipv6-only", "https://six.example.org/", host="six.example.org", address="2001:db8::66"),
    refused("unlisted-http", "http://example.net/", host="example.net", port=80, said="rule: default", ok=True),
    refused("unlisted-https", "https://example.net/", host="example.net", said="alert access denied"),
    refused("deny-beats-allow", "https://evil.example.net/", host="evil.example.net", rule="deny-evil.example.net:443"),
    refused("port-is-part-of-the-rule", "https://example.org:8443/", host="example.org", port=8443),
    refused("subdomain-of-a-plain-rule", "https://sub.example.org/", host="sub.example.org"),
    refused("suffix-trick", "https://notexample.org/", host="notexample.org"),
    refused("prefix-trick", "https://example.org.evil.example.net/", host="example.org.evil.example.net"),
    # spellings of names
    allowed("trailing-dot", "http://example.org./", host="example.org", port=80),
    allowed("mixed-case", "https://ExAmPlE.OrG/", host="example.org"),
    allowed("idn-as-punycode", "https://xn--bcher-kva.example/", host="xn--bcher-kva.example"),
    refused("idn-lookalike", "https://xn--xample-2of.org/", host="xn--xample-2of.org"),
    allowed("wildcard-one-label", "https://a.wild.example.org/", host="a.wild.example.org"),
    refused("wildcard-two-labels", "https://a.b.wild.example.org/", host="a.b.wild.example.org"),
    refused("wildcard-not-itself", "https://wild.example.org/", host="wild.example.org"),
    allowed(
        "data-in-a-label-is-flagged",
        f"https://{DATA_LABEL}.wild.example.org/",
        host=f"{DATA_LABEL}.wild.example.org",
        flags=("odd-labels",),
    ),
    # literals
    allowed("literal-by-literal-rule", "https://203.0.113.99/", host="203.0.113.99", queried=""),
    allowed("literal-by-range", "http://198.51.100.7/", host="198.51.100.7", port=80, queried=""),
    refused("literal-outside-range", "http://198.51.100.16/", host="198.51.100.16", port=80, ok=True),
    refused("address-of-an-allowed-name", "https://203.0.113.10/", host="203.0.113.10"),
    refused("literal-ipv6", "https://[2001:db8::10]/", host="2001:db8::10"),
    allowed("literal-decimal", f"http://{OPEN}/", host="203.0.113.99", port=80, queried=""),
    refused(
        "name-on-a-literal",
        "--resolve",
        "example.org:443:203.0.113.99",
        "https://example.org/",
        host="203.0.113.99",
        rule="egress/name-mismatch",
    ),
    refused(
        "synthetic-never-given",
        "http://198.18.200.200/",
        host="198.18.200.200",
        port=80,
        rule="egress/unknown-synthetic",
    ),
    refused(
        "synthetic-never-given-6",
        "http://[fd72:6e66:6365::ffff]/",
        host="fd72:6e66:6365::ffff",
        port=80,
        rule="egress/unknown-synthetic",
    ),
    # the floor
    *(
        refused(
            f"metadata-{name}",
            url,
            host=host,
            port=80,
            rule="floor/metadata",
            ok=True,
            said="floor/metadata",
            flags=("violation",),
        )
        for name, url, host in (
            ("plain", "http://169.254.169.254/latest/", "169.254.169.254"),
            ("decimal", f"http://{META}/", "169.254.169.254"),
            ("octal", "http://0251.0376.0251.0376/", "169.254.169.254"),
            ("hex", "http://0xA9FEA9FE/", "169.254.169.254"),
            ("short", "http://169.254.43518/", "169.254.169.254"),
            ("mapped", "http://[::ffff:169.254.169.254]/", "169.254.169.254"),
            ("ipv6", "http://[fd00:ec2::254]/", "fd00:ec2::254"),
            ("wire-server", "http://168.63.129.16/", "168.63.129.16"),
        )
    ),
    *(
        refused(
            f"name-to-{kind}",
            f"http://{name}:{port}/",
            host=name,
            port=port,
            rule=f"floor/{kind}",
            ok=True,
            queried=name,
            flags=("violation",),
        )
        for name, kind, port in (
            ("meta.example.org", "metadata", 80),
            ("meta6.example.org", "metadata", 80),
            ("mapped.example.org", "metadata", 80),
            ("private.example.org", "private", 80),
            ("mixed.example.org", "private", 80),
            ("loopback.example.org", "loopback", 80),
            ("cgnat.example.org", "cgnat", 80),
        )
    ),
    refused(
        "name-to-own-address",
        "http://own.example.org:8000/",
        host="own.example.org",
        port=8000,
        rule="floor/own-address",
        queried="own.example.org",
        ok=True,
    ),
    # redirects
    allowed(
        "redirect-to-allowed",
        "-L",
        "http://example.org/redirect?to=http://files.example.org/",
        host="files.example.org",
        port=80,
        queried="*",
    ),
    refused(
        "redirect-to-metadata",
        "-L",
        "http://example.org/redirect?to=http://169.254.169.254/",
        host="169.254.169.254",
        port=80,
        rule="floor/metadata",
        reached=True,
        ok=True,
        queried="example.org",
    ),
    refused(
        "redirect-to-unlisted",
        "-L",
        "http://example.org/redirect?to=http://example.net/",
        host="example.net",
        port=80,
        reached=True,
        ok=True,
        queried="example.org",
    ),
    # fronting
    refused(
        "host-header-of-another",
        "-H",
        "Host: evil.example.net",
        "http://example.org/",
        host="example.org",
        port=80,
        rule="egress/name-mismatch",
        ok=True,
    ),
    refused(
        "host-header-other-port",
        "-H",
        "Host: example.org:81",
        "http://example.org/",
        host="example.org",
        port=80,
        rule="egress/name-mismatch",
        ok=True,
    ),
    refused(
        "sni-of-another",
        "--connect-to",
        "evil.example.net:443:example.org:443",
        "https://evil.example.net/",
        host="example.org",
        rule="egress/name-mismatch",
    ),
    # upstream trouble is said, not waited for
    Case(
        "name-that-does-not-resolve",
        ("http://nowhere.example.org/",),
        ok=True,
        said="egress/not-resolved",
        queried="nowhere.example.org",
        log=line("nowhere.example.org", 80, Tier.ALLOW, outcome="not-resolved"),
    ),
    # proxy entries
    allowed("connect", "-x", PROXY, "https://example.org/", host="example.org", entry="http-proxy", protocol="tls"),
    allowed("absolute-uri", "-x", PROXY, "http://example.org/", host="example.org", port=80, entry="http-proxy"),
    allowed("socks-name", "-x", SOCKS, "https://example.org/", host="example.org", entry="socks"),
    allowed(
        "socks-name-looked-up-in-the-box",
        "-x",
        "socks5://127.0.0.1:1080",
        "https://example.org/",
        host="example.org",
        entry="socks",
    ),
    allowed(
        "socks-literal",
        "-x",
        "socks5://127.0.0.1:1080",
        "https://203.0.113.99/",
        host="203.0.113.99",
        entry="socks",
        queried="",
    ),
    refused(
        "connect-unlisted",
        "-x",
        PROXY,
        "https://example.net/",
        host="example.net",
        entry="http-proxy",
        said="response 403",
    ),
    refused(
        "connect-other-port",
        "-x",
        PROXY,
        "https://example.org:8443/",
        host="example.org",
        port=8443,
        entry="http-proxy",
        said="response 403",
    ),
    refused(
        "absolute-uri-unlisted",
        "-x",
        PROXY,
        "http://example.net/",
        host="example.net",
        port=80,
        entry="http-proxy",
        ok=True,
        said="rule: default",
    ),
    refused(
        "absolute-uri-two-hosts",
        "-x",
        PROXY,
        "-H",
        "Host: example.net",
        "http://example.org/",
        host="(unreadable)",
        port=0,
        rule="egress/bad-request",
        ok=True,
    ),
    refused(
        "connect-metadata-decimal",
        "-x",
        PROXY,
        "-p",
        f"http://{META}/",
        host="169.254.169.254",
        port=80,
        rule="floor/metadata",
        said="response 403",
    ),
    refused(
        "connect-fronting",
        "-x",
        PROXY,
        "--connect-to",
        "evil.example.net:443:example.org:443",
        "https://evil.example.net/",
        host="example.org",
        rule="egress/name-mismatch",
        queried="example.org",
        reached=True,
    ),
    refused(
        "proxy-through-proxy",
        "-x",
        PROXY,
        "-p",
        "http://127.0.0.1:3128/",
        host="127.0.0.1",
        port=3128,
        rule="floor/loopback",
    ),
    refused("socks-unlisted", "-x", SOCKS, "https://example.net/", host="example.net", entry="socks"),
    refused(
        "socks-unlisted-looked-up-in-the-box",
        "-x",
        "socks5://127.0.0.1:1080",
        "https://example.net/",
        host="example.net",
        entry="socks",
    ),
    refused(
        "socks-metadata",
        "-x",
        SOCKS,
        "http://169.254.169.254/",
        host="169.254.169.254",
        port=80,
        rule="floor/metadata",
        entry="socks",
    ),
    refused(
        "a-proxy-of-their-own",
        "-x",
        "http://evil.example.net:3128",
        "https://example.org/",
        host="evil.example.net",
        port=3128,
        rule="egress/chained-proxy",
    ),
]


@pytest.mark.parametrize("case", CURL, ids=lambda case: case.name)
def test_curl(rig, case):
    check(rig, case, lambda: rig.curl("-k" if "203.0.113.99" in str(case.words) else "-s", *case.words))


def check(rig, case, run):
    internet = rig.world.internet
    before = len(rig.lines)
    mark = internet.mark()
    begun = time.monotonic()
    done = run()
    took = time.monotonic() - begun
    seen = internet.contacts(mark)
    printed = done.stdout + done.stderr
    assert (done.returncode == 0) == case.ok, printed
    assert case.said in printed
    if not case.ok or not case.reached:
        assert took < AT_ONCE, f"refusal took {took:.1f} s: {printed}"
    assert any(c["server"] in {"http", "https", "raw"} for c in seen) == case.reached or (
        # a connection that was allowed and then found to be fronting reaches the server, but carries nothing
        case.rule == "egress/name-mismatch" and not any(c["server"] in {"http", "https"} for c in seen)
    ), seen
    if case.queried != "*":
        queried = {c["name"] for c in seen if c["server"] == "dns"}
        assert queried <= {case.queried, case.queried.removeprefix("www.")}, "a name left that was not allowed"
    found = rig.log(**dict(case.log))
    assert found, f"not in the log: {case.log}; there is: {rig.lines[before:]}"
    if case.rule:
        assert case.rule in {entry.rule for entry in found}


# -- other programs ---------------------------------------------------------------------------------------------------

PYTHON = sys.executable
FETCH_JS = "fetch(process.argv[1]).then(r=>r.text()).then(t=>console.log(t)).catch(e=>{console.error(String(e.cause||e));process.exit(1)})"
URLLIB = "import sys,urllib.request as u; print(u.urlopen(sys.argv[1],timeout=8).read().decode())"
DEV_TCP = 'exec 3<>/dev/tcp/$0/$1 || exit 1; printf "GET / HTTP/1.1\\r\\nHost: $0\\r\\nConnection: close\\r\\n\\r\\n" >&3; cat <&3'
SOURCE = """
import java.net.*; import java.io.*;
public class Fetch { public static void main(String[] a) throws Exception {
  System.out.println(new String(new URL(a[0]).openStream().readAllBytes())); } }
"""
PROGRAMS = {
    "wget": lambda url: ("wget", "-q", "-T", "8", "-t", "1", "-O", "-", url),
    "node-fetch": lambda url: ("node", "-e", FETCH_JS, url),
    "python-urllib": lambda url: (PYTHON, "-I", "-c", URLLIB, url),
    "dev-tcp": lambda url: ("bash", "-c", DEV_TCP, url.split("/")[2], "80"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_without_any_variable_reach_what_is_allowed(rig, program):
    case = Case(program, ok=True, reached=True, log=line("example.org", 80, Tier.ALLOW), queried="example.org")
    check(rig, case, lambda: rig.run(*PROGRAMS[program]("http://example.org/p"), timeout=30))


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_without_any_variable_are_refused_the_rest(rig, program):
    argv = PROGRAMS[program]("http://example.net/p")
    ok = program in {"dev-tcp", "node-fetch"}  # they show the 403's page; the others fail on it
    said = {"wget": "", "python-urllib": "403"}.get(program, "rule: default")
    case = Case(program, ok=ok, said=said, log=line("example.net", 80, Tier.DENY), rule="default")
    check(rig, case, lambda: rig.run(*argv, timeout=30))


@pytest.mark.skipif(shutil.which("java") is None, reason="no java here")
@pytest.mark.slow
@pytest.mark.parametrize(("host", "tier"), [("example.org", Tier.ALLOW), ("example.net", Tier.DENY)])
def test_java_ignores_variables_and_is_captured(rig, tmp_path, host, tier):
    source = tmp_path / "Fetch.java"
    source.write_text(SOURCE)
    done = rig.run("java", str(source), f"http://{host}/java", timeout=60)
    assert (done.returncode == 0) == (tier is Tier.ALLOW), done.stderr
    assert rig.log(host=host, port=80, tier=tier)


STATIC = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int c, char **v) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(v[2]))};
  inet_pton(AF_INET, v[1], &a.sin_addr);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(s, (void *)&a, sizeof a)) { perror("connect"); return 1; }
  char b[4096]; snprintf(b, sizeof b, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", v[1]);
  write(s, b, strlen(b));
  int n; while ((n = read(s, b, sizeof b)) > 0) write(1, b, n);
  return 0; }
"""


@pytest.fixture(scope="module")
def static_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    (folder / "fetch.c").write_text(STATIC)
    double_run = shutil.which("gcc") or "cc"
    import subprocess

    subprocess.run([double_run, "-static", "-w", "-o", folder / "fetch", folder / "fetch.c"], check=True)
    return str(folder / "fetch")


@pytest.mark.parametrize(("address", "tier"), [("203.0.113.99", Tier.ALLOW), ("203.0.113.10", Tier.DENY)])
def test_a_static_program_with_an_empty_environment_is_captured(rig, static_program, address, tier):
    allow = tier is Tier.ALLOW
    case = Case("static", ok=True, reached=allow, said="hello" if allow else "403", log=line(address, 80, tier))
    check(rig, case, lambda: rig.run(static_program, address, "80", env={}))


@pytest.mark.parametrize("url", ["https://example.org/", "https://example.net/"])
def test_every_entry_gives_the_same_verdict(rig, url):
    host = url.split("/")[2]
    codes = [rig.curl(*words, url).returncode == 0 for words in ((), ("-x", PROXY), ("-x", SOCKS))]
    assert len(set(codes)) == 1
    for entry in ("capture", "http-proxy", "socks"):
        assert rig.log(host=host, entry=entry, tier=Tier.ALLOW if codes[0] else Tier.DENY)


@pytest.mark.parametrize(
    "env",
    [
        {"https_proxy": PROXY, "NO_PROXY": "*"},
        {"https_proxy": PROXY, "no_proxy": "example.net"},
        {"https_proxy": "http://203.0.113.10:3128"},
        {"ALL_PROXY": "socks5h://evil.example.net:1080"},
    ],
    ids=["no-proxy-star", "no-proxy-name", "own-proxy-address", "own-proxy-name"],
)
def test_no_variable_opens_what_is_not_allowed(rig, env):
    mark = rig.world.internet.mark()
    done = rig.curl("https://example.net/", env={"PATH": "/usr/bin", **env})
    assert done.returncode != 0
    assert not rig.world.internet.contacts(mark)


APT = ("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root")


def test_apt_fetches_over_plain_http(rig, tmp_path):
    target = str(tmp_path / "got")
    tmp_path.chmod(0o777)
    done = rig.run(*APT, "download-file", "http://example.org/apt", target, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr
    again = rig.run(*APT, "download-file", "http://example.net/apt", target + "2", timeout=30)
    assert again.returncode != 0
    assert "403" in again.stdout + again.stderr


def ssh(rig, host, port=22):
    words = ("-F", "/dev/null", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "StrictHostKeyChecking=no")
    return rig.run("ssh", *words, "-p", str(port), f"git@{host}", "true", timeout=20)


def test_ssh_is_captured_without_a_proxy_command(rig):
    mark = rig.world.internet.mark()
    ssh(rig, "example.org")
    assert [c for c in rig.world.internet.contacts(mark) if c["server"] == "raw" and "SSH-2.0" in str(c.get("first"))]
    assert rig.log(host="example.org", port=22, protocol="ssh", tier=Tier.ALLOW)


def test_ssh_to_an_unlisted_host_is_told_why(rig):
    done = ssh(rig, "example.net")
    assert done.returncode != 0
    assert "ringfence refused example.net:22, rule default: no rule allows this host" in done.stderr
    assert rig.log(host="example.net", port=22, tier=Tier.DENY, rule="default")


def test_ssh_over_the_web_port_is_refused(rig):
    assert ssh(rig, "example.org", 443).returncode != 0
    assert rig.log(host="example.org", port=443, rule="egress/not-web")


def test_a_server_that_speaks_first_is_heard(rig):
    done = rig.run("bash", "-c", "exec 3<>/dev/tcp/example.org/2525; read -r l <&3; echo got $l")
    assert "got 220 ready" in done.stdout
    assert rig.log(host="example.org", port=2525, protocol="tcp", tier=Tier.ALLOW)


@pytest.mark.parametrize(("port", "outcome"), [(9, "unreachable"), (2601, "reset")])
def test_upstream_refusals_come_through_at_once(rig, port, outcome):
    begun = time.monotonic()
    rig.run("bash", "-c", f"exec 3<>/dev/tcp/example.org/{port}; echo hi >&3; cat <&3")
    assert time.monotonic() - begun < AT_ONCE
    assert rig.log(host="example.org", port=port, outcome=outcome)


def test_rebinding_meets_the_floor_and_a_pinned_answer_stays(rig):
    assert rig.curl("http://rebind.example.org/").returncode == 0
    mark = rig.world.internet.mark()
    time.sleep(1.3)
    done = rig.curl("http://rebind.example.org/")
    assert "floor/private" in done.stdout
    assert {c["server"] for c in rig.world.internet.contacts(mark)} == {"dns"}
    assert rig.log(host="rebind.example.org", rule="floor/private", tier=Tier.DENY, address="192.168.77.1")
