"""What a box may not see of a worktree."""

import errno
import json
import os
import subprocess
import time

import pytest

from ringfence.model.errors import BoxError
from ringfence.policy.policy import Policy
from ringfence.sandbox.gitconfig import without_users
from ringfence.supervisor.hidden import Hidden

TEXT = "version: 1\nfail_closed: true\nfiles:\n  read: {allow: ['**'], deny: ['**/*.pem', 'secrets/']}\n"


@pytest.fixture
def tree(tmp_path):
    for name in ("src/a.py", "key.pem", "deep/down/key.pem", "secrets/x", ".env", "app/.env.local", ".env.example"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def policy(tree, text=TEXT):
    return Policy.parse(text, root=str(tree))


def test_denied_files_and_env_files_are_masked(tree):
    masked, _ = Hidden().of(policy(tree))
    assert set(masked) == {"key.pem", "deep/down/key.pem", "secrets", ".env", "app/.env.local"}


def test_an_env_file_that_the_policy_names_is_seen(tree):
    masked, _ = Hidden().of(policy(tree, TEXT.replace("allow: ['**']", "allow: ['**', 'app/.env.local']")))
    assert "app/.env.local" not in masked
    assert ".env" in masked


def test_a_file_made_right_after_a_look_is_masked_at_the_next_one(tree):
    hidden, found = Hidden(), policy(tree)
    for number in range(30):
        hidden.of(found)
        (tree / "src" / f"{number}.pem").write_text("x")
        assert f"src/{number}.pem" in hidden.of(found)[0]


def test_git_configurations_are_shown_without_credentials_wherever_they_lie(tree):
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    subprocess.run(["git", "init", "-q", "--bare", str(tree / "vendor" / "thing.git")], check=True)
    subprocess.run(["git", "init", "-q", str(tree / "nested")], check=True)
    secret = '[remote "o"]\n\turl = https://me:planted@git.example.org/x\n[credential]\n\thelper = store\n'
    places = [".git/config", "vendor/thing.git/config", "nested/.git/config", ".git/modules/a/b/config"]
    (tree / ".git/modules/a/b").mkdir(parents=True)
    (tree / ".git/modules/a/b/HEAD").write_text("ref: refs/heads/main\n")
    for place in places:
        with (tree / place).open("a") as file:
            file.write(secret)
    _, replaced = Hidden().of(policy(tree))
    shown = dict(replaced)
    assert set(places) <= set(shown)
    for place in places:
        assert b"planted" not in shown[place]
        assert b"helper" not in shown[place]
        assert b"git.example.org" in shown[place]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every folder")
def test_a_folder_that_cannot_be_looked_through_refuses(tree):
    (tree / "src").chmod(0)
    try:
        with pytest.raises(BoxError, match="cannot be looked through"):
            Hidden().of(policy(tree))
    finally:
        (tree / "src").chmod(0o755)


def test_a_git_configuration_that_is_a_link_is_masked(tree):
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    (tree / ".git/config").unlink()
    (tree / ".git/config").symlink_to("/etc/hostname")
    masked, _ = Hidden().of(policy(tree))
    assert ".git/config" in masked


@pytest.mark.needs_userns
def test_a_hidden_file_that_a_person_makes_while_a_command_runs_is_told(cli):
    (cli.project / "app").mkdir()
    (cli.project / "app" / "b.txt").write_text("x")
    (cli.project / ".env").write_text("there before")
    process = cli.start("run", "--report", str(cli.root / "report"), "--", "cat", "-", stdin=subprocess.PIPE)
    process.stdin.write("up\n")
    process.stdin.flush()
    assert process.stdout.readline() == "up\n"
    (cli.project / ".env").write_text("changed")
    (cli.project / "app" / ".env").write_text("new")
    (cli.project / "app" / "c.txt").write_text("new")
    time.sleep(1)  # it runs for longer than a moment
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "'app/.env' came while this ran" in errors
    assert "'.env' came" not in errors
    report = json.loads((cli.root / "report").read_text())
    assert [seen["detail"] for seen in report["execution"]["observations"] if seen["kind"] == "hidden-late"] == [
        "app/.env"
    ]


PULLED = "0 1 P <p@example.org> 1700000000 +0000\tpull https://me:planted@git.example.org/p.git main: Fast-forward\n"


def plant_addresses(git):
    """A password in each place where git notes an address, and in files that people and tools keep beside its own."""
    for name in ("logs/HEAD", "logs/refs/heads/deep/main", "FETCH_HEAD", "remotes/old", "branches/older"):
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).write_text(PULLED)
    for name in ("credentials", "config.bak", ".config.swp", "config~", "my-token"):
        (git / name).write_text("planted")


def of_git(found, below=""):
    return {name.removeprefix(below) for name in found}


def test_what_git_notes_of_addresses_is_shown_without_passwords_and_saved_log_ins_not_at_all(tree):
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    (tree / ".git/modules/lib").mkdir(parents=True)
    (tree / ".git/modules/lib/HEAD").write_text("ref: refs/heads/main\n")
    for git in (tree / ".git", tree / ".git/modules/lib"):
        plant_addresses(git)
    masked, replaced = Hidden().of(policy(tree))
    for below in (".git/", ".git/modules/lib/"):
        assert of_git(masked, below) >= {"credentials", "config.bak", ".config.swp", "config~", "my-token"}
        shown = {name: text for name, text in replaced if name.startswith(f"{below}logs")}
        assert set(shown) == {f"{below}logs/HEAD", f"{below}logs/refs/heads/deep/main"}
        assert all(text == PULLED.replace("me:planted@", "").encode() for text in shown.values())
        assert {f"{below}FETCH_HEAD", f"{below}remotes/old", f"{below}branches/older"} <= {name for name, _ in replaced}


def test_a_log_without_passwords_is_git_s_own_and_one_that_gets_some_is_shown_anew(tree):
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    log = tree / ".git/logs/HEAD"
    log.parent.mkdir(exist_ok=True)
    log.write_text("0 1 P <p@example.org> 1700000000 +0000\tcommit: see ssh://git@git.example.org/p\n")
    hidden = Hidden()
    assert ".git/logs/HEAD" not in dict(hidden.of(policy(tree))[1])
    with log.open("a") as file:
        file.write(PULLED)
    shown = dict(hidden.of(policy(tree))[1])[".git/logs/HEAD"]
    assert b"planted" not in shown
    assert shown.count(b"\n") == 2


def test_a_password_with_an_at_sign_in_it_is_left_out_whole():
    assert without_users("url = https://me:pl@nted@git.example.org/a@b") == "url = https://git.example.org/a@b"


def test_a_great_many_logs_of_remotes_are_masked_together(tree, monkeypatch):
    monkeypatch.setattr("ringfence.sandbox.worktree.git_view.MANY_LOGS", 9)
    logs = tree / ".git/logs/refs/remotes/origin/deep"
    logs.mkdir(parents=True)
    for n in range(7):
        (logs / str(n)).write_text(PULLED)
    masked, replaced = Hidden().of(policy(tree))
    assert ".git/logs/refs/remotes" not in masked
    assert len([name for name, _ in replaced if "/remotes/" in name]) == 7
    (logs / "7").write_text(PULLED)
    masked, replaced = Hidden().of(policy(tree))
    assert ".git/logs/refs/remotes" in masked
    assert not [name for name, _ in replaced if "/remotes/" in name]


def no_looking(monkeypatch, name, fault):
    """Every folder of that name says this when it is listed."""
    for verb in ("scandir", "listdir"):
        real = getattr(os, verb)

        def refuse(path, real=real):
            if os.path.basename(path) == name:
                raise OSError(fault, os.strerror(fault), path)
            return real(path)

        monkeypatch.setattr(os, verb, refuse)


@pytest.mark.parametrize("name", ["logs", "modules", "heads"])
def test_a_folder_of_git_that_is_closed_to_us_is_masked_whole(tree, monkeypatch, name):
    for folder in ("logs/refs/heads", "modules/lib"):
        (tree / ".git" / folder).mkdir(parents=True)
    no_looking(monkeypatch, name, errno.EACCES)
    masked, _ = Hidden().of(policy(tree))
    assert {".git/logs", ".git/modules", ".git/logs/refs/heads"} & set(masked) == {
        {"heads": ".git/logs/refs/heads"}.get(name, f".git/{name}")
    }


@pytest.mark.parametrize("name", [".git", "logs", "remotes", "modules"])
@pytest.mark.parametrize("fault", [errno.EIO, errno.EMFILE])
def test_a_folder_of_git_that_cannot_be_looked_at_refuses_the_box(tree, monkeypatch, name, fault):
    for folder in ("logs/refs/remotes", "modules/lib"):
        (tree / ".git" / folder).mkdir(parents=True)
    no_looking(monkeypatch, name, fault)
    with pytest.raises(BoxError, match="cannot be looked through") as told:
        Hidden().of(policy(tree))
    assert told.value.remedy


def test_of_a_log_that_grows_one_state_is_kept(tree):
    from ringfence.sandbox.worktree import git_view

    log = tree / ".git/logs/HEAD"
    log.parent.mkdir(parents=True)
    for _ in range(5):
        with log.open("a") as file:
            file.write(PULLED)
        Hidden().of(policy(tree))
    assert [path for path in git_view._known if path == str(log)] == [str(log)]
    assert git_view._known[str(log)][1].count(b"\n") == 5
