"""What git shows to a mission's next call, to the next mission and to a person, after a gate; the gate runs as in the product."""

import errno
import os
import time

import pytest

from ringfence.model.ids import MissionId
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import layers

pytestmark = pytest.mark.needs_userns


def next_mission(bench, name):
    """End the mission; what comes is another one's in the same repository."""
    bench.tree.end(bench.layer)
    bench.mission = MissionId(name)


def names(items):
    return [item.name for item in items]


def person_commits(bench):
    time.sleep(0.02)  # more than a tick of the clock by which files get their times
    bench.write("person", "p\n")
    bench.git("add", "person")
    bench.git("commit", "-qm", "person")
    time.sleep(0.02)


def both_are_there(bench, history):
    assert names(history.moved) == ["refs/heads/main"], history
    assert not history.conflicts
    assert bench.git("log", "--format=%s", "main").split()[:2] == ["agent", "person"]
    assert "person" in bench.git("ls-tree", "--name-only", "main").split()
    assert bench.read("person") == "p\n"


COMMIT = "echo x > x; git add x; git commit -qm agent"
LEFT = {
    "nothing": "true",
    "a file": "echo f > f",
    "a look": "touch a.txt; git status",
    "staged work": "echo s > s; git add s",
    "a commit": "echo 1 >> a.txt; git commit -qam one",
    "a commit and staged work": "echo 1 >> a.txt; git commit -qam one; echo s > s; git add s",
    "a stash": "echo 1 >> a.txt; git stash -q; echo 2 > k; git add k; git commit -qm k",
    "a refused branch": "git checkout -qb bad; echo s > secret; git add secret; git commit -qm bad; git checkout -q main;"
    "echo k > k; git add k; git commit -qm k",
    "a refused branch, packed": "git checkout -qb bad; echo s > secret; git add secret; git commit -qm bad; "
    "git checkout -q main; echo k > k; git add k; git commit -qm k; git gc -q",
    "a deleted branch": "git branch -D old; echo k > k; git add k; git commit -qm k",
    "a deleted branch, packed": "git branch -D old; echo k > k; git add k; git commit -qm k; git gc -q",
    "a broken branch": "echo junk > .git/refs/heads/junk; echo k > k; git add k; git commit -qm k; rm .git/refs/heads/junk",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("left", LEFT)
def test_a_person_commits_between_two_calls_and_the_mission_builds_upon_it(repo, left, packed):
    bench = repo()
    bench.rules.on("secret", Tier.DENY)
    bench.git("branch", "old")
    if packed:
        bench.git("pack-refs", "--all")
    bench.box(LEFT[left])
    bench.gate()
    person_commits(bench)
    bench.box(COMMIT)
    _, history = bench.gate()
    both_are_there(bench, history)


@pytest.mark.parametrize("packs", [None, "gc -q"])
@pytest.mark.parametrize("left", LEFT)
def test_a_person_commits_during_a_call_and_the_mission_builds_upon_it(repo, left, packs):
    """Git packs refs by itself now and then; neither those that a layer kept, nor its index, may undo what came meanwhile."""
    bench = repo()
    bench.rules.on("secret", Tier.DENY)
    bench.git("branch", "old")
    if packs:
        bench.git("pack-refs", "--all")
    time.sleep(0.02)
    bench.box(LEFT[left])
    person_commits(bench)
    if packs:
        bench.git(*packs.split())
    bench.gate()
    assert bench.git("log", "-1", "--format=%s", "main") == "person\n"
    bench.box(COMMIT)
    _, history = bench.gate()
    both_are_there(bench, history)


@pytest.mark.parametrize("tier", [Tier.ASK, Tier.DENY])
@pytest.mark.parametrize("packs", [False, True])
def test_a_branch_that_waits_never_replaces_what_a_person_made_of_it_before_the_gate(repo, packs, tier):
    bench = repo()
    bench.rules.on("secret", tier)
    time.sleep(0.02)
    bench.box("echo s > secret; git add secret; git commit -qm mission")
    person_commits(bench)
    if packs:
        bench.git("pack-refs", "--all")
    _, history = bench.gate()
    assert names(history.held if tier is Tier.ASK else history.refused) == ["refs/heads/main"]
    for box in (False, True):
        if box:
            time.sleep(0.02)
            bench.box("true")
        bench.rules.tiers.clear()
        _, history = bench.gate(approved=["secret", "refs/heads/main"])
        assert bench.git("log", "-1", "--format=%s", "main") == "person\n"
    kept = bench.git("for-each-ref", "--format=%(subject)", "refs/ringfence")
    assert kept == "mission\n"


def test_a_branch_that_waits_does_not_bring_back_what_a_person_moved_and_then_deleted(repo):
    bench = repo()
    bench.rules.on("secret", Tier.ASK)
    bench.git("branch", "side")
    time.sleep(0.02)
    bench.box("git checkout -q side; echo s > secret; git add secret; git commit -qm mission; git checkout -q main")
    time.sleep(0.02)
    bench.git("branch", "-f", "side", bench.git("commit-tree", "-m", "person", "-p", "side", "main^{tree}").strip())
    bench.gate()
    bench.git("branch", "-D", "side")
    bench.rules.tiers.clear()
    _, history = bench.gate(approved=["refs/heads/side"])
    assert names(history.conflicts) == ["refs/heads/side"]
    assert bench.git("branch", "--list", "side") == ""
    assert bench.git("log", "-1", "--format=%s", history.conflicts[0].kept) == "mission\n"


def test_what_waits_is_still_there_where_refs_were_packed(repo):
    bench = repo()
    bench.rules.on("secret", Tier.DENY)
    bench.box(LEFT["a refused branch, packed"])
    bench.gate()
    assert bench.box("git log -1 --format=%s bad; git log -1 --format=%s main") == "bad\nk\n"
    bench.rules.tiers.clear()
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/bad"]


def test_after_refs_that_make_no_sense_a_persons_commit_is_not_overwritten(repo):
    bench = repo()
    bench.box("echo k > k; git add k; git commit -qm k; echo junk > .git/refs/heads/junk")
    _, history = bench.gate()
    assert names(history.refused) == ["HEAD"]
    person_commits(bench)
    bench.box("rm .git/refs/heads/junk")
    _, history = bench.gate()
    assert names(history.conflicts) == ["refs/heads/main"]
    assert bench.git("log", "-1", "--format=%s", "main") == "person\n"


def test_refs_of_the_repository_that_make_no_sense_are_named(repo):
    """Else commits would stay in the layer without a word."""
    bench = repo()
    bench.git("symbolic-ref", "HEAD", "refs/odd/one")
    bench.box("git checkout -q main; echo k > k; git add k; git commit -qm k")
    _, history = bench.gate()
    assert names(history.refused) == ["HEAD"]
    assert "refs/odd/one" in history.refused[0].reason


def test_a_head_that_waits_does_not_switch_the_branch_that_a_person_went_to(repo):
    bench = repo()
    bench.rules.on("secret", Tier.ASK)
    bench.git("branch", "other")
    bench.box("git checkout -qb bad; echo s > secret; git add secret; git commit -qm bad")
    bench.gate()
    time.sleep(0.02)
    bench.git("checkout", "-q", "other")
    time.sleep(0.02)
    bench.box("true")
    _, history = bench.gate(approved=["secret", "refs/heads/bad"])
    assert names(history.moved) == ["refs/heads/bad"]
    assert names(history.conflicts) == ["HEAD"]
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/other\n"


def test_the_stash_stays_usable_in_the_layer(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one; echo 2 >> a.txt; git stash -q")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.box("git stash pop -q; tail -1 a.txt") == "2\n"


def test_the_stash_outlives_what_packs_refs_and_objects(repo):
    bench = repo()
    bench.box("echo 2 >> a.txt; git stash -q; git pack-refs --all; git gc -q")
    bench.gate()
    assert bench.box("git stash pop -q; tail -1 a.txt") == "2\n"


def test_a_packed_stash_that_cannot_be_written_apart_stays_where_it_is(repo, monkeypatch):
    bench = repo()
    bench.box("echo 2 >> a.txt; git stash -q; git pack-refs --all; git gc -q")

    def full(*_):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(layers, "write", full)
    bench.gate()
    assert bench.box("git stash pop -q; tail -1 a.txt") == "2\n"


def test_a_file_of_the_layer_that_cannot_be_written_whole_is_not_there(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(layers, "_own", full)
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(OSError, match="no room"):
        layers.write(folder, "stash", b"half", (0, 0))
    os.close(folder)
    assert os.listdir(tmp_path) == []


def test_the_stash_goes_on_to_the_repositorys_next_mission(repo):
    """A person's own edits may be in it: the tree does not have them any more."""
    bench = repo()
    bench.write("a.txt", "a person's edit\n")
    bench.box("git stash -q")
    bench.gate()
    assert bench.read("a.txt") == "a\n"
    next_mission(bench, "m-2")
    bench.box("echo n > node_modules; true")
    bench.gate()
    next_mission(bench, "m-3")
    bench.box("git stash pop -q")
    bench.gate()
    assert bench.read("a.txt") == "a person's edit\n"
    assert bench.box("git stash list") == ""


@pytest.mark.parametrize("split", ["", "git update-index --split-index;"])
@pytest.mark.parametrize("person", [False, True])
def test_what_was_staged_goes_on_to_the_next_mission_unless_a_person_staged_meanwhile(repo, person, split):
    bench = repo()
    bench.box(f"{split} echo n > n; git add n")
    bench.gate()
    bench.tree.end(bench.layer)
    if person:
        bench.write("p", "p\n")
        bench.git("add", "p")
        bench.git("commit", "-qm", "p")
    bench.mission = MissionId("m-2")
    assert bench.box("git status --porcelain") == ("?? n\n" if person else "A  n\n")


def test_a_merge_that_stopped_goes_on_in_the_next_mission(repo):
    bench = repo()
    bench.git("checkout", "-qb", "side")
    bench.write("a.txt", "side\n")
    bench.git("commit", "-qam", "side")
    bench.git("checkout", "-q", "main")
    bench.write("a.txt", "main\n")
    bench.git("commit", "-qam", "main")
    bench.box("git merge -q side", check=False)
    bench.gate()
    next_mission(bench, "m-2")
    bench.box("echo both > a.txt; git add a.txt; git commit -qm both")
    bench.gate()
    assert len(bench.git("log", "-1", "--format=%P").split()) == 2
    assert bench.git("status", "--porcelain") == ""


def test_staged_work_survives_until_the_next_call(repo):
    bench = repo()
    bench.box("echo staged > s; git add s")
    bench.gate()
    assert bench.box("git status --porcelain") == "A  s\n"
    bench.box("git commit -qm s")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.git("status", "--porcelain") == ""


def test_what_was_staged_after_a_commit_is_staged_in_the_next_call(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one; echo n > n; git add n")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.box("git status --porcelain; git commit -qm two") == "A  n\n"
    bench.gate()
    assert bench.git("status", "--porcelain") == ""
    assert not os.path.exists(f"{bench.layer.upper}/.git/index")


def test_a_rebase_that_stopped_half_way_goes_on_in_the_next_call(repo):
    """What its stopped commit changed without a conflict is in the index alone; without it a part would be left out."""
    bench = repo()
    bench.git("checkout", "-qb", "side")
    for path, text in (("c.txt", "c\n"), ("a.txt", "side\n"), ("run.sh", "side\n")):
        bench.write(path, text)
        bench.git("add", path)
        if path != "a.txt":
            bench.git("commit", "-qm", path)
    bench.git("checkout", "-q", "main")
    bench.write("a.txt", "main\n")
    bench.git("commit", "-qam", "main")
    bench.git("checkout", "-q", "side")
    bench.box("git rebase -q main", check=False)
    _, history = bench.gate()
    assert names(history.moved) == ["HEAD"]
    bench.box("echo both > a.txt; git add a.txt; git -c core.editor=true rebase --continue")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/side", "HEAD"]
    assert bench.git("show", "--format=", "--name-only", "side").split() == ["a.txt", "run.sh"]
    assert bench.git("status", "--porcelain") == ""
