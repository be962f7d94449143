"""The preset catalogue, dangers, clients' configuration and pinned file hosts."""

import datetime as dt
import json
import os

import pytest

from ringfence.egress.presets import (
    catalogue,
    danger_of,
    expand,
    find,
    moved,
    near_misses,
    overdue,
    presets_list,
)
from ringfence.egress.presets.clients import Index, read_indexes
from ringfence.egress.presets.lock import Lock, links_of, presets_lock, read_lock, write_lock
from ringfence.egress.rules import canonical_host
from ringfence.model.errors import PolicyError
from ringfence.model.tier import Tier

INDEX = Index(client="pip", url="https://pkg.example.org/simple", host="pkg.example.org", port=443, source="test")
NPM = Index(client="npm", url="https://node.example.org/", host="node.example.org", port=443, source="test")


@pytest.mark.parametrize("preset", presets_list(), ids=lambda preset: preset.name)
def test_every_preset_is_whole(preset):
    assert preset.title
    assert preset.risk
    assert preset.reviewed < preset.review_by
    assert preset.client or preset.hosts
    for host in preset.hosts:
        bare = host.host.removeprefix("*.")
        assert canonical_host(bare).text == bare
        assert canonical_host(bare).address is None
        assert host.without
        assert not host.host.startswith("*") or "." in bare
        assert set(host.ports) <= {80, 443}
        assert all(path.startswith("/") for path in host.paths)
        assert danger_of(host.host) is None, danger_of(host.host)


def test_the_clients_presets_name_no_host():
    assert [name for name, preset in catalogue().items() if preset.client] == ["pypi", "npm", "apt"]
    assert all(not find(name).hosts for name in ("pypi", "npm", "apt"))


def test_without_inspection_hosts_that_take_uploads_are_ask():
    rules = expand("github-read").rules
    assert {rule.tier for rule in rules} == {Tier.ASK}
    assert all(not rule.methods and not rule.paths for rule in rules)
    assert "not inspected" in rules[0].because
    assert {rule.tier for rule in expand("crates").rules} == {Tier.ALLOW}


def test_with_inspection_they_are_read_only_by_method_and_path():
    rules = expand("github-read", inspection=True).rules
    allowed = {
        (rule.host, path) for rule in rules if rule.tier is Tier.ALLOW and "POST" in rule.methods for path in rule.paths
    }
    assert allowed == {("github.com", "/**/git-upload-pack")}
    denied = {(rule.methods, rule.paths) for rule in rules if rule.tier is Tier.DENY and rule.host == "github.com"}
    assert (("POST",), ("/**/git-receive-pack",)) in denied


def test_an_expansion_has_a_digest_of_its_rules():
    assert expand("crates").digest == expand("crates").digest
    assert expand("crates").digest != expand("crates", inspection=True).digest


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(PolicyError) as caught:
        expand("githubread")
    assert "github-read" in caught.value.remedy


def test_pypi_is_what_the_client_says_plus_what_was_pinned():
    bare = expand("pypi", [INDEX])
    assert [rule.host for rule in bare.rules] == ["pkg.example.org"]
    assert "not pinned" in bare.notes[0]
    lock, _ = presets_lock(
        [INDEX], today="2026-11-29", fetch=pages({"pip": "pkgfiles.example.net"}), pages={"pip": ("pip",)}
    )
    rules = expand("pypi", [INDEX], pinned=lock.pinned).rules
    assert [(rule.host, rule.tier) for rule in rules] == [
        ("pkg.example.org", Tier.ALLOW),
        ("pkgfiles.example.net", Tier.ALLOW),
    ]
    other = Index(client="pip", url="https://other.example.com", host="other.example.com", port=443, source="x")
    assert "pkgfiles.example.net" not in {rule.host for rule in expand("pypi", [other], pinned=lock.pinned).rules}


def test_a_client_that_is_not_there_allows_nothing():
    assert expand("npm", [INDEX]).rules == ()
    assert "allows nothing" in expand("npm", [INDEX]).notes[0]


def pages(hosts):
    def fetch(url):
        name = url.rstrip("/").rpartition("/")[2]
        if name not in hosts:
            raise OSError("404")
        return url, f'<a href="https://{hosts[name]}/x/{name}.whl#sha256=0">x</a>'.encode()

    return fetch


def test_a_file_host_that_appears_later_is_ask_until_a_person_pins_it():
    names = {"pip": ("pip", "wheel")}
    first, _ = presets_lock([INDEX], today="2026-11-29", fetch=pages({"pip": "a.example.net"}), pages=names)
    moved_to = pages({"pip": "a.example.net", "wheel": "b.example.net"})
    second, told = presets_lock([INDEX], today="2026-12-01", before=first, fetch=moved_to, pages=names)
    assert second.pinned[0].new == ("b.example.net",)
    assert second.pinned[0].date == "2026-11-29"
    assert "b.example.net" in told[0]
    tiers = {rule.host: rule.tier for rule in expand("pypi", [INDEX], pinned=second.pinned).rules}
    assert tiers["b.example.net"] is Tier.ASK
    third, _ = presets_lock([INDEX], today="2026-12-02", before=second, accept_new=True, fetch=moved_to, pages=names)
    assert third.pinned[0].hosts == ("a.example.net", "b.example.net", "pkg.example.org")
    unreadable, told = presets_lock([INDEX], today="2026-12-03", before=third, fetch=pages({}), pages=names)
    assert unreadable == third
    assert "nothing was changed" in told[-1]


def test_links_of_every_kind_of_page():
    base = "https://pkg.example.org/simple/demo/"
    assert links_of(b'<a class="x" href="../../files/d.whl">d</a>', base) == ("https://pkg.example.org/files/d.whl",)
    simple = json.dumps({"files": [{"url": "https://f.example.net/d.whl"}, {"url": 3}, None]}).encode()
    assert links_of(simple, base) == ("https://f.example.net/d.whl",)
    document = json.dumps({"versions": {"1": {"dist": {"tarball": "https://t.example.net/d.tgz"}}, "2": 7}}).encode()
    assert links_of(document, base) == ("https://t.example.net/d.tgz",)
    assert links_of(b"[" * 100_000, base) == ()


def test_the_lock_is_written_whole_and_read_back(tmp_path):
    path = str(tmp_path / "presets.lock.json")
    assert read_lock(path) == Lock()
    lock, _ = presets_lock([INDEX], today="2026-11-29", fetch=pages({"pip": "a.example.net"}), pages={"pip": ("pip",)})
    write_lock(path, lock)
    assert read_lock(path) == lock
    assert os.stat(path).st_mode & 0o777 == 0o600
    (tmp_path / "presets.lock.json").write_text('{"version": "x"}')
    with pytest.raises(PolicyError, match="pinned hosts"):
        read_lock(path)


DANGEROUS = {
    "gist.github.com": "paste-and-webhook",
    "hooks.slack.com": "paste-and-webhook",
    "*.amazonaws.com": "any-tenant",
    "*.s3.amazonaws.com": "any-tenant",
    "**.googleapis.com": "any-tenant",
    "*.github.com": "publish",
    "*.githubusercontent.com": "own-domain-wildcard",
    "uploads.github.com": "publish",
    "upload.example.org": "publish",
    "a.ngrok.io": "tunnel",
    "o1.ingest.sentry.io": "telemetry-intake",
    "unpkg.com": "fetch-anything",
    "169.254.169.254": "identity-and-metadata",
    "dns.google": "name-resolution",
    "*.com": "any-tenant",
}


@pytest.mark.parametrize("host", DANGEROUS)
def test_dangerous_hosts_are_named(host):
    assert danger_of(host).name == DANGEROUS[host]


@pytest.mark.parametrize(
    "host", ["github.com", "example.org", "bucket.s3.amazonaws.com", "*.data.mcr.microsoft.com", "uploaded.example.org"]
)
def test_ordinary_hosts_are_not(host):
    assert danger_of(host) is None


def test_typing_errors_moves_and_reviews_are_seen():
    assert "index.crates.io" in near_misses("index.crate.io")
    assert near_misses("index.crates.io") == ()
    assert ("playwright", "cdn.playwright.dev") in moved("playwright.azureedge.net")
    assert overdue(dt.date(2020, 1, 1)) == ()
    assert set(overdue(dt.date(2099, 1, 1))) == set(catalogue())


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def program(folder, name, text):
    path = write(folder, f"bin/{name}", f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path


def indexes(machine):
    return read_indexes(home=str(machine / "home"), root=str(machine), path=str(machine / "bin"))


def test_configuration_of_user_and_system_is_read(machine):
    write(machine, "etc/pip.conf", "[global]\nindex-url = https://user:secret@pkg.example.org/simple\n")
    write(machine, "home/.config/uv/uv.toml", '[[index]]\nurl = "https://uv.example.org/simple"\n')
    write(
        machine,
        "home/.npmrc",
        "registry=https://node.example.org/\n@team:registry=https://team.example.net:8443/npm\n//x/:_authToken=secret\n",
    )
    write(
        machine,
        "etc/apt/sources.list",
        "# x\ndeb [signed-by=/k] http://mirror.example.org/debian stable main\ndeb-src cdrom:x y\n",
    )
    write(
        machine,
        "etc/apt/sources.list.d/a.sources",
        "Types: deb\nURIs: https://two.example.net/a\n http://three.example.net/b\nSuites: x\n\nEnabled: no\nURIs: http://off.example.net\n",
    )
    found = {(index.client, index.host, index.port) for index in indexes(machine)}
    assert found == {
        ("pip", "pkg.example.org", 443),
        ("pip", "uv.example.org", 443),
        ("npm", "node.example.org", 443),
        ("npm", "team.example.net", 8443),
        ("apt", "mirror.example.org", 80),
        ("apt", "two.example.net", 443),
        ("apt", "three.example.net", 80),
    }
    assert "secret" not in repr(indexes(machine))


def test_an_unset_index_is_asked_of_the_client_with_nothing_of_ours_around(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", "https://evil.example.net/simple")
    monkeypatch.setenv("npm_config_registry", "https://evil.example.net/")
    write(machine, "project/.npmrc", "registry=https://evil.example.net/\n")
    monkeypatch.chdir(machine / "project")
    program(
        machine,
        "pip",
        'echo "  --index-url <url>  Base URL (default ${PIP_INDEX_URL:-https://pkg.example.org/simple})"; pwd >"$HOME/cwd"',
    )
    program(
        machine,
        "npm",
        'echo "${npm_config_registry:-https://node.example.org/}"; echo $npm_config_logs_max >"$HOME/logs"',
    )
    assert {(index.client, index.host, index.source) for index in indexes(machine)} == {
        ("pip", "pkg.example.org", "built-in default"),
        ("npm", "node.example.org", "built-in default"),
    }
    assert (machine / "home/cwd").read_text() == "/\n"
    assert (machine / "home/logs").read_text() == "0\n", "a client leaves no log of a run that the person did not start"


@pytest.mark.parametrize(
    "text",
    ["[global\nindex-url=x", "[global]\nindex-url = ftp://x/y", "\xff\xfe"],
)
def test_broken_configuration_gives_no_index(machine, text):
    write(machine, "etc/pip.conf", text)
    write(machine, "home/.config/uv/uv.toml", "index = [[[")
    assert indexes(machine) == ()


def test_the_documented_table_is_the_catalogue():
    import pathlib
    import re

    text = (pathlib.Path(__file__).parents[2] / "docs" / "network.md").read_text()
    rows = dict(re.findall(r"(?m)^\| `([a-z0-9-]+)` \| .* \| (yes|no) \|$", text))
    assert rows == {name: "yes" if preset.name_only else "no" for name, preset in catalogue().items()}
    for preset in presets_list():
        assert all(f"`{host.host}`" in text for host in preset.hosts)
