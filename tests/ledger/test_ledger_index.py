"""The index finds what the log holds, is the same however it was filled, and is never needed."""

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.ledger.index import Index, Query
from ringfence.model.entry import EntryKind


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
