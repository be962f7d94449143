"""A repository made where another one was removed is another one, though the kernel gives its inode number again."""

import os
import shutil
import subprocess
import time

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.tree import Worktree


def make(path):
    path.mkdir()
    subprocess.run(["git", "init", "-q", str(path)], check=True)


def test_the_key_of_a_repository_made_anew_differs(tmp_path):
    repository, state = tmp_path / "r", tmp_path / "state"
    state.mkdir()
    keys = set()
    for _ in range(5):
        make(repository)
        keys.add(Worktree.open(str(repository), str(state)).key)
        shutil.rmtree(repository)
        time.sleep(0.02)
    assert len(keys) == 5


def test_the_key_of_one_repository_stays(tmp_path):
    repository, state = tmp_path / "r", tmp_path / "state"
    state.mkdir()
    make(repository)
    first = Worktree.open(str(repository), str(state)).key
    (repository / "new.txt").write_text("x")
    subprocess.run(["git", "-C", str(repository), "add", "."], check=True)
    os.rename(repository, tmp_path / "moved")
    assert Worktree.open(str(tmp_path / "moved"), str(state)).key == first


def test_birth_does_not_move_with_changes(tmp_path):
    before = kernel.birth(str(tmp_path))
    (tmp_path / "x").write_text("x")
    assert kernel.birth(str(tmp_path)) == before
