"""What missions leave to the repository's next one, and what becomes of it when git ignores it no more; nobody loses anything."""

import os
import time

import pytest

from ringfence.model.ids import MissionId
from ringfence.model.tier import Tier

pytestmark = pytest.mark.needs_userns


def tick():
    time.sleep(0.02)  # more than a tick of the clock by which files get their times


def other_mission(bench, name, *, ends=True):
    if ends:
        bench.tree.end(bench.tree.look(bench.mission))
    bench.mission = MissionId(name)


def call(bench, script):
    """One call of a mission, and the gate behind it."""
    said = bench.box(script)
    report = bench.commit()
    layer = bench.tree.look(bench.mission)
    request = bench.tree.bundle_request(layer)
    if request is not None:
        bench.box(" ".join(f"'{word}'" for word in request.argv), check=False)
        assert bench.tree.take_history(layer, bench.rules, now=1).clean
    return said, report


@pytest.mark.parametrize("place", ["data.txt", "build/out.txt"])
@pytest.mark.parametrize("next_one", [False, True])
def test_what_git_ignores_no_more_never_replaces_what_a_person_wrote_meanwhile(bench, place, next_one):
    bench.write(".gitignore", "data.txt\nbuild/\n")
    bench.write(place, "first\n")
    tick()
    call(bench, f"echo mission > {place}")
    tick()
    bench.write(place, "newer\n")
    if next_one:
        other_mission(bench, "m-2")
    tick()
    call(bench, "true")
    bench.write(".gitignore", "\n")
    tick()
    said, report = call(bench, f"cat {place}; echo again > {place}")
    assert said == "mission\n"
    assert [item.path for item in report.conflicts] == [place]
    assert bench.read(place) == "newer\n"
    with open(report.conflicts[0].kept, encoding="utf-8") as kept:
        assert kept.read() == "again\n"
    assert call(bench, f"cat {place}")[0] == "newer\n"


@pytest.mark.parametrize("place", ["data.txt", "build/out.txt"])
@pytest.mark.parametrize("next_one", [False, True])
def test_what_git_ignores_no_more_goes_through_where_nobody_else_wrote_it(bench, place, next_one):
    bench.write(".gitignore", "data.txt\nbuild/\n")
    bench.write(place, "first\n")
    tick()
    call(bench, f"echo mission > {place}")
    if next_one:
        other_mission(bench, "m-2")
    call(bench, "true")
    tick()
    bench.write(".gitignore", "\n")
    tick()
    _, report = call(bench, "true")
    assert [item.path for item in report.committed] == [place]
    assert bench.read(place) == "mission\n"


def test_what_waited_before_git_ignored_it_is_compared_with_what_lay_below_then(bench):
    bench.rules.on("data.txt", Tier.ASK)
    bench.write("data.txt", "first\n")
    tick()
    call(bench, "echo mission > data.txt")
    tick()
    bench.write("data.txt", "newer\n")
    bench.write(".gitignore", "data.txt\n")
    call(bench, "true")
    bench.write(".gitignore", "\n")
    tick()
    bench.box("true")
    report = bench.commit(approved=["data.txt"])
    assert [item.path for item in report.conflicts] == ["data.txt"]
    assert bench.read("data.txt") == "newer\n"


def test_where_it_is_not_known_any_more_what_a_person_has_counts(bench):
    bench.write(".gitignore", "data.txt\n")
    bench.write("data.txt", "first\n")
    tick()
    call(bench, "echo mission > data.txt")
    other_mission(bench, "m-2")
    notes = f"{bench.tree._carried}.notes"
    with open(notes, "wb") as stream:
        stream.write(b"\xff")
    bench.write(".gitignore", "\n")
    tick()
    _, report = call(bench, "true")
    assert [item.path for item in report.conflicts] == ["data.txt"]
    assert bench.read("data.txt") == "first\n"


@pytest.mark.parametrize("packed", [False, True])
def test_the_stashes_of_two_missions_at_work_at_the_same_time_are_both_there(bench, packed):
    bench.write("src/b.py", "a person's\n")
    bench.git("stash")
    tick()
    pack = "git gc -q;" if packed else ""
    call(bench, f"echo one > a.txt; git stash -q; {pack} git notes add -m noted")
    other_mission(bench, "m-2", ends=False)
    call(bench, f"echo two > a.txt; git stash -q; {pack}")
    for name in ("m-1", "m-2"):
        other_mission(bench, name, ends=False)
        bench.tree.end(bench.tree.look(bench.mission))
    other_mission(bench, "m-3", ends=False)
    said = bench.box(
        "git stash list --format=%gd; for n in 0 1; do git show stash@{$n}:a.txt; done; git show stash@{2}:src/b.py; "
        "git notes show; git fsck --strict"
    )
    assert said.splitlines()[:7] == ["stash@{0}", "stash@{1}", "stash@{2}", "two", "one", "a person's", "noted"]
    bench.box("git stash pop -q; git checkout -q .; git stash pop -q")
    bench.commit()
    assert bench.read("a.txt") == "one\n"


def test_ignored_paths_of_two_missions_at_work_at_the_same_time_are_both_there(bench):
    call(bench, "mkdir -p .venv node_modules/x src/node_modules; echo 1 > .venv/one; echo 1 > node_modules/x/one")
    other_mission(bench, "m-2", ends=False)
    call(bench, "mkdir node_modules; echo 2 > node_modules/two; echo 2 > src/x.pyc")
    for name in ("m-1", "m-2"):
        other_mission(bench, name, ends=False)
        bench.tree.end(bench.tree.look(bench.mission))
    other_mission(bench, "m-3", ends=False)
    found = bench.box("ls .venv/one node_modules/* src/x.pyc")
    assert found.split() == [".venv/one", "node_modules/two", "src/x.pyc"]


@pytest.mark.parametrize(
    "odd",
    [
        "rm -rf .git/refs/notes .git/logs/refs; echo x > .git/refs/notes; ln -s /etc .git/logs/refs",
        "rm -rf .git/logs/refs/stash; mkdir -p .git/logs/refs/stash/x",
        "rm -rf .git/objects/info; ln -s /etc .git/objects/info",
        "printf 'no line\\n%0100000d\\n' 7 > .git/logs/refs/stash",
    ],
)
def test_whatever_a_box_put_in_the_place_of_git_folders_a_mission_ends(bench, odd):
    call(bench, "echo one > a.txt; git stash -q; git notes add -m noted")
    other_mission(bench, "m-2", ends=False)
    call(bench, f"echo two > a.txt; git stash -q; {odd}")
    for name in ("m-1", "m-2"):
        other_mission(bench, name, ends=False)
        bench.tree.end(bench.tree.look(bench.mission))
    other_mission(bench, "m-3", ends=False)
    assert bench.box("git status --porcelain") == ""


@pytest.mark.parametrize("pack", ["git pack-refs --all", "git gc -q"])
def test_a_stash_that_was_packed_goes_on_also_where_no_gate_came_between(bench, pack):
    bench.box(f"echo put by > a.txt; git stash -q; {pack}")
    other_mission(bench, "m-2")
    bench.box("git stash pop -q")
    assert bench.box("cat a.txt") == "put by\n"


@pytest.mark.parametrize(
    "change", ["rm .gitignore", "mv .gitignore rules", "ln -sf rules .gitignore", "rm -r sub; mkdir sub; touch sub/x.o"]
)
def test_what_a_mission_removed_of_the_ignore_rules_ignores_nothing_in_its_own_gate(bench, change):
    bench.write("sub/.gitignore", "*.o\n")
    bench.git("add", "sub/.gitignore")
    bench.git("commit", "-qm", "rules")
    bench.box(f"touch x.pyc; {change}")
    first = bench.commit()
    assert first.clean
    assert first.ignored == (1 if "sub" in change else 0)
    assert os.path.exists(f"{bench.root}/{'sub/x.o' if 'sub' in change else 'x.pyc'}")
    assert bench.commit().committed == ()
