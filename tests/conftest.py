"""Shared fixtures. Room-specific ones live beside the room's tests."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

if "/usr/sbin" not in os.environ["PATH"].split(":"):
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # nft and ip, which Debian leaves out of an ordinary user's path

settings.register_profile("untimed", deadline=None)  # a busy machine makes no test fail
settings.load_profile("untimed")

_guarded = False


def _watch(event: str, args: tuple[object, ...]) -> None:
    if _guarded and event in {"open", "socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.fork"}:
        raise AssertionError(f"pure code touched the world: {event} {args[:1]}")


sys.addaudithook(_watch)


@pytest.fixture
def no_io() -> Iterator[None]:
    """Fail the test if the code under test opens a file or socket or starts a process."""
    global _guarded
    _guarded = True
    try:
        yield
    finally:
        _guarded = False
