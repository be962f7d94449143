"""Teardown after kill -9 of every part; work that was not committed is kept."""

import contextlib
import os
import signal

import pytest

from ringfence.model.ids import MissionId
from ringfence.sandbox.inner import groups
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.teardown import orphans, teardown
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def mission(bench, tmp_path):
    state = tmp_path / "state"
    tree = Worktree.open(bench.layer.lower, str(state))
    return state, tree, tree.layer(MissionId("m-1"))


def test_after_kill_9_nothing_is_left(bench, mission, wait_for):
    state, _tree, layer = mission
    launcher = Launcher.spawn(str(state))
    null = os.open("/dev/null", os.O_RDWR)
    box = launcher.start(bench.plan("sleep", "60", layer=layer), stdin=null, stdout=null, stderr=null)
    pid = box.pid
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.close()
    os.close(null)
    report = teardown(str(state))
    assert report.refused == ()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))
    wait_for(lambda: not {pid, launcher.pid} & set(orphans()))
    own = f"ringfence.{launcher.pid}."
    wait_for(lambda: not [f for p in groups.parents() for f in groups.stale(p, remove=True) if own in f])
    assert not (state / "missions" / "m-1" / "upper").exists()
    assert not (state / "missions" / "m-1" / "work").exists()


def clean(report):
    """Nothing that this test made is left; processes and groups of others on this machine are not its."""
    return not report.refused and all(one.startswith(("process ", "control group ")) for one in report.left)


def below(place, told):
    """What was told of one place; of this machine others are told as well."""
    return [one for one in told if one.startswith(str(place))]


def groups_of(launcher):
    return [f for p in groups.parents() for f in groups.stale(p, remove=False) if f"ringfence.{launcher.pid}." in f]


@pytest.mark.parametrize("by", ["teardown", "the next launcher"])
def test_a_box_that_was_paused_when_its_launcher_was_killed_is_ended(bench, tmp_path, wait_for, by):
    """What a freezer of version 1 holds dies of nothing until it is let go."""
    launcher = Launcher.spawn(str(tmp_path / "state"))
    null = os.open("/dev/null", os.O_RDWR)
    box = launcher.start(bench.plan("/bin/sh", "-c", "sleep 60 & sleep 60"), stdin=null, stdout=null, stderr=null)
    wait_for(lambda: len(box.pids()) == 4)
    pids = box.pids()
    box.pause()
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.close()
    os.close(null)
    if by == "teardown":
        report = teardown(str(tmp_path / "state"))
        assert not {f"process {pid}" for pid in pids} & set(report.left)
        assert groups_of(launcher) == []
    else:
        Launcher.spawn(str(tmp_path / "state")).close()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))
    for parent in groups.parents():
        groups.stale(parent, remove=True)


def test_uncommitted_work_is_kept_until_discarded_by_name(bench, mission):
    state, _tree, layer = mission
    bench.sh("echo precious > kept.txt", layer=layer)
    upper = state / "missions" / "m-1" / "upper"
    report = teardown(str(state))
    assert report.refused == ("mission m-1: 1 uncommitted change(s)",)
    assert (upper / "kept.txt").read_text() == "precious\n"
    assert teardown(str(state), discard=["m-2"]).refused
    assert clean(teardown(str(state), discard=["m-1"]))
    assert not upper.exists()


def test_a_dry_run_changes_nothing(bench, mission):
    state, _tree, layer = mission
    (state / "view-0123").mkdir()
    report = teardown(str(state), dry_run=True)
    assert f"{state}/view-0123" in report.removed
    assert (state / "view-0123").exists()
    assert os.path.isdir(layer.upper)


def test_a_layer_whose_worktree_is_gone_counts_as_work(bench, mission):
    import shutil

    state, _tree, layer = mission
    bench.sh("echo x > y", layer=layer)
    shutil.rmtree(bench.layer.lower)
    assert len(teardown(str(state)).refused) == 1
    assert clean(teardown(str(state), discard=["m-1"]))


def test_running_boxes_of_the_launcher_are_ended_first(bench, mission, tmp_path):
    state, _tree, layer = mission
    with Launcher.spawn(str(tmp_path / "other")) as launcher:
        null = os.open("/dev/null", os.O_RDWR)
        box = launcher.start(bench.plan("sleep", "60", layer=layer), stdin=null, stdout=null, stderr=null)
        assert clean(teardown(str(state), launcher=launcher))
        assert box.wait(10).ended_by == "torn down"
        os.close(null)


def test_what_an_ended_mission_left_for_the_next_one_goes_with_its_notes(mission):
    state, _tree, _layer = mission
    folder = state / "repositories" / "key"
    (folder / "carried-1-2" / "build").mkdir(parents=True)
    (folder / "carried-1-2.notes").write_bytes(b"\x80")
    os.symlink("/etc", folder / "carried-link")
    (folder / "other").mkdir()
    assert clean(teardown(str(state)))
    assert os.listdir(folder) == ["other"]
    assert os.path.isdir("/etc")


@pytest.mark.parametrize("part", ["upper", "work", "middle", "fresh-upper", "git-upper", "git-work"])
def test_whatever_part_of_a_layer_is_left_is_found(part, tmp_path):
    """As after a teardown that was killed in the middle."""
    folder = tmp_path / "missions" / "m-1" / part
    (folder / "work").mkdir(parents=True)
    (folder / "work").chmod(0)
    report = teardown(str(tmp_path))
    if report.refused:  # what may hold work
        assert part in {"upper", "fresh-upper", "git-upper"}
        assert below(tmp_path, report.removed) == []
        report = teardown(str(tmp_path), discard=["m-1"])
    assert below(tmp_path, report.removed) == [str(folder)]
    assert clean(report)
    assert not folder.exists()


def test_what_else_lies_in_the_state_folder_neither_stops_it_nor_leads_it_elsewhere(tmp_path):
    outside = tmp_path / "outside"
    (outside / "upper" / "precious").mkdir(parents=True)
    (outside / "carried-precious").mkdir()
    state = tmp_path / "state"
    for place in ("missions", "repositories"):
        (state / place).mkdir(parents=True)
        (state / place / "stray").write_text("")
        (state / place / "link").symlink_to(outside)
    (state / "homes").symlink_to(outside)
    (state / "view-link").symlink_to(outside)
    (state / "missions" / "m-1" / "work").mkdir(parents=True)
    report = teardown(str(state), discard=["link", "stray"])
    assert clean(report)
    assert not (state / "missions" / "m-1" / "work").exists()
    assert not os.path.lexists(state / "homes")
    assert (outside / "upper" / "precious").is_dir()
    assert (outside / "carried-precious").is_dir()


def test_what_another_teardown_removed_meanwhile_is_not_left(tmp_path, monkeypatch):
    from ringfence.sandbox.worktree import removal

    (tmp_path / "view-1").mkdir()

    def faster(path):
        os.rmdir(path)
        raise FileNotFoundError(path)

    monkeypatch.setattr(removal, "remove_tree", faster)
    assert clean(teardown(str(tmp_path)))
    (tmp_path / "view-1").mkdir()
    monkeypatch.setattr(removal, "remove_tree", lambda path: os.rmdir(f"{path}/not-there"))
    assert below(tmp_path, teardown(str(tmp_path)).left) == [f"{tmp_path}/view-1"]


def test_a_layer_is_removed_in_its_missions_turn_and_views_while_nobody_makes_one(tmp_path):
    told = []

    @contextlib.contextmanager
    def held(name, path):
        told.append((name, path.exists()))
        yield
        told.append((name, path.exists()))

    work, view = tmp_path / "missions" / "m-1" / "work", tmp_path / "view-1"
    for folder in (work, view):
        folder.mkdir(parents=True)
    teardown(str(tmp_path), dry_run=True, turn=lambda name: held(name, work))
    assert told == []
    assert clean(teardown(str(tmp_path), turn=lambda name: held(name, work), quiet=held("quiet", view)))
    assert told == [("m-1", True), ("m-1", False), ("quiet", True), ("quiet", False)]
