"""Repository and state on different file systems, and a file system that fills up in the middle of a commit."""

import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from ringfence.sandbox.worktree.removal import remove_tree
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns

SCRIPT = r"""
import os, sys
from ringfence.model.errors import RingfenceError
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.tier import Scope, Tier
from ringfence.sandbox.worktree.tree import Worktree

class Yes:
    def decide(self, call):
        reason = Reason(rule="r", scope=Scope.USER, place=Place(file="p"), tier=Tier.ALLOW, matched="", because="yes")
        return Decision(call_id="c", policy_digest="0" * 64, reasons=(reason,))

tree = Worktree.open("small", "state")
layer = tree.layer("m-1")
for name in ("one", "two", "three", "four"):
    with open(layer.upper + "/" + name, "wb") as stream:
        stream.write(os.urandom(400_000))
with open(layer.upper + "/old", "w") as stream:
    stream.write("new\n")
try:
    tree.commit(layer, Yes(), now=1)
    print("committed")
except RingfenceError as error:
    print(error.code)
print(sorted(os.listdir("small")), open("small/old").read().strip())
print(len(tree.changes(layer)))
report = tree.commit(layer, Yes(), only=["old", "one"], now=1)
print(sorted(i.path for i in report.committed), open("small/old").read().strip())
"""


def test_a_full_disk_changes_nothing_and_loses_nothing(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "state").mkdir()
    setup = 'mount -t tmpfs -o size=1m t small && echo old > small/old && exec "$PY" -c "$SCRIPT"'
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", setup],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PY": sys.executable, "SCRIPT": SCRIPT, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["gate-no-room", "['old'] old", "5", "['old', 'one'] new"], done.stderr


NO_ROOM = r"""
tree = Worktree.open("repo", "state")
layer = tree.layer("m-1")
with open(layer.upper + "/old", "w") as stream:
    stream.write("new\n")
with open("state/fill", "wb", buffering=0) as stream:
    try:
        while True:
            stream.write(b"x" * 4096)
    except OSError:
        pass
for act in (lambda: tree.commit(layer, Yes(), now=1), lambda: tree.layer("m-2")):
    try:
        act()
    except RingfenceError as error:
        print(error.code)
print(open("repo/old").read().strip())
os.unlink("state/fill")
print(sorted(i.path for i in tree.commit(layer, Yes(), now=1).committed), open("repo/old").read().strip())
"""


def test_a_full_disk_under_the_state_folder_is_told_and_loses_nothing(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "old").write_text("old\n")
    (tmp_path / "state").mkdir()
    setup = 'mount -t tmpfs -o size=256k t state && exec "$PY" -c "$SCRIPT"'
    script = SCRIPT.partition("tree = ")[0] + NO_ROOM
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", setup],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PY": sys.executable, "SCRIPT": script, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["gate-no-room", "gate-no-room", "old", "['old'] new"], done.stderr


@pytest.fixture
def elsewhere(make_bench):
    """The repository on /dev/shm, the state where tests keep theirs."""
    if os.stat("/dev/shm").st_dev == os.stat("/tmp").st_dev:
        pytest.fail("this test needs /dev/shm to be a file system of its own")
    bench = make_bench()
    folder = tempfile.mkdtemp(dir="/dev/shm")
    root = f"{folder}/repo"
    shutil.copytree(bench.root, root, symlinks=True)
    bench.tree = Worktree.open(root, bench.tree._state)
    bench.root = root
    yield bench
    remove_tree(folder)


def test_commit_and_undo_across_file_systems(elsewhere):
    bench = elsewhere
    os.chmod(f"{bench.root}/run.sh", 0o750)
    before = bench.snapshot()
    bench.box("echo more >> a.txt; rm run.sh; mv src lib; ln -s a.txt l; echo n > n; git add -A; git commit -qm box")
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{w}'" for w in request.argv))
    layer = bench.layer
    assert bench.commit().clean
    report = bench.tree.take_history(layer, bench.rules, now=1)
    assert [i.name for i in report.moved] == ["refs/heads/main"]
    assert bench.git("status", "--porcelain") == ""
    bench.box("echo again >> a.txt; rm lib/b.py")
    assert bench.commit().clean
    undone = bench.tree.undo(bench.mission)
    assert undone.conflicts == ()
    assert bench.snapshot() == before
    assert bench.tree.undo(bench.mission).restored == ()


def test_a_crash_across_file_systems_is_taken_back_twice(elsewhere, monkeypatch):
    from ringfence.sandbox.worktree import journal

    bench = elsewhere
    before = bench.snapshot()
    bench.box("echo more >> a.txt; rm run.sh; rm -r src; echo n > n")

    def stop(name):
        if name == "applied":
            raise KeyboardInterrupt

    monkeypatch.setattr(journal, "_at_step", stop)
    with pytest.raises(KeyboardInterrupt):
        bench.commit()
    monkeypatch.setattr(journal, "_at_step", None)
    assert bench.snapshot() != before
    bench.tree.recover()
    assert bench.snapshot() == before
    journal.journals(os.path.dirname(bench.layer.upper))[0].take_back(os.open(bench.root, os.O_RDONLY))
    assert bench.snapshot() == before
    assert bench.commit().clean


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 2**33])
def test_times_that_only_the_layers_file_system_can_hold_are_taken_over_as_far_as_they_go(elsewhere, seconds):
    bench = elsewhere
    bench.tree = Worktree.open(bench.root, f"{os.path.dirname(bench.root)}/state")
    bench.box(
        f"echo n > n; ln -s n l; echo b >> a.txt; touch -h -d @{seconds} n l a.txt run.sh src src/b.py .git/index ."
    )
    report = bench.commit()
    assert report.clean
    assert sorted(item.path for item in report.committed) == ["a.txt", "l", "n"]
    assert bench.read("a.txt") == "a\nb\n"
    assert bench.commit().committed == ()
    bench.tree.undo(bench.mission)
    assert bench.read("a.txt") == "a\n"
