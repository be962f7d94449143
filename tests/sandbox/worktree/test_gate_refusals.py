"""What the gate refuses by name whatever the policy says, while the rest of the commit goes through."""

import os
import socket
import subprocess

import pytest

from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import judge

pytestmark = pytest.mark.needs_userns

ATTACKS = {
    "set-user-ID": ("cp a.txt suid; chmod 4755 suid", "suid", "set-id"),
    "set-group-ID": ("cp a.txt sgid; chmod 2755 sgid", "sgid", "set-id"),
    "FIFO": ("mkfifo pipe", "pipe", "fifo"),
    "hard link": ("echo x > one; ln one two", "one", "hard-link"),
    "link to /etc": ("ln -s /etc/passwd l", "l", "link-outside"),
    "link upwards": ("ln -s ../../x src/l", "src/l", "link-outside"),
    "link out and back": ("ln -s ../repo/a.txt l", "l", "link-outside"),
    "link through a link": ("ln -s src d; ln -s d/../../x l2", "l2", "link-outside"),
    "link loop": ("ln -s l1 l2; ln -s l2 l1", "l1", "link-outside"),
    "link to the policy": ("touch sandbox_policy.yaml; ln -s ../sandbox_policy.yaml src/p", "src/p", "link-protected"),
    "link to .git": ("ln -s .git/config c", "c", "link-protected"),
    "link to a hidden path": ("ln -s .env c", "c", "link-hidden"),
    "hidden path written": ("echo K=1 > .env", ".env", "hidden"),
    "policy": ("echo x > sandbox_policy.yaml", "sandbox_policy.yaml", "protected/policy-file"),
    "policy in a folder": ("echo x > src/SANDBOX_POLICY.yaml", "src/SANDBOX_POLICY.yaml", "protected/policy-file"),
    "hook": ("mkdir -p .git/hooks; echo x > .git/hooks/post-commit", ".git/hooks/post-commit", "protected/git-hooks"),
    "git config": ("echo x >> .git/config", ".git/config", "protected/git-config"),
    "alternates": ("mkdir -p .git/objects/info; echo /x > .git/objects/info/alternates", ".git/objects/info/alternates",
                   "protected/git-alternates"),
    "grafts": ("mkdir -p .git/info; echo x > .git/info/grafts", ".git/info/grafts", "protected/git-info"),
    "replace ref": ("mkdir -p .git/refs/replace; echo x > .git/refs/replace/aa", ".git/refs/replace/aa", "protected/git-replace"),
    "submodule's git": ("mkdir -p .git/modules/x; echo x > .git/modules/x/config", ".git/modules/x/config", "protected/git-modules"),
    ".git renamed": ("mv .git g && mkdir .git && echo evil > .git/config", ".git", "unexplained"),
    ".git removed": ("rm -rf .git", ".git", "protected/git-directory"),
    "nested repository": ("mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/pre-commit", "sub/.git", "protected/git-directory"),
    "nested git file": ("echo 'gitdir: /tmp/x' > src/.git", "src/.git", "protected/git-directory"),
    ".GIT": ("mkdir .GIT; echo x > .GIT/config", ".GIT", "protected/git-lookalike"),
    ".git with a zero-width sign": ("mkdir $'.g\\xe2\\x80\\x8cit'; touch $'.g\\xe2\\x80\\x8cit/config'", ".g\u200cit", "protected/git-lookalike"),
    "bare repository": ("git init -q --bare src/r", "src/r/config", "unexplained"),
    "repository with its common part elsewhere": ("mkdir r; echo 'ref: x' > r/HEAD; echo ../s > r/commondir", "r/commondir", "unexplained"),
    "bare repository in another spelling": ("mkdir -p r/objects r/refs; echo x > r/head; touch r/objects/k r/refs/k", "r/head", "unexplained"),
    ".git with a letter that case folding ignores": ("mkdir $'.g\\xcd\\x8fit'; touch $'.g\\xcd\\x8fit/config'", ".g\u034fit", "git-lookalike"),
    ".git before a backslash": ("touch '.git\\hooks\\post-commit'", ".git\\hooks\\post-commit", "git-lookalike"),
    "agent settings": ("mkdir .claude; echo {} > .claude/settings.json", ".claude/settings.json", "protected/agent-settings"),
    "MCP": ("echo {} > src/.mcp.json", "src/.mcp.json", "protected/agent-settings"),
    "editor task": ("mkdir src/.vscode; echo {} > src/.vscode/tasks.json", "src/.vscode/tasks.json", "protected/editor-tasks"),
    "direnv": ("echo evil > .envrc", ".envrc", "protected/start-file"),
    "link for a folder of build settings": ("mkdir c; echo x > c/config.toml; ln -s c .cargo", ".cargo", "link-stands-for"),
    "link for the forge's folder": ("mkdir -p c/workflows; echo x > c/workflows/x.yml; ln -s c .GitHub", ".GitHub", "link-stands-for"),
    "listed name in another spelling": ("echo x > $'.np\\xe2\\x80\\x8bmrc '", ".np\u200bmrc ", "protected/listed"),
    "short name of .gitmodules": ("echo x > GITMOD~1; echo x > GITMODULES~1", "GITMODULES~1", "protected/git-lookalike"),
    "name with an escape": ("echo x > $'a\\x1b[31m'", "a\x1b[31m", "protected/name-control"),
    "name that turns round": ("echo x > $'a\\xe2\\x80\\xaegpj.exe'", "a\u202egpj.exe", "protected/name-control"),
    "case collision": ("echo x > A.TXT", "A.TXT", "case-collision"),
    "case collision of a folder": ("mkdir SRC; echo x > SRC/b.py", "SRC/b.py", "case-collision"),
    "case collision within the change": ("mkdir -p Q q; echo x > Q/a; echo x > q/a", "q/a", "case-collision"),
    "collision by a variation sign": ("echo x > $'a\\xef\\xb8\\x8f.txt'", "a\ufe0f.txt", "case-collision"),
    "too large": ("truncate -s 300M big", "big", "too-large"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_refused_by_name_and_the_rest_applied(make_bench, name):
    script, path, rule = ATTACKS[name]
    bench = make_bench(policy_hides=lambda p: p.rpartition("/")[2] == ".env")
    with open(f"{bench.root}/.env", "w", encoding="utf-8") as stream:
        stream.write("SECRET=1\n")
    before = bench.snapshot()
    head = bench.read(".git/config")
    bench.box(f"{script}\necho fine > fine.txt")
    report = bench.commit(approved=["."])
    refused = {item.path: item for item in report.refused}
    assert path in refused, (sorted(refused), [i.path for i in report.committed])
    assert rule in refused[path].rule
    assert refused[path].reason
    assert bench.read("fine.txt") == "fine\n"
    assert bench.read(".git/config") == head
    assert not os.path.exists(f"{bench.root}/.git/hooks/post-commit")
    after = bench.snapshot()
    assert after.get(path) == before.get(path)
    assert bench.git("status", "--porcelain", "--ignored") is not None


def test_a_folder_without_git_does_not_become_a_repository(make_bench):
    bench = make_bench(git=False)
    bench.box("echo 'ref: refs/heads/m' > HEAD; mkdir objects; echo x > objects/k; echo f > fine")
    bench.commit()
    bench.box("mkdir refs; echo x > refs/k; echo '[core] fsmonitor = evil' > config")
    report = bench.commit()
    assert {item.path for item in report.refused} == {"refs", "config"}
    assert bench.read("fine") == "f\n"


def test_a_link_counts_from_what_stays_where_the_change_on_its_way_waits(bench, tmp_path):
    os.symlink(tmp_path, f"{bench.root}/ext")
    os.symlink("src", f"{bench.root}/cur")
    bench.rules.on("ext", Tier.ASK)
    bench.box(
        "rm ext; mkdir ext; echo 1 > ext/f; ln -s ext/secret x; ln -sfn src/deep cur; ln -s cur/c.py y; ln -s y z"
    )
    report = bench.commit()
    assert [(item.path, item.rule) for item in report.refused] == [("x", "gate/link-outside")]
    assert {item.path for item in report.committed} == {"cur", "y", "z"}
    assert not os.path.lexists(f"{bench.root}/x")


def test_a_new_spelling_waits_while_the_old_one_stays(bench):
    bench.rules.on("a.txt", Tier.ASK).on("src/deep", Tier.ASK)
    bench.box("mv a.txt A.txt; mv src/deep src/Deep; mv run.sh Run.sh")
    report = bench.commit()
    assert {item.path for item in report.committed} == {"run.sh", "Run.sh"}
    assert {item.path for item in report.held} == {"a.txt", "A.txt", "src/deep/c.py", "src/Deep/c.py"}
    assert len(bench.commit(approved=["."]).committed) == 4
    assert os.listdir(f"{bench.root}/src/Deep") == ["c.py"]


def test_names_that_differ_by_case_already_stay_writable(bench):
    bench.write("X/a", "1")
    bench.write("x/a", "1")
    bench.box("echo 1 > X/n; echo 2 > x/n; echo 3 > x/a")
    assert {item.path for item in bench.commit().committed} == {"X/n", "x/n", "x/a"}


def test_a_name_that_a_program_takes_for_an_option_waits_for_a_person(bench):
    bench.box("echo x > ./--checkpoint-action=exec=sh; mkdir ./-x; echo x > ./-x/f")
    assert {item.path for item in bench.commit().held} == {"--checkpoint-action=exec=sh", "-x/f"}


def test_no_other_user_of_the_host_may_write_what_a_box_left(bench):
    bench.write("open/shared.txt", "x\n")
    os.chmod(f"{bench.root}/open", 0o1777)
    bench.box(
        "umask 0; echo x > new; mkdir made; echo x > made/f; chmod 777 src a.txt; echo y > open/more; chmod 1777 open"
    )
    report = bench.commit()
    assert {(item.path, item.rule) for item in report.refused} == {("a.txt", "gate/opens"), ("src", "gate/opens")}
    for path in ("new", "made", "made/f", "open/more", "src", "a.txt"):
        assert not os.stat(f"{bench.root}/{path}").st_mode & 0o002, path
    assert os.stat(f"{bench.root}/open").st_mode & 0o7777 == 0o1777


def test_ci_files_wait_for_a_person_at_least(bench):
    bench.box("mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo y > .gitlab-ci.yml")
    report = bench.commit()
    assert sorted(i.path for i in report.held) == [".github/workflows/ci.yml", ".gitlab-ci.yml"]
    report = bench.commit(only=[".github"], approved=[".github"])
    assert [i.path for i in report.committed] == [".github/workflows/ci.yml"]


def test_a_socket_left_in_the_tree_is_refused(bench):
    bench.box("true")
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(bench.layer.upper, os.O_RDONLY)
    server.bind(f"/proc/self/fd/{folder}/s")
    server.close()
    os.close(folder)
    report = bench.commit()
    assert [(i.path, i.rule) for i in report.refused] == [("s", "gate/socket")]


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_refused(bench):
    bench.box("true")
    os.mknod(f"{bench.layer.upper}/mem", 0o20666, os.makedev(1, 1))
    report = bench.commit()
    assert [(i.path, i.rule) for i in report.refused] == [("mem", "gate/device")]


def test_a_redirected_folder_is_refused(bench):
    bench.box("mkdir d; echo x > d/x")
    try:
        os.setxattr(f"{bench.layer.upper}/d", "user.overlay.redirect", b"/.git/hooks")
    except OSError:
        pytest.fail("the file system of the state folder must know user attributes")
    report = bench.commit()
    assert [(i.path, i.rule) for i in report.refused] == [("d/x", "gate/unexplained")]


def test_a_file_whose_content_lies_elsewhere_is_refused(bench):
    bench.box("echo x > x")
    os.setxattr(f"{bench.layer.upper}/x", "user.overlay.metacopy", b"")
    report = bench.commit()
    assert [i.path for i in report.refused] == ["x"]
    assert not os.path.exists(f"{bench.root}/x")


def test_a_whiteout_over_a_hidden_file_does_not_delete_it(make_bench):
    bench = make_bench(policy_hides=lambda p: p == "src/secret.env")
    bench.write("src/secret.env", "S=1\n")
    bench.box("rm -r src")
    report = bench.commit()
    assert bench.read("src/secret.env") == "S=1\n"
    assert [i.path for i in report.refused] == ["src/secret.env"]
    assert not os.path.exists(f"{bench.root}/src/b.py")


def test_an_unreadable_folder_is_named_and_the_rest_applied(bench):
    bench.box("mkdir locked; echo x > locked/x; chmod 000 locked; echo f > f")
    report = bench.commit()
    assert "f" in [i.path for i in report.committed]
    assert "f" not in [i.path for i in report.refused]


def test_very_deep_folders_are_refused(bench):
    bench.box("d=x; for i in $(seq 120); do d=$d/y; done; mkdir -p $d; echo x > $d/f; echo f > f")
    report = bench.commit()
    assert bench.read("f") == "f\n"
    assert any("deeper" in i.reason for i in report.refused)


def test_the_real_tree_cannot_be_reached_through_a_link_that_was_there(bench, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    bench.box("mkdir -p dir/sub; echo x > dir/sub/f")
    os.symlink(outside, f"{bench.root}/dir")
    report = bench.commit()
    assert not list(outside.iterdir())
    assert report.committed == ()


def test_folders_nested_without_end_can_be_removed(bench):
    bench.box(
        "python3 - <<'E'\nimport os\nfor n in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()\n"
        "os.mkdir('deep-0')\nE\necho f > f"
    )
    report = bench.commit()
    assert bench.read("f") == "f\n"
    assert any("deeper" in i.reason for i in report.refused)
    bench.tree.discard(bench.layer)
    bench.tree.sweep()
    assert bench.tree.changes(bench.layer) == ()
    assert not os.path.exists(bench.tree._bin)


def test_more_changes_than_anybody_looks_at_are_refused_in_one_line(bench, monkeypatch):
    from ringfence.sandbox.worktree import tree
    from ringfence.sandbox.worktree.walk import Walk

    real = tree.Walk
    monkeypatch.setattr(tree, "Walk", lambda **options: real(**{**options, "limit": 10}))
    bench.box("for i in $(seq 30); do echo $i > m$i; done")
    report = bench.commit()
    assert len(report.committed) == 10
    assert [i.path for i in report.refused] == ["."]
    monkeypatch.undo()
    assert Walk().limit == 100_000
    assert len(bench.commit().committed) == 20


@pytest.mark.parametrize("mode", ["000", "100", "400", "600"])
def test_folders_that_the_box_closed_to_everybody_can_be_gated_discarded_and_ended(bench, mode):
    """Also half closed: of names that can be listed and not looked up nothing is known."""
    bench.box(
        "echo 2 > a.txt; echo 2 > src/b.py; echo 1 > src/deep/x; mkdir n; echo 1 > n/x; "
        f"chmod {mode} src/deep n; chmod {mode} src; chmod {mode} .",
        check=False,
    )
    report = bench.commit()
    assert "a.txt" in [item.path for item in report.committed]
    bench.tree.discard(bench.layer, ["src/deep/x"])
    assert "src/deep/x" not in [change.path for change in bench.tree.changes(bench.layer)]
    bench.tree.discard(bench.layer)
    assert bench.tree.changes(bench.layer) == ()
    assert "a.txt" in bench.box("ls")
    bench.tree.end(bench.layer)
    bench.tree.sweep()


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o600])
def test_a_folder_of_the_real_tree_that_is_closed_is_named_and_the_rest_applied(bench, mode):
    bench.write("closed/there", "there\n")
    os.chmod(f"{bench.root}/closed", mode)
    bench.box("chmod 755 closed; echo 1 > closed/x; echo 2 > a.txt")
    report = bench.commit()
    assert "a.txt" in [item.path for item in report.committed]
    root = os.geteuid() == 0  # nothing is closed to root
    assert [(item.path, item.rule) for item in report.refused] == ([] if root else [("closed", "gate/unexplained")])
    os.chmod(f"{bench.root}/closed", 0o755)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount where the gate sees it")
@pytest.mark.parametrize("place", ["data", "src"])
def test_a_folder_that_something_is_mounted_on_is_named_and_the_rest_applied(bench, place):
    os.makedirs(f"{bench.root}/{place}", exist_ok=True)
    bench.box(f"echo 1 > {place}/x; echo 2 > a.txt")
    layer = bench.layer
    subprocess.run(["mount", "-t", "tmpfs", "ours", f"{bench.root}/{place}"], check=True, timeout=60)
    try:
        bench.write(f"{place}/theirs", "t\n")
        report = bench.commit()
        assert [item.path for item in report.committed] == ["a.txt"]
        assert [item.path for item in report.refused] == [place]
        assert "mounted here" in report.refused[0].reason
        assert os.listdir(f"{bench.root}/{place}") == ["theirs"]
        assert place in bench.tree.diff(layer)
        bench.tree.discard(layer, [f"{place}/x"])
        bench.tree.end(layer)
    finally:
        subprocess.run(["umount", f"{bench.root}/{place}"], check=True, timeout=60)


def test_files_of_holes_are_bounded_together(bench, monkeypatch):
    """They take no room in a box, whose disk is limited, and all that they claim in the tree, whose disk is not."""
    monkeypatch.setattr(judge, "MAX_HOLES", 1 << 20)
    bench.box("for i in 1 2 3; do truncate -s 500K hole$i; done; head -c 2000000 /dev/urandom > full")
    report = bench.commit()
    assert [i.path for i in report.committed] == ["full", "hole1", "hole2"]
    assert [(i.path, i.rule) for i in report.refused] == [("hole3", "gate/sparse")]
    assert [i.path for i in bench.commit().committed] == ["hole3"]


def test_the_folder_in_which_commits_are_prepared_is_not_the_boxs_to_make(make_bench):
    bench = make_bench(git=False)
    bench.box("mkdir .ringfence-stage-m-1 .ringfence-STAGE-m-2; echo x > .ringfence-stage-m-1/0; echo x > n")
    report = bench.commit()
    assert [i.path for i in report.committed] == ["n"]
    assert {i.rule for i in report.refused} == {"protected/stage"}
    bench.box("echo y > n")
    assert [i.path for i in bench.commit().committed] == ["n"]
