"""What a person's git says of the index and of work it had stopped at, after a mission went on with it."""

import os
import subprocess
import time

import pytest

from ringfence.model.tier import Tier

pytestmark = pytest.mark.needs_userns
GIT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_EDITOR": "true",
}


def names(items):
    return [item.name for item in items]


def tick():
    time.sleep(0.02)  # more than a tick of the clock by which files get their times


def save(bench, path, text, message):
    bench.write(path, text)
    bench.git("add", path)
    bench.git("commit", "-qm", message)


def person(bench, script):
    """What git stops at, it says by its exit status too."""
    subprocess.run(["sh", "-c", script], cwd=bench.root, env=GIT, capture_output=True, timeout=60, check=False)


def stopped(bench, command):
    """A person's work with a conflict in ``a.txt``, and a path that only the index has so far."""
    bench.git("checkout", "-qb", "side")
    bench.write("c.txt", "c\n")
    bench.git("add", "c.txt")
    save(bench, "a.txt", "side\n", "side")
    bench.git("checkout", "-q", "main")
    save(bench, "a.txt", "main\n", "main")
    person(bench, command)
    tick()


SEES = "git update-index -q --refresh || true; "  # the bench's box has another uid than the index notes
GOES_ON = "echo both > a.txt; git add a.txt; git -c core.editor=true "


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ("git merge side", GOES_ON + "merge --continue"),
        ("git merge side", "git checkout -q --ours a.txt; git add a.txt; git commit -qm ours"),
        ("git cherry-pick side", GOES_ON + "cherry-pick --continue"),
        ("git checkout -q side && git rebase main", GOES_ON + "rebase --continue"),
        ("git revert --no-edit HEAD~1", GOES_ON + "revert --continue"),
    ],
)
def test_what_a_persons_git_had_stopped_at_is_over_when_the_mission_brought_it_to_its_end(repo, begun, ended):
    bench = repo()
    stopped(bench, begun)
    assert "UU a.txt" in bench.git("status", "--porcelain") or "UD" in bench.git("status", "--porcelain")
    tick()
    bench.box(ended)
    _, history = bench.gate()
    assert history.clean
    assert history.index == ""
    assert bench.git("status", "--porcelain") == ""
    left = os.listdir(f"{bench.root}/.git")
    assert not {"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "sequencer"} & set(left)
    assert bench.git("log", "-1", "--format=%H") == bench.box("git log -1 --format=%H")
    kept = next(item.kept for item in history.moved if item.kept)
    assert os.listdir(kept)


@pytest.mark.parametrize(
    ("begun", "ended", "name"),
    [
        ("git merge side", SEES + "git merge --abort", "MERGE_HEAD"),
        ("git merge side", "rm .git/MERGE_HEAD; echo both > a.txt; git commit -qam plain", "MERGE_HEAD"),
        ("git cherry-pick side", SEES + "git cherry-pick --abort", "CHERRY_PICK_HEAD"),
        ("git checkout -q side && git rebase main", SEES + "git rebase --abort", "rebase-merge"),
    ],
)
def test_what_a_mission_gave_up_is_given_up_when_a_person_says_so(repo, begun, ended, name):
    bench = repo()
    stopped(bench, begun)
    noted = set(os.listdir(f"{bench.root}/.git"))
    head = bench.git("rev-parse", "--symbolic-full-name", "HEAD")
    bench.box(ended)
    _, history = bench.gate()
    assert names(history.held)[0] == name
    assert not noted - set(os.listdir(f"{bench.root}/.git"))
    assert bench.git("rev-parse", "--symbolic-full-name", "HEAD") == head
    assert "U" in bench.git("status", "--porcelain") or "plain" in ended
    assert bench.box("git status --porcelain") == ""
    _, history = bench.gate(approved=[name])
    assert history.clean or names(history.held) == ["HEAD"]
    _, history = bench.gate()
    assert history.clean
    assert bench.git("status", "--porcelain") == ""
    assert not os.path.exists(f"{bench.root}/.git/{name}")
    assert os.path.exists(f"{os.path.dirname(bench.layer.upper)}/concluded/1/index")


def test_what_a_person_went_on_with_meanwhile_is_not_over(repo):
    bench = repo()
    stopped(bench, "git merge side")
    bench.box(SEES + "git merge --abort")
    tick()
    bench.write("a.txt", "mine\n")
    bench.git("add", "a.txt")
    bench.gate()
    assert os.path.exists(f"{bench.root}/.git/MERGE_HEAD")
    assert bench.git("status", "--porcelain") == "M  a.txt\nAD c.txt\n"


@pytest.mark.parametrize("tier", [Tier.ASK, Tier.DENY])
def test_what_does_not_arrive_keeps_the_work_open_in_every_later_gate_too(repo, tier):
    bench = repo()
    bench.rules.on_content("both", tier)
    stopped(bench, "git merge side")
    bench.box(GOES_ON + "merge --continue")
    _, history = bench.gate()
    assert names(history.held if tier is Tier.ASK else history.refused) == ["refs/heads/main"]
    status = bench.git("status", "--porcelain")
    for _ in range(2):
        assert os.path.exists(f"{bench.root}/.git/MERGE_HEAD")
        assert bench.git("status", "--porcelain") == status
        _, history = bench.gate()
        assert not history.moved


def test_edits_that_git_had_put_by_for_a_rebase_are_never_out_of_reach(repo):
    bench = repo()
    bench.git("checkout", "-qb", "side")
    save(bench, "a.txt", "side\n", "side")
    bench.git("checkout", "-q", "main")
    save(bench, "a.txt", "main\n", "main")
    bench.git("checkout", "-q", "side")
    bench.write("src/b.py", "edited\n")
    person(bench, "git rebase --autostash main")
    tick()
    bench.box(GOES_ON + "rebase --continue")
    bench.gate()
    assert bench.read("src/b.py") == "edited\n"
    assert bench.git("show", "refs/ringfence/m-1/autostash-1:src/b.py") == "edited\n"


@pytest.mark.parametrize("split", [False, True])
def test_the_index_follows_where_the_person_had_staged_another_state_of_the_path(repo, split):
    bench = repo()
    if split:
        bench.git("update-index", "--split-index")
    bench.write("n", "1\n")
    bench.write("mine", "m\n")
    bench.git("add", "n", "mine")
    tick()
    bench.box("echo 2 > n; echo z > z; git add z; git commit -qm all n z")
    _, history = bench.gate()
    assert history.index == ""
    assert bench.git("status", "--porcelain") == "A  mine\n"


def test_a_split_index_follows(repo):
    bench = repo()
    bench.git("config", "core.splitIndex", "true")
    bench.git("update-index", "--split-index")
    save(bench, "n", "n\n", "n")
    tick()
    bench.box("echo z > z; git add z; git commit -qm z; git rm -q n; git commit -qm gone")
    _, history = bench.gate()
    assert history.index == ""
    assert bench.git("status", "--porcelain") == ""
    assert bench.git("ls-files", "z", "n") == "z\n"


def test_what_a_person_staged_meanwhile_stays_and_every_other_path_follows(repo):
    bench = repo()
    bench.box("echo 2 > n; echo z > z; git add n z; git commit -qm both")
    tick()
    bench.write("m", "m\n")
    bench.git("update-index", "--add", "--cacheinfo", f"100644,{bench.git('hash-object', '-w', 'm').strip()},n")
    bench.gate()
    assert bench.git("diff", "--cached", "--name-status") == "M\tn\n"


@pytest.mark.parametrize("moment", ["in the call", "between calls"])
def test_what_is_staged_outlives_a_persons_git_status(repo, moment):
    bench = repo()
    bench.tree.layer(bench.mission)
    tick()
    os.utime(f"{bench.root}/a.txt", (1, 1))
    if moment == "in the call":
        bench.git("status")
    tick()
    bench.box("echo n > n; git add n")
    bench.gate()
    if moment == "between calls":
        bench.git("status")
    assert bench.box("git status --porcelain") == "A  n\n"


def look(bench):
    """What an editor does all the time: git notes new times of files in the index."""
    tick()
    os.utime(f"{bench.root}/run.sh", (1, 1))
    bench.git("status")
    tick()


def test_what_is_staged_outlives_a_look_at_the_tree_where_the_person_had_staged_something_too(repo):
    bench = repo()
    bench.write("p", "p\n")
    bench.git("add", "p")
    tick()
    bench.tree.layer(bench.mission)
    look(bench)
    bench.box("echo n > n; git add n")
    bench.gate()
    assert bench.box("git status --porcelain") == "A  n\nA  p\n"


def test_what_is_staged_on_a_branch_without_commits_outlives_a_look_at_the_tree(repo):
    bench = repo()
    bench.box("git checkout -q --orphan bare; git rm -q --cached src/b.py")
    bench.gate()
    bench.tree.layer(bench.mission)
    look(bench)
    bench.box("true")
    bench.gate()
    assert bench.box("git ls-files src") == "src/deep/c.py\n"


@pytest.mark.parametrize("moves", ["git reset -q --soft HEAD~2", "git symbolic-ref HEAD refs/heads/old"])
def test_what_a_soft_reset_leaves_staged_is_committed_in_the_next_call(repo, moves):
    bench = repo()
    bench.git("branch", "old")
    save(bench, "a.txt", "2\n", "two")
    save(bench, "n", "3\n", "three")
    tick()
    bench.box(moves)
    bench.gate()
    assert bench.box("git status --porcelain") == "M  a.txt\nA  n\n"
    bench.box("git commit -qm squashed")
    _, history = bench.gate()
    assert history.clean
    assert bench.git("log", "--format=%s", "--name-status") == "squashed\n\nM\ta.txt\nA\tn\n" + bench.git(
        "log", "--format=%s", "--name-status", "HEAD~1"
    )
    assert bench.git("status", "--porcelain") == ""


def test_a_merge_that_the_mission_finished_is_over_although_somebody_looked_meanwhile(repo):
    bench = repo()
    stopped(bench, "git merge side")
    bench.tree.layer(bench.mission)
    look(bench)
    bench.box(SEES + GOES_ON + "merge --continue")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main", "MERGE_HEAD"]
    assert bench.git("status", "--porcelain") == ""


def test_refs_that_a_person_packed_meanwhile_did_not_move(repo):
    bench = repo()
    bench.box("echo z > z; git add z; git commit -qm z; git tag t")
    tick()
    bench.git("pack-refs", "--all", "--prune")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main", "refs/tags/t"]
    assert bench.git("status", "--porcelain") == ""


def test_a_branch_that_a_person_moved_and_packed_meanwhile_is_a_conflict(repo):
    bench = repo()
    bench.box("echo z > z; git add z; git commit -qm z")
    tick()
    save(bench, "p", "p\n", "person")
    bench.git("pack-refs", "--all", "--prune")
    _, history = bench.gate()
    assert names(history.conflicts) == ["refs/heads/main"]
    assert bench.git("log", "-1", "--format=%s") == "person\n"


REBASE = "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -i --force-rebase base"


def test_a_branch_that_a_person_began_to_rebase_meanwhile_stays_for_the_rebase_to_move(repo):
    bench = repo()
    bench.git("branch", "base")
    save(bench, "m", "m\n", "m")
    tick()
    bench.box("echo z > z; git add z; git commit -qm z")
    tick()
    person(bench, REBASE)
    _, history = bench.gate()
    assert names(history.conflicts) == ["refs/heads/main"]
    assert "rebase" in history.conflicts[0].reason
    person(bench, "git rebase --continue")
    assert "On branch main" in bench.git("status")
    assert bench.git("log", "-1", "--format=%s", history.conflicts[0].kept) == "z\n"


def test_a_branch_that_is_rebased_in_another_worktree_stays(repo):
    bench = repo()
    bench.git("branch", "base")
    bench.git("worktree", "add", "-q", "-b", "side", "../side")
    save(bench, "m", "m\n", "m")
    person(bench, f"cd ../side && echo s > s && git add s && git commit -qm s && {REBASE}")
    tick()
    bench.box("git update-ref refs/heads/side main")
    _, history = bench.gate()
    assert names(history.conflicts) == ["refs/heads/side"]
    person(bench, "cd ../side && git rebase --continue")
    assert "On branch side" in bench.git("-C", "../side", "status")


@pytest.mark.parametrize(
    "comes", ["git merge -q --no-ff --no-edit side", "git checkout -q side", "git checkout -q --detach side"]
)
@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_what_a_sparse_checkout_leaves_out_is_not_taken_for_removed(repo, comes, index):
    bench = repo()
    bench.git("checkout", "-qb", "side")
    for path in ("doc/new", "doc/deep/new", "src/new"):
        bench.write(path, "new\n")
    bench.git("add", "-A")
    bench.git("commit", "-qm", "side")
    bench.git("checkout", "-q", "main")
    bench.git("sparse-checkout", "init", "--cone", index)
    bench.git("sparse-checkout", "set", "src")
    bench.box(comes)
    _, history = bench.gate()
    assert history.clean
    assert history.index == ""
    assert bench.git("status", "--porcelain") == ""
    assert bench.box("git status --porcelain") == ""
    assert bench.read("src/new") == "new\n"
    bench.git("sparse-checkout", "disable")
    assert bench.read("doc/new") == "new\n"
