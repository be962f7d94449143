"""Files that lie beside the log: what is no small regular file there, or holds nonsense, is an error and never a wait."""

import json
import os

import pytest

from ringfence.ledger import admin, anchors, checkpoint, keys, retention, scrub, start
from ringfence.ledger.personal import PersonalStore
from ringfence.ledger.verify import verify
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.person import Person

NOW = Micros(1_800_000_001_000_000)
ME = Person(name="test", uid=0, how="process")
READERS = {
    "anchors.json": anchors.names,
    "anchor-receipts.json": lambda d: anchors.lag(d, size=1, now=NOW),
    "retention.json": retention.load_days,
    "purging": retention.finish_removal,
    "open-calls.00000000000000000000": lambda d: start._carried(d, 0),
    "keys/epochs.json": checkpoint.Epochs.load,
    "keys/scrub-1.key": scrub.load_key,
    "keys/epoch-1.key": lambda d: keys.load_key(d, 1),
    "private/s.key": lambda d: PersonalStore(d).load({"commit": "c", "subject": "s"}),
}


@pytest.fixture
def ledger(make_ledger, make_entry, tmp_path) -> str:
    (tmp_path / "anchor").mkdir()
    with make_ledger() as made:
        made.append([make_entry(1)])
        admin.perform(made, "anchor", {"add": [f"copy:{tmp_path}/anchor"]}, by=ME)
    os.makedirs(f"{made.directory}/private", exist_ok=True)
    return made.directory


def read(name: str, ledger: str) -> None:
    """The reader says what it may say: an answer, or one of two errors."""
    try:
        READERS[name](ledger)
    except (OSError, LedgerError):
        pass


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_beside_the_log_is_never_waited_for(ledger, name):
    path = f"{ledger}/{name}"
    if os.path.exists(path):
        os.unlink(path)
    os.mkfifo(path)
    read(name, ledger)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b"\xff\xfe\x00",
        b"5",
        b"[]",
        b'{"anchors":5}',
        b'{"compliance_days":1e999}',
        b"9" * 5000,
        b"x" * (2 << 20),
    ],
    ids=["deep", "bytes", "number", "list", "other", "endless", "digits", "long"],
)
def test_nonsense_beside_the_log_is_an_error_or_nothing(ledger, name, text):
    with open(f"{ledger}/{name}", "wb") as stream:
        stream.write(text)
    read(name, ledger)


@pytest.mark.parametrize("size", [1e999, -1, 10**30, 4])
def test_a_receipt_that_no_log_can_have_counts_as_none(ledger, size):
    (name,) = anchors.names(ledger)
    with open(f"{ledger}/anchor-receipts.json", "w", encoding="utf-8") as stream:
        json.dump({name: size}, stream)
    (row,) = anchors.lag(ledger, size=3, now=NOW)
    assert row.size == 0
    assert row.lag_records == 3


@pytest.mark.parametrize("name", ["copy:/a\x00b", "copy:/a\ud800b", "git:/a\x00b", "git:/a\ud800b"])
def test_a_name_that_no_anchor_can_have_is_refused(ledger, name):
    with open(f"{ledger}/anchors.json", "w", encoding="utf-8") as stream:
        json.dump({"anchors": [name]}, stream)
    with pytest.raises(LedgerError, match="bad-anchor"):
        anchors.configured(ledger)


def test_a_pipe_in_place_of_a_subjects_values_does_not_hold_up_the_writer(make_ledger, make_entry):
    with make_ledger() as made:
        made.append([make_entry(1, personal={"name": "x" * 10})])
        for name in os.listdir(f"{made.directory}/private"):
            os.unlink(f"{made.directory}/private/{name}")
            os.mkfifo(f"{made.directory}/private/{name}")
        with pytest.raises(LedgerError, match="ledger-unwritable"):
            made.append([make_entry(2, personal={"name": "y" * 10})])


@pytest.mark.parametrize("more", [b"junk\n", "— x ZW5vdWdo\n".encode()])
def test_a_checkpoint_longer_than_a_note_can_be_is_altered(ledger, more):
    path = f"{ledger}/checkpoint"
    with open(path, "rb") as stream:
        text = stream.read()
    line = "— {} ZW5vdWdo\n"
    room = 65_536 - len(text) - len(line.format("").encode())
    for end, verdict in ((b"", "OK"), (more, "ALTERED")):
        with open(path, "wb") as stream:
            stream.write(text + line.format("y" * room).encode() + end)
        found = verify(ledger, anchors=anchors.configured(ledger), now=NOW)
        assert found.verdict.value == verdict
