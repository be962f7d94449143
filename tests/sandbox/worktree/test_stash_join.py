"""Git's files of two missions brought together, whatever a box has made of them."""

import os
import subprocess

import pytest

from ringfence.sandbox.worktree import stash

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def two(tmp_path):
    folders = [tmp_path / "older", tmp_path / "newer"]
    for folder in folders:
        folder.mkdir()
    yield folders
    # Python's own removal recurses, and so would that of a later test run.
    subprocess.run(["rm", "-rf", *folders], check=True)


def nest(folder, levels):
    """Folders in each other, deeper than a path can say."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_folders_nested_without_end_in_both_are_left_where_they_are(two):
    for folder in two:
        (folder / "refs/notes").mkdir(parents=True)
        nest(folder / "refs/notes", 3000)
    (two[0] / "refs/notes/commits").write_text("a" * 40)
    before = len(os.listdir("/proc/self/fd"))
    stash.join(*map(str, two))
    assert (two[1] / "refs/notes/commits").read_text() == "a" * 40
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_in_the_place_of_a_folder_leaves_no_descriptor_open(two):
    (two[0] / "refs/notes").mkdir(parents=True)
    (two[1] / "refs").write_text("no folder")
    before = len(os.listdir("/proc/self/fd"))
    stash.join(*map(str, two))
    assert len(os.listdir("/proc/self/fd")) == before
    assert (two[1] / "refs").read_text() == "no folder"
