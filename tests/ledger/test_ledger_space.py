"""A disk that fills up: a warning first, then no new missions, then no new calls, and what happened is still told."""

import argparse
import contextlib
import errno
import os
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from ringfence.cli import ledger as cli
from ringfence.ledger import admin, checkpoint, keys, note, segment, start
from ringfence.ledger.index import Index
from ringfence.ledger.request import Prepared, Rank, Request, rank_of, ration
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError


def test_on_a_full_disk_no_mission_starts_before_calls_of_running_ones_are_refused(
    make_ledger, make_entry, monkeypatch
):
    start, end = {"action": "start"}, {"action": "end"}
    with make_ledger() as ledger:
        ledger.append([make_entry(0)])
        monkeypatch.setattr(segment.Segment, "extend", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        outcomes = []
        for number in range(1, 40):
            for word, kind, body in (
                ("start", EntryKind.MISSION, start),
                ("call", EntryKind.INTENT, {"decision": {"tier": "allow"}}),
                ("end", EntryKind.MISSION, end),
            ):
                try:
                    ledger.append([make_entry(number, kind, body=body)])
                    outcomes.append((word, "kept"))
                except LedgerError as error:
                    outcomes.append((word, error.code))
    first = {word: outcomes.index((word, "ledger-full")) for word in ("start", "call", "end")}
    assert first["start"] < first["call"] < first["end"]
    assert ("start", "kept") not in outcomes[first["start"] :]
    assert ("call", "kept") in outcomes[first["start"] :]
    assert ("call", "kept") not in outcomes[first["call"] :]


def test_a_start_takes_what_is_written_with_it_down_and_nothing_else(make_entry):
    def waiting(*ranks: Rank) -> Request:
        return Request([Prepared(b"x" * 100, 0, rank) for rank in ranks])

    batch = [waiting(Rank.REST, Rank.START), waiting(Rank.CALL), waiting(Rank.REST)]
    assert ration(batch, room=4000, kept=1000) == batch[1:]
    assert ration(batch, room=1400, kept=1000) == batch[2:]
    assert ration(batch, room=200, kept=1000) == []
    assert rank_of(EntryKind.MISSION, {"action": "end"}) is Rank.REST


@pytest.mark.parametrize(("free", "warned"), [(11, False), (10, True), (0, True)])
def test_a_disk_that_fills_up_is_told_before_it_is_full(make_ledger, monkeypatch, capsys, free, warned):
    with make_ledger() as ledger:
        sizes = {"f_blocks": 100 << 10, "f_bfree": free << 10, "f_bavail": free << 10, "f_frsize": 4096}
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**sizes))
        answer = admin.tick(ledger)["space"]
        assert ledger.space.used == pytest.approx(1 - free / 100)
        assert (answer.get("error") == "ledger-space-low") is warned
        assert bool(ledger.space.warning) is warned
        arguments = argparse.Namespace(verb="lag", json=False, ledger=ledger.directory)
        cli.run(arguments, SimpleNamespace(ledger="/elsewhere"))
        assert ("warning: the disk of the ledger is" in capsys.readouterr().out) is warned


@pytest.mark.parametrize(("error", "closes"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False)])
def test_on_a_full_disk_the_ledger_opens_takes_what_happened_and_closes(
    make_ledger, make_entry, monkeypatch, error, closes
):
    def fails(*_):
        raise OSError(error, os.strerror(error))

    with make_ledger() as ledger:
        ledger.append([make_entry(0)])
    before = ledger.head.size
    with monkeypatch.context() as full:
        for module in (checkpoint, keys, start):
            full.setattr(module, "replace", fails)
        with contextlib.ExitStack() as stack:
            if not closes:
                stack.enter_context(pytest.raises(LedgerError, match="could not be written"))
            with make_ledger() as ledger:
                ledger.append([make_entry(0, EntryKind.RESULT, body={"exit": 0})])
    with make_ledger() as ledger:
        assert ledger.head.size > before
    assert note.parse(Path(ledger.directory, "checkpoint").read_bytes()).size == ledger.head.size


def test_what_to_do_about_a_full_disk_is_to_free_space(make_ledger, monkeypatch):
    assert "free space" in start.unwritable(OSError(errno.EDQUOT, "quota"), "/x").remedy
    assert "permissions" in start.unwritable(OSError(errno.EROFS, "read only"), "/x").remedy
    with make_ledger() as ledger, Index(ledger.directory) as index:
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        monkeypatch.setattr(index, "_size", lambda: (_ for _ in ()).throw(full))
        with pytest.raises(LedgerError) as told:
            index.catch_up()
        assert "free space" in told.value.remedy


def test_a_file_system_that_cannot_be_asked_is_an_error(make_ledger, monkeypatch):
    def fails(_):
        raise OSError(errno.EIO, "no answer")

    with make_ledger() as ledger:
        monkeypatch.setattr(os, "statvfs", fails)
        assert admin.tick(ledger)["space"]["error"] == "ledger-unwritable"
