"""Exports: a bundle that verifies itself on another machine, and rows that cannot break out of their format."""

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.ledger import admin, export, export_ocsf, export_rows, note, proof, retention, tree
from ringfence.ledger.index import Index
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.verify import verify
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.person import Person

NASTY = 'a|b=c\\d\ne\r\nf,"g" =cmd() \u202e\x1b[0m 日本'
SECRET = "ghp_" + "a1B2" * 9
HASH = "ab" * 32


def intent(number: int, tier: str = "allow", request=None, kind: str = "rule") -> dict:
    return {
        "request": request or {"kind": "argv", "argv": ["git", f"x{number}", SECRET]},
        "decision": {"tier": tier, "policy": HASH, "reasons": [{"rule": "r1", "tier": tier, "kind": kind}]},
    }


@pytest.fixture
def filled(make_ledger, make_entry):
    with make_ledger() as ledger:
        for number in range(60):
            ledger.append([make_entry(number, body=intent(number, "allow" if number % 3 else "deny"))])
            ledger.append(
                [make_entry(number, EntryKind.RESULT, body={"exit": 0, "duration": 5}, personal={"out": "Anna"})]
            )
        ledger.checkpoint()
        yield ledger


def check(folder: Path, *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-I", "-S", "verify.py", ".", "--strict", "--now", "1800000001000000", *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["checkpoint", "segments/{:020d}.seg", "segments/{:020d}.seg.gz"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_is_no_file_of_the_log_is_never_carried_into_an_export(filled, tmp_path, name, kind):
    filled.close()
    private = tmp_path / "private"
    private.write_text("a secret of somebody")
    path = Path(filled.directory, name.format(10**6))
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(private)
    else:
        os.mkfifo(path)
    for act in (
        lambda: export.bundle(filled.directory, str(tmp_path / "out")),
        lambda: list(export.rows(filled.directory, "in-toto", mission="m-1")),
    ):
        with pytest.raises(LedgerError, match="ledger-altered"):
            act()
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file() and b"somebody" in p.read_bytes()]


def test_what_the_read_me_tells_to_type_runs_nothing_but_the_verifier(filled, tmp_path):
    out = tmp_path / "out"
    export.bundle(filled.directory, str(out))
    (tmp_path / "head").write_bytes((out / "checkpoint").read_bytes())
    for name in ("argparse", "json", "re", "sitecustomize"):
        (out / f"{name}.py").write_text("print('OK says somebody else')\nraise SystemExit(0)\n")
    (line,) = [line.strip() for line in (out / "README.txt").read_text().splitlines() if line.startswith("    python3")]
    words = [sys.executable, *line.replace("CHECKPOINT", str(tmp_path / "head")).split()[1:]]
    done = subprocess.run(words, cwd=out, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("OK records 0 to"), done.stdout


@pytest.mark.parametrize("past", ["first key", "rotated", "purged"])
def test_the_signature_of_a_head_is_checked_with_openssl_as_the_documentation_says(
    filled, make_entry, tmp_path, monkeypatch, past
):
    if past != "first key":
        filled.rotate_key()
        filled.rotate_key()
    if past == "purged":
        filled.append([make_entry(number, EntryKind.OBSERVED) for number in range(60)])
        monkeypatch.setattr(retention, "to_purge", lambda directory, *_: (retention.sealed(directory), ""))
        assert admin.perform(filled, "purge", {}, by=Person(name="me", uid=1000, how="peer"))["records"] > 120
        assert "ledger.created" not in {record.value["kind"] for record in filled.read()}
    filled.checkpoint()
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    block = next(block for block in page.split("```") if "openssl pkeyutl" in block)
    export.bundle(filled.directory, str(tmp_path / "DIR"))
    (tmp_path / "HEAD").write_bytes((tmp_path / "DIR" / "checkpoint").read_bytes())

    def run() -> str:
        done = subprocess.run(
            ["sh", "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    assert "Signature Verified Successfully" in run()
    text = (tmp_path / "HEAD").read_text()
    (tmp_path / "HEAD").write_text(text.replace("\n", "0\n", 2).replace("0\n", "\n", 1))
    assert "Signature Verification Failure" in run()


def test_a_bundle_verifies_itself_elsewhere_and_finds_a_changed_byte(filled, tmp_path):
    head = filled.checkpoint()
    out = tmp_path / "elsewhere" / "bundle"
    out.parent.mkdir()
    done = export.bundle(filled.directory, str(out), anchored={"copy:/x": head})
    assert done["records"] == filled.head.size
    assert (check(out).returncode, check(out).stdout.split()[0]) == (14, "NO_ANCHOR")
    good = check(out, "--anchor", "anchors/0.checkpoint")
    assert (good.returncode, good.stdout.split()[0]) == (0, "OK")
    content = b"".join(path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file())
    for absent in (SECRET.encode(), b"Anna", Path(filled.directory, "keys", "epoch-1.key").read_bytes().strip()):
        assert absent not in content
    segment = sorted((out / "segments").iterdir())[1]
    changed = bytearray(segment.read_bytes())
    changed[changed.index(b'"argv"') + 3] ^= 1
    segment.write_bytes(changed)
    bad = check(out, "--anchor", "anchors/0.checkpoint")
    assert (bad.returncode, bad.stdout.split()[0]) == (12, "ALTERED")
    with pytest.raises(LedgerError) as refused:
        export.bundle(filled.directory, str(out))
    assert refused.value.code == "bad-export"


def test_the_manifest_names_every_file(filled, tmp_path):
    export.bundle(filled.directory, str(tmp_path / "b"))
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    files = {str(p.relative_to(tmp_path / "b")) for p in (tmp_path / "b").rglob("*") if p.is_file()} - {"manifest.json"}
    assert set(manifest["files"]) == files


def test_an_in_toto_statement_proves_each_entry_against_the_signed_head(filled):
    (row,) = export.rows(filled.directory, "in-toto", mission="m-1")
    statement = json.loads(row)
    head = note.parse(statement["predicate"]["checkpoint"].encode())
    assert statement["predicate"]["decisions"] == {"allow": 40, "ask": 0, "deny": 20}
    for entry in statement["predicate"]["entries"]:
        proof = entry["proof"]
        leaf = tree.leaf_hash(entry["record"].encode())
        path = [bytes.fromhex(node) for node in proof["path"]]
        assert tree.verify_inclusion(leaf, proof["index"], head.size, path, head.root)
    with pytest.raises(LedgerError):
        list(export.rows(filled.directory, "in-toto", mission="m-none"))


def record(body: dict, kind: str = "tool.intent") -> dict:
    return {
        "seq": 7,
        "time": 1_800_000_000_000_000,
        "kind": kind,
        "mission": "m-1",
        "call": "c-1",
        "body": body,
        "v": 1,
    }


@pytest.mark.parametrize(
    ("body", "kind", "uid"),
    [
        (intent(1), "tool.intent", 1007),
        (intent(1, request={"kind": "file", "action": "write", "path": "/x"}), "tool.intent", 1001),
        (intent(1, request={"kind": "network", "host": "h", "port": 443}), "tool.intent", 4001),
        (intent(1, request={"kind": "tool", "server": "s", "tool": "t"}), "tool.intent", 6003),
        (intent(1, "deny"), "tool.intent", 2004),
        (intent(1, "deny", kind="default"), "tool.intent", 1007),
        ({"observations": [{"kind": "decoy", "violation": True}]}, "tool.result", 2004),
        ({"host": "x", "port": 1}, "egress.try", 4001),
        ({}, "incident.change", 2005),
        ({}, "mission.state", 3004),
    ],
)
def test_ocsf_classes(body, kind, uid):
    event = json.loads(export_ocsf.ocsf(record(body, kind), HASH))
    assert event["class_uid"] == uid
    assert event["type_uid"] == uid * 100 + event["activity_id"]
    assert event["category_uid"] == uid // 1000
    assert event["metadata"]["uid"] == HASH


REQUIRED = {
    1001: {"actor", "device", "file"},
    1007: {"actor", "device", "process"},
    2004: {"finding_info"},
    2005: {"assignee", "finding_info_list", "status_id"},
    3004: {"entity"},
    4001: {"dst_endpoint"},
    6003: {"actor", "api", "src_endpoint"},
}
"""What OCSF 1.3.0 requires of each class, beside what it requires of all (of an incident, one of two ways to say whose it is)."""
OF_ALL = {"activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid"}
OPTIONAL = {"activity_name", "category_name", "class_name", "message", "status", "status_id", "unmapped"}
ONE_OF = {
    "actor": {"app_name", "process", "user"},
    "assignee": {"name", "uid"},
    "device": {"hostname", "ip", "name", "uid"},
    "dst_endpoint": {"hostname", "ip", "name", "uid"},
    "entity": {"name", "uid"},
    "file": {"name", "uid"},
    "process": {"pid", "uid"},
    "src_endpoint": {"hostname", "ip", "name", "uid"},
}
NEEDS = {"api": {"operation"}, "device": {"type_id"}, "file": {"name", "type_id"}, "finding_info": {"title", "uid"}}
ACTIVITIES = {1001: {2, 3, 4, 99}, 1007: {1, 2}, 2004: {1}, 2005: {1}, 3004: {99}, 4001: {1, 5}, 6003: {99}}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (intent(1), "tool.intent"),
        (intent(1, "ask"), "tool.intent"),
        (intent(1, "deny", kind="default"), "tool.intent"),
        *(
            (intent(1, request={"kind": "file", "action": act, "path": "/x/"}), "tool.intent")
            for act in ("write", "list")
        ),
        (intent(1, request={"kind": "network", "host": "2001:db8::1", "port": 443}), "tool.intent"),
        (intent(1, request={"kind": "tool", "server": "s", "tool": "t"}), "tool.intent"),
        (intent(1, "deny"), "tool.intent"),
        ({"exit": 3}, "tool.result"),
        ({"fault": {"code": "x"}, "exit": None}, "tool.result"),
        ({"host": "x", "port": 1, "tier": "deny"}, "egress.try"),
        ({"tier": "deny", "flags": ["violation"], "rule": "floor/metadata"}, "egress.try"),
        ({"by": {"name": "Anna"}}, "incident.change"),
        ({"by": "Anna"}, "incident.change"),
        ({}, "mission.state"),
        ({}, "from.a.later.version"),
    ],
)
@pytest.mark.parametrize("call", ["c-1", ""])
def test_an_ocsf_event_has_what_its_class_requires_and_nothing_that_it_does_not_know(body, kind, call):
    event = json.loads(export_ocsf.ocsf({**record(body, kind), "call": call}, HASH))
    own = event.keys() - OF_ALL - OPTIONAL
    uid = event["class_uid"]
    assert event.keys() >= OF_ALL
    assert REQUIRED[uid] - {"status_id"} <= own <= REQUIRED[uid] | {"evidences", "exit_code"}
    assert event["activity_id"] in ACTIVITIES[uid]
    assert (event["activity_id"] == 99) == ("activity_name" in event)
    assert event["status_id"] in ({1} if uid in {2004, 2005} else {1, 2, 99})
    infos = event.get("finding_info_list", [event[name] for name in ("finding_info",) if name in event])
    for name, value in [*event.items(), *(("finding_info", info) for info in infos)]:
        assert NEEDS.get(name, set()) <= (value.keys() if isinstance(value, dict) else set()), name
        assert name not in ONE_OF or any(value.get(member) for member in ONE_OF[name]), name


def test_an_ocsf_event_names_its_log_and_whether_it_went_well(filled):
    rows = [json.loads(row) for row in export.rows(filled.directory, "ocsf")]
    ended = next(row for row in rows if row["unmapped"]["kind"] == "tool.result")
    assert ended["device"]["uid"] == filled.head.log
    assert (ended["activity_id"], ended["exit_code"], ended["status_id"]) == (2, 0, 1)


def parse_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """A reader of CEF as collectors have it: unescaped bars split the head, unescaped equals signs the pairs."""
    parts = re.split(r"(?<!\\)(?:\\\\)*\|", line, maxsplit=7)
    keys = list(re.finditer(r"(?:^| )([A-Za-z0-9]+)=", re.sub(r"\\.", "__", parts[7])))
    pairs = {}
    for number, key in enumerate(keys):
        end = keys[number + 1].start() if number + 1 < len(keys) else len(parts[7])
        raw = parts[7][key.end() : end]
        pairs[key[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), raw)
    return parts, pairs


texts = st.text(max_size=40) | st.just(NASTY)


@given(texts)
def test_any_text_stays_inside_its_cef_value_and_csv_cell(text):
    body = intent(1, request={"kind": "shell", "line": text})
    body["decision"]["reasons"][0]["rule"] = text
    line = export_rows.cef(record(body), HASH)
    assert len(line.splitlines()) == 1
    parts, pairs = parse_cef(line)
    assert parts[0] == "CEF:0"
    assert parts[6] in {"2", "5", "8"}
    assert (
        set(pairs) <= {"rt", "externalId", "act", "msg", "cs1Label", "cs1", "cs2Label", "cs2", "dhost"} or " " in text
    )
    assert pairs["externalId"] == "7"
    row = export_rows.csv(record(body), HASH)
    assert len(row.splitlines()) == 1
    (cells,) = csv.reader(io.StringIO(row))
    assert len(cells) == 11
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    (elsewhere,) = csv.reader(io.StringIO(row), delimiter=";")
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in elsewhere)


@pytest.mark.parametrize("text", ["=1+1", " @x", "ls;=1+1", "ls; -x", 'ls;"=1', "a;\t\uff1d1", "x;;+1"])
def test_no_cell_is_a_formula_also_where_a_semicolon_ends_a_cell(text):
    row = export_rows.csv(record(intent(1, request={"kind": "shell", "line": text})), HASH)
    for delimiter in ",;":
        (cells,) = csv.reader(io.StringIO(row), delimiter=delimiter)
        assert not any(cell.lstrip(' "').startswith(("=", "+", "-", "@", "\uff1d")) for cell in cells)


def failing(*_: object, **__: object):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_of_an_export_that_failed_nothing_is_left(filled, tmp_path, monkeypatch):
    def broken():
        yield "first"
        failing()

    for out, write in (
        (tmp_path / "rows.csv", lambda: export.write_rows(broken(), str(tmp_path / "rows.csv"))),
        (tmp_path / "bundle", lambda: export.bundle(filled.directory, str(tmp_path / "bundle"))),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(export.shutil, "copyfile", failing)
            with pytest.raises(LedgerError, match="No space left") as refused:
                write()
        assert refused.value.code == "bad-export"
        assert refused.value.where == str(out)
        assert not out.exists()
    export.write_rows(iter(["a"]), str(tmp_path / "rows.csv"))
    assert (tmp_path / "rows.csv").stat().st_mode & 0o777 == 0o600
    with pytest.raises(LedgerError, match="exists"):
        export.write_rows(iter(["b"]), str(tmp_path / "rows.csv"))
    assert (tmp_path / "rows.csv").read_text() == "a\n"


def test_rows_of_one_mission_and_unknown_forms(filled, make_entry):
    assert len(list(export.rows(filled.directory, "csv", mission="m-1"))) == 121
    assert len(list(export.rows(filled.directory, "ocsf"))) == filled.head.size
    with pytest.raises(LedgerError):
        list(export.rows(filled.directory, "xml"))


def test_canaries_are_in_no_index_and_no_export(filled, tmp_path):
    with Index(filled.directory) as index:
        index.catch_up()
    places = [Path(filled.directory, "index.sqlite").read_bytes()]
    places += [
        "\n".join(export.rows(filled.directory, form, mission="m-1")).encode()
        for form in ("ocsf", "cef", "csv", "in-toto")
    ]
    for place in places:
        assert SECRET.encode() not in place
        assert b"Anna" not in place


@pytest.mark.parametrize("name", ["README.txt", "verify.py", "anchors/0.checkpoint", "anchors/0.name", "manifest.json"])
@pytest.mark.parametrize("how", ["changed", "linked"])
def test_a_file_of_an_export_that_was_changed_on_the_way_is_found(make_ledger, make_entry, tmp_path, name, how):
    with make_ledger() as ledger:
        ledger.append([make_entry(1)])
        export.bundle(ledger.directory, str(tmp_path / "out"), anchored={"copy:/x": ledger.checkpoint()})
    file = tmp_path / "out" / name
    assert both(tmp_path / "out") == {"NO_ANCHOR"}
    (tmp_path / "out" / "more.txt").write_text("notes of an auditor")
    assert both(tmp_path / "out") == {"NO_ANCHOR"}
    content = file.read_bytes()
    if how == "linked":
        (tmp_path / "elsewhere").write_bytes(content)
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_bytes(content + b"x")
    assert both(tmp_path / "out") == {"ALTERED"}


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "segments/../../x", "", ".", "a/b", "segments//x"])
def test_a_manifest_cannot_name_files_outside(make_ledger, make_entry, tmp_path, name):
    with make_ledger() as ledger:
        ledger.append([make_entry(1)])
        export.bundle(ledger.directory, str(tmp_path / "out"))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    manifest["files"][name] = "0" * 64
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert both(tmp_path / "out") == {"ALTERED"}


def both(directory: Path) -> set[str]:
    now = Micros(1_800_000_001_000_000)
    lone = standalone.verify(str(directory), [], strict=True, now=now, max_age=1e9)[0]
    return {verify(str(directory), now=now).verdict.value, lone}


@pytest.mark.parametrize(
    "start",
    [
        "=",
        "+",
        "-",
        "@",
        "\t=",
        "\r=",
        "\n=",
        " =",
        "\xa0=",
        "\u2028=",
        "\0=",
        "\ufeff=",
        "\u202e+",
        "＝",
        "＋",
        "－",
        "＠",
    ],
)
def test_no_cell_begins_with_what_a_spreadsheet_computes(start):
    body = {"request": {"kind": "shell", "line": f"{start}1+1|cmd"}, "exit": f"{start}2", "signal": -1}
    record = {"seq": 1, "time": 1_800_000_000_000_000, "kind": "tool.intent", "body": body}
    (row,) = csv.reader([export_rows.csv(record, "0" * 64)])
    assert not [
        cell for cell in row if cell.lstrip()[:1] in set("=+@＝＋－＠") or (cell.lstrip()[:2] == "-1" and cell != "-1")
    ]


def test_a_proof_that_cannot_be_made_says_how_many_records_there_are(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(n) for n in range(9)])
        leaves = proof.leaves_of(ledger.directory)
    for ask in (lambda: proof.inclusion(leaves, 3, 99), lambda: proof.consistency(leaves, 3, 99)):
        with pytest.raises(LedgerError, match="there are 10 leaves"):
            ask()
