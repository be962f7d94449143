"""``ringfence egress log`` over a real ledger: rows, lines, filters, following, and text that would fool a terminal."""

import json
import types
from dataclasses import replace

import pytest

from ringfence.cli import egress
from ringfence.cli.main import main
from ringfence.egress.record import ConnectionLog
from ringfence.ledger.log import Ledger
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import Micros, MissionId
from ringfence.model.tier import Tier

LINE = ConnectionLog(
    time=Micros(1_790_000_000_000_000),
    mission=MissionId("m-1"),
    host="example.org",
    address="203.0.113.10",
    port=443,
    protocol="tls",
    entry="capture",
    sent=700,
    received=5_000_000,
    tier=Tier.ALLOW,
    rule="files",
    outcome="closed",
    programs=("/usr/bin/curl", "/bin/bash"),
)
DENIED = replace(
    LINE, host="evil.example.net", address="", tier=Tier.DENY, rule="default", outcome="refused", sent=0, received=0
)
FLOOR = replace(DENIED, host="169.254.169.254", port=80, rule="floor/metadata", flags=("violation",))


@pytest.fixture
def written(tmp_path):
    root = tmp_path / "root"
    ledger = Ledger.open(str(root / "state" / "ledger"))

    def write(*lines):
        ledger.append([line.entry_of() for line in lines])

    write(replace(LINE, stage="decided", count=0, sent=0, received=0, outcome=""), LINE)
    write(
        replace(LINE, stage="summary", count=7, received=100), DENIED, replace(DENIED, stage="summary", count=41), FLOOR
    )
    write(replace(LINE, mission=MissionId("m-2"), host="example.net\x1b[2J", rule="x"))
    write(replace(LINE, mission=MissionId("m-2"), host="still.example.org", stage="decided", count=0))
    yield root, write
    ledger.close()


def log(capsys, root, *words):
    assert main(["--test-root", str(root), "egress", "log", *words]) == 0
    return capsys.readouterr().out


def test_one_row_for_each_destination_with_exact_counts(written, capsys):
    out = log(capsys, written[0])
    rows = {row.split()[4]: row for row in out.splitlines()[1:]}
    assert " 8 " in rows["example.org:443"]
    assert "4.8 MiB" in rows["example.org:443"]
    assert "/usr/bin/curl < /bin/bash" in rows["example.org:443"]
    assert " 42 " in rows["evil.example.net:443"]
    assert "open" in rows["still.example.org:443"]
    assert "(ALERT)" in out


def test_nothing_a_terminal_would_obey_is_printed(written, capsys):
    assert "\x1b" not in log(capsys, written[0])
    assert "\x1b" not in log(capsys, written[0], "--json")


def test_every_line_as_json(written, capsys):
    lines = [json.loads(text) for text in log(capsys, written[0], "--json").splitlines()]
    assert sum(line["count"] for line in lines) == 52
    assert lines[0]["stage"] == "decided"
    assert {"time", "mission", "host", "port", "protocol", "entry", "tier", "rule"} <= set(lines[1])


@pytest.mark.parametrize(
    ("words", "hosts"),
    [
        (("--mission", "m-1", "--refused"), {"evil.example.net", "169.254.169.254"}),
        (("--host", "example.org"), {"example.org"}),
        (("--mission", "none"), set()),
    ],
)
def test_filters(written, capsys, words, hosts):
    lines = [json.loads(text) for text in log(capsys, written[0], "--json", *words).splitlines()]
    assert {line["host"] for line in lines} == hosts


def test_following_prints_what_comes_later(written, capsys, monkeypatch):
    root, write = written

    class Over(Exception): ...

    hosts = iter(("later.example.net", "latest.example.net"))

    def come(_seconds):
        host = next(hosts, None)
        if host is None:
            raise Over
        write(replace(DENIED, host=host))

    monkeypatch.setattr(egress, "time", types.SimpleNamespace(sleep=come))
    with pytest.raises(Over):
        log(capsys, root, "--follow", "--refused")
    out = capsys.readouterr().out
    assert "later.example.net:443" in out
    assert "latest.example.net:443" in out


def test_an_empty_ledger_gives_only_the_headings(tmp_path, capsys):
    assert log(capsys, tmp_path / "none").splitlines()[0].startswith("first seen")


def test_tries_of_boxes_without_a_network_are_in_it(tmp_path, capsys):
    root = tmp_path / "root"
    seen = [
        {"kind": "exec", "detail": "/usr/bin/curl"},
        {"kind": "egress", "detail": "tcp 203.0.113.9 port 80", "count": 2},
        {"kind": "egress", "detail": "name c2.example.invalid"},
        {"kind": "floor", "detail": "tcp 169.254.169.254 port 80"},
        {"kind": "egress", "detail": "icmp 203.0.113.9"},
        {"kind": "egress", "detail": "tcp 127.0.0.1 port 631, nobody listens"},
        {"kind": "egress", "detail": "more than could be logged"},
    ]
    with Ledger.open(str(root / "state" / "ledger")) as ledger:
        body = {"exit": 0, "observations": seen}
        ledger.append([Entry(kind=EntryKind.RESULT, time=LINE.time, mission=LINE.mission, call="c-1", body=body)])
    found = [json.loads(row) for row in log(capsys, root, "--json").splitlines()]
    assert [(one["host"], one.get("port"), one["protocol"], one["rule"], one["count"]) for one in found] == [
        ("203.0.113.9", 80, "tcp", "egress/no-network", 2),
        ("c2.example.invalid", 53, "dns", "egress/no-network", 1),
        ("169.254.169.254", 80, "tcp", "floor/metadata", 1),
        ("203.0.113.9", None, "icmp", "egress/no-network", 1),
        ("127.0.0.1", 631, "tcp", "egress/own-loopback", 1),
        ("(tries without a line)", None, "any", "egress/no-network", 1),
    ]
    assert "deny (ALERT)" in log(capsys, root)
    assert len(log(capsys, root, "--refused").splitlines()) == 7
