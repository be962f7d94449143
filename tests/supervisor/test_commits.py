"""Commits made in a box: the person and the next call see them, and hooks or configuration written there never run."""

import subprocess

import pytest

pytestmark = pytest.mark.needs_userns


def git(project, *words):
    done = subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def committing(cli):
    policy = cli.project / "sandbox_policy.yaml"
    policy.write_text(
        policy.read_text().replace(
            '- argv_prefix: ["git", "status"]', '- argv_prefix: ["git", ["status", "add", "commit", "log"]]'
        )
    )
    git(cli.project, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qam", "policy")
    assert cli("policy", "trust", "--yes").returncode == 0
    return cli


def test_a_commit_made_in_the_box_is_the_repositorys(committing):
    committing.task("echo new > made.txt; git add made.txt; git commit -qm 'made in a box'\n")
    report = committing.json("run", "--json", "--", "sh", "task.sh")
    assert report["exit"] == 0, report
    assert [item["name"] for item in report["gate"]["history"]["moved"]] == ["refs/heads/main"], report["gate"]
    assert git(committing.project, "log", "-1", "--format=%s") == "made in a box"
    assert (committing.project / "made.txt").read_text() == "new\n"
    assert git(committing.project, "status", "--porcelain", "--", "made.txt") == ""
    assert "made in a box" in committing("run", "-c", "git log -1 --format=%s").stdout
    assert git(committing.project, "fsck", "--strict") == ""


def test_a_hook_written_in_the_box_runs_neither_in_the_gate_nor_later(committing, tmp_path):
    marker = tmp_path / "owned"
    committing.task(
        f"printf '#!/bin/sh\\ntouch {marker}\\n' > .git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction\n"
        f"git config core.fsmonitor 'touch {marker}'; echo x > y.txt; git add y.txt; git commit -qm two\n"
    )
    committing("run", "--", "sh", "task.sh")
    git(committing.project, "status")
    assert not marker.exists()
    assert "fsmonitor" not in (committing.project / ".git" / "config").read_text()


def test_a_commit_that_changes_the_policy_is_left_out(committing):
    before = git(committing.project, "rev-parse", "HEAD")
    committing.task("echo '# wider' >> sandbox_policy.yaml; git add -A; git commit -qm 'sneak'\n")
    report = committing.json("run", "--json", "--", "sh", "task.sh")
    assert git(committing.project, "rev-parse", "HEAD") == before
    assert report["gate"]["history"]["refused"], report["gate"]


@pytest.mark.parametrize("verb", [("discard", "--all"), ("end",)])
@pytest.mark.parametrize("again", [False, True])
def test_a_mission_whose_repository_is_gone_can_be_given_up(cli, tmp_path, verb, again):
    cli.task("mkdir -p .github/workflows; echo x > .github/workflows/x.yml\n")
    cli("run", "--", "sh", "task.sh")
    (mission,) = cli.json("mission", "list", "--json")["missions"]
    cli.project.rename(tmp_path / "elsewhere")
    if again:
        cli.project.mkdir()
    refused = cli("mission", "commit", mission["id"], cwd=tmp_path)
    assert refused.returncode == 1
    assert "discard" in refused.stderr
    done = cli("mission", verb[0], mission["id"], *verb[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (cli.root / "state" / "missions" / mission["id"] / "upper").exists()
    if verb[0] == "discard":
        assert cli("mission", "end", mission["id"], cwd=tmp_path).returncode == 0
    torn = cli("teardown", cwd=tmp_path)
    cli.project.mkdir(exist_ok=True)
    assert "kept" not in torn.stdout, torn.stdout
