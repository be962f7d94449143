"""Which repository a call belongs to, and what git's files say of it."""

import os
import subprocess

import pytest

from ringfence.model.errors import PolicyError
from ringfence.supervisor.repository import find_root, git_directory, read_repository


def git(root, *words):
    subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *words],
        cwd=root,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def tree(tmp_path):
    git(tmp_path, "init", "-q", "-b", "work/one")
    (tmp_path / "sandbox_policy.yaml").write_text("version: 1\n")
    (tmp_path / "src").mkdir()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "remote", "add", "origin", "https://git.example.org/a.git")
    return tmp_path


def test_the_policy_is_found_from_below(tree):
    assert find_root(str(tree / "src")) == str(tree)


def test_no_policy_is_looked_for_above_a_repository(tree):
    inner = tree / "vendor"
    inner.mkdir()
    git(inner, "init", "-q")
    with pytest.raises(PolicyError) as caught:
        find_root(str(inner))
    assert caught.value.code == "policy-missing"
    assert "ringfence init" in caught.value.remedy


def test_a_directory_that_is_gone_is_a_fault(tree):
    with pytest.raises(PolicyError):
        find_root(str(tree / "gone"))


def test_branch_head_and_remotes(tree):
    found = read_repository(str(tree))
    assert found.branch == "work/one"
    assert found.head is not None
    assert len(found.head) == 40
    assert found.remotes == (("origin", "https://git.example.org/a.git"),)


def test_packed_references_and_a_detached_head(tree):
    before = read_repository(str(tree))
    git(tree, "pack-refs", "--all")
    assert read_repository(str(tree)) == before
    git(tree, "checkout", "-q", "--detach")
    found = read_repository(str(tree))
    assert (found.branch, found.head) == (None, before.head)


def test_a_linked_worktree_is_followed(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("linked") / "w"
    git(tree, "worktree", "add", "-q", "-b", "two", str(other))
    found = read_repository(str(other))
    assert found.branch == "two"
    assert found.remotes
    assert git_directory(str(other)).startswith(str(tree / ".git" / "worktrees"))


@pytest.mark.parametrize(
    "section", ["[include]\n path = x", '[url "https://other.example/"]\n insteadOf = https://git.example.org/']
)
def test_a_config_that_rewrites_says_nothing_of_remotes(tree, section):
    with (tree / ".git" / "config").open("a") as file:
        file.write(section + "\n")
    assert read_repository(str(tree)).remotes == ()


def test_links_and_pipes_in_place_of_git_files_say_nothing(tree):
    head = tree / ".git" / "HEAD"
    head.unlink()
    head.symlink_to("/etc/hostname")
    assert read_repository(str(tree)).branch is None
    head.unlink()
    os.mkfifo(head)
    assert read_repository(str(tree)).branch is None


def test_a_reference_that_climbs_out_is_not_read(tree):
    (tree / ".git" / "HEAD").write_text("ref: refs/../../../../etc/passwd\n")
    found = read_repository(str(tree))
    assert (found.branch, found.head) == (None, None)
