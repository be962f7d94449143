"""The lower tree is not still: what someone else changed meanwhile is a conflict that loses neither side."""

import os
import shutil
import threading
import time

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import apply, journal, kernel, staging

pytestmark = pytest.mark.needs_userns


def only_conflict(report, path):
    assert [i.path for i in report.conflicts] == [path], report
    assert report.committed == ()
    return report.conflicts[0]


def test_both_changed_the_same_file(bench):
    bench.box("echo agent > a.txt")
    bench.write("a.txt", "person\n")
    item = only_conflict(bench.commit(), "a.txt")
    assert bench.read("a.txt") == "person\n"
    with open(item.kept, encoding="utf-8") as kept:
        assert kept.read() == "agent\n"
    assert bench.box("cat a.txt") == "person\n"
    assert bench.commit().clean


def test_the_agent_deleted_what_a_person_changed(bench):
    bench.box("rm a.txt")
    bench.write("a.txt", "person\n")
    only_conflict(bench.commit(), "a.txt")
    assert bench.read("a.txt") == "person\n"
    assert bench.box("cat a.txt") == "person\n"


def test_the_agent_deleted_the_folder_of_what_a_person_changed(bench):
    bench.box("rm -r src")
    bench.write("src/deep/c.py", "person\n")
    report = bench.commit()
    assert [i.path for i in report.conflicts] == ["src/deep/c.py"]
    assert bench.read("src/deep/c.py") == "person\n"
    assert bench.box("cat src/deep/c.py; ls src") == "person\ndeep\n"


def test_the_agent_replaced_the_folder_of_what_a_person_changed(bench):
    bench.box("rm -r src; mkdir src; echo n > src/n")
    bench.write("src/deep/c.py", "person\n")
    report = bench.commit()
    assert [i.path for i in report.conflicts] == ["src/deep/c.py"]
    assert bench.box("cat src/deep/c.py; ls src") == "person\ndeep\nn\n"


def test_a_person_deleted_what_the_agent_changed(bench):
    bench.box("echo agent >> a.txt")
    os.unlink(f"{bench.root}/a.txt")
    item = only_conflict(bench.commit(), "a.txt")
    assert not os.path.exists(f"{bench.root}/a.txt")
    with open(item.kept, encoding="utf-8") as kept:
        assert kept.read() == "a\nagent\n"


@pytest.mark.parametrize("what", ["echo agent > src/deep", "ln -s b.py src/deep"])
def test_a_file_takes_no_folders_place_in_which_someone_else_made_something(bench, what):
    bench.box(f"rm -r src/deep; {what}")
    os.rename(f"{bench.root}/src/deep/c.py", f"{bench.root}/src/deep/mine")
    bench.write("src/deep/mine", "person\n")
    report = bench.commit()
    assert "src/deep" in [i.path for i in report.conflicts]
    assert bench.read("src/deep/mine") == "person\n"
    bench.commit()
    assert bench.read("src/deep/mine") == "person\n"


def test_a_file_takes_the_place_of_no_folder_that_a_person_put_in_a_files(bench):
    """All that a folder holds is in conflict: it was once exchanged as a whole, and removed with what it held."""
    bench.box("echo agent > src/deep/c.py")
    os.unlink(f"{bench.root}/src/deep/c.py")
    bench.write("src/deep/c.py/inner", "person\n")
    bench.box("true")
    report = bench.commit()
    assert [i.path for i in report.conflicts if i.kept] == ["src/deep/c.py"]
    assert bench.read("src/deep/c.py/inner") == "person\n"
    assert bench.box("cat src/deep/c.py/inner") == "person\n"


def test_all_that_a_mission_has_in_a_folder_that_a_person_made_a_link_is_set_aside_with_it(bench):
    bench.rules.on("src/held", Tier.ASK)
    bench.box("echo agent > src/deep/c.py; echo n > src/n; echo h > src/held; rm src/b.py")
    os.rename(f"{bench.root}/src", f"{bench.root}/elsewhere")
    os.symlink("elsewhere", f"{bench.root}/src")
    report = bench.commit()
    assert [*report.committed, *report.held, *report.refused] == []
    kept = {item.path: item.kept for item in report.conflicts}
    assert sorted(kept) == ["src", "src/deep/c.py", "src/held", "src/n"]
    for path, text in (("src/deep/c.py", "agent\n"), ("src/n", "n\n"), ("src/held", "h\n")):
        with open(kept[path], encoding="utf-8") as stream:
            assert stream.read() == text
    assert os.readlink(f"{bench.root}/src") == "elsewhere"
    assert bench.read("src/deep/c.py") == "c\n"
    assert bench.read("src/b.py") == "b\n"
    assert bench.commit().clean


def test_an_empty_folder_that_a_person_put_in_a_files_place_stays(bench):
    bench.box("echo agent > src/deep/c.py")
    os.unlink(f"{bench.root}/src/deep/c.py")
    os.mkdir(f"{bench.root}/src/deep/c.py")
    only_conflict(bench.commit(), "src/deep/c.py")
    assert os.path.isdir(f"{bench.root}/src/deep/c.py")


@pytest.mark.parametrize("then", ["", "; echo f > src/deep"])
def test_a_folder_goes_after_what_was_in_it_was_committed_by_name(bench, then):
    bench.box(f"rm -r src/deep{then}")
    assert [i.path for i in bench.commit(only=["src/deep/c.py"]).committed] == ["src/deep/c.py"]
    assert [i.path for i in bench.commit().committed] == ["src/deep"]


def test_a_folder_that_a_person_deleted_does_not_come_back_empty(bench):
    bench.box("echo agent >> src/deep/c.py; chmod 700 src")
    shutil.rmtree(f"{bench.root}/src")
    assert [i.path for i in bench.commit().conflicts] == ["src/deep/c.py"]
    assert bench.commit().committed == ()
    assert not os.path.exists(f"{bench.root}/src")
    assert bench.box("ls") == "a.txt\nrun.sh\n"


def test_both_made_a_file_of_the_same_name(bench):
    bench.box("echo agent > new")
    bench.write("new", "person\n")
    only_conflict(bench.commit(), "new")
    assert bench.read("new") == "person\n"


def test_both_made_the_same_change(bench):
    bench.box("echo same > a.txt")
    bench.write("a.txt", "same\n")
    report = bench.commit()
    assert report.clean
    assert report.committed == ()
    assert os.listdir(bench.layer.upper) == []


def test_a_person_swapped_the_folder(bench):
    bench.write("other/b.py", "other\n")
    bench.box("echo agent >> src/b.py")
    os.rename(f"{bench.root}/src", f"{bench.root}/src.old")
    os.rename(f"{bench.root}/other", f"{bench.root}/src")
    only_conflict(bench.commit(), "src/b.py")
    assert bench.read("src/b.py") == "other\n"
    assert bench.read("src.old/b.py") == "b\n"


def test_a_person_works_on_other_files_of_the_same_folder(bench):
    bench.box("echo agent >> src/b.py; echo n > src/n")
    bench.write("src/mine.py", "person\n")
    bench.write("a.txt", "person\n")
    report = bench.commit()
    assert report.clean
    assert bench.read("src/b.py") == "b\nagent\n"


def test_the_mission_may_change_its_own_committed_files_again(bench):
    for number in range(5):
        bench.box(f"echo {number} >> a.txt")
        assert bench.commit().clean
    assert bench.read("a.txt") == "a\n0\n1\n2\n3\n4\n"


def test_a_held_path_that_a_person_changed_later_is_a_conflict(bench):
    bench.rules.on("a.txt", Tier.ASK)
    bench.box("echo agent > a.txt")
    assert [i.path for i in bench.commit().held] == ["a.txt"]
    bench.box("true")
    bench.commit()
    bench.write("a.txt", "person\n")
    bench.box("true")
    report = bench.commit(only=["a.txt"], approved=["a.txt"])
    only_conflict(report, "a.txt")
    assert bench.read("a.txt") == "person\n"


def test_a_held_path_that_a_person_changed_before_the_first_gate_is_a_conflict(bench):
    bench.rules.on("a.txt", Tier.ASK)
    bench.box("echo agent > a.txt")
    bench.write("a.txt", "person\n")
    bench.commit()
    only_conflict(bench.commit(only=["a.txt"], approved=["a.txt"]), "a.txt")


HIDING = {
    "a folder made anew": ("rm -r src; mkdir src; echo h > src/held", "src/held"),
    "a folder removed": ("rm -r src", "src/b.py"),
    "a file in a folder's place": ("rm -r src; echo f > src", "src/b.py"),
    "a folder made anew further up": ("rm -r src; mkdir -p src/deep; echo h > src/deep/held", "src/deep/held"),
}


@pytest.mark.parametrize("tier", [Tier.ASK, Tier.DENY])
@pytest.mark.parametrize("how", HIDING)
def test_what_a_person_makes_behind_what_waits_is_never_taken_for_removed(bench, how, tier):
    """The mission did not see it, in no call: it cannot have meant to remove it."""
    script, waits = HIDING[how]
    bench.rules.on(waits, tier)
    bench.box(script)
    bench.commit()
    time.sleep(0.02)
    bench.write("src/mine", "person\n")
    bench.write("src/new/mine", "person\n")
    time.sleep(0.02)
    bench.box("echo z > z")
    report = bench.commit()
    assert [i.path for i in report.committed] == ["z"]
    assert [i.path for i in report.conflicts] == ["src/mine", "src/new/mine"]
    assert bench.read("src/mine") == bench.read("src/new/mine") == "person\n"
    bench.rules.tiers.clear()
    bench.box("true")
    bench.commit()
    assert bench.read("src/mine") == bench.read("src/new/mine") == "person\n"


@pytest.mark.parametrize("later", ["rm -r src", "rm -r src; mkdir src; echo n > src/n", "rm -r src; echo f > src"])
def test_nor_where_the_mission_removes_what_lies_above_in_a_later_call(bench, later):
    bench.box("rm -r src/deep; echo z > z")
    bench.commit(only=["z"])
    time.sleep(0.02)
    bench.write("src/deep/mine", "person\n")
    time.sleep(0.02)
    bench.box(later)
    bench.box("true")
    report = bench.commit()
    assert "src/deep/mine" in [i.path for i in report.conflicts]
    assert bench.read("src/deep/mine") == "person\n"
    bench.box("true")
    bench.commit()
    assert bench.read("src/deep/mine") == "person\n"


def test_after_a_discard_the_mission_sees_and_removes_what_is_there(bench):
    bench.rules.on("src/held", Tier.ASK)
    bench.box("rm -r src; mkdir src; echo h > src/held")
    bench.commit()
    bench.tree.discard(bench.tree.look(bench.mission), ["src/held"])
    bench.write("src/new", "person\n")
    time.sleep(0.02)
    bench.box("rm src/new")
    assert [i.path for i in bench.commit().committed] == ["src/new"]


def test_two_missions_on_one_repository(bench):
    bench.box("echo one > a.txt; echo one > one")
    first, bench.mission = bench.mission, "m-2"
    bench.box("echo two > a.txt; echo two > two")
    assert bench.commit().clean
    bench.mission = first
    report = bench.commit()
    assert [i.path for i in report.conflicts] == ["a.txt"]
    assert [i.path for i in report.committed] == ["one"]
    assert bench.read("a.txt") == "two\n"


def test_a_clock_stepped_back_does_not_hide_a_change(bench):
    bench.box("echo agent > a.txt")
    bench.write("a.txt", "person\n")
    folder = os.path.dirname(bench.layer.upper)
    from ringfence.sandbox.worktree import state

    record = state.load(folder)
    hour = 3600 * 10**9
    record.files.stamp_ns += hour  # as if the mount had been an hour later by a clock since stepped back
    record.files.offset_ns += hour
    state.store(folder, record)
    only_conflict(bench.commit(), "a.txt")


def test_a_save_in_the_very_instant_of_the_commit_is_not_lost(bench, monkeypatch):
    bench.box("echo agent > a.txt; echo agent > src/b.py; rm run.sh")
    real = apply.carry_out

    def racing(plan, root, stage):
        with open(f"{bench.root}/a.txt", "w", encoding="utf-8") as stream:
            stream.write("person, just now\n")
        with open(f"{bench.root}/run.sh", "a", encoding="utf-8") as stream:
            stream.write("# person\n")
        return real(plan, root, stage)

    monkeypatch.setattr(apply, "carry_out", racing)
    report = bench.commit()
    assert sorted(i.path for i in report.conflicts) == ["a.txt", "run.sh"]
    assert [i.path for i in report.committed] == ["src/b.py"]
    assert bench.read("a.txt") == "person, just now\n"
    assert bench.read("run.sh").endswith("# person\n")
    assert os.path.exists(report.conflicts[0].kept)
    assert bench.box("cat a.txt") == "person, just now\n"


def test_a_save_while_contents_are_prepared_is_not_lost(bench, monkeypatch):
    """A commit of many or large files is prepared for a while after conflicts were looked for."""
    bench.box("echo agent > a.txt; echo agent > src/b.py; rm run.sh; chmod 600 src/deep/c.py; echo agent > z")
    real = staging.Stage._add

    def racing(self, change):
        for path in ("a.txt", "run.sh", "src/deep/c.py", "z"):
            if bench.snapshot().get(path, (0, b""))[1] != b"person, just now\n":
                bench.write(path, "person, just now\n")
        return real(self, change)

    monkeypatch.setattr(staging.Stage, "_add", racing)
    report = bench.commit()
    assert sorted(i.path for i in report.conflicts) == ["a.txt", "run.sh", "src/deep/c.py", "z"]
    assert [i.path for i in report.committed] == ["src/b.py"]
    for path in ("a.txt", "run.sh", "src/deep/c.py", "z"):
        assert bench.read(path) == "person, just now\n"
        assert bench.box(f"cat {path}") == "person, just now\n"


def test_saves_that_race_a_hundred_commits_lose_nothing(bench):
    """Neither side's text may vanish: it is in the tree, in the journal, or set aside."""
    stop = threading.Event()
    written = []

    def person():
        number = 0
        while not stop.is_set():
            number += 1
            text = f"person {number}\n"
            with open(f"{bench.root}/.a.new", "w", encoding="utf-8") as stream:
                stream.write(text)
            os.rename(f"{bench.root}/.a.new", f"{bench.root}/a.txt")
            written.append(text)
            time.sleep(0.002)

    thread = threading.Thread(target=person)
    thread.start()
    try:
        for number in range(8):
            bench.box(f"echo agent {number} > a.txt")
            bench.commit(only=["a.txt"])
    finally:
        stop.set()
        thread.join()
    kept = bench.read("a.txt")
    folder = os.path.dirname(bench.layer.upper)
    for base, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(base, name), "rb") as stream:
                kept += stream.read().decode("utf-8", "replace")
    for number in range(8):
        assert f"agent {number}\n" in kept
    assert written[-1] in kept


def test_the_root_replaced_under_a_mission_is_refused(bench):
    bench.box("echo agent > a.txt")
    os.rename(bench.root, bench.root + ".old")
    os.mkdir(bench.root)
    with pytest.raises(Exception, match="not the one this mission began in"):
        bench.commit()


def test_no_room_changes_nothing(bench, monkeypatch):
    bench.box("echo agent > a.txt; echo n > n")
    before = bench.snapshot()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(staging, "_copy_bytes", lambda *_a: full(0))
    with pytest.raises(Exception, match="nothing was changed"):
        bench.commit()
    monkeypatch.undo()
    assert bench.snapshot() == before
    assert bench.commit().clean


def test_a_failed_sync_is_a_fault_and_the_tree_is_given_back(bench, monkeypatch):
    bench.box("echo agent > a.txt")
    before = bench.snapshot()
    calls = []

    def broken(fd):
        calls.append(fd)
        if len(calls) > 2:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(kernel, "sync_filesystem", broken)
    with pytest.raises(RingfenceError, match=r"gate-hindered.*Input/output"):
        bench.commit()
    monkeypatch.undo()
    told = bench.tree.recover()
    assert "taken back" in told[0]
    assert bench.snapshot() == before
    assert journal.journals(os.path.dirname(bench.layer.upper))[0].has("undone")
    assert bench.commit().clean
    assert bench.read("a.txt") == "agent\n"


def test_an_empty_folder_that_a_person_made_in_a_folder_the_mission_removed_stays(bench):
    bench.box("rm -rf src")
    os.makedirs(f"{bench.root}/src/mine/deep")
    report = bench.commit()
    assert {item.path for item in report.conflicts} == {"src/mine/deep"}
    assert os.path.isdir(f"{bench.root}/src/mine/deep")
    assert not os.path.exists(f"{bench.root}/src/b.py")
    assert bench.box("find src") == "src\nsrc/mine\nsrc/mine/deep\n"


def test_an_edit_of_the_same_size_and_time_is_not_undone(bench):
    bench.box("echo 2 > a.txt; ln -sfn src/b.py l; echo 3 > run.sh")
    bench.commit()
    info = os.stat(f"{bench.root}/a.txt")
    bench.write("a.txt", "P\n")
    os.utime(f"{bench.root}/a.txt", ns=(info.st_atime_ns, info.st_mtime_ns))
    report = bench.tree.undo(bench.mission)
    assert report.conflicts == ("a.txt",)
    assert set(report.restored) == {"l", "run.sh"}
    assert bench.read("a.txt") == "P\n"
