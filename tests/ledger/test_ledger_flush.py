"""A write is durable when it returns, by one call or by two."""

import errno
import os

import pytest

from ringfence.ledger import flush
from ringfence.ledger.flush import Flusher, file_system
from ringfence.ledger.segment import Segment


class Calls:
    """Which calls were made, in order; the first may fail or write less."""

    def __init__(self, monkeypatch, *, error: int = 0, most: int = 1 << 30) -> None:
        self.made: list[str] = []
        self._error, self._most = error, most
        for name in ("pwrite", "pwritev", "fdatasync"):
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name, real):
        def call(fd, *rest):
            self.made.append(name)
            if name == "pwritev":
                (data,), offset, flags = rest
                assert flags == os.RWF_DSYNC
                if self._error:
                    raise OSError(self._error, "injected")
                return real(fd, (data[: self._most],), offset)
            return real(fd, *rest)

        return call


@pytest.fixture
def fd(tmp_path):
    found = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield found
    os.close(found)


def flusher(monkeypatch, fd: int, *, known: bool) -> Flusher:
    monkeypatch.setattr(flush, "_KNOWN", frozenset({file_system(fd)} if known else ()))
    return Flusher(fd)


def test_one_call_where_the_file_system_is_known_to_flush_by_it(monkeypatch, fd):
    tried = flusher(monkeypatch, fd, known=True)
    calls = Calls(monkeypatch)
    tried.write(b"abc", 2)
    assert (calls.made, os.pread(fd, 9, 0)) == (["pwritev"], b"\0\0abc")


def test_two_calls_where_it_is_not(monkeypatch, fd):
    tried = flusher(monkeypatch, fd, known=False)
    calls = Calls(monkeypatch)
    tried.write(b"abc", 2)
    assert (calls.made, os.pread(fd, 9, 0)) == (["pwrite", "fdatasync"], b"\0\0abc")


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.ENOSYS])
def test_two_calls_from_then_on_where_the_kernel_does_not_know_the_flag(monkeypatch, fd, error):
    tried = flusher(monkeypatch, fd, known=True)
    calls = Calls(monkeypatch, error=error)
    tried.write(b"abc", 0)
    tried.write(b"def", 3)
    assert calls.made == ["pwritev", "pwrite", "fdatasync", "pwrite", "fdatasync"]
    assert os.pread(fd, 9, 0) == b"abcdef"


def test_a_short_write_is_continued_and_flushed(monkeypatch, fd):
    tried = flusher(monkeypatch, fd, known=True)
    calls = Calls(monkeypatch, most=2)
    tried.write(b"abcdef", 0)
    assert (calls.made, os.pread(fd, 9, 0)) == (["pwritev", "pwrite", "fdatasync"], b"abcdef")


def test_a_failed_write_is_an_error(monkeypatch, fd):
    tried = flusher(monkeypatch, fd, known=True)
    Calls(monkeypatch, error=errno.EIO)
    with pytest.raises(OSError, match="injected"):
        tried.write(b"abc", 0)


def test_what_cannot_be_told_is_not_known(monkeypatch, fd):
    reading, writing = os.pipe()
    assert file_system(reading) == ""
    os.close(reading)
    os.close(writing)
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(PermissionError()))
    assert file_system(fd) == ""


def test_a_segment_that_is_continued_is_flushed_before_anything_is_added(monkeypatch, tmp_path):
    """What a killed writer left may be in memory only, and a later flush of one range would not reach it."""
    path = tmp_path / "segment"
    path.write_bytes(b"x" * 100)
    calls = Calls(monkeypatch)
    segment = Segment.resume(str(path), offset=100, window=64)
    assert calls.made == ["fdatasync"]
    segment.close()
    monkeypatch.setattr(os, "fdatasync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "injected")))
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="injected"):
        Segment.resume(str(path), offset=100, window=64)
    assert os.listdir("/proc/self/fd") == before
