"""Real boxes over real layers, through the gate: who owns what arrives, git in a linked worktree, hidden files kept."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.ids import CallId, Micros, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier
from ringfence.sandbox.gitconfig import sanitise
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
IDENTITY = "-c user.name=A -c user.email=a@example.org"


class Yes:
    def decide(self, call):
        reason = Reason(
            rule=RuleId("yes"), scope=Scope.USER, place=Place(file="p"), tier=Tier.ALLOW, matched="", because="yes"
        )
        return Decision(call_id=CallId("c"), policy_digest=Sha256("0" * 64), reasons=(reason,))


def git(root, *args):
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "safe.directory=*", *args]
    done = subprocess.run(words, cwd=root, env=ENV, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture(params=["inside", "linked"])
def fenced(request, bench, tmp_path):
    """A box bench over a real repository, its git directory inside or elsewhere."""
    root = str(tmp_path / "project")
    os.makedirs(f"{root}/src")
    for name, text in {"a.txt": "a\n", "src/b.py": "b\n", "src/.env": "SECRET=1\n", ".gitignore": ".env\n"}.items():
        with open(f"{root}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "remote.origin.url", "https://user:hidden-token@example.org/p.git")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    if request.param == "linked":
        git(root, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side")
        root = str(tmp_path / "linked")
    if os.geteuid() == 0:
        for folder, folders, files in os.walk(tmp_path / "project"):
            for name in (*folders, *files):
                os.lchown(os.path.join(folder, name), 1234, 1234)
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                os.lchown(os.path.join(folder, name), 1234, 1234)
        os.chown(root, 1234, 1234)
        os.chown(tmp_path / "project", 1234, 1234)
    tree = Worktree.open(root, str(tmp_path / "state"), policy_hides=lambda p: p.endswith(".env"))

    def sh(line):
        layer = tree.layer(MissionId("m-1"))
        config = () if layer.beside else ((".git/config", sanitise(open_text(f"{root}/.git/config")).encode()),)
        layer = replace(layer, middle=os.path.dirname(layer.upper) + "/middle", masked=("src/.env",), replaced=config)
        ran = bench.sh(line, layer=layer, cwd=root)
        assert ran.execution.exit == 0, (ran.out, ran.err, ran.execution.ended_by)
        return ran.out.decode()

    return root, tree, sh


def commit(tree):
    layer = tree.look(MissionId("m-1"))
    return tree.commit(layer, Yes(), now=Micros(int(time.time() * 1e6)))


def test_files_of_a_box_arrive_owned_by_the_repositorys_owner(fenced):
    root, tree, sh = fenced
    owner = os.stat(root).st_uid, os.stat(root).st_gid
    sh("echo more >> a.txt; mkdir new; echo n > new/n; chmod 750 new/n; ln -s a.txt l; mv src lib; rm -f nothing")
    report = commit(tree)
    assert [i.path for i in report.refused] == [], report.refused
    for name in ("a.txt", "new", "new/n", "l", "lib/b.py"):
        info = os.lstat(f"{root}/{name}")
        assert (info.st_uid, info.st_gid) == owner, name
    assert os.stat(f"{root}/new/n").st_mode & 0o777 == 0o750
    assert sh("cat a.txt lib/b.py; ls -A").splitlines()[:3] == ["a", "more", "b"]


def test_a_hidden_file_survives_the_removal_of_its_folder(fenced):
    root, tree, sh = fenced
    if not os.path.exists(f"{root}/src/.env"):
        with open(f"{root}/src/.env", "w", encoding="utf-8") as stream:
            stream.write("SECRET=1\n")
    assert "SECRET" not in sh("cat src/.env 2>&1 || true; rm -r src; ls")
    report = commit(tree)
    assert open_text(f"{root}/src/.env") == "SECRET=1\n"
    assert not os.path.exists(f"{root}/src/b.py")
    assert {i.rule for i in report.refused} <= {"gate/hidden"}


def test_a_renamed_folder_arrives_as_one_that_moved(fenced):
    root, tree, sh = fenced
    with open(f"{root}/src/.env", "w", encoding="utf-8") as stream:
        stream.write("SECRET=1\n")
    assert "SECRET" not in sh(
        "git mv src lib && git mv lib .. 2>/dev/null; cat lib/.env 2>&1; ls -A lib; git status --porcelain"
    )
    report = commit(tree)
    assert open_text(f"{root}/lib/b.py") == "b\n"
    assert not os.path.exists(f"{root}/src/b.py")
    assert open_text(f"{root}/src/.env") == "SECRET=1\n"
    assert os.listdir(f"{root}/lib") == ["b.py"]
    assert {i.rule for i in report.refused} <= {"gate/hidden"}
    assert "moving" not in " ".join(os.listdir(root))


def test_a_file_that_a_filter_would_encrypt_is_never_taken_into_history_as_it_lies(bench):
    root = Path(bench.layer.lower)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "filter.sealed.clean", "tr a-z A-Z")
    git(root, "config", "filter.sealed.smudge", "tr A-Z a-z")
    (root / ".gitattributes").write_text("*.key filter=sealed\n")
    (root / "a.key").write_text("plain\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    config = (".git/config", sanitise(open_text(f"{root}/.git/config")).encode())
    layer = replace(bench.layer, masked=(), replaced=(config,))
    script = f"echo more >> a.key; git add a.key; echo x > a.txt; git add a.txt; git {IDENTITY} commit -qm box; git show HEAD:a.key"
    ran = bench.sh(script, layer=layer)
    assert ran.out == b"PLAIN\n"
    assert b"does not run in a box" in ran.err


def test_a_commit_made_in_a_box_arrives(fenced):
    root, tree, sh = fenced
    assert "hidden-token" not in sh("git config --list; cat $(git rev-parse --git-common-dir)/config")
    sh(f"echo more >> a.txt; git {IDENTITY} commit -qam 'from a box'; git status --porcelain")
    request = tree.bundle_request(tree.look(MissionId("m-1")))
    assert request is not None
    sh(" ".join(f"'{word}'" for word in request.argv))
    commit(tree)
    history = tree.take_history(tree.look(MissionId("m-1")), Yes(), now=Micros(1))
    assert [i.name.startswith("refs/heads/") for i in history.moved] == [True], history
    assert git(root, "log", "--format=%s") == "from a box\nfirst\n"
    assert git(root, "status", "--porcelain") == ""
    assert sh("git log --format=%s -1; git status --porcelain") == "from a box\n"
    owner = os.stat(root).st_uid
    for folder, _, files in os.walk(tree.repository.common):
        for name in files:
            assert os.lstat(os.path.join(folder, name)).st_uid == owner, (folder, name)


def open_text(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()
