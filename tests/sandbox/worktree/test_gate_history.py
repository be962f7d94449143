"""Commits made in a box arrive in the real repository; nothing else that git could hold does."""

import os
import stat
import subprocess
import time

import pytest

from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import staged_index
from ringfence.sandbox.worktree.history import HistoryReport

pytestmark = pytest.mark.needs_userns


@pytest.fixture
def repo(make_bench):
    def make(name="repo", **options):
        bench = make_bench(name, **options)

        def take(**more) -> HistoryReport:
            request = bench.tree.bundle_request(bench.layer)
            if request is not None:
                quoted = " ".join(f"'{word}'" for word in request.argv)
                bench.box(f"cd '{request.cwd}'; {quoted} || true")
            return bench.tree.take_history(bench.layer, bench.rules, now=1, **more)

        def gate(**more):
            return bench.commit(**more), take(**more)

        bench.take, bench.gate = take, gate
        return bench

    return make


def names(items):
    return [item.name for item in items]


def test_a_commit_arrives_and_the_person_sees_a_clean_tree(repo):
    bench = repo()
    bench.box("echo more >> a.txt; git add a.txt; git commit -qm 'from the box'")
    files, history = bench.gate()
    assert files.clean
    assert history.clean
    assert names(history.moved) == ["refs/heads/main"]
    assert history.index == ""
    assert bench.git("log", "--format=%s") == "from the box\nfirst\n"
    assert bench.git("status", "--porcelain") == ""
    assert bench.git("fsck", "--strict") is not None
    assert bench.box("git log --format=%s; git status --porcelain") == "from the box\nfirst\n"


def test_a_commit_that_git_finds_unsound_is_refused_in_the_words_that_say_why(repo):
    bench = repo()
    bench.box(
        "printf '[submodule \"s\"]\n\tpath = s\n\turl = x\n\tupdate = !id\n' > .gitmodules; git add -A; git commit -qm sub"
    )
    [refused] = bench.gate()[1].refused
    assert refused.name == "refs/heads/main"
    assert refused.reason.startswith("the bundle's objects are not sound: error: object ")
    assert "gitmodulesUpdate: disallowed submodule update setting: !id" in refused.reason


def test_the_layer_keeps_nothing_of_git_afterwards(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one; git tag v1; git branch side")
    bench.gate()
    left = [os.path.join(f, n) for f, _, ns in os.walk(f"{bench.layer.upper}/.git") for n in ns]
    assert left == []
    bench.box("echo 2 >> a.txt; git commit -qam two")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.git("log", "--format=%s") == "two\none\nfirst\n"


def test_branches_tags_and_head_move(repo):
    bench = repo()
    bench.box(
        "git checkout -qb feature; echo f > f; git add f; git commit -qm f; git tag light; git tag -am note heavy"
    )
    _, history = bench.gate()
    assert sorted(names(history.moved)) == ["HEAD", "refs/heads/feature", "refs/tags/heavy", "refs/tags/light"]
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/feature\n"
    assert bench.git("cat-file", "-t", "heavy") == "tag\n"
    assert bench.git("status", "--porcelain") == ""
    assert bench.git("rev-list", "--count", "main") == "1\n"


def test_a_detached_head_and_a_reset_arrive(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one; git checkout -q --detach")
    _, history = bench.gate()
    assert "HEAD" in names(history.moved)
    bench.box("git checkout -q main; git reset -q --hard HEAD~1")
    _, history = bench.gate()
    assert bench.git("log", "--format=%s", "main") == "first\n"
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert bench.git("status", "--porcelain") == ""


def test_commits_arrive_from_a_box_that_goes_on_with_a_branch_without_any(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one; git checkout -q --orphan bare")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main", "HEAD"]
    assert bench.git("log", "--format=%s", "main") == "one\nfirst\n"
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/bare\n"


@pytest.mark.parametrize("leaves", ["git checkout -q -b other", "git checkout -q --detach"])
def test_the_branch_before_is_known_to_the_next_call_and_to_the_person(repo, leaves):
    bench = repo()
    bench.box(leaves)
    bench.gate()
    assert bench.git("rev-parse", "--symbolic-full-name", "@{-1}") == "refs/heads/main\n"
    bench.box("git checkout -q -")
    bench.gate()
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/main\n"


def test_a_deleted_branch_waits_for_a_person_and_its_commits_stay_reachable(repo):
    bench = repo()
    bench.git("branch", "old")
    bench.git("pack-refs", "--all")
    bench.box("git branch -D old")
    _, history = bench.gate()
    assert names(history.held) == ["refs/heads/old"]
    assert "old" in bench.git("branch")
    _, history = bench.gate(approved=["refs/heads/old"])
    assert names(history.moved) == ["refs/heads/old"]
    assert "old" not in bench.git("branch")
    assert bench.git("rev-parse", "refs/ringfence/m-1/deleted/heads/old") == bench.git("rev-parse", "main")


def test_packed_refs_and_gc_in_the_box(repo):
    bench = repo()
    bench.git("branch", "one")
    bench.box("echo 1 >> a.txt; git commit -qam one; git tag t; git gc -q; git pack-refs --all")
    _, history = bench.gate()
    assert sorted(names(history.moved)) == ["refs/heads/main", "refs/tags/t"]
    assert bench.git("fsck") is not None
    assert bench.git("branch", "--format=%(refname:short)") == "main\none\n"


def test_a_first_commit_on_an_empty_repository(tmp_path, repo):
    bench = repo(git=False)
    subprocess.run(["git", "init", "-qb", "main", bench.root], check=True, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    from ringfence.sandbox.worktree.tree import Worktree

    bench.tree = Worktree.open(bench.root, bench.tree._state)
    bench.box("git add -A; git commit -qm first")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.git("log", "--format=%s") == "first\n"
    assert bench.git("status", "--porcelain") == ""


def test_a_branch_that_a_person_moved_is_a_conflict_and_neither_side_is_lost(repo):
    bench = repo()
    bench.box("echo agent > agent; git add agent; git commit -qm agent")
    bench.write("person", "p\n")
    bench.git("add", "person")
    bench.git("commit", "-qm", "person")
    _, history = bench.gate()
    assert names(history.conflicts) == ["refs/heads/main"]
    kept = history.conflicts[0].kept
    assert bench.git("log", "--format=%s", "main") == "person\nfirst\n"
    assert bench.git("log", "--format=%s", kept) == "agent\nfirst\n"
    assert bench.box("git log --format=%s") == "person\nfirst\n"
    assert bench.take() == HistoryReport()


def test_what_the_person_had_staged_stays_staged(repo):
    bench = repo()
    bench.write("mine", "m\n")
    bench.git("add", "mine")
    bench.box("echo more >> a.txt; git commit -qm agent a.txt")
    _, history = bench.gate()
    assert history.index == ""
    assert bench.git("status", "--porcelain") == "A  mine\n"


def test_a_locked_index_is_left_alone_and_told_and_follows_when_the_lock_is_gone(repo, monkeypatch):
    monkeypatch.setattr(staged_index, "_PATIENCE", 0.0)
    bench = repo()
    bench.box("echo more >> a.txt; git commit -qam agent")
    with open(f"{bench.root}/.git/index.lock", "w", encoding="utf-8"):
        pass
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert "lock" in history.index
    assert os.path.exists(f"{bench.root}/.git/index.lock")
    os.unlink(f"{bench.root}/.git/index.lock")
    bench.gate()
    assert bench.git("status", "--porcelain") == ""


def test_a_denied_path_in_history_refuses_the_branch_once_and_the_rest_goes_on(repo):
    bench = repo()
    bench.rules.on("src/", Tier.DENY)
    bench.box(
        "echo ok > ok; git add ok; git commit -qm ok; git branch good; echo bad >> src/b.py; git commit -qam bad; echo x > x"
    )
    _, history = bench.gate()
    assert names(history.refused) == ["refs/heads/main"]
    assert "src/b.py" in history.refused[0].reason
    assert names(history.moved) == ["refs/heads/good"]
    assert bench.read("x") == "x\n"
    assert bench.git("log", "--format=%s", "main") == "first\n"
    again = bench.take()
    assert again.refused == ()
    assert again.told_before == 1
    assert bench.box("git log --format=%s -1") == "bad\n"


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("echo x > sandbox_policy.yaml; git add -A; git commit -qm x; git rm -q sandbox_policy.yaml; git commit -qm y",
         "sandbox_policy.yaml"),
        ("mkdir .claude; echo {} > .claude/settings.json; git add .claude; git commit -qm x", ".claude"),
        ("ln -s /etc/passwd l; git add l; git commit -qm x", "l"),
        ("echo K > .env; git add -f .env; git commit -qm x", ".env"),
        ("echo AKIA123 > k; git add k; git commit -qm x; git rm -q k; git commit -qm y", "k"),
    ],
)  # fmt: skip
def test_what_may_not_be_written_may_not_hide_in_history(repo, script, word):
    bench = repo(policy_hides=lambda p: p == ".env")
    bench.rules.on_content("AKIA", Tier.DENY)
    bench.box(script)
    _, history = bench.gate()
    assert names(history.refused) == ["refs/heads/main"]
    assert word in history.refused[0].reason
    assert bench.git("log", "--format=%s") == "first\n"


def test_ask_holds_a_branch_until_it_is_committed_by_name(repo):
    bench = repo()
    bench.box("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; git add .github; git commit -qm ci")
    _, history = bench.gate()
    assert names(history.held) == ["refs/heads/main"]
    assert bench.git("log", "--format=%s") == "first\n"
    bench.box("true")
    _, history = bench.gate(approved=[".github"])
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.git("log", "--format=%s") == "ci\nfirst\n"
    assert bench.git("status", "--porcelain") == ""


def test_a_new_name_that_would_be_taken_for_another_one_waits(repo):
    bench = repo()
    head = bench.git("rev-parse", "HEAD").strip()
    bench.git("update-ref", "refs/remotes/origin/main", head)
    bench.box(
        f"git branch origin/main {head}; git tag main; git tag {head[:7]}; git update-ref refs/heads/HEAD HEAD;"
        "git update-ref refs/tags/ORIG_HEAD HEAD; git tag v1; git update-ref refs/heads/abc123 HEAD; git tag decade"
    )
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/abc123", "refs/tags/decade", "refs/tags/v1"]
    held = {
        "refs/heads/HEAD",
        "refs/heads/origin/main",
        f"refs/tags/{head[:7]}",
        "refs/tags/ORIG_HEAD",
        "refs/tags/main",
    }
    assert set(names(history.held)) == held
    assert {item.rule for item in history.held} == {"gate/ref-shadows"}
    assert names(bench.gate(approved=["refs/tags/main"])[1].moved) == ["refs/tags/main"]


@pytest.mark.parametrize("name", ["origin/main", "v1", "HEAD", "a" * 40])
def test_a_branch_without_commits_whose_name_would_be_taken_for_another_one_waits(repo, name):
    bench = repo()
    bench.git("tag", "v1")
    bench.git("update-ref", "refs/remotes/origin/main", "HEAD")
    bench.box(f"git symbolic-ref HEAD refs/heads/{name}; echo n > n")
    files, history = bench.gate()
    assert [item.path for item in files.committed] == ["n"]
    assert [(item.name, item.rule) for item in history.held] == [("HEAD", "gate/ref-shadows")]
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert names(bench.gate(approved=["HEAD"])[1].moved) == ["HEAD"]
    assert bench.git("symbolic-ref", "HEAD") == f"refs/heads/{name}\n"


def test_a_link_in_history_may_not_stand_for_a_protected_folder(repo):
    bench = repo()
    bench.box("mkdir c; echo x > c/config.toml; ln -s c .cargo; git add -A; git commit -qm link")
    assert names(bench.gate()[1].refused) == ["refs/heads/main"]


@pytest.mark.parametrize(
    "script",
    [
        "echo x > n; git add n; git commit -qm $'fine\\e]0;title\\a'",
        "echo x > n; git add n; GIT_AUTHOR_NAME=$'\\xe2\\x80\\xaeA' git commit -qm fine",
        "git tag -am $'v\\e[31m' v1",
    ],
)
def test_text_of_a_commit_that_a_terminal_would_obey_waits(repo, script):
    bench = repo()
    bench.box(script)
    _, history = bench.gate()
    assert [item.rule for item in history.held] == ["gate/message-control"]
    assert names(bench.gate(approved=names(history.held))[1].moved) == names(history.held)


def test_what_a_pattern_forbids_in_a_file_it_forbids_in_a_message(repo):
    bench = repo()
    bench.rules.on_content("AKIA", Tier.DENY)
    bench.box("git tag -am 'key AKIAABCDEFGHIJKLMNOP' v1; echo x > n; git add n; git commit -qm 'AKIAABCDEFGHIJKLMNOP'")
    _, history = bench.gate()
    assert set(names(history.refused)) == {"refs/heads/main", "refs/tags/v1"}
    assert not history.moved


def test_nothing_in_a_repository_is_executed(repo, tmp_path):
    """Every configuration, hook, attribute and helper that could run a program is planted in the real repository."""
    bench = repo()
    flag = tmp_path / "flag"
    flag.mkdir()
    run = f"sh -c 'touch {flag}/$0' "
    for hook in ("reference-transaction", "post-index-change", "post-checkout", "update", "post-update", "pre-receive",
                 "post-commit", "post-merge", "pre-auto-gc", "fsmonitor-watchman"):  # fmt: skip
        path = f"{bench.root}/.git/hooks/{hook}"
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f"#!/bin/sh\ntouch {flag}/{hook}\n")
        os.chmod(path, 0o755)
    for key, value in {
        "core.fsmonitor": run + "fsmonitor", "core.sshCommand": run + "ssh", "core.editor": run + "editor",
        "core.pager": run + "pager", "gpg.program": f"{flag}/gpg", "credential.helper": "!" + run + "cred",
        "core.alternateRefsCommand": run + "alternates", "filter.x.clean": run + "clean", "filter.x.smudge": run + "smudge",
        "diff.x.textconv": run + "textconv", "diff.external": run + "external", "merge.x.driver": run + "merge",
        "remote.origin.url": "ext::" + run + "remote", "remote.origin.promisor": "true", "remote.origin.uploadpack": run + "up",
        "extensions.partialClone": "origin", "core.repositoryformatversion": "1", "uploadpack.packObjectsHook": run + "pack",
        "alias.update-ref": "!" + run + "alias", "core.gitProxy": run + "proxy",
    }.items():  # fmt: skip
        bench.git("config", key, value)
    os.makedirs(f"{bench.root}/.git/info", exist_ok=True)
    with open(f"{bench.root}/.git/info/attributes", "w", encoding="utf-8") as stream:
        stream.write("* filter=x diff=x merge=x\n")
    for left in flag.iterdir():
        left.unlink()
    layer = bench.tree.layer(bench.mission)
    script = "git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c filter.x.clean=cat -c filter.x.smudge=cat "
    bench.box(f"echo more >> a.txt; {script} add a.txt; {script} -c core.editor=true commit -qm box")
    for left in flag.iterdir():
        left.unlink()
    request = bench.tree.bundle_request(layer)
    bench.box(" ".join(f"'{w}'" for w in request.argv))
    for left in flag.iterdir():
        left.unlink()
    report = bench.tree.take_history(layer, bench.rules, now=1)
    bench.commit()
    assert list(flag.iterdir()) == []
    assert names(report.moved) == ["refs/heads/main"]


def test_what_the_box_plants_in_its_git_changes_nothing_outside(repo):
    bench = repo()
    bench.box(
        "echo 1 >> a.txt; git commit -qam one; git config core.fsmonitor 'touch /tmp/never'; "
        "echo '#!/bin/sh' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit; mkdir -p .git/info; "
        "echo '* filter=x' > .git/info/attributes; git replace HEAD HEAD~1; mkdir -p .git/objects/info; "
        "echo /etc > .git/objects/info/alternates; git rev-parse HEAD > .git/shallow"
    )
    before = bench.read(".git/config")
    files, history = bench.gate()
    refused = {i.path for i in files.refused}
    assert {".git/config", ".git/hooks/post-commit", ".git/info/attributes", ".git/objects/info/alternates"} <= refused
    assert any(p.startswith(".git/refs/replace") for p in refused)
    assert bench.read(".git/config") == before
    assert not os.path.exists(f"{bench.root}/.git/hooks/post-commit")
    assert not os.path.exists(f"{bench.root}/.git/shallow")
    assert history.moved or history.refused


def bundle(bench, data):
    path = f"{bench.layer.upper}/.git/ringfence.bundle"
    if os.path.exists(path):
        os.unlink(path)
    if isinstance(data, bytes):
        with open(path, "wb") as stream:
            stream.write(data)
    else:
        data(path)


def good_bundle(bench):
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{w}'" for w in request.argv))
    with open(f"{bench.layer.upper}/.git/ringfence.bundle", "rb") as stream:
        return stream.read()


def test_broken_bundles_are_refused_and_move_nothing(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one")
    good = good_bundle(bench)
    start = good.index(b"PACK")
    bad = {
        "cut": good[:-30],
        "flipped": good[: start + 60] + bytes([good[start + 60] ^ 1]) + good[start + 61 :],
        "no header": good[start:],
        "no bundle": b"nonsense",
        "empty": b"",
        "filter": good.replace(b"# v2 git bundle\n", b"# v3 git bundle\n@filter=blob:none\n"),
        "no end": b"# v2 git bundle\n" + b"-" * 5_000_000,
        "a link": lambda p: os.symlink("/etc/passwd", p),
        "a fifo": os.mkfifo,
        "two names": lambda p: (open(p, "wb").close(), os.link(p, p + "2")),
        "too large": lambda p: (open(p, "wb").close(), os.truncate(p, 600 * 1024 * 1024)),
    }
    for name, data in bad.items():
        bundle(bench, data)
        report = bench.tree.take_history(bench.layer, bench.rules, now=1)
        assert not report.moved, name
        assert report.refused or report.told_before, name
        assert bench.git("log", "--format=%s") == "first\n"
    bundle(bench, good)
    assert names(bench.tree.take_history(bench.layer, bench.rules, now=1).moved) == ["refs/heads/main"]


def test_without_a_bundle_the_objects_are_missing_and_nothing_moves(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one")
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert "missing" in report.refused[0].reason


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p '.git/refs/heads/-x'; git rev-parse HEAD > .git/refs/heads/-x/y",
        "git rev-parse HEAD > '.git/refs/heads/a..b'",
        "git rev-parse HEAD > $'.git/refs/heads/a\\nb'",
        "echo nonsense > .git/refs/heads/main",
        "echo 'ref: refs/heads/other' > .git/refs/heads/main",
        "rm .git/refs/heads/main; ln -s /etc/passwd .git/refs/heads/main",
        "rm .git/refs/heads/main; mkfifo .git/refs/heads/main",
        "echo 'ref: ../../etc/passwd' > .git/HEAD",
        "echo 'ref: refs/tags/x' > .git/HEAD",
        "rm .git/HEAD; ln -s /etc/passwd .git/HEAD",
        "head -c 5000000 /dev/zero > .git/packed-refs",
    ],
)
def test_refs_that_git_would_not_write_are_refused(repo, script):
    bench = repo()
    bench.box(script + "; echo f > f", check=False)
    files, history = bench.commit(), bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert names(history.refused) == ["HEAD"]
    assert not history.moved
    assert bench.read("f") == "f\n"
    assert bench.git("log", "--format=%s") == "first\n"
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert files.committed


def test_a_tag_or_branch_may_not_point_to_something_else(repo):
    bench = repo()
    bench.box(
        "git rev-parse HEAD^{tree} > .git/refs/heads/tree; echo f > f; git hash-object -w f > .git/refs/tags/blob"
    )
    request = bench.tree.bundle_request(bench.layer)
    bench.box(" ".join(f"'{w}'" for w in request.argv) + " || true")
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert not report.moved
    assert report.refused


def test_a_stale_index_of_the_layer_never_reverts_a_persons_commit(repo):
    bench = repo()
    bench.box("git status; touch a.txt; git add a.txt; git status")
    bench.write("person", "p\n")
    bench.git("add", "person")
    bench.git("commit", "-qm", "person")
    bench.gate()
    bench.box("echo x > x; git add x; git commit -qm agent")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert bench.git("ls-files", "person") == "person\n"
    assert bench.git("show", "--stat", "--format=%s").count("person") == 0


def test_objects_handed_over_are_read_only_and_the_owners(repo):
    bench = repo()
    bench.box("echo 1 >> a.txt; git commit -qam one")
    bench.gate()
    packs = os.listdir(f"{bench.root}/.git/objects/pack")
    assert sorted(p.rpartition(".")[2] for p in packs) == ["idx", "pack"]
    for name in packs:
        info = os.stat(f"{bench.root}/.git/objects/pack/{name}")
        assert stat.S_IMODE(info.st_mode) == 0o444
        assert info.st_uid == os.stat(bench.root).st_uid
    assert not os.path.exists(os.path.dirname(bench.layer.upper) + "/quarantine.git")


def test_stale_lock_files_of_a_killed_git_do_not_block_the_next_call(repo):
    bench = repo()
    bench.box("touch .git/index.lock .git/refs/heads/main.lock .git/HEAD.lock")
    bench.gate()
    bench.box("echo 1 >> a.txt; git commit -qam one")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("mkdir -p r/objects r/refs; touch r/objects/k r/refs/k; echo 'ref: x' > r/HEAD", "gate/unexplained"),
        ("mkdir r; echo 'ref: x' > r/HEAD; git add -A; git commit -qm r; echo ../s > r/commondir", "gate/unexplained"),
        ("mkdir SRC; echo x > SRC/b.py", "gate/case-collision"),
        ("echo x > src/B.py; git add -A; git commit -qm b; git rm -q src/B.py", "gate/case-collision"),
    ],
)
def test_a_commit_makes_no_repository_and_no_second_spelling(repo, script, rule):
    bench = repo()
    bench.box(f"{script}; git add -A; git commit -qm x")
    _, history = bench.gate()
    assert [(i.name, i.rule) for i in history.refused] == [("refs/heads/main", rule)]
    assert bench.git("log", "--format=%s") == "first\n"


def test_a_commit_may_change_a_spelling_and_work_beside_an_old_collision(repo):
    bench = repo()
    bench.write("x", "1")
    bench.write("X", "1")
    bench.git("add", "-A")
    bench.git("commit", "-qm", "both")
    bench.box("cp -r src Src; git rm -rqf src; echo 2 > x; echo n > n; git add -A; git commit -qm y")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]


ODD = ["refs/heads/a/-b", "refs/heads/caf\udce9", "refs/heads/a\u00adb", "refs/heads/" + "x/" * 40 + "y" * 180]


@pytest.mark.parametrize("loose", [True, False])
def test_a_persons_odd_branches_stand_in_the_way_of_nothing(repo, loose):
    bench = repo()
    for name in ODD:
        subprocess.run(["git", "update-ref", name, "HEAD"], cwd=bench.root, check=True, timeout=60)
    if not loose:
        bench.git("pack-refs", "--all")
    bench.box("echo 1 >> a.txt; git commit -qam one; git pack-refs --all; git branch new")
    _, history = bench.gate()
    assert history.clean
    assert sorted(names(history.moved)) == ["refs/heads/main", "refs/heads/new"]
    assert len(bench.git("for-each-ref", "--format=%(objectname)", "refs/heads").split()) == len(ODD) + 2


def test_a_branch_that_names_another_one_follows_it(repo):
    bench = repo()
    bench.git("symbolic-ref", "refs/heads/master", "refs/heads/main")
    bench.git("checkout", "-q", "master")
    bench.box("echo 1 >> a.txt; git commit -qam one")
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main"]
    assert history.index == ""
    assert bench.git("symbolic-ref", "refs/heads/master") == "refs/heads/main\n"
    assert bench.git("log", "--format=%s", "master") == "one\nfirst\n"
    assert bench.git("status", "--porcelain") == ""


def test_a_box_makes_no_branch_that_names_another_one(repo):
    bench = repo()
    bench.git("symbolic-ref", "refs/heads/master", "refs/heads/main")
    bench.git("branch", "side")
    bench.box("git symbolic-ref refs/heads/master refs/heads/side")
    _, history = bench.gate()
    assert names(history.refused) == ["HEAD"]
    assert bench.git("symbolic-ref", "refs/heads/master") == "refs/heads/main\n"


def test_a_reftable_is_refused_with_what_to_do(repo):
    bench = repo()
    bench.write(".git/HEAD", "ref: refs/heads/.invalid\n")
    bench.box("touch .git/reftable-anything")
    report = bench.tree.take_history(bench.layer, bench.rules, now=1)
    assert "git refs migrate" in report.refused[0].reason


def test_a_tag_of_something_else_than_a_commit_is_refused_and_the_rest_goes_through(repo):
    """No path names such content, so nobody would judge it."""
    bench = repo()
    bench.rules.on_content("AKIA", Tier.DENY)
    bench.box(
        "o=$(echo AKIA123 | git hash-object -w --stdin); git tag bare $o; git tag -a -m t told $o; git tag -a -m t twice told; "
        "git tag -a -m t whole HEAD^{tree}; echo 1 >> a.txt; git commit -qam one; git tag -a -m t fine"
    )
    _, history = bench.gate()
    assert names(history.moved) == ["refs/heads/main", "refs/tags/fine"]
    assert names(history.refused) == [f"refs/tags/{name}" for name in ("bare", "told", "twice", "whole")]
    assert bench.git("tag") == "fine\n"


@pytest.mark.parametrize(("old", "new"), [("feature", "feature/x"), ("feature/x", "feature"), ("a/b/c", "a/b")])
@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_renamed_to_a_name_that_needs_its_place_waits_with_it(repo, old, new, packed):
    bench = repo()
    bench.git("branch", old)
    if packed:
        bench.git("pack-refs", "--all", "--prune")
    time.sleep(0.02)  # more than a tick of the clock by which files get their times
    bench.box(f"git checkout -q {old}; git branch -m {old} {new}; echo z > z; git add z; git commit -qm z")
    _, history = bench.gate()
    assert sorted(names(history.held)) == ["HEAD", *sorted((f"refs/heads/{old}", f"refs/heads/{new}"))]
    assert not history.conflicts
    assert bench.box("git log -1 --format=%s; git branch --show-current") == f"z\n{new}\n"
    _, history = bench.gate(approved=[f"refs/heads/{old}"])
    assert history.clean
    assert bench.git("branch", "--format=%(refname:short)").split() == sorted((new, "main"))
    assert bench.git("status", "--porcelain") == ""
