"""The user's network settings: strict, private, and turned into what a box and its worker get."""

import os

import pytest

from ringfence.model.call import ToolCall
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy
from ringfence.supervisor.missions import Mission
from ringfence.supervisor.netsettings import known_secrets, load_settings, opening_for
from ringfence.supervisor.paths import user_paths

NOW = Micros(1_790_000_000_000_000)


@pytest.fixture
def paths(tmp_path):
    found = user_paths(str(tmp_path))
    os.makedirs(found.config, mode=0o700)
    return found


def write(paths, text, mode=0o600):
    path = f"{paths.config}/network.yaml"
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def mission(**changes):
    fields = {
        "id": "m-0123456789abcdef",
        "root": "/r",
        "task": "",
        "agent": "",
        "policy_digest": "",
        "started": 1,
        "until": 0,
    }
    return Mission(**(fields | changes))


def policy(tmp_path, network="{}"):
    return Policy.parse(f"version: 1\nfail_closed: true\nnetwork: {network}\n", root=str(tmp_path))


def test_no_file_opens_nothing(paths, tmp_path):
    opening = opening_for(load_settings(paths), policy(tmp_path), mission(), home="/home/agent", now=NOW, noise="aa")
    assert (opening.credentials, opening.host_ports, opening.inbound, opening.mounts, opening.authority) == (
        (),
        (),
        False,
        (),
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "credentials: 3",
        "surprise: 1",
        "host_ports: [{port: 70000}]",
        "inbound: [{box: 0}]",
        "credentials: [{name: a, host: A.example.org, source: {file: /x}}]",
        "credentials: [{name: a, host: a.example.org, source: {}}]",
        "- a\n- b",
        "{{{",
        "a: !!python/object:os.system {}",
    ],
)
def test_what_is_not_exactly_right_is_refused(paths, text):
    write(paths, text)
    with pytest.raises(RingfenceError):
        load_settings(paths)


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_file_that_others_can_read_is_refused(paths, mode):
    write(paths, "version: 1\n", mode)
    with pytest.raises(RingfenceError, match="yours alone"):
        load_settings(paths)


def test_settings_are_read_anew_when_they_changed_and_only_then(paths, monkeypatch):
    write(paths, "version: 1\n")
    first = load_settings(paths)
    write(paths, "host_ports: [{port: 8080}]\n")
    second = load_settings(paths)
    assert [len(settings.host_ports) for settings in (first, second)] == [0, 1]
    monkeypatch.setattr("yaml.safe_load", lambda _file: pytest.fail("it is as it was"))
    assert load_settings(paths) == second
    os.chmod(f"{paths.config}/network.yaml", 0o644)
    with pytest.raises(RingfenceError, match="yours alone"):
        load_settings(paths)


def test_a_link_in_its_place_is_refused(paths):
    os.symlink("/etc/hostname", f"{paths.config}/network.yaml")
    with pytest.raises(RingfenceError):
        load_settings(paths)


def test_a_credential_becomes_a_placeholder_in_the_box_and_its_value_is_known_to_the_ledger(paths, tmp_path):
    secret = tmp_path / "token"
    secret.write_text("the-real-value-123456\n")
    secret.chmod(0o600)
    write(
        paths,
        f"credentials:\n  - {{name: git, host: git.example.org, path: /team, source: {{file: {secret}}}}}\n"
        f"  - {{name: model, host: api.example.com, endpoint: model, variable: MODEL_BASE_URL, source: {{file: {secret}}}}}\n",
    )
    settings = load_settings(paths)
    assert known_secrets(settings) == ("the-real-value-123456",) * 2
    opening = opening_for(settings, policy(tmp_path), mission(), home="/home/agent", now=NOW, noise="aabbcc")
    files = {mount.target: mount.content.decode() for mount in opening.mounts}
    assert "git.example.org" in files["/home/agent/.netrc"]
    assert dict(opening.placeholders)["git"] in files["/home/agent/.netrc"]
    assert all("the-real-value" not in text for text in files.values())
    assert "the-real-value" not in repr(opening)
    assert dict(opening.environment)["MODEL_BASE_URL"].startswith("http://127.0.0.1:")
    assert opening.options.inspection
    assert "BEGIN CERTIFICATE" in files["/run/ringfence-ca.crt"]
    assert "PRIVATE" not in files["/run/ringfence-ca.crt"]


def test_a_missions_own_grants_and_learning_are_added(paths, tmp_path):
    write(paths, "host_ports: [{port: 5432, to: '127.0.0.1:6432'}]\ninbound: [{box: 3000, host: 3001}]\n")
    wanted = mission(host_ports=(6379,), inbound=(8000,), learning_until=5)
    opening = opening_for(load_settings(paths), policy(tmp_path), wanted, home="/h", now=NOW, noise="aa")
    assert opening.host_ports == (5432, 6379)
    assert opening.options.host_ports == ((5432, "127.0.0.1", 6432), (6379, "127.0.0.1", 6379))
    assert opening.options.inbound == ((3001, 3000), (0, 8000))
    assert opening.options.learning_until == 5


def test_bodies_are_read_where_a_pattern_looks_into_them(paths, tmp_path):
    text = "version: 1\nfail_closed: true\nnetwork: {allow: [{host: a.example.org, methods: [POST]}]}\n"
    key = "patterns: [{id: key, on: [%s], regex: AKIA, tier: deny}]\n"
    for fields, read in (("net.path, net.body", True), ("net.path", False)):
        found = Policy.parse(text + key % fields, root=str(tmp_path))
        opening = opening_for(load_settings(paths), found, mission(), home="/h", now=NOW, noise="aa")
        assert opening.options.judge_bodies is read
        tiers = [
            found.decide(ToolCall.network("a.example.org", 443, method="POST", path="/", body=body)).tier
            for body in ("AKIA", "nothing")
        ]
        assert tiers == [Tier.DENY if read else Tier.ALLOW, Tier.ALLOW]


def test_inspection_is_on_where_a_rule_speaks_of_requests(paths, tmp_path):
    plain = policy(tmp_path, "{allow: [{host: a.example.org}]}")
    seeing = policy(tmp_path, "{allow: [{host: a.example.org, methods: [GET]}, {host: b.example.org}]}")
    assert not plain.inspects_anything
    assert seeing.inspects("a.example.org", 443)
    assert not seeing.inspects("b.example.org", 443)
    assert opening_for(load_settings(paths), seeing, mission(), home="/h", now=NOW, noise="aa").authority is not None
