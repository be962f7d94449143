"""What a box made is unpacked by git within bounds of output, memory and time, whatever it claims to be."""

import contextlib
import os
import subprocess
import tempfile
import threading

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import gitrun, refs
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.refs import Refs, Unreadable, moves

BOMB = """
b=$(echo x | git hash-object -w --stdin)
t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\\tf%s\\n' $b $i; done | git mktree)
for k in 1 2 3 4 5 6 7 8; do t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\\td%s\\n' $t $i; done | git mktree); done
git update-ref refs/heads/bomb $(git commit-tree -m bomb $t)
"""


@pytest.fixture
def git(tmp_path):
    folder = str(tmp_path / "r.git")
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    return Git(directory=folder)


def test_more_output_than_allowed_is_no_answer(git):
    oid = git.run("hash-object", "-w", "--stdin", given=b"x" * 5000).out.decode().strip()
    assert git.run("cat-file", "blob", oid).out == b"x" * 5000
    answer = git.run("cat-file", "blob", oid, limit=4999)
    assert not answer.ok
    assert answer.out == b""
    assert "4999 bytes" in answer.error


def test_a_git_that_does_not_end_is_ended(git):
    reader, writer = os.pipe()
    answer = Git(directory=git.directory, timeout=0.2).run("hash-object", "--stdin", given=reader)
    os.close(reader)
    os.close(writer)
    assert not answer.ok
    assert "took longer" in answer.error


def test_memory_is_bounded(git, monkeypatch):
    reader, writer = os.pipe()

    def feed():
        with contextlib.suppress(BrokenPipeError), open(writer, "wb", buffering=0) as stream:
            stream.writelines(b"x" * (1 << 20) for _ in range(256))

    monkeypatch.setattr(gitrun, "MAX_MEMORY", 64 << 20)
    threading.Thread(target=feed, daemon=True).start()
    answer = git.run("hash-object", "--stdin", given=reader)
    os.close(reader)
    assert not answer.ok
    assert "memory" in answer.error


def test_git_of_another_user_runs_bounded_too(monkeypatch):
    """Root may lack the privilege to set limits of other users' processes, as it does in most containers."""
    owner = (os.geteuid() or 54321, os.getegid() or 54321)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        subprocess.run(["git", "init", "-q", folder], check=True, env={"PATH": "/usr/bin:/bin"}, timeout=60)
        for base, folders, files in os.walk(folder):
            for name in (".", *folders, *files):
                os.chown(os.path.join(base, name), *owner)
        git = Git(directory=f"{folder}/.git", owner=owner)
        oid = git.run("hash-object", "-w", "--stdin", given=b"x").out.decode().strip()
        assert os.stat(f"{folder}/.git/objects/{oid[:2]}/{oid[2:]}").st_uid == owner[0]
        monkeypatch.setattr(gitrun, "MAX_MEMORY", 1 << 14)
        assert not git.run("hash-object", "--stdin", given=b"x").ok


def test_without_git_nothing_is_taken_over(git, monkeypatch):
    monkeypatch.setattr(gitrun, "_PATH", "/nonexistent")
    with pytest.raises(RingfenceError, match="git is not installed"):
        git.run("version")


def test_more_moves_than_can_be_judged_at_once_are_refused(monkeypatch):
    monkeypatch.setattr(refs, "MAX_MOVES", 2)
    oid = "0" * 40
    assert len(moves(Refs("refs/heads/m"), Refs("refs/heads/m", {f"refs/heads/{n}": oid for n in "ab"}))) == 2
    with pytest.raises(Unreadable, match="more than 2"):
        moves(Refs("refs/heads/m"), Refs("refs/heads/m", {f"refs/heads/{n}": oid for n in "abc"}))


@pytest.mark.needs_userns
def test_a_folder_named_a_billion_times_over_is_refused(bench):
    bench.box(BOMB)
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{word}'" for word in request.argv))
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert [item.name for item in report.refused] == ["refs/heads/bomb"]
    assert "cannot be read" in report.refused[0].reason


@pytest.mark.needs_userns
def test_many_names_of_one_commit_are_judged_once(bench):
    bench.box(
        "for i in 1 2 3; do echo $i > f$i; done; git add -A; git commit -qm x; for i in 1 2 3 4 5; do git branch b$i; done"
    )
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{word}'" for word in request.argv))
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert sorted(item.name for item in report.moved) == [*(f"refs/heads/b{n}" for n in range(1, 6)), "refs/heads/main"]
    assert [path for _, path, _ in bench.rules.asked if path.startswith("f")] == ["f1", "f2", "f3"]
