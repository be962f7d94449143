"""What a box may not see of a worktree."""

import json
import os
import subprocess
import time

import pytest

from ringfence.model.errors import BoxError
from ringfence.policy.policy import Policy
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
