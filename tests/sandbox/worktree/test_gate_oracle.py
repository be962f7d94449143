"""Git itself says what is right: the same commands in a mission and in a plain copy, held against each other after every gate.

A mission and a person take turns. The mission must see what the copy has; so must the person, but for what is only staged
or stopped half way, which is the mission's own. A few seeds by default, many with ``-m slow``.
"""

import random
import shlex
import shutil
import subprocess

import pytest

from ringfence.sandbox.worktree.history_report import HistoryReport

pytestmark = pytest.mark.needs_userns
GIT = {
    "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "FILTER_BRANCH_SQUELCH_WARNING": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "gc.auto", "GIT_CONFIG_VALUE_0": "0",
    "GIT_CONFIG_KEY_1": "core.checkStat", "GIT_CONFIG_VALUE_1": "minimal",  # the bench's box has another uid
}  # fmt: skip
PATHS = ["a.txt", "src/b.py", "src/deep/c.py", "run.sh", "n1", "src/n2", "lib/n3", "lib/x/n4", "e f", "ü"]
BRANCHES = ["main", "o1", "o2", "f/x"]
RESOLVE = "for f in $(git diff --name-only --diff-filter=U); do echo {text} > $f; git add $f; done; git "
COMMITS = [
    "add -A", "add -A; git commit -qm {text}", "add -A; git commit -qm {text}", "commit -qam {text}", "commit -qam {text}",
    "commit -qm {text}", "commit -q --amend -m {text}", "commit -q --allow-empty -m {text}", "commit -q -o -m {text} -- {path}",
    "update-ref refs/heads/o2 $(git commit-tree -m {text} HEAD^{{tree}} -p HEAD)",
]  # fmt: skip
BRANCHING = [
    "checkout -q {branch}", "checkout -q -b {branch}", "switch -q -C {branch}", "checkout -q --detach", "checkout -q HEAD~1",
    "checkout -q --orphan {branch}", "checkout -m -q {branch}", "symbolic-ref HEAD refs/heads/{branch}", "branch -f {branch}",
    "branch {branch} HEAD~1", "branch -D {branch}", "branch -M {branch}", "branch -c {branch}", "update-ref -d refs/heads/o1",
    "tag -f {branch}-t", "tag -a -f -m {text} at", "tag -d at", "pack-refs --all", "gc -q", "repack -adq",
    "multi-pack-index write", "commit-graph write --reachable", "prune", "reflog expire --expire=now --all",
]  # fmt: skip
JOINING = [
    "merge -q --no-edit {branch}", "merge -q --no-ff --no-edit {branch}", "merge --squash -q {branch}", "merge --abort",
    "merge -q --no-commit --no-ff {branch}", "merge -q -X ours --no-edit {branch}", "rebase -q {branch}", "rebase --abort",
    "rebase -q --autostash {branch}", "rebase -q --root", "rebase --skip", "cherry-pick {branch}", "cherry-pick -n {branch}",
    "cherry-pick --abort", "cherry-pick --skip", "revert --no-edit HEAD", "revert -n HEAD", "revert --abort",
    "filter-branch -f --msg-filter 'cat; echo x' HEAD~1..HEAD", "bisect start -q HEAD HEAD~2", "bisect reset -q",
]  # fmt: skip
STAGING = [
    "stash -q", "stash -q -u", "stash -q -k", "stash pop -q", "stash pop -q --index", "stash drop -q", "stash branch {branch}",
    "reset -q", "reset -q --hard", "reset -q --soft HEAD~1", "reset -q HEAD~1", "reset -q --hard HEAD~1", "reset -q --merge",
    "reset -q --keep HEAD~1", "reset -q --hard {branch}", "mv -k -- {path} {other}", "rm -q --cached -- {path}",
    "rm -q -f -- {path}", "rm -rq --cached src", "checkout -- {path}", "checkout {branch} -- {path}", "add -u",
    "restore --source HEAD~1 -- {path}", "read-tree -u --reset {branch}", "read-tree -m {branch}", "notes add -f -m {text}",
    "update-index --chmod=+x -- {path}", "update-index --force-remove -- {path}", "clean -fdq",
    "format-patch -1 --stdout > ../patch", "am -q < ../patch", "am --abort", "apply -R --index ../patch",
]  # fmt: skip
FILES = [
    "mkdir -p -- $(dirname -- {path}); echo {text} > {path}", "mkdir -p -- $(dirname -- {path}); echo {text} > {path}",
    "echo {text} >> {path}", "echo {text} >> {path}", "rm -f -- {path}", "rm -rf lib", "mv -f -T -- {path} {other}",
    "chmod +x -- {path}", "chmod -x -- {path}", "ln -sfn a.txt link", "rm -rf src; echo {text} > src", "rm -f src; mkdir -p src",
    RESOLVE + "status -s", RESOLVE + "commit -qm {text}", RESOLVE + "rebase --continue",
]  # fmt: skip
LOOK = """
git symbolic-ref -q HEAD || git rev-parse HEAD
git for-each-ref --format='%(refname) %(objectname)' refs/heads refs/tags
echo STATUS; git status --porcelain -uall
echo INDEX; git ls-files -s
echo OWN; git for-each-ref --format='%(refname) %(objectname)' refs/stash refs/notes refs/bisect; git stash list --format=%H
cd "$(git rev-parse --git-dir)" && ls -d MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply BISECT_LOG
"""


def lines(chance, day):
    """One to five commands, whose commits have the same ids wherever they are run."""
    yield f"export GIT_AUTHOR_DATE='{day} +0000' GIT_COMMITTER_DATE='{day} +0000'"
    for number in range(chance.randint(1, 5)):
        kind = chance.choice([COMMITS, BRANCHING, JOINING, STAGING, FILES, FILES, FILES])
        path, other = (shlex.quote(chance.choice(PATHS)) for _ in range(2))
        word = chance.choice(kind).format(
            text=f"{day}-{number}", branch=chance.choice(BRANCHES), path=path, other=other
        )
        yield f"( {word if kind is FILES else 'git ' + word} )"


def run(root, script):
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=root,
        env=GIT,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=600,
        check=False,
    )
    return done.stdout


def sections(said):
    found, name = {}, "REFS"
    for line in said.split("\n"):
        if line in {"STATUS", "INDEX", "OWN"}:
            name = line
        elif line:
            found.setdefault(name, []).append(line)
    return found


def staged(seen):
    return any(line[0] not in " ?" for line in seen.get("STATUS", []))


class Lives:
    """One repository with a mission, and its plain copy."""

    def __init__(self, bench, copy):
        self.bench, self.copy = bench, copy
        shutil.copytree(bench.root, copy, symlinks=True)
        self.said: list[str] = []

    def box(self, script):
        exported = "; ".join(f"export {name}={shlex.quote(value)}" for name, value in GIT.items())
        return self.bench.box(f"{exported}; set +e; {{ {script}\n}} 2> /dev/null; true")

    def step(self, chance, day):
        script = "\n".join(lines(chance, day))
        before = sections(run(self.bench.root, LOOK))
        person = before == sections(run(self.copy, LOOK)) and chance.random() < 0.3
        self.said.append(f"# {'person' if person else 'mission'}\n{script}")
        run(self.copy, script)
        history = HistoryReport()
        if person:
            run(self.bench.root, script)
        else:
            self.box(script)
            files, history = self.bench.gate()
            assert files.clean
        wanted = sections(run(self.copy, LOOK))
        assert sections(self.box(LOOK)) == wanted
        self.bench.gate()  # the call is over: what the person does next is not meanwhile
        self.compare(wanted, before, history)

    def compare(self, wanted, before, history):
        seen = sections(run(self.bench.root, LOOK))
        waits = {item.name for item in (*history.held, *history.refused)}
        assert not history.conflicts
        told = [[line for line in one["REFS"] if line.split()[0] not in waits] for one in (seen, wanted)]
        assert told[0] == told[1] or "HEAD" in waits
        theirs = "OWN" in wanted or "OWN" in seen or staged(wanted) or staged(before)
        if not theirs and not waits:
            assert seen == wanted
        sound = [run(root, "git fsck --strict --no-dangling --no-progress") for root in (self.bench.root, self.copy)]
        assert sound[0] in {"", sound[1]}  # git itself misses the empty tree now and then


def live(repo, tmp_path, seed, steps):
    chance = random.Random(seed)
    lives = Lives(repo(), str(tmp_path / "copy"))
    try:
        for number in range(steps):
            lives.step(chance, 1_700_000_000 + number)
    except BaseException:
        print("\n".join([f"# seed {seed}", *lives.said]))
        raise


@pytest.mark.parametrize("seed", range(4))
def test_a_mission_and_a_person_see_what_git_makes_of_it(repo, tmp_path, seed):
    live(repo, tmp_path, seed, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_a_mission_and_a_person_see_what_git_makes_of_it_in_many_lives(repo, tmp_path, seed):
    live(repo, tmp_path, seed, 12)
