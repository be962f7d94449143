"""What a conflict or a deletion sets aside is never set aside over something else, and never nowhere."""

import os
import subprocess
import time

import pytest

from ringfence.sandbox.worktree import kept_refs
from ringfence.sandbox.worktree.gitrun import Answer

pytestmark = pytest.mark.needs_userns


def tick():
    time.sleep(0.02)  # more than a tick of the clock by which files get their times


def conflicts(history):
    return {item.name: item.kept for item in history.conflicts}


def fork(bench, text, branch="side", person=None):
    """The mission commits on a branch that a person moves meanwhile; gives where the mission's commit is kept."""
    tick()
    bench.box(
        f"git checkout -q {branch}; echo {text} > {text}; git add {text}; git commit -qm {text}; git checkout -q main"
    )
    tick()
    bench.git(
        "branch", "-f", branch, bench.git("commit-tree", "-m", "theirs", "-p", person or branch, "main^{tree}").strip()
    )
    _, history = bench.gate()
    kept = conflicts(history)[f"refs/heads/{branch}"]
    assert bench.git("log", "-1", "--format=%s", kept) == f"{text}\n"
    return kept


def test_a_second_version_is_set_aside_beside_the_first_whatever_had_none(bench):
    bench.box("rm a.txt run.sh; echo agent > src/b.py; echo agent > src/deep/c.py")
    for path in ("a.txt", "run.sh", "src/b.py", "src/deep/c.py"):
        bench.write(path, "person\n")
    first = bench.commit()
    assert len(first.conflicts) == 4
    tick()
    bench.box("echo again > src/b.py; rm a.txt; echo again > run.sh")
    for path in ("a.txt", "run.sh", "src/b.py"):
        bench.write(path, "person again\n")
    second = bench.commit()
    places = [item.kept for item in (*first.conflicts, *second.conflicts) if item.kept]
    assert len(places) == len(set(places)) == 4
    texts = []
    for place in places:
        with open(place, encoding="utf-8") as stream:
            texts.append(stream.read())
    assert texts == ["agent\n", "agent\n", "again\n", "again\n"]


def test_commits_of_two_conflicts_on_one_branch_are_both_kept(repo):
    bench = repo()
    bench.git("branch", "side")
    kept = [fork(bench, text) for text in ("one", "two", "three")]
    assert kept == [
        "refs/ringfence/m-1/heads/side",
        "refs/ringfence/m-1/2/heads/side",
        "refs/ringfence/m-1/3/heads/side",
    ]


def test_commits_are_kept_where_a_name_above_theirs_is_taken(repo):
    bench = repo()
    bench.git("branch", "side")
    fork(bench, "one")
    tick()
    bench.box("git branch -D side")
    bench.gate(approved=("refs/heads/side",))
    bench.git("branch", "side/below")
    assert fork(bench, "two", branch="side/below") == "refs/ringfence/m-1/2/heads/side/below"


def test_a_branch_deleted_twice_is_kept_twice(repo):
    bench = repo()
    for text in ("one", "two"):
        bench.git("checkout", "-qb", "side")
        bench.write("a.txt", f"{text}\n")
        bench.git("commit", "-qam", text)
        bench.git("checkout", "-q", "main")
        tick()
        bench.box("git branch -qD side")
        _, history = bench.gate(approved=("refs/heads/side",))
        assert [item.name for item in history.moved] == ["refs/heads/side"]
    kept = bench.git("for-each-ref", "--format=%(refname) %(subject)", "refs/ringfence")
    assert kept == "refs/ringfence/m-1/2/deleted/heads/side two\nrefs/ringfence/m-1/deleted/heads/side one\n"


def test_commits_on_no_branch_are_kept_where_a_person_went_elsewhere_meanwhile(repo):
    bench = repo()
    bench.git("branch", "side")
    tick()
    bench.box("git checkout -q --detach; echo n > n; git add n; git commit -qm detached")
    tick()
    bench.git("checkout", "-q", "side")
    _, history = bench.gate()
    assert bench.git("log", "-1", "--format=%s", conflicts(history)["HEAD"]) == "detached\n"
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/side\n"


def test_commits_that_git_cannot_keep_yet_wait_in_the_layer(repo, monkeypatch):
    bench = repo()
    bench.git("branch", "side")
    real = kept_refs.keep
    full = Answer(ok=False, out=b"", error="no space left")
    monkeypatch.setattr("ringfence.sandbox.worktree.history.keep", lambda *_: ("", full))
    tick()
    bench.box("git checkout -q side; echo n > n; git add n; git commit -qm mission; git checkout -q main")
    tick()
    theirs = bench.git("commit-tree", "-m", "theirs", "-p", "side", "main^{tree}").strip()
    bench.git("branch", "-f", "side", theirs)
    _, history = bench.gate()
    assert conflicts(history) == {"refs/heads/side": ""}
    assert "no space left" in history.conflicts[0].reason
    monkeypatch.setattr("ringfence.sandbox.worktree.history.keep", real)
    _, history = bench.gate()
    assert bench.git("log", "-1", "--format=%s", conflicts(history)["refs/heads/side"]) == "mission\n"
    assert bench.git("rev-parse", "side").strip() == theirs


def test_edits_put_by_for_two_rebases_are_both_kept(repo):
    bench = repo()
    for text in ("one", "two"):
        bench.git("checkout", "-qB", f"side-{text}", "main")
        bench.write("a.txt", f"side {text}\n")
        bench.git("commit", "-qam", "side")
        bench.git("checkout", "-q", "main")
        bench.write("a.txt", f"main {text}\n")
        bench.git("commit", "-qam", "main")
        bench.git("checkout", "-q", f"side-{text}")
        bench.write("src/b.py", f"edited {text}\n")
        command = "GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org git rebase --autostash main"
        subprocess.run(["sh", "-c", command], cwd=bench.root, capture_output=True, timeout=60, check=False)
        assert os.path.isdir(f"{bench.root}/.git/rebase-merge")
        tick()
        bench.box("echo both > a.txt; git add a.txt; git -c core.editor=true rebase --continue")
        bench.gate()
        bench.git("reset", "-q", "--hard")
        bench.git("checkout", "-q", "main")
    refs = bench.git("for-each-ref", "--format=%(refname)", "refs/ringfence").split()
    assert [bench.git("show", f"{ref}:src/b.py") for ref in sorted(refs)] == ["edited two\n", "edited one\n"]
