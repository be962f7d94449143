"""The writer: what it acknowledges is there, in order, once; what it cannot keep it refuses."""

import dataclasses
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ringfence.ledger import record, scan
from ringfence.ledger.flush import Flusher
from ringfence.ledger.resume import resume
from ringfence.ledger.verdict import Verdict
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.person import Person


def kinds(ledger) -> list[str]:
    return [record.value["kind"] for record in ledger.read()]


def test_acknowledged_entries_are_read_back_in_order(make_ledger, make_entry):
    with make_ledger() as ledger:
        acks = ledger.append([make_entry(n) for n in range(5)])
        found = list(ledger.read(1))
    assert [ack.seq for ack in acks] == [1, 2, 3, 4, 5]
    assert [record.value["body"]["n"] for record in found] == [0, 1, 2, 3, 4]


OPEN_ELSEWHERE = """
import sys
from ringfence.ledger.log import Ledger
from ringfence.model.errors import LedgerError
try:
    Ledger.open(sys.argv[1]).close()
except LedgerError as error:
    print(error.code)
"""


def test_a_second_writer_is_refused_in_this_process_and_in_another(make_ledger):
    with make_ledger() as ledger:
        with pytest.raises(LedgerError) as here:
            make_ledger()
        command = [sys.executable, "-c", OPEN_ELSEWHERE, ledger.directory]
        there = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert (here.value.code, there) == ("ledger-busy", "ledger-busy\n")
    make_ledger().close()


def test_segments_roll_and_the_chain_goes_through(make_ledger, make_entry):
    with make_ledger() as ledger:
        for number in range(200):
            ledger.append([make_entry(number, EntryKind.OBSERVED)])
        head = ledger.head
    assert len(scan.segments(ledger.directory)) > 3
    with make_ledger() as again:
        assert again.head == head
        assert len(list(again.read())) == 201


def test_calls_without_a_result_are_closed_on_the_next_start_even_from_an_earlier_segment(make_ledger, make_entry):
    with make_ledger() as ledger:
        intent = ledger.append([make_entry(7)])[0]
        denied = make_entry(8, body={"decision": {"tier": "deny"}})
        ledger.append([denied, make_entry(9), make_entry(9, EntryKind.RESULT)])
        asked = [make_entry(n, body={"decision": {"tier": "ask"}}) for n in (10, 11, 12)]
        ledger.append([*asked, make_entry(11, EntryKind.APPROVAL, body={"answer": "refused"})])
        approved = ledger.append([make_entry(12, EntryKind.APPROVAL, body={"answer": "approved"})])[0]
        for number in range(100, 200):
            ledger.append([make_entry(number, EntryKind.OBSERVED)])
    with make_ledger() as ledger:
        closed = [r.value for r in ledger.read() if r.value["kind"] == "tool.orphaned"]
    assert [(value["call"], value["parent"]) for value in closed] == [("c-7", intent.record), ("c-12", approved.record)]
    with make_ledger() as ledger:
        assert kinds(ledger).count("tool.orphaned") == 2


def test_an_approval_begins_the_call_and_telemetry_keeps_claims_apart(make_ledger, make_entry):
    person = Person(name="ada", uid=1000, how="terminal")
    words = {"by": person, "rationale": "a hotfix", "subject": "ab" * 32, "expires": 5}
    with make_ledger() as ledger:
        for number, answer in ((1, "approved"), (2, "refused")):
            ledger.append([make_entry(number, body={"decision": {"tier": "ask"}})])
            ledger.append([make_entry(number, EntryKind.APPROVAL, body=record.approval_body(answer=answer, **words))])
        said = record.telemetry_body(claimed={"tokens": 5}, observed={"tokens": 9})
        ledger.append([make_entry(1, EntryKind.TELEMETRY, body=said)])
        stored = [one.value for one in ledger.read(1)]
    assert stored[1]["body"]["by"] == {"name": "ada", "uid": 1000, "how": "terminal"}
    assert stored[-1]["body"] == {"claimed": {"tokens": 5}, "observed": {"tokens": 9}}
    with make_ledger() as ledger:
        assert [one.value["call"] for one in ledger.read() if one.value["kind"] == "tool.orphaned"] == ["c-1"]


def test_writer_and_reader_agree_on_which_calls_are_open(make_ledger, make_entry):
    bodies = [
        {},
        {"decision": {"tier": "allow"}, "padding": "x" * 70_000},
        {"decision": {"tier": "deny"}},
        {"decision": "allow"},
        {"answer": "approved"},
        {"answer": "refused"},
        {"text": '"kind":"tool.result"'},
    ]
    chance = random.Random(5)
    with make_ledger() as ledger:
        for _ in range(150):
            kind = chance.choice(
                [EntryKind.INTENT, EntryKind.RESULT, EntryKind.APPROVAL, EntryKind.ORPHANED, EntryKind.GATE]
            )
            entry = make_entry(chance.randrange(20), kind, body=chance.choice(bodies))
            ledger.append([dataclasses.replace(entry, call="") if chance.random() < 0.1 else entry])
            read = resume(scan.segments(ledger.directory), (0,)).open_calls
            assert ledger._state.open_calls == read


def test_many_threads_share_flushes_and_every_entry_is_there_once(make_ledger, make_entry):
    with make_ledger() as ledger:

        def work(client: int) -> None:
            for number in range(50):
                ledger.append([make_entry(client * 1000 + number, EntryKind.OBSERVED)])

        threads = [threading.Thread(target=work, args=(client,)) for client in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        numbers = [record.value["body"]["n"] for record in ledger.read(1)]
    assert sorted(numbers) == sorted(c * 1000 + n for c in range(8) for n in range(50))
    for client in range(8):
        own = [n for n in numbers if n // 1000 == client]
        assert own == sorted(own)


@pytest.mark.parametrize("body", [{"x": 1.5}, {"x": 2**53}, {"é": 1}, {"x": b"y"}, {"x": "\ud800"}])
def test_what_is_not_canonical_is_refused_and_the_ledger_goes_on(make_ledger, make_entry, body):
    with make_ledger() as ledger:
        with pytest.raises(LedgerError) as refused:
            ledger.append([make_entry(1), make_entry(2, body=body)])
        assert refused.value.code == "entry-not-canonical"
        assert ledger.append([make_entry(3)])[0].seq == 1


def test_a_record_larger_than_the_limit_is_refused(make_ledger, make_entry):
    with make_ledger() as ledger, pytest.raises(LedgerError) as refused:
        ledger.append([make_entry(1, body={"x": [1] * 40_000})])
    assert refused.value.code == "entry-too-large"


def test_a_torn_tail_is_cut_and_recorded(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        offset = ledger._segment.offset
        path = ledger._segment.path
    torn = b'{"body":{"half":"a record that a crash cut short'
    with open(path, "r+b") as stream:
        stream.seek(offset)
        stream.write(torn)
    with make_ledger() as ledger:
        last = list(ledger.read())[-1].value
        ledger.append([make_entry(2, EntryKind.OBSERVED)])
    assert (last["kind"], last["body"]["bytes"]) == ("ledger.recovered", len(torn))
    make_ledger().close()


def test_records_that_were_signed_for_and_are_gone_keep_the_ledger_closed(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        keep = ledger._segment.offset
        ledger.append([make_entry(2, EntryKind.OBSERVED)])
        path = ledger._segment.path
    with open(path, "r+b") as stream:
        stream.seek(keep)
        stream.write(bytes(os.path.getsize(path) - keep))
    with pytest.raises(LedgerError) as refused:
        make_ledger()
    assert (refused.value.code, "TRUNCATED" in refused.value.what) == ("ledger-altered", True)


def test_a_changed_byte_keeps_the_ledger_closed(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        path = ledger._segment.path
    with open(path, "r+b") as stream:
        content = stream.read()
        stream.seek(content.index(b'"n":1'))
        stream.write(b'"n":2')
    with pytest.raises(LedgerError) as refused:
        make_ledger()
    assert refused.value.code == "ledger-altered"


def test_a_clock_that_goes_back_is_told(make_ledger, make_entry):
    times = [10**15 + 5_000_000]
    with make_ledger(clock=lambda: Micros(times[0])) as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        times[0] -= 3_000_000
        ledger.append([make_entry(2, EntryKind.OBSERVED)])
        assert "clock.stepped" in kinds(ledger)


def test_nothing_is_appended_after_close_or_in_a_forked_child(make_ledger, make_entry):
    ledger = make_ledger()
    child = os.fork()
    if child == 0:
        try:
            ledger.append([make_entry(1)])
        except LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError) as refused:
        ledger.append([Entry(kind=EntryKind.SMOKE, time=Micros(10**15))])
    assert refused.value.code == "ledger-closed"


def test_a_disk_that_hangs_holds_up_nobody_for_ever_and_the_turn_is_never_lost(make_ledger, make_entry, monkeypatch):
    monkeypatch.setattr("ringfence.ledger.sequencer.WAIT_SECONDS", 0.3)
    with make_ledger() as ledger:
        entered, free, real = threading.Event(), threading.Event(), Flusher.write

        def hang(flusher: Flusher, data: bytes, offset: int) -> None:
            entered.set()
            free.wait(60)
            real(flusher, data, offset)

        monkeypatch.setattr(Flusher, "write", hang)
        first = threading.Thread(target=ledger.append, args=([make_entry(1, EntryKind.OBSERVED)],))
        first.start()
        assert entered.wait(30)
        codes = []

        def wait(number: int) -> None:
            try:
                ledger.append([make_entry(number, EntryKind.OBSERVED)])
            except LedgerError as error:
                codes.append(error.code)

        waiting = [threading.Thread(target=wait, args=(number,)) for number in (2, 3, 4)]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join(20)
        assert codes == ["ledger-slow"] * 3
        free.set()
        first.join(60)
        monkeypatch.undo()
        ledger.append([make_entry(5, EntryKind.OBSERVED)])
        assert [r.value["body"]["n"] for r in ledger.read(1)] == [1, 5]


def test_keys_change_while_others_append(make_ledger, make_entry):
    with make_ledger() as ledger:
        stop = threading.Event()

        def work(client: int) -> None:
            number = client * 10_000
            while not stop.is_set():
                ledger.append([make_entry(number, EntryKind.OBSERVED)])
                number += 1

        threads = [threading.Thread(target=work, args=(client,)) for client in range(4)]
        for thread in threads:
            thread.start()
        epochs = [ledger.rotate_key() for _ in range(5)]
        stop.set()
        for thread in threads:
            thread.join(30)
        assert epochs == [2, 3, 4, 5, 6]
        seqs = [r.seq for r in ledger.read()]
        assert seqs == list(range(ledger.head.size))
    assert verify(ledger.directory, now=Micros(10**15)).verdict is Verdict.NO_ANCHOR


def test_a_stored_head_that_is_not_ours_stops_the_ledger(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
    path = Path(ledger.directory, "checkpoint")
    text = path.read_text()
    path.write_text(text[:-10] + ("AAAA" if text[-10:-6] != "AAAA" else "BBBB") + text[-6:])
    again = make_ledger()
    with pytest.raises(LedgerError) as refused:
        again.checkpoint()
    assert refused.value.code == "ledger-altered"
    with pytest.raises(LedgerError):
        again.close()
    path.write_text(text)
    make_ledger().close()
