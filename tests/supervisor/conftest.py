"""A repository with a policy, and ringfence's own command line over a state folder of the test's own."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

POLICY = """\
version: 1
fail_closed: true
working_tree:
  allowed_roots: ["."]
  deny_path_prefixes: ["/etc", "/home", "~", ".."]
network: {allow: false}
process: {max_runtime_ms: 60000, max_output_bytes: 65536}
commands:
  allow:
    - argv_prefix: ["git", "status"]
    - argv_prefix: ["ls"]
    - argv_prefix: ["cat"]
    - argv_prefix: ["true"]
    - argv_prefix: ["false"]
    - argv_prefix: ["sh", "task.sh"]
    - argv_prefix: ["sleep"]
  deny_substrings: ["rm -rf", "sudo"]
"""


class Cli:
    """Runs ringfence as a person would, with all state below one folder."""

    def __init__(self, root: pathlib.Path, project: pathlib.Path) -> None:
        self.root = root
        self.project = project
        self.words = [sys.executable, "-I", "-m", "ringfence.cli.main", "--test-root", str(root)]

    def __call__(self, *words, cwd=None, env=None, timeout=300, stdin=subprocess.DEVNULL):
        return subprocess.run(
            [*self.words, *words],
            cwd=cwd or self.project,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=stdin,
        )

    def start(self, *words, cwd=None, **kwargs):
        return subprocess.Popen(
            [*self.words, *words],
            cwd=cwd or self.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **kwargs,
        )

    def json(self, *words, **kwargs):
        done = self(*words, **kwargs)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def task(self, script: str) -> None:
        """Put a script into the tree that the policy lets run."""
        (self.project / "task.sh").write_text(script)

    def supervisor_pid(self) -> int:
        """Process id of the running supervisor."""
        from ringfence.supervisor import client, protocol
        from ringfence.supervisor.paths import user_paths

        connection = client.connect(user_paths(str(self.root)), start=False)
        try:
            return protocol.peer(connection)[0]
        finally:
            connection.close()


@pytest.fixture
def bare_project(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "sandbox_policy.yaml").write_text(POLICY)
    (project / "a.txt").write_text("hello\n")
    git = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], cwd=project, check=True)
    subprocess.run([*git, "add", "."], cwd=project, check=True)
    subprocess.run([*git, "commit", "-qm", "one"], cwd=project, check=True)
    return project


@pytest.fixture
def cli(tmp_path, bare_project):
    """A trusted repository and its command line; the supervisor is ended afterwards."""
    found = Cli(tmp_path / "ringfence", bare_project)
    found.root.mkdir(mode=0o700)
    done = found("policy", "trust", "--yes")
    assert done.returncode == 0, done.stderr
    yield found
    found("stop")


@pytest.fixture
def untrusted(tmp_path, bare_project):
    """The same before a person trusted the policy."""
    found = Cli(tmp_path / "ringfence", bare_project)
    found.root.mkdir(mode=0o700)
    yield found
    found("stop")
