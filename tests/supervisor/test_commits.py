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
