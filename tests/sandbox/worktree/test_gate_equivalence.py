"""Whatever a script does to the tree in a box, the gate makes the real tree what the script makes of a plain copy."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.model.tier import Tier

pytestmark = pytest.mark.needs_userns

FILES = ["a", "b", "d/a", "d/b", "d/e/a", "f/a", "f/g/b"]
FOLDERS = ["d", "d/e", "f", "f/g", "h"]
any_path = st.sampled_from(FILES + FOLDERS)

operation = st.one_of(
    st.builds("echo {1} > {0}".format, any_path, st.integers(0, 9)),
    st.builds("echo more >> {0}".format, any_path),
    st.builds("rm -rf {0}".format, any_path),
    st.builds("rm {0}".format, st.sampled_from(FILES)),
    st.builds("mkdir -p {0}".format, st.sampled_from(FOLDERS)),
    st.builds("rmdir {0}".format, st.sampled_from(FOLDERS)),
    st.builds("mv -T {0} {1}".format, any_path, any_path),
    st.builds("mv -fT {0} tmp && rm -rf {1} && mv -T tmp {1}".format, any_path, any_path),
    # a folder copied into itself ends as the order of its entries has it, with or without an overlay
    st.tuples(any_path, any_path)
    .filter(lambda pair: not pair[1].startswith(pair[0] + "/"))
    .map(lambda pair: "cp -rT {} {}".format(*pair)),
    # a folder closed to its owner stops an ordinary user in the plain copy, and not the root of the test's own namespace
    st.builds(
        "chmod {1} {0}; if test -d {0}; then chmod u+rwx {0}; fi".format,
        any_path,
        st.sampled_from(["600", "644", "755", "700", "750"]),
    ),
    st.builds("ln -sfT nowhere {0}".format, any_path),
    st.builds("touch {0}".format, any_path),
    st.builds("rm -rf {0}; mkdir -p {0}; echo new > {0}/n".format, st.sampled_from(FOLDERS)),
)
scripts = st.lists(st.lists(operation, min_size=1, max_size=6), min_size=1, max_size=3)


def body(lines):
    return "umask 022\n" + "\n".join(f"{{ {line} ; }} 2>/dev/null || true" for line in lines)


@pytest.fixture
def fresh(make_bench):
    count = iter(range(10**6))

    def make():
        bench = make_bench(f"t{next(count)}", git=False)
        for name in os.listdir(bench.root):
            path = f"{bench.root}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        for path in FILES:
            bench.write(path, path + "\n")
        return bench

    return make


def check_equivalence(fresh, rounds):
    bench = fresh()
    plain = bench.root + ".plain"
    shutil.copytree(bench.root, plain, symlinks=True)
    start = bench.snapshot()
    for lines in rounds:
        env = {"PATH": "/usr/bin:/bin"}
        subprocess.run(["bash", "-c", body(lines)], cwd=plain, env=env, check=True, timeout=60)
        bench.box(body(lines))
        report = bench.commit()
        assert report.clean, report
        real, bench.root = bench.root, plain
        wanted = bench.snapshot()
        bench.root = real
        assert bench.snapshot() == wanted
        assert os.listdir(bench.layer.upper) == []
    undone = bench.tree.undo(bench.mission)
    assert undone.conflicts == ()
    assert bench.snapshot() == start
    shutil.rmtree(plain)


def check_kept_back(fresh, rounds, kept, tier):
    bench = fresh()
    bench.rules.on(kept, tier)
    before = {path: entry for path, entry in bench.snapshot().items() if path.startswith(kept) and entry[1] is not None}
    plain = bench.root + ".plain"
    shutil.copytree(bench.root, plain, symlinks=True)
    show = "find . -mindepth 1 -printf '%p %y %m %l\\n'; grep -r '' . || true"
    for lines in rounds:
        env = {"PATH": "/usr/bin:/bin"}
        subprocess.run(["bash", "-c", body(lines)], cwd=plain, env=env, check=True, timeout=60)
        bench.box(body(lines))
        bench.commit()
        wanted = subprocess.run(
            ["bash", "-c", show], cwd=plain, env=env, check=True, capture_output=True, text=True
        ).stdout
        assert sorted(bench.box(show).splitlines()) == sorted(wanted.splitlines())
    after = bench.snapshot()
    for path, entry in before.items():
        assert after.get(path) == entry, path
    shutil.rmtree(plain)


KEPT = st.sampled_from(["d/", "f/", "a", "d/e/"])
TIERS = st.sampled_from([Tier.ASK, Tier.DENY])


@settings(max_examples=20)
@given(rounds=scripts)
def test_the_tree_becomes_what_a_plain_copy_becomes(fresh, rounds):
    check_equivalence(fresh, rounds)


@settings(max_examples=20)
@given(rounds=scripts, kept=KEPT, tier=TIERS)
def test_what_the_policy_keeps_back_never_changes_and_the_box_goes_on_seeing_its_own(fresh, rounds, kept, tier):
    """Paths below ``kept`` stay as they were in the real tree; the next box sees exactly what the last one left."""
    check_kept_back(fresh, rounds, kept, tier)


@pytest.mark.slow
@settings(max_examples=400)
@given(rounds=scripts)
def test_many_scripts_end_as_in_a_plain_copy(fresh, rounds):
    check_equivalence(fresh, rounds)


@pytest.mark.slow
@settings(max_examples=400)
@given(rounds=scripts, kept=KEPT, tier=TIERS)
def test_many_scripts_never_change_what_is_kept_back(fresh, rounds, kept, tier):
    check_kept_back(fresh, rounds, kept, tier)
