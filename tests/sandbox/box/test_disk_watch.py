"""The disk cap holds when the box closes its folders or moves them about while they are counted."""

import os

import pytest

from ringfence.sandbox.inner import disk

MIB = 1 << 20


@pytest.fixture
def layer(tmp_path, monkeypatch):
    """A layer with 4 MiB in a folder; the file system says that 8 MiB went since the box began."""
    monkeypatch.setattr(disk.DiskWatch, "estimates", {})
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/big").write_bytes(b"x" * 4 * MIB)
    free = iter([100 * MIB, 92 * MIB, 92 * MIB, 92 * MIB])
    monkeypatch.setattr(disk.DiskWatch, "_free", lambda self: next(free))
    return os.fsencode(tmp_path)


def refuse(monkeypatch, error):
    real = os.scandir

    def scandir(path):
        if path.endswith(b"/folder"):
            raise error
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.parametrize("error", [PermissionError(), FileNotFoundError()])
def test_what_cannot_be_counted_is_told_by_the_free_space(layer, monkeypatch, error):
    refuse(monkeypatch, error)
    assert disk.DiskWatch([layer], 6 * MIB).reached(0)


def test_what_was_counted_whole_is_not_charged_for_others_writes(layer):
    assert not disk.DiskWatch([layer], 6 * MIB).reached(0)


def test_what_others_delete_meanwhile_hides_nothing(layer, monkeypatch):
    free = iter([100 * MIB, 900 * MIB, 892 * MIB, 892 * MIB])
    monkeypatch.setattr(disk.DiskWatch, "_free", lambda self: next(free))
    watch = disk.DiskWatch([layer], 3 * MIB)
    assert not watch.reached(0)
    assert watch.reached(0)


def test_one_vanished_entry_does_not_hide_the_rest_of_its_folder(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * MIB)
    real = os.scandir

    class Vanished:
        path = b"gone"

        def is_dir(self, *, follow_symlinks):
            return False

        def stat(self, *, follow_symlinks):
            raise FileNotFoundError

    class Listing:
        def __init__(self, path):
            self.real = real(path)

        def __enter__(self):
            return iter([Vanished(), *self.real])

        def __exit__(self, *_):
            self.real.close()

    monkeypatch.setattr(os, "scandir", Listing)
    size, whole = disk.used(os.fsencode(tmp_path))
    assert size >= 3 * MIB
    assert not whole


def test_a_file_system_that_cannot_be_asked_is_counted_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr(disk.DiskWatch, "estimates", {})
    monkeypatch.setattr(disk.DiskWatch, "_free", lambda self: 0)
    (tmp_path / "big").write_bytes(b"x" * 4 * MIB)
    assert disk.DiskWatch([os.fsencode(tmp_path)], 2 * MIB).reached(0)
