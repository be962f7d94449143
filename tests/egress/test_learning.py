"""From a learning mission's log to rules: presets first, narrow, nothing dangerous, nothing that only failed."""

import pytest
import yaml

from ringfence.egress.learning import MAX_NEW, lint_rules, suggest_network
from ringfence.egress.presets import HostRule
from ringfence.egress.presets.clients import Index
from ringfence.egress.record import ConnectionLog
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier


def line(host, port=443, **more):
    given = {
        "protocol": "tls",
        "entry": "capture",
        "tier": Tier.DENY,
        "rule": "default",
        "outcome": "closed",
        "received": 10,
        "flags": ("learning",),
        "programs": ("/usr/bin/curl",),
    }
    return ConnectionLog(time=Micros(1), mission=MissionId("m"), host=host, port=port, **{**given, **more})


def rules(*lines, **more):
    return [rule.preset or f"{rule.host}:{rule.ports[0]}" for rule in suggest_network(lines, **more).rules]


def test_presets_come_first_and_single_hosts_after_them():
    found = rules(line("index.crates.io"), line("static.crates.io"), line("docs.example.org"), line("docs.example.org"))
    assert found == ["crates", "docs.example.org:443"]


def test_the_clients_own_index_becomes_its_preset():
    index = Index(client="pip", url="https://pkg.example.org/simple", host="pkg.example.org", port=443, source="x")
    assert rules(line("pkg.example.org"), indexes=[index]) == ["pypi"]


def test_a_wildcard_of_a_preset_covers_its_names_and_none_is_ever_proposed():
    assert rules(line("eastus.data.mcr.microsoft.com"), line("mcr.microsoft.com")) == ["mcr"]
    assert rules(line("a.cdn.example.org"), line("b.cdn.example.org")) == [
        "a.cdn.example.org:443",
        "b.cdn.example.org:443",
    ]


LEFT_OUT = {
    "webhook.site": "paste-and-webhook",
    "gist.github.com": "paste-and-webhook",
    "203.0.113.9": "raw address",
    "2001:db8::1": "raw address",
    "_http._tcp.example.org": "service record",
    "o1.ingest.sentry.io": "telemetry",
    "upload.example.org": "publish",
    "dns.google": "name-resolution",
}


@pytest.mark.parametrize("host", LEFT_OUT)
def test_what_looks_dangerous_is_left_out_and_said(host):
    proposal = suggest_network([line(host)])
    assert proposal.rules == ()
    assert LEFT_OUT[host] in proposal.left_out[0][1]


@pytest.mark.parametrize(
    "more",
    [{"outcome": "not-resolved"}, {"outcome": "unreachable"}, {"outcome": "reset", "received": 0}, {"received": 0}],
)
def test_what_only_ever_failed_is_left_out(more):
    proposal = suggest_network([line("typo.example.org", **more)])
    assert proposal.rules == ()
    assert "only ever failed" in proposal.left_out[0][1]


def test_ssh_data_labels_allowed_hosts_and_our_own_endpoints_are_not_proposed():
    lines = [
        line("git.example.org", 22),
        line("x.example.org", flags=("odd-labels", "learning")),
        line("known.example.org", tier=Tier.ALLOW),
        line("api.example.com", entry="endpoint"),
        line("box", entry="inbound"),
        line("n.example.org", entry="dns", protocol="dns", port=53),
        line("open.example.org", stage="decided", count=0),
    ]
    assert rules(*lines) == []


def test_a_cold_and_a_warm_run_are_compared():
    cold = [line("index.example.org"), line("files.example.org")]
    proposal = suggest_network(cold, [line("index.example.org")])
    assert "cold cache only: files.example.org" in proposal.notes[0]
    assert len(proposal.rules) == 2
    assert "only one run" in suggest_network(cold).notes[0]


def test_no_more_than_ten_new_hosts_at_once():
    proposal = suggest_network([line(f"h{n}.example.org", count=n + 1) for n in range(14)])
    assert len(proposal.rules) == MAX_NEW
    assert proposal.rules[0].host == "h13.example.org"
    assert any("14 new hosts" in note for note in proposal.notes)


def test_typing_errors_and_moves_are_noted():
    notes = suggest_network([line("index.crate.io"), line("playwright.azureedge.net")]).notes
    assert any("index.crates.io" in note for note in notes)
    assert any("cdn.playwright.dev" in note for note in notes)


POLICY = "version: 1\nfail_closed: true\nnetwork:\n  allow:\n    - preset: pypi\n"


def test_the_fragment_and_the_diff_are_yaml_that_says_just_this():
    proposal = suggest_network([line("docs.example.org", programs=("/tmp/x\n- host: evil",)), line("index.crates.io")])
    assert yaml.safe_load(proposal.fragment()) == {
        "network": {"allow": [{"preset": "crates"}, {"host": "docs.example.org", "ports": [443]}]}
    }
    diff = proposal.diff(POLICY)
    assert [text[0] for text in diff.splitlines() if "preset: crates" in text or "docs" in text] == ["+", "+"]
    assert proposal.diff("version: 1\n").count("+network:") == 1
    assert proposal.diff("network: {allow: false}\n") == proposal.fragment()
    assert suggest_network([]).diff(POLICY) == ""


def rule(host, tier=Tier.ALLOW, ports=(443,)):
    return HostRule(preset="", tier=tier, host=host, ports=ports)


def test_lint_names_what_an_allowlist_should_not_hold():
    found = " ".join(lint_rules([rule("*.amazonaws.com"), rule("a.example.org", ports=(22,)), rule("hooks.slack.com")]))
    assert "any-tenant" in found
    assert "port 22" in found
    assert "paste-and-webhook" in found
    assert lint_rules([rule("hooks.slack.com", Tier.DENY), rule("a.example.org")]) == ()
    assert "26 hosts" in lint_rules([rule(f"h{n}.example.org") for n in range(26)])[0]
