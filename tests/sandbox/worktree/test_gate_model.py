"""Missions and a person at work on one repository, step by step at random, held against a model after every step.

Every text that anybody writes is unique, so what was lost, and what was replaced without having been seen, is told by
its words. A few seeds by default, many with ``-m slow``.
"""

import os
import random
import re
import shlex
import signal
import stat
import subprocess
import time
from dataclasses import dataclass, field

import pytest

from ringfence.model.ids import MissionId
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.history_report import HistoryReport
from ringfence.sandbox.worktree.tree import Worktree

pytestmark = pytest.mark.needs_userns
GIT = {
    "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_EDITOR": "true",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip
FOLDERS = ["", "", "src/", "src/deep/", "held/", "deny/", "build/", "lib/"]
NAMES = ["a", "b", "c", "d", "e f", "x.pyc", "ü", "-dash"]
BRANCHES = ["main", "other", "feat", "feat/x"]
GIT_WORDS = [
    "add -A", "add -A", "commit -qam {text}", "commit -qam {text}", "commit -qm {text}", "commit -q --amend -m {text}",
    "checkout -q {branch}", "checkout -q -b {branch}", "branch -f {branch}", "branch -D {branch}", "branch -m {branch}",
    "merge -q --no-edit {branch}", "merge --abort", "rebase -q {branch}", "rebase --abort", "cherry-pick {branch}",
    "cherry-pick --abort", "revert --no-edit HEAD", "revert --abort", "stash -q", "stash -q -u", "stash pop -q", "reset -q",
    "reset -q --soft HEAD~1", "reset -q --hard", "tag {branch}", "tag -a -m {text} t", "tag -d t", "mv -- {file} {path}",
    "rm -q --cached -- {file}", "checkout -- {file}", "checkout -q --detach", "gc -q", "pack-refs --all", "add -N -- {file}",
]  # fmt: skip
FILE_WORDS = [
    "mkdir -p -- $(dirname -- {path}); echo {text} > {path}", "echo {text} >> {file}", "echo {text} >> {file}",
    "echo {text} > t~; mv -T -- t~ {file}", "rm -- {file}", "rm -r -- {folder}", "mv -- {file} {path}", "mv -T -- {file} {other}",
    "mv -- {folder} moved", "mv -- {folder} src", "mv -- {folder} build", "chmod {mode} -- {file}", "ln -sfn a {path}",
    "ln -sfn ../.. {path}", "mkdir -- {path}", "touch -- {file}", "rm -- {file}; mkdir -p -- {file}; echo {text} > {file}/inner",
    "rm -r -- {folder}; echo {text} > {folder}", "printf '*.pyc\\nbuild/\\nlib/\\n# {text}\\n' > .gitignore",
    "printf '*.pyc\\n# {text}\\n' > .gitignore", "rm .gitignore", "mkdir -p .vscode; echo {text} > .vscode/tasks.json",
]  # fmt: skip
Tree = dict[str, tuple[str, int, bytes]]


def merged(upper: bytes | None, lower: bytes | None, path: bytes = b"") -> Tree:
    """What a box sees of a layer over a tree: kind, mode and content by path, without git's own files."""
    found: Tree = {}
    above, below = (set(os.listdir(place)) if place else set() for place in (upper, lower))
    if upper and "user.overlay.opaque" in os.listxattr(upper):
        below, lower = set(), None
    for name in sorted((above | below) - ({b".git"} if not path else set())):
        up, low = (
            place + b"/" + name if place and name in there else None
            for place, there in ((upper, above), (lower, below))
        )
        one = up or low or b""
        info = os.lstat(one)
        here = os.fsdecode(path + name)
        if stat.S_ISDIR(info.st_mode):
            found[here] = ("folder", stat.S_IMODE(info.st_mode), b"")
            under = low if low and stat.S_ISDIR(os.lstat(low).st_mode) else None
            found |= merged(up, under, path + name + b"/")
        elif stat.S_ISLNK(info.st_mode):
            found[here] = ("link", 0, os.readlink(one))
        elif stat.S_ISREG(info.st_mode):
            with open(one, "rb") as stream:
                found[here] = ("file", stat.S_IMODE(info.st_mode), stream.read())
    return found


def differing(one: Tree, other: Tree):
    return [
        (path, one.get(path), other.get(path))
        for path in sorted(one.keys() | other.keys())
        if one.get(path) != other.get(path)
    ]


def within(path, places):
    return any(path == place or path.startswith(place + "/") or place.startswith(path + "/") for place in places)


@dataclass
class World:
    """One repository, its missions, and what each of them has seen."""

    bench: object
    chance: random.Random
    missions: list[str] = field(default_factory=lambda: ["m-1", "m-2"])
    seen: dict[str, set] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    made: int = 0
    log: list[str] = field(default_factory=list)

    def tree(self) -> Tree:
        return merged(None, os.fsencode(self.bench.root))

    def view(self, mission: str) -> Tree:
        return merged(os.fsencode(f"{self.folder(mission)}/upper"), os.fsencode(self.bench.root))

    def folder(self, mission: str) -> str:
        return f"{self.bench.tree._state}/missions/{mission}"

    def began(self, mission: str) -> bool:
        return os.path.exists(f"{self.folder(mission)}/layer.state")

    def look(self, mission: str):
        return self.bench.tree.look(MissionId(mission))

    def refs(self) -> dict[str, str]:
        lines = self.bench.git(
            "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"
        ).splitlines()
        with open(f"{self.bench.root}/.git/HEAD", encoding="utf-8") as head:
            return {**dict(line.split(" ") for line in lines), "HEAD": head.read().strip().removeprefix("ref: ")}

    def script(self, who: str, shown: Tree) -> str:
        """A few commands, none of which has to succeed."""
        files = [path for path, (kind, _, _) in shown.items() if kind == "file"] or ["a"]
        folders = [path for path, (kind, _, _) in shown.items() if kind == "folder"] or ["src"]
        lines = []
        for _ in range(self.chance.randint(1, 4)):
            self.made += 1
            line = self.chance.choice(
                FILE_WORDS if self.chance.random() < 0.6 else [f"git {words}" for words in GIT_WORDS]
            )
            words = {
                "text": f"{who}-{self.made}",
                "file": self.chance.choice(files),
                "other": self.chance.choice(files),
                "folder": self.chance.choice(folders),
                "path": self.chance.choice(FOLDERS) + self.chance.choice(NAMES),
                "branch": self.chance.choice(BRANCHES),
                "mode": self.chance.choice(["644", "755", "600"]),
            }
            lines.append(re.sub(r"\{(\w+)\}", lambda found, words=words: shlex.quote(words[found[1]]), line))
        self.log.append(f"{who}: {' ;; '.join(lines)}")
        return "\n".join(f"( {line}\n) >/dev/null 2>&1 </dev/null || true" for line in lines)

    def step(self) -> None:
        mission = self.chance.choice(self.missions)
        kinds, weights = zip(*STEPS.items(), strict=True)
        kind = self.chance.choices(kinds, weights)[0]
        self.folders |= {path for path, (node, _, _) in self.tree().items() if node == "folder"}
        time.sleep(0.012)  # more than a tick of the clock by which files get their times
        if kind == "person":
            subprocess.run(
                ["bash", "-c", self.script("person", self.tree())], cwd=self.bench.root, env=GIT, timeout=60, check=True
            )
        elif kind == "box":
            self.box(mission)
        elif self.began(mission):
            getattr(self, kind)(mission)

    def box(self, mission: str) -> None:
        before = self.view(mission) if self.began(mission) else None
        self.bench.tree.layer(MissionId(mission))
        shown = self.view(mission)
        assert before is None or shown == before, "a mount changed what the mission sees"
        self.seen.setdefault(mission, set(self.seen.get("ended", ()))).update(
            (path, one[2]) for path, one in shown.items()
        )
        tips = "git for-each-ref '--format=tip %(objectname)'; echo tip $(git rev-parse HEAD)\n"
        said = self.bench.box(tips + self.script(mission, shown), mission=MissionId(mission))
        self.seen[mission] |= {
            ("tip", line.removeprefix("tip ")) for line in said.splitlines() if line.startswith("tip ")
        }

    def passed(self, mission: str, **options) -> tuple:
        layer = self.look(mission)
        files = self.bench.tree.commit(layer, self.bench.rules, now=1, **options)
        wanted = None if "only" in options else self.bench.tree.bundle_request(layer)
        if wanted is None:
            return files, HistoryReport()
        self.bench.bundle(layer, wanted)
        return files, self.bench.tree.take_history(layer, self.bench.rules, now=1)

    def gate(self, mission: str, **options) -> None:
        tree, view, refs = self.tree(), self.view(mission), self.refs()
        files, history = self.passed(mission, **options)
        self.log.append(f"gate {mission} {options}: {files} {history}")
        self.check_files(mission, files, tree, view)
        moved = {item.name for item in history.moved}
        now = self.refs()
        assert {name for name in refs.keys() | now.keys() if refs.get(name) != now.get(name)} <= moved
        for item in history.moved:
            if item.name.startswith("refs/") and item.old:
                begun = ("tip", item.old) in self.seen[mission] or self.bench.git(
                    "merge-base", item.old, item.new
                ).strip() == item.old
                assert begun, ("moved from what it never saw", item)
        self.check_git()
        if options or any(item.path.endswith(".gitignore") for item in files.conflicts):
            return
        after = (self.tree(), self.view(mission), now)
        again, nothing = self.passed(mission)
        assert [*again.committed, *nothing.moved] == []
        known = {one.path for one in files.conflicts} | {one.name for one in history.conflicts}
        assert {one.path for one in again.conflicts} | {
            one.name for one in nothing.conflicts
        } <= known  # behind what waits
        assert (self.tree(), self.view(mission), self.refs()) == after

    def check_git(self) -> None:
        self.bench.git("fsck", "--connectivity-only", "--no-dangling")
        left = [
            name
            for name in os.listdir(f"{self.bench.root}/.git")
            if name == "index.lock" or name.startswith("ringfence-stage")
        ]
        assert left == []

    def check_files(self, mission: str, files, tree: Tree, view: Tree) -> None:
        committed, conflicts = ({item.path: item for item in found} for found in (files.committed, files.conflicts))
        now, shown = self.tree(), self.view(mission)
        for path, old, new in differing(tree, now):
            assert within(path, committed), ("not named", path, old, new)
            assert old is None or (path, old[2]) in self.seen[mission], ("replaced unseen", path, old, new)
            wanted = view.get(path)
            assert (new and (new[0], new[2])) == (wanted and (wanted[0], wanted[2])), (
                "another content",
                path,
                wanted,
                new,
            )
            kept_back = path.split("/")[0] in {"held", "deny", ".vscode"} and "folder" not in {
                (old or "-")[0],
                (new or "-")[0],
            }
            by_name = committed.get(path) and committed[path].reason.startswith("committed by name")
            assert not kept_back or by_name, ("kept back", path, old, new)
        for path, old, new in differing(view, shown):
            if within(path, conflicts):
                item = conflicts.get(path)
                assert item is None or new == now.get(path), ("a conflict shows", path, new, now.get(path))
                if old and old[0] in {"file", "link"}:
                    places = [one.kept for name, one in conflicts.items() if within(path, [name]) and one.kept]
                    assert any(old[2] in self.texts(place) for place in places), ("set aside nowhere", path, old)
                continue
            gone_with_the_persons = old and old[0] == "folder" and new is None and path in self.folders
            only_mode = old and new and (old[0], old[2]) == (new[0], new[2])
            assert gone_with_the_persons or only_mode, ("the mission lost", path, old, new)

    @staticmethod
    def texts(place: str) -> set[bytes]:
        if os.path.isdir(place) and not os.path.islink(place):
            return {one[2] for one in merged(None, os.fsencode(place)).values()}
        return {
            one[2]
            for path, one in merged(None, os.fsencode(os.path.dirname(place))).items()
            if path == os.path.basename(place)
        }

    def named(self, mission: str) -> None:
        changes = [one.path for one in self.bench.tree.changes(self.look(mission)) if not one.internal]
        if changes:
            path = self.chance.choice(changes)
            self.gate(mission, only=(path,), approved=(path,))

    def discard(self, mission: str) -> None:
        tree, view, refs = self.tree(), self.view(mission), self.refs()
        ignored = [one.path for one in self.bench.tree.changes(self.look(mission)) if one.ignored]
        self.bench.tree.discard(self.look(mission))
        self.log.append(f"discard {mission}")
        assert (self.tree(), self.refs()) == (tree, refs)
        shown = self.view(mission)
        assert not [found for found in differing(shown, tree) if not within(found[0], ignored)]
        assert not [found for found in differing(shown, view) if any(found[0].startswith(f"{one}/") for one in ignored)]

    def end(self, mission: str) -> None:
        tree, view, refs = self.tree(), self.view(mission), self.refs()
        ignored = [one.path for one in self.bench.tree.changes(self.look(mission)) if one.ignored]
        self.bench.tree.end(self.look(mission))
        self.bench.tree.sweep()
        assert (self.tree(), self.refs()) == (tree, refs)
        self.made += 1
        new = f"m-{self.made}n"
        self.log.append(f"end {mission}, then {new}")
        self.missions[self.missions.index(mission)] = new
        self.seen.setdefault("ended", set()).update(self.seen[mission])
        self.bench.tree.layer(MissionId(new))
        shown = self.view(new)
        self.seen[new] = {(path, one[2]) for path, one in shown.items()} | self.seen["ended"]
        lost = [
            path
            for path, one in view.items()
            if one[0] != "folder" and within(path, ignored) and shown.get(path) != one
        ]
        assert not lost

    def killed(self, mission: str) -> None:
        tree, view = self.tree(), self.view(mission)
        at = self.chance.choice([self.chance.randint(1, 30), self.chance.randint(1, 200), self.chance.randint(1, 800)])
        child = os.fork()
        if child == 0:
            try:
                kill_at(at)
                self.passed(mission)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.log.append(f"killed {mission} at {at}")
        self.bench.tree = Worktree.open(self.bench.root, self.bench.tree._state)
        self.bench.tree.recover()
        self.look(mission)
        now, shown = self.tree(), self.view(mission)
        aside = self.texts(f"{self.folder(mission)}/aside") if os.path.isdir(f"{self.folder(mission)}/aside") else set()
        for path, old, new in differing(tree, now):
            wanted = view.get(path)
            assert (new and (new[0], new[2])) == (wanted and (wanted[0], wanted[2])), ("half way", path, old, new)
            assert old is None or (path, old[2]) in self.seen[mission], ("replaced unseen", path, old, new)
        for path, old, new in differing(view, shown):
            fine = (
                old is None or old[0] == "folder" or (new and (old[0], old[2]) == (new[0], new[2])) or old[2] in aside
            )
            assert fine, ("the mission lost", path, old, new)
        self.check_git()
        self.gate(mission)


STEPS = {"box": 30, "person": 22, "gate": 25, "named": 6, "discard": 3, "end": 4, "killed": 8}


def kill_at(number: int) -> None:
    """From here on this process is killed at the so many-th call that changes a file."""
    left = [number]

    def wrap(module, name):
        real = getattr(module, name)

        def counted(*args, **options):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(module, name, counted)

    for name in (
        "open",
        "rename",
        "replace",
        "link",
        "unlink",
        "mkdir",
        "rmdir",
        "symlink",
        "fchmod",
        "setxattr",
        "fsync",
    ):
        wrap(os, name)
    for name in ("rename_at", "sync_filesystem"):
        wrap(kernel, name)


def live(make_bench, seed: int, steps: int) -> None:
    bench = make_bench(f"r{seed}")
    bench.rules.on("held", Tier.ASK).on("deny", Tier.DENY)
    for path in ("held/h", "deny/d", "lib/l"):
        bench.write(path, f"{path}\n")
    bench.write(".gitignore", "*.pyc\nbuild/\n")
    bench.git("add", "-A")
    bench.git("commit", "-qm", "second")
    bench.git("branch", "other")
    world = World(bench, random.Random(seed))
    try:
        for _ in range(steps):
            world.step()
    except BaseException:
        print("\n".join([f"seed {seed}", *world.log[-12:]]))
        raise


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_lost_and_nothing_replaced_unseen(make_bench, seed):
    live(make_bench, seed, 14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_nothing_is_lost_and_nothing_replaced_unseen_in_many_lives(make_bench, seed):
    live(make_bench, seed, 40)
