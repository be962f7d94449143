"""Policy, box, worker and ledger together: what a program in a real box can reach, and what is written of each try."""

import contextlib
import http.server
import json
import shutil
import threading

import pytest

pytestmark = pytest.mark.needs_userns

FETCH = """\
import json, socket, sys, urllib.request
found = {}
for name, url in json.loads(sys.argv[1]).items():
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            found[name] = answer.read(200).decode()
    except Exception as error:
        body = error.read(300).decode() if hasattr(error, "read") else ""
        found[name] = f"{type(error).__name__} {getattr(error, 'code', '')} {body}"
print(json.dumps(found))
"""


@contextlib.contextmanager
def host_server():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from the host")

        def log_message(self, *_):
            """Nothing to say."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def networked(cli):
    policy = cli.project / "sandbox_policy.yaml"
    text = policy.read_text().replace(
        "network: {allow: false}\n", "network: {allow: [{host: allowed.example.org, ports: [80]}]}\n"
    )
    policy.write_text(text)
    (cli.project / "fetch.py").write_text(FETCH)
    assert cli("policy", "trust", "--yes").returncode == 0
    return cli


def fetch(cli, urls, *words):
    cli.task(f"python3 fetch.py '{json.dumps(urls)}'\n")
    report = cli.json("run", "--json", *words, "--", "sh", "task.sh", timeout=120)
    assert report["exit"] == 0, report
    return json.loads(report["stdout"])


def tries(cli):
    return [json.loads(line) for line in cli("egress", "log", "--json").stdout.splitlines()]


def test_what_no_rule_allows_is_refused_at_once_with_the_rule_and_logged(networked):
    got = fetch(networked, {"other": "http://other.example.net/", "metadata": "http://169.254.169.254/latest/"})
    assert "403" in got["other"]
    assert "commands.default" in got["other"]
    assert "403" in got["metadata"]
    seen = {line["host"]: line for line in tries(networked)}
    assert (seen["other.example.net"]["tier"], seen["other.example.net"]["rule"]) == ("deny", "commands.default")
    assert seen["169.254.169.254"]["rule"] == "floor/metadata"
    assert "violation" in seen["169.254.169.254"]["flags"]
    assert any("python" in program for program in seen["other.example.net"]["programs"])


def test_what_was_refused_is_named_at_the_end_since_tls_can_say_no_reason(networked):
    networked.task('python3 fetch.py \'{"a": "https://other.example.net/", "b": "https://other.example.net/"}\'\n')
    done = networked("run", "--", "sh", "task.sh", timeout=120)
    told = [line for line in done.stderr.splitlines() if "other.example.net" in line]
    expected = "ringfence refused other.example.net:443: no network rule covers this host and port [commands.default]"
    assert told == [expected]
    assert "egress log --refused" in done.stderr
    networked.task("true\n")
    assert "refused" not in networked("run", "--", "sh", "task.sh", timeout=120).stderr


PROGRAMS = {
    "curl": ("curl", "curl -sS {url}"),
    "wget": ("wget", "wget -q --content-on-error -O - {url}"),
    "git": ("git", "git ls-remote {url}.git 2>&1"),
    "npm": ("npm", "npm view none --registry {url}/ --fetch-retries=0 2>&1"),
    "node": ("node", "node -e \"fetch('{url}').then(r=>r.text()).then(console.log,console.log)\""),
    "python": (
        "python3",
        "python3 -c \"import urllib.request as u,urllib.error as e\ntry: u.urlopen('{url}')\nexcept e.HTTPError as f: print(f.read())\"",
    ),
}


@pytest.mark.parametrize("name", [name for name, (program, _) in PROGRAMS.items() if shutil.which(program)])
def test_programs_take_the_certificate_of_an_inspected_host(cli, name):
    policy = cli.project / "sandbox_policy.yaml"
    rule = "network: {allow: [{host: seen.example.org, methods: [GET], paths: ['/none']}]}\n"
    policy.write_text(policy.read_text().replace("network: {allow: false}\n", rule))
    assert cli("policy", "trust", "--yes").returncode == 0
    cli.task("umask 077\n" + PROGRAMS[name][1].format(url="https://seen.example.org/x") + "\n")
    done = cli("run", "--", "sh", "task.sh", timeout=120)
    assert "ringfence refused" in done.stdout or "403" in done.stdout, done


def test_a_server_of_the_host_is_reached_by_a_grant_of_a_person_and_not_without(networked):
    with host_server() as port:
        urls = {"host": f"http://127.0.0.1:{port}/"}
        assert "from the host" not in fetch(networked, urls)["host"]
        mission = networked("mission", "start", "--host-port", str(port)).stdout.strip()
        assert fetch(networked, urls, "--mission", mission)["host"] == "from the host"
    assert any(line["entry"] == "host-port" and line["tier"] == "allow" for line in tries(networked))


def test_learning_is_logged_as_what_it_would_have_been_and_suggests_nothing_that_only_failed(networked):
    mission = networked("mission", "start", "--learn", "5m").stdout.strip()
    fetch(networked, {"new": "http://new.example.net/", "metadata": "http://169.254.169.254/"}, "--mission", mission)
    seen = {line["host"]: line for line in tries(networked)}
    assert "learning" in seen["new.example.net"]["flags"]
    assert "learning" not in seen["169.254.169.254"].get("flags", [])
    suggested = networked("policy", "suggest", "--network", "--mission", mission)
    assert "new.example.net" in suggested.stderr
    assert "+" not in suggested.stdout


def test_without_a_network_nothing_is_reached_and_the_try_is_seen(cli):
    (cli.project / "fetch.py").write_text(FETCH)
    got = fetch(cli, {"other": "http://192.0.2.1/"})
    assert "Error" in got["other"]
    shown = cli("ledger", "show", "--json").stdout
    assert "192.0.2.1" in shown


def test_broken_network_settings_let_nothing_with_a_network_run(networked):
    path = networked.root / "config" / "network.yaml"
    path.parent.mkdir(exist_ok=True, mode=0o700)
    path.write_text("surprise: 1\n")
    path.chmod(0o600)
    done = networked("run", "--", "true")
    assert done.returncode == 3
    assert "bad-network-settings" in done.stderr


def test_a_policy_with_a_network_preset_is_trusted_once_and_in_force(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(policy.read_text().replace("network: {allow: false}\n", "network: {allow: [{preset: crates}]}\n"))
    shown = cli("policy", "trust", "--yes")
    assert "connect  index.crates.io" in shown.stdout
    cli.task("curl -sS http://other.example.net/\n")
    done = cli("run", "--", "sh", "task.sh", timeout=120)
    assert "ringfence refused other.example.net:80" in done.stderr, done
