"""Whatever the kernel refuses the gate on the way: nothing is lost, it is said with a remedy, and the next try does it all.

Every place of the gate's code that asks the kernel is refused once, and for good: the disk is full or fails, no more files
may be opened. A sample by default; all of them with ``-m slow``.
"""

import builtins
import contextlib
import errno
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ringfence.model.errors import RingfenceError
from ringfence.model.ids import MissionId
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import journal, kernel

pytestmark = pytest.mark.needs_userns
CHANGES = (
    "rename", "replace", "link", "unlink", "mkdir", "rmdir", "symlink", "chmod", "fchmod", "chown", "fchown", "utime",
    "setxattr", "removexattr", "mknod", "fsync", "write",
)  # fmt: skip
LOOKS = ("stat", "lstat", "fstat", "listdir", "scandir", "readlink", "getxattr", "listxattr", "read", "dup")
OURS = ("layer.state", ".new", ".notes", "plan", "done")
ROOM = f"{os.sep}sandbox{os.sep}worktree{os.sep}"


@dataclass
class Kernel:
    """The calls by which the gate asks the kernel, each known by its name and the line that asks."""

    seen: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By place, whether it changes anything."""
    refused: tuple[str, str] | None = None
    error: int = 0
    for_good: bool = False
    on: bool = False
    broken: bool = False

    def meets(self, name: str, *, changes: bool) -> None:
        if not self.on:
            return
        place = (name, _asking())
        if place[1]:
            self.seen.setdefault(place, changes)
            if place == self.refused or (self.broken and changes):
                self.broken = self.for_good
                if not self.for_good:
                    self.refused = None
                raise OSError(self.error, os.strerror(self.error))

    @contextlib.contextmanager
    def watched(self):
        self.on = True
        try:
            yield
        finally:
            self.on = False


def _asking() -> str:
    frame = sys._getframe(3)
    if frame.f_code.co_filename.endswith("kernel.py"):
        return ""  # told by the function's own name
    for _ in range(4):
        if frame is None:
            break
        if ROOM in frame.f_code.co_filename:
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@pytest.fixture
def refusing(monkeypatch):
    host = Kernel()

    def wrap(module: object, name: str, *, changes: bool) -> None:
        real: Callable = getattr(module, name)

        def asked(*args, **options):
            host.meets(name, changes=changes)
            return real(*args, **options)

        monkeypatch.setattr(module, name, asked)

    for name in CHANGES:
        wrap(os, name, changes=True)
    for name in LOOKS:
        wrap(os, name, changes=False)
    for name in ("rename_at", "sync_filesystem"):
        wrap(kernel, name, changes=True)
    for name in ("open_beneath", "open_directory"):
        wrap(kernel, name, changes=False)
    real_open, real_builtin = os.open, builtins.open

    def os_open(path, flags, *args, **options):
        host.meets("open", changes=bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)))
        return real_open(path, flags, *args, **options)

    def builtin_open(file, mode="r", *args, **options):
        if not isinstance(file, int):
            host.meets("builtin", changes=not mode.startswith("r"))
        return real_builtin(file, mode, *args, **options)

    monkeypatch.setattr(os, "open", os_open)
    monkeypatch.setattr(builtins, "open", builtin_open)
    return host


WORK = """
echo m > a.txt; rm src/b.py; mkdir -p x/y; echo z > x/y/z; ln -s a.txt link; chmod 600 src/deep/c.py; echo h > held.txt
rm -r docs; echo f > docs; echo mine > both1; rm both2; echo new > there/new; mkdir -p node_modules/p; echo i > node_modules/p/i
"""


def work(bench):
    """One of everything that a gate meets: changes, a folder that a file replaces, what waits, what is ignored, conflicts."""
    bench.rules.on("held.txt", Tier.ASK)
    for path in ("docs/one", "both1", "both2", "there/old"):
        bench.write(path, f"{path}\n")
    time.sleep(0.02)
    bench.box(WORK)
    for path in ("both1", "both2"):
        bench.write(path, "person\n")


def put_by(bench):
    bench.box("echo one > a.txt; git stash -q; mkdir -p node_modules/p; echo i > node_modules/p/i")
    bench.box(
        "echo two > a.txt; git stash -q; mkdir -p node_modules/q; echo i > node_modules/q/i", mission=MissionId("m-2")
    )
    bench.tree.end(bench.tree.look(MissionId("m-2")))


def committed(bench):
    bench.box("echo m > a.txt; rm src/b.py; mkdir x; echo z > x/z; chmod 600 src/deep/c.py; ln -s a.txt link")
    bench.commit()


def cut_short(at):
    def before(bench):
        work(bench)
        child = os.fork()
        if child == 0:
            journal._at_step = lambda name: os._exit(9) if name == at else None
            try:
                bench.commit()
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    return before


VERBS = {
    "commit": (work, lambda bench: bench.commit()),
    "discard": (work, lambda bench: bench.tree.discard(bench.tree.look(bench.mission))),
    "discard-named": (work, lambda bench: bench.tree.discard(bench.tree.look(bench.mission), ["docs", "src", "a.txt"])),
    "end": (put_by, lambda bench: bench.tree.end(bench.tree.look(bench.mission))),
    "begin": (put_by, lambda bench: bench.tree.layer(MissionId("m-3"))),
    "undo": (committed, lambda bench: bench.tree.undo(bench.mission)),
    "take-back": (cut_short("kept"), lambda bench: bench.tree.recover()),
    "take-back-late": (cut_short("applied"), lambda bench: bench.tree.recover()),
    "finish": (cut_short("finished"), lambda bench: bench.tree.recover()),
}


def contents(*roots):
    """Every file's bytes and every link's target below the folders, but for git's own."""
    found = set()
    for root in roots:
        for base, folders, files in os.walk(root):
            if ".git" in folders:
                folders.remove(".git")
            for name in files:
                path = f"{base}/{name}"
                if os.path.islink(path):
                    found.add(os.fsencode(os.readlink(path)))
                elif os.path.isfile(path) and not name.endswith(OURS):
                    with open(path, "rb") as stream:
                        found.add(stream.read())
    return found


def end_of(bench, verb):
    """The tree after the verb was carried out and what a crash or fault left was put in order."""
    bench.tree.recover()
    with contextlib.suppress(RingfenceError):  # done already: there is no such mission any more
        VERBS[verb][1](bench)
    bench.tree.recover()
    left = [name for name in os.listdir(f"{bench.root}/.git") if name.startswith("ringfence") or name.endswith(".lock")]
    assert left == []
    assert bench.git("fsck", "--strict") is not None
    return bench.snapshot()


def refused_at(make_bench, host, verb, place, error, *, for_good, wanted, gives_up):
    bench = make_bench("-".join(map(str, (*place, error, for_good))).replace(":", "-"))
    VERBS[verb][0](bench)
    before = contents(bench.root, bench.tree._state)
    host.refused, host.error, host.for_good, host.broken = place, error, for_good, False
    told = None
    with host.watched():
        try:
            VERBS[verb][1](bench)
        except RingfenceError as error_told:
            told = error_told
    assert told is None or told.remedy
    host.refused, host.broken = None, False
    assert end_of(bench, verb) == wanted, (verb, place, error)
    lost = before - contents(bench.root, bench.tree._state)
    assert lost <= gives_up, (verb, place, error, lost)


def run(make_bench, host, verb, choose):
    twin = make_bench(f"twin-{verb}")
    VERBS[verb][0](twin)
    before = contents(twin.root, twin.tree._state)
    with host.watched():
        VERBS[verb][1](twin)
    wanted = end_of(twin, verb)
    gives_up = before - contents(twin.root, twin.tree._state)
    places = dict(host.seen)
    assert len(places) > 10
    for place in choose(sorted(places)):
        for error, for_good in (
            [(errno.ENOSPC, False), (errno.EIO, True)] if places[place] else [(errno.EIO, False), (errno.EMFILE, False)]
        ):
            refused_at(make_bench, host, verb, place, error, for_good=for_good, wanted=wanted, gives_up=gives_up)


@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_loses_nothing_and_the_next_try_does_it_all(make_bench, refusing, verb):
    run(make_bench, refusing, verb, lambda places: random.Random(verb).sample(places, 2))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_refusal_loses_nothing_and_the_next_try_does_it_all(make_bench, refusing, verb):
    run(make_bench, refusing, verb, lambda places: places)
