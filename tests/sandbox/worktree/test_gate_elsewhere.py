"""Worktrees whose git directory lies elsewhere: linked worktrees, submodules, a linked ``.git``; and bare ones refused."""

import os
import pathlib
import shutil
import subprocess

import pytest

from ringfence.model.ids import MissionId
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


def git(cwd, *args):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *identity, *args], cwd=cwd, env=ENV, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def linked(bench, tmp_path):
    git(bench.root, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
    return str(tmp_path / "linked")


def submodule(bench, tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "super")
    git(tmp_path / "super", "submodule", "add", "-q", bench.root, "sub")
    git(tmp_path / "super", "commit", "-qm", "sub")
    return str(tmp_path / "super" / "sub")


def by_link(bench, tmp_path):
    root = tmp_path / "bylink"
    shutil.copytree(bench.root, root)
    shutil.move(root / ".git", tmp_path / "gitdir")
    os.symlink(tmp_path / "gitdir", root / ".git")
    return str(root)


KINDS = {"linked": (linked, "side"), "submodule": (submodule, "main"), "by link": (by_link, "main")}


@pytest.fixture(params=KINDS)
def elsewhere(request, make_bench, tmp_path):
    bench = make_bench()
    make, branch = KINDS[request.param]
    bench.origin = bench.root
    bench.root = make(bench, tmp_path)
    bench.branch = branch
    bench.tree = Worktree.open(bench.root, str(tmp_path / "state-elsewhere"))

    def gate(**more):
        layer = bench.layer
        asked = bench.tree.bundle_request(layer)
        if asked is not None:
            bench.box(" ".join(f"'{word}'" for word in asked.argv) + " || true")
        return bench.commit(), bench.tree.take_history(layer, bench.rules, now=1, **more)

    bench.gate = gate
    return bench


def names(items):
    return sorted(item.name for item in items)


def test_a_commit_arrives(elsewhere):
    bench = elsewhere
    bench.box("echo more >> a.txt; echo n > n; git add -A; git commit -qm 'from the box'; git tag t")
    files, history = bench.gate()
    assert files.clean
    assert history.clean, history
    assert names(history.moved) == [f"refs/heads/{bench.branch}", "refs/tags/t"]
    assert history.index == ""
    assert bench.git("log", "--format=%s") == "from the box\nfirst\n"
    assert bench.git("status", "--porcelain") == ""
    assert bench.box("git log --format=%s -1; git status --porcelain") == "from the box\n"
    bench.box("echo again >> a.txt; git commit -qam again")
    _, history = bench.gate()
    assert names(history.moved) == [f"refs/heads/{bench.branch}"]
    assert bench.git("status", "--porcelain") == ""


def test_head_moves_and_another_worktrees_head_does_not(elsewhere):
    bench = elsewhere
    origin = bench.git("-C", bench.origin, "symbolic-ref", "HEAD")
    bench.box("git checkout -qb feature; echo f > f; git add f; git commit -qm f")
    _, history = bench.gate()
    assert names(history.moved) == ["HEAD", "refs/heads/feature"]
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/feature\n"
    assert bench.git("-C", bench.origin, "symbolic-ref", "HEAD") == origin
    assert bench.git("status", "--porcelain") == ""


def test_protected_files_of_a_git_directory_elsewhere_stay_as_they_are(elsewhere):
    bench = elsewhere
    common = bench.tree.repository.common
    before = pathlib.Path(f"{common}/config").read_text()
    bench.box(
        'D=$(git rev-parse --path-format=absolute --git-common-dir); echo "[core] fsmonitor=x" >> "$D/config"; '
        'mkdir -p "$D/hooks"; echo "#!/bin/sh" > "$D/hooks/post-commit"; chmod +x "$D/hooks/post-commit"; '
        'mkdir -p "$D/info" "$D/objects/info"; echo "* filter=x" > "$D/info/attributes"; echo /x > "$D/objects/info/alternates"; '
        "rm .git; echo gitdir: /tmp/evil > .git"
    )
    bench.rules.tiers.clear()
    files, _ = bench.gate()
    assert pathlib.Path(f"{common}/config").read_text() == before
    assert not os.path.exists(f"{common}/hooks/post-commit")
    assert not os.path.exists(f"{common}/info/attributes")
    assert not os.path.exists(f"{common}/objects/info/alternates")
    assert ".git" in [i.path for i in files.refused]
    told = {i.path for i in files.refused}
    assert {".git/config", ".git/hooks/post-commit", ".git/info/attributes", ".git/objects/info/alternates"} <= told
    assert bench.git("status", "--porcelain") == ""


def test_discard_and_end_leave_nothing(elsewhere):
    bench = elsewhere
    bench.box("echo x >> a.txt; git commit -qam x")
    bench.tree.discard(bench.layer)
    assert bench.box("git log --format=%s -1; git status --porcelain") == "first\n"
    folder = os.path.dirname(bench.layer.upper)
    bench.tree.end(bench.layer)
    assert not any(os.path.exists(f"{folder}/{part}") for part in ("upper", "work", "git-upper", "git-work"))


def test_credentials_in_a_configuration_elsewhere_are_not_shown(elsewhere):
    bench = elsewhere
    bench.git("config", "remote.origin.url", "https://user:secret-token@example.org/x.git")
    bench.git("config", "credential.helper", "store")
    (beside,) = bench.layer.beside
    shown = dict(beside.replaced)["config"].decode()
    assert "secret-token" not in shown
    assert "credential" not in shown
    assert "example.org" in shown


def test_no_password_that_git_keeps_beside_its_configuration_is_seen(elsewhere):
    bench = elsewhere
    common = pathlib.Path(git(bench.root, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    address = "https://me:planted@git.example.org/p.git"
    (common / "modules/deep/lib").mkdir(parents=True)
    (common / "modules/deep/lib/HEAD").write_text("ref: refs/heads/main\n")
    for key in ("git-crypt/keys/default", "annex/creds/remote"):
        (common / key).parent.mkdir(parents=True)
        (common / key).write_text("planted")
    places = ["logs/HEAD", "modules/deep/lib/config", "credentials", "config.bak"]
    for place in places:
        with (common / place).open("a") as file:
            file.write(f'[remote "o"]\n\turl = {address}\n')
    (beside,) = bench.layer.beside
    shown = dict(beside.replaced)
    assert {"credentials", "config.bak", "git-crypt", "annex/creds"} <= set(beside.masked)
    assert all(b"planted" not in shown[place] for place in places[:2])
    assert all(b"https://git.example.org/p.git" in shown[place] for place in places[:2])


def test_another_worktrees_own_files_are_refused(make_bench, tmp_path):
    bench = make_bench()
    origin = bench.root
    bench.root = linked(bench, tmp_path)
    bench.tree = Worktree.open(bench.root, str(tmp_path / "state-two"))
    bench.box(
        f"echo 'ref: refs/heads/side' > {origin}/.git/HEAD; echo x > {origin}/.git/worktrees/linked/gitdir; echo f > f"
    )
    report = bench.commit()
    told = {i.path for i in report.refused}
    assert any(path.endswith("/HEAD") for path in told)
    assert any(path.endswith("/gitdir") for path in told)
    assert git(origin, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert bench.read("f") == "f\n"


def test_a_missing_mission_is_not_made_by_looking(bench):
    with pytest.raises(Exception, match="no layer"):
        bench.tree.look(MissionId("m-none"))
    bench.box("echo x > x")
    assert [c.path for c in bench.tree.changes(bench.tree.look(bench.mission))] == ["x"]


def test_a_branch_that_another_worktree_has_checked_out_does_not_move(make_bench, tmp_path):
    bench = make_bench()
    origin = bench.root
    bench.root = linked(bench, tmp_path)
    bench.tree = Worktree.open(bench.root, str(tmp_path / "state-three"))
    bench.box("echo n > n; git add n; git commit -qm side; git update-ref refs/heads/main HEAD")
    asked = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{word}'" for word in asked.argv))
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert names(report.moved) == ["refs/heads/side"]
    assert names(report.conflicts) == ["refs/heads/main"]
    assert "main one" in report.conflicts[0].reason
    assert git(origin, "log", "--format=%s", "main") == "first\n"


def test_a_stale_index_of_the_layer_never_reverts_a_persons_commit(elsewhere):
    bench = elsewhere
    bench.box("echo s > s; git add s")
    bench.gate()
    bench.write("person", "p\n")
    bench.git("add", "person")
    bench.git("commit", "-qm", "person")
    bench.box("echo x > x; git add x; git commit -qm agent")
    _, history = bench.gate()
    assert names(history.moved) == [f"refs/heads/{bench.branch}"]
    assert "person" in bench.git("ls-tree", "--name-only", bench.branch).split()


def test_the_stash_goes_on_to_the_next_mission(elsewhere):
    bench = elsewhere
    bench.write("a.txt", "a person's edit\n")
    bench.box("git stash -q")
    bench.gate()
    bench.tree.end(bench.layer)
    bench.mission = MissionId("m-2")
    bench.box("git stash pop -q")
    bench.gate()
    assert bench.read("a.txt") == "a person's edit\n"


def with_submodule(bench, make_bench):
    git(bench.root, "submodule", "add", "-q", make_bench("inner").root, "sub")
    git(bench.root, "commit", "-qm", "sub")


def taken(bench, **more):
    files, layer = bench.commit(), bench.tree.look(bench.mission)
    asked = bench.tree.bundle_request(layer)
    assert asked is not None
    bench.box(" ".join(f"'{word}'" for word in asked.argv))
    return files, bench.tree.take_history(layer, bench.rules, now=1, **more)


COMMIT = "cd sub; echo z > z; git add z; git commit -qm z; cd ..; git add sub; git commit -qm bump"


def test_a_commit_that_names_one_of_a_submodule_which_stays_in_the_layer_waits(make_bench):
    bench = make_bench()
    with_submodule(bench, make_bench)
    bench.box(COMMIT)
    files, history = taken(bench)
    assert [(item.path, "begin the mission in the submodule" in item.reason) for item in files.refused] == [
        (".git/modules/sub", True)
    ]
    assert [item.name for item in history.held] == ["refs/heads/main"]
    assert history.held[0].rule == "gate/submodule"
    _, report = taken(bench, approved=["refs/heads/main"])
    assert [item.name for item in report.moved] == ["refs/heads/main"]


def test_a_commit_that_names_one_that_the_submodule_has_goes_through(make_bench):
    bench = make_bench()
    with_submodule(bench, make_bench)
    git(f"{bench.root}/sub", "commit", "-q", "--allow-empty", "-m", "person")
    bench.box("git add sub; git commit -qm bump")
    files, history = taken(bench)
    assert files.clean
    assert [item.name for item in history.moved] == ["refs/heads/main"]


def test_what_git_notes_in_a_submodule_whatever_it_is_asked_is_no_change(make_bench):
    bench = make_bench()
    with_submodule(bench, make_bench)
    bench.box("cd sub; touch a.txt; git add a.txt; git status; git stash list; echo x | git hash-object -w --stdin")
    assert bench.commit().clean
