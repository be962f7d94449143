"""What a box wrote reaches the real tree through the gate: contents, modes, deletions, folders, links."""

import hashlib
import os
import stat
import time

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.model.tier import Tier

pytestmark = pytest.mark.needs_userns


def paths(items):
    return sorted(item.path for item in items)


def test_an_edit_a_new_file_and_a_deletion_reach_the_tree(bench):
    bench.box("echo more >> a.txt; mkdir -p new/dir; echo n > new/dir/f; rm src/b.py")
    assert bench.read("a.txt") == "a\n"
    report = bench.commit()
    assert paths(report.committed) == ["a.txt", "new/dir/f", "src/b.py"]
    assert report.clean
    assert bench.read("a.txt") == "a\nmore\n"
    assert bench.read("new/dir/f") == "n\n"
    assert not os.path.exists(f"{bench.root}/src/b.py")


def test_what_was_committed_is_bound_by_a_digest_that_the_tree_itself_gives(bench):
    bench.rules.on("held", Tier.ASK)
    bench.box(
        "echo more >> a.txt; rm src/b.py; ln -s a.txt link; mkdir -m 750 empty; chmod 700 run.sh; echo x > held; "
        "printf n > \"$(printf 'new\\nname')\"; chmod 600 a.txt"
    )
    report = bench.commit()
    assert paths(report.held) == ["held"]
    rows = []
    for item in sorted(report.committed, key=lambda one: os.fsencode(one.path)):
        path = f"{bench.root}/{item.path}"
        mode, content = 0, ""
        if os.path.lexists(path):
            mode = stat.S_IMODE(os.lstat(path).st_mode)
        if os.path.islink(path):
            content = hashlib.sha256(os.readlink(path).encode()).hexdigest()
        elif os.path.isfile(path) and item.change.kind.value != "mode":
            with open(path, "rb") as file:
                content = hashlib.sha256(file.read()).hexdigest()
        assert (item.mode, item.content) == (mode, content), item.path
        rows.append(f"{item.path}\0{item.change.kind.value} {mode:o} {content}\0")
    assert len(rows) == 6
    assert report.digest == hashlib.sha256("".join(rows).encode()).hexdigest()
    bench.box("true")
    assert bench.commit().digest == ""


def test_the_layer_is_clean_after_a_commit_and_the_next_box_sees_the_tree(bench):
    bench.box("echo more >> a.txt; rm -r src; mkdir src; echo x > src/x; ln -s a.txt link")
    bench.commit()
    assert os.listdir(bench.layer.upper) == []
    out = bench.box("cat a.txt src/x link; find . -path ./.git -prune -o -print | sort | tr '\\n' ' '")
    assert out == "a\nmore\nx\na\nmore\n. ./.git ./.gitignore ./a.txt ./link ./run.sh ./src ./src/x ".replace(
        "./.git ./", "./"
    )


def test_modes_are_kept_and_taken_over(bench):
    os.chmod(f"{bench.root}/a.txt", 0o640)
    bench.box("echo x >> a.txt; chmod 755 src/b.py; echo '#!/bin/sh' > tool; chmod 700 tool; mkdir -m 750 d; touch d/f")
    bench.commit()
    modes = {p: stat.S_IMODE(os.lstat(f"{bench.root}/{p}").st_mode) for p in ("a.txt", "src/b.py", "tool", "d")}
    assert modes == {"a.txt": 0o640, "src/b.py": 0o755, "tool": 0o700, "d": 0o750}


def test_ask_holds_the_path_and_a_person_commits_it_by_name(bench):
    bench.rules.on("src/", Tier.ASK)
    bench.box("echo more >> a.txt; echo more >> src/b.py")
    report = bench.commit()
    assert paths(report.committed) == ["a.txt"]
    assert paths(report.held) == ["src/b.py"]
    assert bench.read("src/b.py") == "b\n"
    assert bench.box("cat src/b.py") == "b\nmore\n"
    report = bench.commit(only=["src"], approved=["src/b.py"])
    assert paths(report.committed) == ["src/b.py"]
    assert bench.read("src/b.py") == "b\nmore\n"


def test_deny_leaves_a_path_out_and_names_why(bench):
    bench.rules.on("src/", Tier.DENY)
    bench.box("echo more >> a.txt; echo more >> src/b.py; rm src/deep/c.py")
    report = bench.commit()
    assert paths(report.refused) == ["src/b.py", "src/deep/c.py"]
    assert report.refused[0].reason == "the test says deny"
    assert bench.read("src/b.py") == "b\n"
    assert os.path.exists(f"{bench.root}/src/deep/c.py")


def test_the_decider_sees_content_and_a_person_cannot_approve_a_deny(bench):
    bench.rules.on_content("AKIA", Tier.DENY)
    bench.box("echo key=AKIA123 > conf; head -c 5000000 /dev/zero | tr '\\0' x > big; echo AKIA9 >> big")
    report = bench.commit(approved=["."])
    assert paths(report.refused) == ["big", "conf"]
    assert not os.path.exists(f"{bench.root}/conf")


def test_a_renamed_folder_arrives_as_copy_and_deletions(bench):
    bench.box("mv src lib")
    report = bench.commit()
    assert bench.read("lib/deep/c.py") == "c\n"
    assert not os.path.exists(f"{bench.root}/src")
    assert paths(report.committed) == ["lib/b.py", "lib/deep/c.py", "src/b.py", "src/deep/c.py"]


def test_a_folder_stays_while_one_thing_in_it_may_not_go(bench):
    bench.rules.on("src/deep/", Tier.ASK)
    bench.box("rm -r src")
    report = bench.commit()
    assert paths(report.committed) == ["src/b.py"]
    assert paths(report.held) == ["src/deep/c.py"]
    assert os.listdir(f"{bench.root}/src") == ["deep"]
    assert bench.box("ls") == "a.txt\nrun.sh\n"


def test_a_file_takes_a_folders_place_only_with_all_that_was_in_it(bench):
    bench.rules.on("src/deep/", Tier.DENY)
    bench.box("rm -r src; echo file > src")
    report = bench.commit()
    assert "src" in paths(report.refused)
    assert os.path.isdir(f"{bench.root}/src")
    bench.rules.tiers.clear()
    bench.commit()
    assert bench.read("src") == "file\n"


@pytest.mark.parametrize("tier", [Tier.ASK, Tier.DENY])
@pytest.mark.parametrize("what", ["echo f > empty", "ln -s a.txt empty"])
def test_an_empty_folder_stays_where_what_would_take_its_place_may_not_come(bench, what, tier):
    bench.rules.on("empty", tier)
    os.mkdir(f"{bench.root}/empty")
    time.sleep(0.02)
    bench.box(f"rmdir empty; {what}")
    report = bench.commit()
    assert paths(report.committed) == []
    assert paths(report.held if tier is Tier.ASK else report.refused) == ["empty"]
    assert os.path.isdir(f"{bench.root}/empty")


def test_a_folder_takes_a_files_place(bench):
    bench.box("rm a.txt; mkdir a.txt; echo in > a.txt/in")
    report = bench.commit()
    assert report.clean
    assert bench.read("a.txt/in") == "in\n"


def test_an_empty_folder_is_made_and_removed(bench):
    bench.box("mkdir empty")
    assert paths(bench.commit().committed) == ["empty"]
    assert os.path.isdir(f"{bench.root}/empty")
    bench.box("rmdir empty")
    assert paths(bench.commit().committed) == ["empty"]
    assert not os.path.exists(f"{bench.root}/empty")


def test_a_file_touched_but_equal_is_no_change(bench):
    bench.box("touch a.txt; cat src/b.py > /tmp/rf-$$ ; cat /tmp/rf-$$ > src/b.py; rm /tmp/rf-$$")
    assert bench.tree.changes(bench.layer) == ()
    report = bench.commit()
    assert report.committed == ()
    assert os.listdir(bench.layer.upper) == []


def test_a_file_made_anew_with_the_same_content_has_its_new_time_and_a_build_is_up_to_date(bench):
    """Also where the source changed and what is built from it did not."""
    bench.write("Makefile", "out: in\n\t@echo built; sort -u in > out\n")
    bench.write("in", "1\n")
    assert bench.box("make") == "built\n"
    bench.commit()
    assert bench.box("sleep 0.05; echo 1 >> in; make") == "built\n"
    assert paths(bench.commit().committed) == ["in"]
    assert "up to date" in bench.box("make")
    after = os.stat(f"{bench.root}/out").st_mtime_ns
    report = bench.tree.undo(bench.mission)
    assert not report.conflicts
    assert not os.path.exists(f"{bench.root}/out")
    assert after > os.stat(f"{bench.root}/Makefile").st_mtime_ns


def test_a_file_that_may_not_be_written_keeps_its_time(bench):
    bench.rules.on("a.txt", Tier.ASK)
    before = os.stat(f"{bench.root}/a.txt").st_mtime_ns
    bench.box("touch a.txt")
    assert bench.commit().clean
    assert os.stat(f"{bench.root}/a.txt").st_mtime_ns == before


def test_only_limits_a_commit_to_the_named_paths(bench):
    bench.box("echo 1 >> a.txt; echo 2 >> src/b.py")
    report = bench.commit(only=["src"])
    assert paths(report.committed) == ["src/b.py"]
    assert bench.read("a.txt") == "a\n"
    assert paths(bench.commit().committed) == ["a.txt"]


def test_names_with_newlines_and_bytes_that_are_no_text(bench):
    bench.box("printf x > $'new\\nline'; printf y > $'\\xff\\xfe'; mkdir $'d\\x80'; printf z > $'d\\x80/z'")
    report = bench.commit()
    assert report.clean
    assert bench.read("new\nline") == "x"
    assert bench.read(os.fsdecode(b"\xff\xfe")) == "y"
    assert bench.read(os.fsdecode(b"d\x80/z")) == "z"
    assert "\n" not in "".join(line for line in bench.tree.diff(bench.layer).splitlines()[:1])


def test_the_owner_of_a_new_file_is_the_repositorys(bench):
    bench.box("echo n > n")
    bench.commit()
    assert os.stat(f"{bench.root}/n").st_uid == os.stat(bench.root).st_uid


def test_ignored_paths_stay_and_are_carried_to_the_next_mission(bench):
    bench.box(
        "mkdir -p node_modules/x .venv; echo m > node_modules/x/m.js; echo p > .venv/p; echo c > src/b.pyc; echo k > kept"
    )
    report = bench.commit()
    assert paths(report.committed) == ["kept"]
    assert report.ignored == 3
    assert not os.path.exists(f"{bench.root}/node_modules")
    bench.tree.end(bench.layer)
    bench.mission = "m-2"
    assert bench.box("cat node_modules/x/m.js .venv/p src/b.pyc") == "m\np\nc\n"


def test_ignored_paths_that_the_policy_names_are_committed(make_bench):
    bench = make_bench(explicit=lambda path: path.startswith("node_modules/keep") or path == "node_modules/")
    bench.box(
        "mkdir -p node_modules/keep node_modules/other; echo 1 > node_modules/keep/a; echo 2 > node_modules/other/b"
    )
    report = bench.commit()
    assert paths(report.committed) == ["node_modules/keep/a"]


def test_a_tracked_file_is_never_ignored(bench):
    bench.write("node_modules/tracked.js", "t\n")
    bench.git("add", "-f", "node_modules/tracked.js")
    bench.box("echo more >> node_modules/tracked.js; echo new > node_modules/new.js")
    report = bench.commit()
    assert paths(report.committed) == ["node_modules/tracked.js"]
    assert report.ignored == 1


def test_discard_drops_the_named_paths_or_all_but_the_ignored(bench):
    bench.box("echo 1 >> a.txt; echo 2 > new; rm -r src; mkdir node_modules; echo n > node_modules/n")
    bench.tree.discard(bench.layer, ["a.txt", "src/b.py"])
    assert bench.box("cat a.txt; cat src/b.py; ls src") == "a\nb\nb.py\n"
    bench.tree.discard(bench.layer)
    assert bench.box("ls; cat node_modules/n; ls src") == "a.txt\nnode_modules\nrun.sh\nsrc\nn\nb.py\ndeep\n"
    assert bench.commit().committed == ()


def test_diff_counts_and_shows_escaped_text(bench):
    bench.box("printf 'a\\n\\033[2Jevil\\n' > a.txt; echo n > new; rm run.sh; printf '\\0\\1' > bin")
    text = bench.tree.diff(bench.layer)
    assert "2 added, 1 modified, 1 deleted" in text
    assert "\\x1b[2Jevil" in text
    assert "\x1b" not in text
    assert "--- a/a.txt" in text
    assert "+++ /dev/null" in text
    assert "(binary" in text


def test_diff_names_an_ignored_folder_that_the_tree_has_too(bench):
    bench.write("node_modules/old/i", "o\n")
    bench.box("mkdir node_modules/new; echo n > node_modules/new/i")
    assert bench.tree.diff(bench.layer) == (
        "M node_modules  (directory; ignored, stays in the layer)\n"
        "0 added, 0 modified, 0 deleted, 0 bytes; 1 ignored paths stay in the layer\n"
    )


def test_a_worktree_without_git_works(make_bench):
    bench = make_bench("plain", git=False)
    bench.box("echo 1 >> a.txt; echo 2 > src/new")
    assert paths(bench.commit().committed) == ["a.txt", "src/new"]


def test_undo_gives_back_what_a_mission_changed(bench):
    before = bench.snapshot()
    bench.box("echo 1 >> a.txt; rm -r src; mkdir src; echo x > src/x; chmod 755 run.sh; ln -s a.txt l; mkdir e")
    bench.commit()
    bench.box("echo 2 >> a.txt; rm src/x; rmdir src; echo f > src")
    bench.commit()
    report = bench.tree.undo(bench.mission)
    assert report.conflicts == ()
    assert bench.snapshot() == before


def test_undo_leaves_what_a_person_changed_since(bench):
    bench.box("echo 1 >> a.txt; echo 2 >> src/b.py")
    bench.commit()
    bench.write("a.txt", "mine\n")
    report = bench.tree.undo(bench.mission)
    assert report.conflicts == ("a.txt",)
    assert bench.read("a.txt") == "mine\n"
    assert bench.read("src/b.py") == "b\n"


def test_the_last_gate_of_a_layer_writes_no_record_where_nothing_changed(bench):
    record = f"{bench.tree._state}/missions/{bench.mission}/layer.state"
    bench.box("true")
    with open(record, "rb") as before:  # kept open, so that its number is nobody else's

        def is_the_same():
            return os.path.samestat(os.stat(record), os.fstat(before.fileno()))

        assert bench.commit(last=True).clean
        assert is_the_same()
        bench.box("echo changed > file.txt")
        assert bench.commit(last=True).committed
        assert not is_the_same()


@pytest.mark.parametrize("index", ["--index-version=4", "--split-index", "--index-version=2"])
def test_ignored_paths_stay_in_the_layer_whatever_the_index_and_the_names_in_it(make_bench, index):
    bench = make_bench()
    for name in ("link", "uplink", "src/kept.pyc"):
        bench.write(name, "x\n")
    bench.git("add", "-Af", ".")
    bench.git("commit", "-qm", "links")
    bench.git("update-index", index)
    bench.box("mkdir node_modules; echo m > node_modules/m; echo c > src/new.pyc; echo k > src/kept.pyc")
    report = bench.commit()
    assert [item.path for item in report.committed] == ["src/kept.pyc"]
    assert not os.path.exists(f"{bench.root}/node_modules")
    assert bench.box("cat node_modules/m src/new.pyc") == "m\nc\n"


@pytest.mark.parametrize("path", ["..", "../..", "src/../..", "/", "/etc/passwd"])
def test_a_path_outside_of_the_worktree_names_no_change(bench, path):
    bench.box("echo 1 > a.txt")
    bench.commit()
    bench.box("echo 2 > a.txt")
    before = sorted(os.listdir(os.path.dirname(bench.layer.upper)))
    for act in (
        lambda: bench.tree.discard(bench.layer, [path]),
        lambda: bench.commit(only=[path]),
        lambda: bench.commit(approved=[path]),
    ):
        with pytest.raises(RingfenceError) as refused:
            act()
        assert refused.value.code == "path-outside-worktree"
    assert sorted(os.listdir(os.path.dirname(bench.layer.upper))) == before
    assert bench.box("cat a.txt") == "2\n"


def test_paths_may_be_named_in_any_spelling(bench):
    bench.box("echo 1 > a.txt; echo 1 > src/b.py; echo 1 > src/deep/c.py; echo 1 > run.sh")
    assert [item.path for item in bench.commit(only=["./a.txt"]).committed] == ["a.txt"]
    assert [item.path for item in bench.commit(only=[f"{bench.root}/src//deep/"]).committed] == ["src/deep/c.py"]
    assert bench.tree.discard(bench.layer, ["src/./"]) == ("src", "src/b.py")
    assert bench.tree.discard(bench.layer, ["."]) == ("run.sh",)
    assert bench.tree.changes(bench.layer) == ()


def test_a_folder_made_anew_in_one_made_anew_stays_in_view_while_something_waits(bench):
    bench.rules.on("a.txt", Tier.ASK)
    bench.box("echo 0 > a.txt; rm -rf src; mkdir -p src/deep")
    bench.commit()
    assert bench.box("find src; cat a.txt") == "src\nsrc/deep\n0\n"
