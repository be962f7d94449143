"""A real repository, a real overlay, and a decider that answers by rules the test gives."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ringfence.model.box import Layer
from ringfence.model.call import FileAccess, FileAction, ToolCall
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.ids import CallId, MissionId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier
from ringfence.sandbox.worktree.history_report import BundleRequest, HistoryReport
from ringfence.sandbox.worktree.tree import Worktree

GIT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
MOUNT = (
    "i=0; while [ $i -lt $COUNT ]; do L=LOWER$i U=UPPER$i W=WORK$i; "
    'mount -t overlay overlay -o "lowerdir=${!L},upperdir=${!U},workdir=${!W},userxattr" "${!L}"; i=$((i+1)); done; '
    'cd "$TARGET"; '
)


@dataclass
class Rules:
    """Answers by the first rule that matches; every call it was asked is kept."""

    tiers: list[tuple[Callable[[FileAccess, str], bool], Tier]] = field(default_factory=list)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    root: str = ""

    def on(self, match: str, tier: Tier, action: FileAction | None = None) -> "Rules":
        self.tiers.append((lambda a, p: p.startswith(match) and action in {None, a.action}, tier))
        return self

    def on_content(self, text: str, tier: Tier) -> "Rules":
        self.tiers.append((lambda a, _p: text in (a.content or ""), tier))
        return self

    def decide(self, call: ToolCall) -> Decision:
        request = call.request
        assert isinstance(request, FileAccess)
        path = os.path.relpath(request.path, call.cwd)
        self.asked.append((request.action.value, path, request.content))
        tier = max((t for match, t in self.tiers if match(request, path)), default=Tier.ALLOW)
        reason = Reason(
            rule=RuleId(f"test-{tier.word}"),
            scope=Scope.REPOSITORY,
            place=Place(file="sandbox_policy.yaml", line=1),
            tier=tier,
            matched=path,
            because=f"the test says {tier.word}",
        )
        return Decision(call_id=CallId("c"), policy_digest=Sha256("0" * 64), reasons=(reason,))


@dataclass
class Bench:
    """One repository with a mission's layer over it."""

    root: str
    tree: Worktree
    rules: Rules
    mission: MissionId = MissionId("m-1")

    def box(self, script: str, *, mission: MissionId | None = None, check: bool = True) -> str:
        """Run a shell script with the layer mounted over the worktree, as a box would."""
        return self.mounted(self.tree.layer(mission or self.mission), script, check=check)

    def bundle(self, layer: Layer, request: BundleRequest) -> None:
        """Let the layer's git bundle its commits for the gate."""
        quoted = " ".join(f"'{word}'" for word in request.argv)
        self.mounted(layer, f"cd '{request.cwd}'; {quoted} || true")

    def mounted(self, layer: Layer, script: str, *, check: bool = True) -> str:
        """Run a shell script with a layer mounted that is ready for it."""
        env = {**GIT, "TARGET": layer.target, "COUNT": str(1 + len(layer.beside))}
        for number, one in enumerate((layer, *layer.beside)):
            env |= {f"LOWER{number}": one.lower, f"UPPER{number}": one.upper, f"WORK{number}": one.work}
        done = subprocess.run(
            ["unshare", "-Urm", "--propagation", "private", "bash", "-euc", MOUNT + "{\n" + script + "\n}"],
            env=env,
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=600,
            errors="surrogateescape",
            check=False,
        )
        if check:
            assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    @property
    def layer(self):
        return self.tree.layer(self.mission)

    def commit(self, **options):
        folder = f"{self.tree._state}/missions/{self.mission}"
        return self.tree.commit(self.tree._layer(folder), self.rules, now=1, **options)

    def read(self, path: str) -> str:
        with open(f"{self.root}/{path}", encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()

    def write(self, path: str, text: str) -> None:
        full = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=GIT, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def snapshot(self) -> dict[str, tuple[int, object]]:
        """Mode and content of everything in the tree but ``.git``."""
        found: dict[str, tuple[int, object]] = {}
        for folder, folders, files in os.walk(self.root):
            if ".git" in folders:
                folders.remove(".git")
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                info = os.lstat(path)
                if os.path.islink(path):
                    content: object = os.readlink(path)
                elif name in files:
                    with open(path, "rb") as stream:
                        content = stream.read()
                else:
                    content = None
                found[os.path.relpath(path, self.root)] = (info.st_mode, content)
        return found


@pytest.fixture
def make_bench(tmp_path):
    def make(name: str = "repo", *, git: bool = True, **options) -> Bench:
        root = str(tmp_path / name)
        os.makedirs(f"{root}/src/deep", exist_ok=True)
        for path, text in {
            "a.txt": "a\n",
            "src/b.py": "b\n",
            "src/deep/c.py": "c\n",
            "run.sh": "#!/bin/sh\n",
            ".gitignore": "*.pyc\nnode_modules/\n.venv/\n",
        }.items():
            with open(f"{root}/{path}", "w", encoding="utf-8") as stream:
                stream.write(text)
        if git:
            for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
                subprocess.run(["git", *args], cwd=root, env=GIT, check=True, timeout=600)
        tree = Worktree.open(root, str(tmp_path / f"state-{name}"), **options)
        return Bench(root=root, tree=tree, rules=Rules(root=root))

    return make


@pytest.fixture
def bench(make_bench):
    return make_bench()


@pytest.fixture
def repo(make_bench):
    """Benches whose ``gate`` asks for a bundle, and takes history only if there is one."""

    def make(name="repo", **options):
        bench = make_bench(name, **options)

        def gate(**more):
            layer = bench.tree.look(bench.mission)
            files = bench.commit(**more)
            request = bench.tree.bundle_request(layer)
            if request is None:
                return files, HistoryReport()
            bench.bundle(layer, request)
            return files, bench.tree.take_history(layer, bench.rules, now=1, **more)

        bench.gate = gate
        return bench

    return make
