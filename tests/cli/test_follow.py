"""`ledger show --follow` goes on over new segments, a purge, and a ledger that was begun anew."""

import argparse
import json
import os
from collections.abc import Callable

import pytest

from ringfence.cli import ledger, ledger_show
from ringfence.ledger import admin, scan
from ringfence.ledger.log import Ledger, Settings
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import Micros
from ringfence.model.person import Person

ME = Person(name="me", uid=1000, how="peer")
START, DAY = 1_800_000_000_000_000, 86_400 * 1_000_000


@pytest.fixture
def follow(tmp_path, monkeypatch, capsys) -> Callable[..., list[int]]:
    """Follow a ledger while steps are taken, one between two looks; returns what was printed of the days."""

    def run(*steps: Callable[[], object]) -> list[int]:
        left = [*steps, lambda: None]

        def sleep(_: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(ledger_show.time, "sleep", sleep)
        parser = argparse.ArgumentParser()
        ledger.configure(parser)
        args = parser.parse_args(["show", "--follow", "--json", "--kind", "box.observed"])
        with pytest.raises(KeyboardInterrupt):
            ledger_show.show(args, str(tmp_path / "ledger"))
        return [json.loads(line)["body"]["day"] for line in capsys.readouterr().out.splitlines()]

    return run


class Days:
    """A ledger whose clock goes by days."""

    def __init__(self, directory: str) -> None:
        self.now, self.directory = START, directory
        self.open()

    def open(self) -> None:
        settings = Settings(segment_bytes=2000, window_bytes=512, checkpoint_every=Micros(10**12))
        self.ledger = Ledger.open(self.directory, clock=lambda: Micros(self.now), settings=settings)

    def write(self, *days: int) -> None:
        for day in days:
            self.now = START + day * DAY
            self.ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(self.now), body={"day": day})])

    def purge(self) -> None:
        admin.perform(self.ledger, "purge", {}, by=ME)

    def begin_anew(self, *days: int) -> None:
        self.ledger.close()
        os.rename(self.directory, f"{self.directory}.evidence")
        self.open()
        self.write(*days)


@pytest.fixture
def days(tmp_path, monkeypatch):
    made = Days(str(tmp_path / "ledger"))
    monkeypatch.setattr("ringfence.ledger.log.time.clock_gettime", lambda _: float(made.now // 1_000_000 - 10**9))
    yield made
    made.ledger.close()


def test_following_goes_on_over_new_segments_and_a_purge(days, follow):
    days.write(*range(0, 400, 10))
    printed = follow(
        lambda: days.write(*range(400, 500, 10)),
        days.purge,
        lambda: days.write(500),
        lambda: days.write(510),
    )
    assert printed == list(range(0, 520, 10))
    assert scan.segments(days.directory)[0].first > 0


def test_following_shows_a_ledger_that_was_begun_anew_from_its_beginning(days, follow):
    days.write(*range(20))
    printed = follow(lambda: days.write(20), lambda: days.begin_anew(21, 22), lambda: days.write(23))
    assert printed == list(range(24))
