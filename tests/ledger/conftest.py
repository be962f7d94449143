"""A ledger in a temporary folder, with small segments so that tests see several of them."""

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ringfence.ledger.log import Ledger, Settings
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.ids import Micros, MissionId

START = 1_800_000_000_000_000


@pytest.fixture
def clock() -> Callable[[], Micros]:
    """A clock that moves a millisecond at each look."""
    ticks = itertools.count(START, 1000)
    return lambda: Micros(next(ticks))


@pytest.fixture
def settings() -> Settings:
    """Small segments."""
    return Settings(segment_bytes=8192, window_bytes=4096, checkpoint_every=Micros(50_000_000))


@pytest.fixture
def make_entry() -> Callable[..., Entry]:
    """One entry of a kind, numbered."""

    def make(number: int = 0, kind: EntryKind = EntryKind.INTENT, **fields) -> Entry:
        fields.setdefault("call", f"c-{number}")
        fields.setdefault("body", {"n": number, "decision": {"tier": "allow"}})
        return Entry(kind=kind, time=Micros(START + number), mission=MissionId("m-1"), **fields)

    return make


@pytest.fixture
def make_ledger(tmp_path, clock, settings) -> Callable[..., Ledger]:
    """Open the ledger of this test."""

    def make(name: str = "ledger", **options) -> Ledger:
        options.setdefault("clock", clock)
        options.setdefault("settings", settings)
        return Ledger.open(str(tmp_path / name), **options)

    return make


@pytest.fixture(scope="session")
def stranger() -> ModuleType:
    """The verifier that was written from the format page alone."""
    spec = importlib.util.spec_from_file_location("ledger_stranger", Path(__file__).with_name("stranger.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
