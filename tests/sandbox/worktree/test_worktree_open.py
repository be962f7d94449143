"""What can be a worktree, how the git directory is found, and how a repository is held."""

import multiprocessing
import os
import pwd
import subprocess
import sys
import threading
import time

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import checks, kernel
from ringfence.sandbox.worktree.repository import find_repository
from ringfence.sandbox.worktree.tree import Worktree

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


def git(cwd, *args):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *args], cwd=cwd, env=ENV, check=True, capture_output=True, timeout=60)


def refused(root, state, code):
    with pytest.raises(RingfenceError) as caught:
        Worktree.open(str(root), str(state))
    assert caught.value.code == code
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("root", ["/", "/..", pwd.getpwuid(os.getuid()).pw_dir])
def test_the_system_and_a_home_are_refused(tmp_path, root):
    if os.path.realpath(root) == "/" or os.path.isdir(root):
        refused(root, tmp_path / "state", "root-too-broad")


def test_a_folder_that_holds_homes_is_refused(tmp_path, monkeypatch):
    (tmp_path / "homes" / "me").mkdir(parents=True)
    monkeypatch.setattr(checks, "_homes", lambda: {str(tmp_path / "homes" / "me")})
    refused(tmp_path / "homes", tmp_path / "state", "root-too-broad")
    refused(tmp_path / "homes" / "me", tmp_path / "state", "root-too-broad")


def test_a_file_and_a_missing_folder_are_refused(tmp_path):
    (tmp_path / "f").write_text("x")
    refused(tmp_path / "f", tmp_path / "state", "not-a-directory")
    refused(tmp_path / "nothing", tmp_path / "state", "not-a-directory")


def test_state_inside_the_worktree_is_refused(tmp_path):
    refused(tmp_path, tmp_path / "state", "state-inside-worktree")


@pytest.mark.parametrize(("magic", "code"), [(0x6969, "network-file-system"), (0x01021997, "network-file-system"),
                                             (0x65735546, "network-file-system"), (0x794C7630, "overlay-on-overlay")])  # fmt: skip
def test_file_systems_that_cannot_be_trusted_are_refused(tmp_path, monkeypatch, magic, code):
    (tmp_path / "repo").mkdir()
    monkeypatch.setattr(kernel, "filesystem_type", lambda path: magic if path.endswith("repo") else 0xEF53)
    refused(tmp_path / "repo", tmp_path / "state", code)


def test_a_state_folder_on_an_overlay_is_refused(tmp_path, monkeypatch):
    (tmp_path / "repo").mkdir()
    monkeypatch.setattr(kernel, "filesystem_type", lambda path: 0x794C7630 if path.endswith("state") else 0xEF53)
    assert "volume" in refused(tmp_path / "repo", tmp_path / "state", "overlay-on-overlay").remedy


@pytest.mark.needs_userns
def test_a_real_overlay_and_a_read_only_mount_are_refused(tmp_path):
    for name in ("repo", "up", "work", "ro"):
        (tmp_path / name).mkdir()
    script = (
        "mount -t overlay o -o lowerdir=repo,upperdir=up,workdir=work,userxattr repo && "
        "mount -t tmpfs -o ro t ro && "
        '"$PY" -c \'import sys\n'
        "from ringfence.sandbox.worktree.tree import Worktree\n"
        "from ringfence.model.errors import RingfenceError\n"
        "for root in sys.argv[1:]:\n"
        '    try: Worktree.open(root, "state")\n'
        "    except RingfenceError as error: print(error.code)\n"
        "' repo ro"
    )
    done = subprocess.run(
        ["unshare", "-Urm", "bash", "-c", script],
        cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "PY": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["overlay-on-overlay", "worktree-read-only"], done.stderr


def test_a_repository_that_borrows_objects_out_of_sight_is_refused_with_the_way_out(tmp_path):
    git(tmp_path, "init", "-q", "lender")
    git(tmp_path / "lender", "commit", "-q", "--allow-empty", "-m", "one")
    git(tmp_path, "clone", "-q", "--shared", "lender", "repo")
    fault = refused(tmp_path / "repo", tmp_path / "state", "objects-borrowed")
    assert str(tmp_path / "lender") in fault.what
    git(tmp_path / "repo", "repack", "-q", "-a", "-d")
    (tmp_path / "repo/.git/objects/info/alternates").write_text("# none\n")
    Worktree.open(str(tmp_path / "repo"), str(tmp_path / "state"))


def test_a_bare_repository_is_refused_with_the_way_out(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "repo")
    assert "worktree add" in refused(tmp_path / "repo", tmp_path / "state", "bare-repository").remedy


def test_git_as_directory_file_link_worktree_and_submodule(tmp_path):
    main = tmp_path / "main"
    git(tmp_path, "init", "-q", "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    found = find_repository(str(main))
    assert (found.directory, found.inside) == (f"{main}/.git", True)

    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    found = find_repository(str(tmp_path / "linked"))
    assert found.directory == f"{main}/.git/worktrees/linked"
    assert found.common == f"{main}/.git"
    assert not found.inside

    git(main, "submodule", "add", "-q", str(main), "sub")
    found = find_repository(f"{main}/sub")
    assert found.directory == f"{main}/.git/modules/sub"

    (tmp_path / "by-link").mkdir()
    os.symlink(main / ".git", tmp_path / "by-link" / ".git")
    found = find_repository(str(tmp_path / "by-link"))
    assert (found.directory, found.inside) == (f"{main}/.git", False)

    (tmp_path / "none").mkdir()
    assert find_repository(str(tmp_path / "none")) is None


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir: ", "gitdir: /nowhere", "gitdir: ../../../etc"])
def test_a_git_file_that_leads_nowhere_is_refused(tmp_path, text):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".git").write_text(text)
    refused(tmp_path / "repo", tmp_path / "state", "git-directory-broken")


def test_a_git_directory_tangled_with_its_worktree_is_refused(tmp_path):
    git(tmp_path, "init", "-q", "repo")
    os.rename(tmp_path / "repo" / ".git", tmp_path / "repo" / "data")
    os.symlink("data", tmp_path / "repo" / ".git")
    refused(tmp_path / "repo", tmp_path / "state", "git-directory-broken")
    git(tmp_path, "init", "-q", "main")
    git(tmp_path / "main", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "main", "worktree", "add", "-q", ".git/inner")
    refused(tmp_path / "main" / ".git" / "inner", tmp_path / "state", "git-directory-broken")


def test_a_path_with_a_newline_and_bytes_that_are_no_text(make_bench):
    bench = make_bench(os.fsdecode(b"re\npo \xff"))
    bench.tree.layer("m-1")
    assert bench.tree.changes(bench.layer) == ()


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "/abs"])
def test_a_mission_name_is_one_component(bench, name):
    with pytest.raises(RingfenceError):
        bench.tree.layer(name)


def _hold(root, state, ready, release):
    with Worktree.open(root, state).lock():
        ready.set()
        release.wait(600)


def test_another_process_waits_then_gives_up_with_the_remedy(bench):
    context = multiprocessing.get_context("fork")
    ready, release = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(bench.root, bench.tree._state, ready, release))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(RingfenceError) as caught, Worktree.open(bench.root, bench.tree._state, timeout=0.2).lock():
            pass
        assert caught.value.code == "worktree-busy"
    finally:
        release.set()
        other.join()
    with bench.tree.lock(), bench.tree.lock():
        pass


def test_two_threads_take_turns(bench):
    seen = []

    def work(name):
        with bench.tree.lock():
            seen.append(name)
            time.sleep(0.05)
            seen.append(name)

    threads = [threading.Thread(target=work, args=(n,)) for n in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen in (list("aabb"), list("bbaa"))


def test_linked_worktrees_share_one_lock(tmp_path):
    git(tmp_path, "init", "-q", "main")
    git(tmp_path / "main", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "linked"))
    one = Worktree.open(str(tmp_path / "main"), str(tmp_path / "state"))
    two = Worktree.open(str(tmp_path / "linked"), str(tmp_path / "state"))
    assert one.key == two.key


def test_a_damaged_record_commits_nothing(bench):
    layer = bench.tree.layer("m-1")
    with open(os.path.dirname(layer.upper) + "/layer.state", "wb") as stream:
        stream.write(b"\x93garbage")
    with open(f"{layer.upper}/f", "w", encoding="utf-8") as stream:
        stream.write("x")
    with pytest.raises(RingfenceError) as caught:
        bench.commit()
    assert caught.value.code == "layer-unreadable"
    assert not os.path.exists(f"{bench.root}/f")


def test_the_bin_can_be_emptied_while_things_are_set_out(tmp_path):
    from ringfence.sandbox.worktree import removal

    stop = threading.Event()
    faults = []

    def sweep():
        try:
            while not stop.is_set():
                removal.empty_bin(str(tmp_path / "bin"))
        except OSError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(150):
            os.makedirs(tmp_path / f"d{number}" / "a" / "b")
            removal.set_out(str(tmp_path / f"d{number}"), str(tmp_path / "bin"))
            assert not (tmp_path / f"d{number}").exists()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults
    removal.empty_bin(str(tmp_path / "bin"))
    assert not (tmp_path / "bin").exists()


def test_a_bin_that_nobody_empties_does_not_grow(tmp_path):
    from ringfence.sandbox.worktree import removal

    for number in range(60):
        (tmp_path / f"d{number}").mkdir()
        removal.set_out(str(tmp_path / f"d{number}"), str(tmp_path / "bin"))
    assert len(os.listdir(tmp_path / "bin")) <= 32
    assert os.listdir(tmp_path) == ["bin"]
