"""A commit cut short by kill -9 at any point is finished or taken back at the next start; the tree is never half way."""

import os
import random
import signal
import time

import pytest

from ringfence.sandbox.worktree import journal, kernel

pytestmark = pytest.mark.needs_userns

WORK = """
echo changed > a.txt; rm run.sh; mv src lib; mkdir -p x/y; echo n > x/y/n; ln -s a.txt link; chmod 600 lib/b.py
rm -r docs; echo file > docs; for i in $(seq 12); do echo $i > many$i; done
mkdir -p node_modules/p .venv; echo i > node_modules/p/i; echo v > .venv/v
"""


def prepare(bench):
    bench.write("docs/one.md", "1\n")
    bench.write("docs/two.md", "2\n")
    time.sleep(0.02)
    bench.box(WORK)


def in_child(bench, before_commit):
    """Commit in a child process; gives how it ended."""
    child = os.fork()
    if child == 0:
        status = 9
        try:
            before_commit()
            bench.commit()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return status


def kill_at(name):
    def step(at):
        if at == name:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def steps_of(bench):
    """The names of all points, from a commit in a copy of the process."""
    read, write = os.pipe()

    def record():
        journal._at_step = lambda at: os.write(write, at.encode() + b"\n") and None

    assert in_child(bench, record) == 0
    os.close(write)
    with open(read, encoding="utf-8") as stream:
        return stream.read().split()


def check_recovered(bench, before, after):
    told = bench.tree.recover()
    found = bench.snapshot()
    assert found in (before, after), sorted(set(found) ^ set(before))
    assert not [n for n in os.listdir(f"{bench.root}/.git") if n.startswith("ringfence-stage")]
    with open(f"{bench.root}/.git/index", "rb") as index:
        assert index.read(4) == b"DIRC"
    assert bench.tree.recover() == ()
    report = bench.commit()
    assert report.clean, report
    assert bench.snapshot() == after
    assert sorted(os.listdir(bench.layer.upper)) == [".venv", "node_modules"]
    assert bench.box("cat node_modules/p/i .venv/v") == "i\nv\n"
    return told


def test_kill_at_every_step(make_bench):
    model = make_bench("model")
    prepare(model)
    names = steps_of(model)
    after = model.snapshot()
    assert {"staged", "kept", "planned", "applied", "finished"} <= set(names)
    chosen = [n for n in names if not n.startswith("step")] + [n for n in names if n.startswith("step")][::3]
    for number, name in enumerate(chosen):
        bench = make_bench(f"r{number}")
        prepare(bench)
        before = bench.snapshot()

        def arm(name=name):
            journal._at_step = kill_at(name)

        assert os.WIFSIGNALED(in_child(bench, arm))
        told = check_recovered(bench, before, after)
        assert bool(told) == (name != "staged")


@pytest.mark.parametrize("path", ["a.txt", "run.sh"])
def test_a_save_that_a_killed_commit_had_just_taken_out_is_put_back(bench, path):
    prepare(bench)
    real = kernel.rename_at

    def killed(from_fd, source, to_fd, target, flags=0):
        if path in {source, target}:
            bench.write("person", "person, just now\n")
            os.rename(f"{bench.root}/person", f"{bench.root}/{path}")
            real(from_fd, source, to_fd, target, flags)
            os.kill(os.getpid(), signal.SIGKILL)
        real(from_fd, source, to_fd, target, flags)

    def arm():
        kernel.rename_at = killed

    assert os.WIFSIGNALED(in_child(bench, arm))
    bench.tree.recover()
    assert bench.read(path) == "person, just now\n"
    assert [i.path for i in bench.commit().conflicts] == [path]
    assert bench.read(path) == "person, just now\n"


def test_kill_during_the_taking_back(make_bench):
    bench = make_bench()
    prepare(bench)
    before = bench.snapshot()

    def arm():
        journal._at_step = kill_at("applied")

    assert os.WIFSIGNALED(in_child(bench, arm))
    for number in (20, 12, 5):
        child = os.fork()
        if child == 0:
            journal._at_step = kill_at(f"undo-{number}")
            bench.tree.recover()
            os._exit(0)
        os.waitpid(child, 0)
    bench.tree.recover()
    assert bench.snapshot() == before
    assert bench.commit().clean


def _random_kills(make_bench, rounds):
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    model = make_bench("model")
    prepare(model)
    start = time.monotonic()
    assert in_child(model, lambda: None) == 0
    span = time.monotonic() - start
    after = model.snapshot()
    ended = 0
    for number in range(rounds):
        bench = make_bench(f"k{number}")
        prepare(bench)
        before = bench.snapshot()
        child = os.fork()
        if child == 0:
            try:
                bench.commit()
            finally:
                os._exit(0)
        time.sleep(dice.random() * span * 1.1)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        ended += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            span *= 0.8  # it was measured while more was going on
        check_recovered(bench, before, after)
    assert ended > rounds // 4


def test_a_change_of_layers_cut_short_loses_no_ignored_path(bench, tmp_path):
    """Both places where a crash can leave the exchange of the upper directory."""
    bench.box(
        "mkdir -p node_modules/a/b deep/node_modules; echo 1 > node_modules/a/b/f; echo 2 > deep/node_modules/g; echo 3 > h"
    )
    upper = bench.layer.upper
    fresh = os.path.dirname(upper) + "/fresh-upper"
    os.makedirs(fresh + "/deep")
    os.rename(f"{upper}/deep/node_modules", f"{fresh}/deep/node_modules")
    assert bench.box("cat node_modules/a/b/f deep/node_modules/g h") == "1\n2\n3\n"
    assert not os.path.exists(fresh)
    os.rename(upper, fresh)
    assert bench.box("cat node_modules/a/b/f deep/node_modules/g h") == "1\n2\n3\n"
    assert not os.path.exists(fresh)


def test_kill_while_history_is_taken(make_bench):
    """Refs have moved or have not, the index is whole, no lock stays, and the next try finishes."""
    dice = random.Random(7)
    span = 0.0
    for number in range(9):
        bench = make_bench(f"h{number}")
        bench.box("echo 1 >> a.txt; echo n > n; git add -A; git commit -qm one; git checkout -qb side; git tag t")
        request = bench.tree.bundle_request(bench.layer)
        bench.box(" ".join(f"'{w}'" for w in request.argv))
        bench.commit()
        layer = bench.layer
        child = os.fork()
        if child == 0:
            try:
                bench.tree.take_history(layer, bench.rules, now=1)
            finally:
                os._exit(0)
        start = time.monotonic()
        if number:
            time.sleep(dice.random() * span)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        span = span or time.monotonic() - start
        bench.tree.recover()
        assert not os.path.exists(f"{bench.root}/.git/index.lock")
        assert bench.git("log", "--format=%s", "main") in {"first\n", "one\nfirst\n"}
        request = bench.tree.bundle_request(layer)
        if request is not None:
            bench.box(" ".join(f"'{w}'" for w in request.argv) + " || true")
        report = bench.tree.take_history(layer, bench.rules, now=1)
        assert not report.refused, report
        assert bench.git("log", "--format=%s", "side") == "one\nfirst\n"
        assert bench.git("symbolic-ref", "HEAD") == "refs/heads/side\n"
        assert bench.git("fsck", "--strict") is not None
        assert bench.git("diff", "--cached", "--name-only") == ""


def test_what_a_crash_left_half_copied_is_removed(make_bench):
    bench = make_bench("half")
    bench.box("echo 1 >> a.txt; git commit -qam one")
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{w}'" for w in request.argv))
    bench.commit()
    packs = f"{bench.root}/.git/objects/pack"
    names = [f"pack-{digit * 40}.{ending}.ringfence" for digit, ending in (("1", "pack"), ("2", "idx"))]
    for name in names:
        with open(f"{packs}/{name}", "wb") as file:
            file.write(b"half")
            os.fchmod(file.fileno(), 0o444)
    assert not bench.tree.take_history(bench.layer, bench.rules, now=1).refused
    assert bench.git("log", "--format=%s", "main") == "one\nfirst\n"
    assert not [name for name in os.listdir(packs) if name.endswith(".ringfence")]


def test_forty_random_kills(make_bench):
    _random_kills(make_bench, 40)


@pytest.mark.slow
def test_five_hundred_random_kills(make_bench):
    _random_kills(make_bench, 500)
