"""The index finds what the log holds, is the same however it was filled, and is never needed."""

import argparse
import shutil
import sqlite3
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.cli import ledger_show
from ringfence.ledger import scan
from ringfence.ledger.index import Index, Query
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError


def body(number: int) -> dict:
    tier = ("allow", "deny", "ask")[number % 3]
    return {
        "agent": "claude" if number % 2 else "codex",
        "request": {"kind": "argv", "argv": ["/usr/bin/git" if number % 5 else "pytest", f"arg{number}"]},
        "facts": {"paths": [{"asked": "x", "real": f"/repo/src/file{number % 4}.py", "kind": "file"}]},
        "decision": {"tier": tier, "reasons": [{"rule": f"rule-{number % 7}", "because": "the quick brown fox"}]},
    }


@pytest.fixture
def filled(make_ledger, make_entry):
    with make_ledger() as ledger:
        for start in range(0, 120, 10):
            ledger.append([make_entry(n, body=body(n)) for n in range(start, start + 10)])
        ledger.append(
            [make_entry(500, EntryKind.EGRESS, body={"host": "API.Example.org", "tier": "deny", "port": 443})]
        )
        yield ledger


@pytest.fixture
def index(filled):
    with Index(filled.directory) as index:
        index.catch_up()
        yield index


def numbers(index: Index, **fields) -> list[int]:
    found = index.search(Query(**fields, newest_first=False), limit=1000)
    return [r.value["body"].get("request", {}).get("argv", ["", "arg-1"])[1] for r in index.read(found.seqs)]


def expect(test) -> list[str]:
    return [f"arg{n}" for n in range(120) if test(n)]


def test_each_field_finds_its_records(index):
    assert numbers(index, tier="deny", kinds=("tool.intent",)) == expect(lambda n: n % 3 == 1)
    assert numbers(index, rule="rule-3") == expect(lambda n: n % 7 == 3)
    assert numbers(index, program="pytest") == expect(lambda n: n % 5 == 0)
    assert numbers(index, path="/repo/src/file2.py") == expect(lambda n: n % 4 == 2)
    assert numbers(index, path="/repo/src/") == expect(lambda _: True)
    assert numbers(index, path="/repo/sr") == []
    assert numbers(index, agent="codex", tier="ask") == expect(lambda n: n % 2 == 0 and n % 3 == 2)
    assert numbers(index, text="BROWN arg17") == ["arg17"]
    assert numbers(index, host="api.example.org") == ["arg-1"]
    assert numbers(index, call="c-33") == ["arg33"]
    assert len(numbers(index, mission="m-1")) == 121
    first = next(iter(index.read([5]))).value["time"]
    assert numbers(index, since=first, until=first) == ["arg4"]


REFUSED = {"path": "other", "rule": "files.write-deny-1", "tier": "deny"}
SPOKE = [
    ("decision", {"tier": "deny", "reasons": [{"rule": "sudo", "tier": "deny"}]}),
    ("decision", {"tier": "deny", "reasons": [{"rule": "hidden", "tier": "deny", "kind": "hidden"}]}),
    ("observations", [{"kind": "decoy", "violation": True}]),
    ("violation", True),
    ("flags", ["violation"]),
    ("gate", {"refused": [REFUSED]}),
]
SILENT = [
    ("decision", {"tier": "deny", "reasons": [{"rule": "commands.default", "tier": "deny", "kind": "default"}]}),
    ("gate", {"refused": [{**REFUSED, "rule": "files.default"}], "committed": [{"path": "x", "rule": "r"}]}),
    ("flags", ["learning"]),
    ("observations", [{"kind": "exec", "detail": '"violation":true'}]),
]


def test_every_kind_of_violation_is_found_and_nothing_else(make_ledger, make_entry):
    with make_ledger() as ledger:
        acks = [ledger.append([make_entry(n, body=dict([said]))])[0].seq for n, said in enumerate([*SPOKE, *SILENT])]
        with Index(ledger.directory) as index:
            index.catch_up()
            assert index.search(Query(violations=True, newest_first=False)).seqs == tuple(acks[: len(SPOKE)])


def test_what_a_gate_and_a_connection_say_is_found_by_path_rule_and_program(make_ledger, make_entry):
    gate = {
        "committed": [{"path": "src/a.py", "rule": "files.write-allow-1"}],
        "refused": [REFUSED],
        "held": [{"path": "b"}],
    }
    with make_ledger() as ledger:
        committed = ledger.append([make_entry(1, EntryKind.GATE, body={"gate": gate, "root": "/repo"})])[0].seq
        tried = ledger.append(
            [make_entry(2, EntryKind.EGRESS, body={"rule": "floor/metadata", "programs": ["/usr/bin/curl", "/bin/sh"]})]
        )[0].seq
        with Index(ledger.directory) as index:
            index.catch_up()
            for fields in (
                {"path": "/repo/src/a.py"},
                {"path": "/repo/other"},
                {"path": "/repo"},
                {"rule": "files.write-allow-1"},
                {"rule": REFUSED["rule"]},
            ):
                assert index.search(Query(**fields)).seqs == (committed,), fields
            for fields in ({"rule": "floor/metadata"}, {"program": "curl"}, {"program": "sh"}):
                assert index.search(Query(**fields)).seqs == (tried,), fields


def test_pages_join_to_the_whole_without_overlap(index):
    found: list[int] = []
    query = Query(tier="deny")
    while True:
        page = index.search(query, limit=7)
        found += page.seqs
        if not page.more:
            break
        query = Query(tier="deny", before=page.seqs[-1])
    assert found == list(index.search(Query(tier="deny"), limit=1000).seqs)
    assert len(found) == len(set(found)) == 41


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_accents_are_found_however_they_are_composed(make_ledger, make_entry, stored, asked):
    words = ["caf\u00e9s", "\ud55c\uad6d\uc5b4", "\u0130stanbul", *(f"x{chr(mark)}y" for mark in range(0x300, 0x370))]
    with make_ledger() as ledger:
        for word in words:
            ledger.append([make_entry(body={"t": unicodedata.normalize(stored, word)})])
        with Index(ledger.directory) as index:
            index.catch_up()
            for seq, word in enumerate(words, 1):
                assert seq in index.search(Query(text=unicodedata.normalize(asked, word)), limit=500).seqs, word


def test_filled_bit_by_bit_rebuilt_and_filled_at_once_are_equal(filled, make_entry, index, tmp_path):
    for number in range(200, 230):
        filled.append([make_entry(number, body=body(number))])
        index.catch_up()
    grown = index.dump()
    with Index(filled.directory, path=str(tmp_path / "other.sqlite")) as other:
        other.catch_up()
        assert other.dump() == grown
    assert index.rebuild() == filled.head.size
    assert index.dump() == grown
    assert numbers(index, text="arg217") == ["arg217"]


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + bytes(500)])
def test_a_damaged_index_is_replaced(filled, content):
    path = Path(filled.directory, "index.sqlite")
    path.write_bytes(content)
    with Index(filled.directory) as index:
        assert index.catch_up() == filled.head.size


def test_an_index_of_another_log_or_version_is_not_believed(filled, index):
    index._database.execute("UPDATE meta SET value = 'other' WHERE key = 'log'")
    index._database.commit()
    index.catch_up()
    assert numbers(index, call="c-33") == ["arg33"]
    index.close()
    other = sqlite3.connect(Path(filled.directory, "index.sqlite"))
    other.execute("PRAGMA user_version = 99")
    other.commit()
    other.close()
    with Index(filled.directory) as again:
        assert again.catch_up() == filled.head.size


@given(st.text(max_size=30))
def test_any_text_can_be_searched_for(text):
    from ringfence.ledger.index import _quoted

    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    words = " ".join(_quoted(word) for word in text.split())
    try:
        if words.replace('"', "").strip() and "\x00" not in words:
            database.execute("SELECT rowid FROM words WHERE words MATCH ?", (words,)).fetchall()
    finally:
        database.close()


@pytest.mark.parametrize("text", ["***", '"', "AND OR NOT", "NEAR(a b)"])
def test_operators_mean_nothing_in_a_text(index, text):
    assert index.search(Query(text=text)).seqs == ()


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE records SET offset = offset + 1",
        "UPDATE records SET offset = 'x'",
        "UPDATE records SET offset = -5",
        "UPDATE records SET offset = 1 << 62",
        "UPDATE records SET segment = 'x'",
        "UPDATE records SET segment = 0, offset = (SELECT offset FROM records WHERE seq = 1)",
        "CREATE TRIGGER hide AFTER INSERT ON records BEGIN DELETE FROM records WHERE seq = NEW.seq; END",
        "ALTER TABLE records ADD COLUMN more",
        "DROP TABLE terms",
        "DROP INDEX by_time",
        "CREATE TABLE more(a)",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE records(x)' WHERE name = 'records'",
    ],
)
def test_a_poisoned_index_is_made_again_or_refused(filled, poison):
    with Index(filled.directory) as index:
        index.catch_up()
    database = sqlite3.connect(f"{filled.directory}/index.sqlite")
    database.executescript(poison)
    database.commit()
    database.close()
    with Index(filled.directory) as index:
        index.catch_up()
        assert numbers(index, tier="deny", kinds=("tool.intent",)) == expect(lambda n: n % 3 == 1)


def test_a_wrong_place_of_one_record_is_the_fault_of_the_index_not_of_the_log(filled):
    with Index(filled.directory) as index:
        index.catch_up()
        index._database.execute("UPDATE records SET offset = offset + 1 WHERE seq = 5")
        with pytest.raises(LedgerError) as refused:
            list(index.read((5,)))
        assert refused.value.code == "index-unusable"
        assert numbers(index, mission="\udcff") == []


def test_an_index_of_a_log_that_was_put_back_and_went_on_otherwise_is_made_again(make_ledger, make_entry, tmp_path):
    with make_ledger() as ledger:
        ledger.append([make_entry(1)])
    shutil.copytree(ledger.directory, tmp_path / "old")
    with make_ledger() as ledger:
        ledger.append([make_entry(2, body={"agent": "first"})])
        with Index(ledger.directory) as index:
            index.catch_up()
    shutil.copytree(f"{ledger.directory}/../old", f"{ledger.directory}/../again")
    shutil.copy(f"{ledger.directory}/index.sqlite", tmp_path / "again" / "index.sqlite")
    with make_ledger("again") as ledger:
        ledger.append([make_entry(2, body={"agent": "other"}), make_entry(3)])
        with Index(ledger.directory) as index:
            index.catch_up()
            assert index.search(Query(agent="first")).seqs == ()
            assert len(index.search(Query(agent="other")).seqs) == 1


def test_following_goes_across_a_roll_and_a_change_of_keys(make_ledger, make_entry, monkeypatch, capsys):
    with make_ledger() as ledger:
        ledger.append([make_entry(0, EntryKind.OBSERVED)])
        steps = iter(range(1, 60))

        def step(_: float) -> None:
            number = next(steps, None)
            if number is None:
                raise KeyboardInterrupt
            ledger.append([make_entry(number, EntryKind.OBSERVED, body={"n": number, "pad": "\u202e\x9b31m" * 60})])
            if number % 20 == 0:
                ledger.rotate_key()

        monkeypatch.setattr(ledger_show.time, "sleep", step)
        parser = argparse.ArgumentParser()
        parser.add_argument("--json", action="store_true")
        ledger_show.configure(parser)
        with pytest.raises(KeyboardInterrupt):
            ledger_show.show(parser.parse_args(["--follow"]), ledger.directory)
        out = capsys.readouterr().out
        assert len(scan.segments(ledger.directory)) > 2
        shown = [int(line.split()[0]) for line in out.splitlines()]
        assert shown == list(range(ledger.head.size))
        assert out.isascii()
        assert "\x1b" not in out


def test_many_that_look_at_once_and_rebuild_see_one_whole_index(filled):
    Path(filled.directory, "index.sqlite").unlink(missing_ok=True)
    begin = threading.Barrier(8)

    def look(number: int) -> tuple[int, int]:
        begin.wait(60)
        with Index(filled.directory) as index:
            size = index.rebuild() if number % 3 == 0 else index.catch_up()
            again = index.catch_up()
            return size, again + len(index.search(Query(), limit=10**6).seqs)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(look, range(8)))
    assert found == {(filled.head.size, 2 * filled.head.size)}
    with Index(filled.directory) as index, Index(filled.directory, path=":memory:") as fresh:
        assert (index.catch_up(), index.dump()) == (fresh.catch_up(), fresh.dump())


def test_an_index_that_another_process_made_again_is_opened_again(filled, make_entry):
    with Index(filled.directory) as index, Index(filled.directory) as other:
        index.catch_up()
        other.rebuild()
        filled.append([make_entry(7)])
        assert index.catch_up() == other.catch_up() == filled.head.size


def test_where_the_index_cannot_be_locked_a_copy_is_still_shown(filled):
    lock = Path(filled.directory, "index.sqlite.lock")
    lock.unlink(missing_ok=True)
    lock.symlink_to("/nowhere/at/all")
    with ledger_show._index(filled.directory) as index:
        assert index.catch_up() == filled.head.size
