"""A workspace on disk and policies over it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence import Policy, ToolCall
from ringfence.policy import facts

HEAD = "version: 1\nfail_closed: true\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A git repository with a few files, a neighbour and a file outside."""
    root = tmp_path / "project"
    for name in ("README.md", "src/app.py", "src/other.py", "docs/guide.md", "build/x.o", "urls.txt", ".env"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    (tmp_path / "project-backup").mkdir()
    (tmp_path / "project-backup" / "secret.txt").write_text("secret\n")
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    return root


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is not this machine's."""
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setattr(facts, "home_of_user", lambda: str(path))
    monkeypatch.setattr("ringfence.policy.load.home_of_user", lambda: str(path))
    return path


@pytest.fixture
def policy_of(workspace: Path, home: Path) -> Callable[[str], Policy]:
    """A policy over the workspace from everything below the two lines that every policy has."""

    def make(text: str, **kwargs: object) -> Policy:
        return Policy.parse(HEAD + text, root=str(workspace), **kwargs)

    return make


@pytest.fixture
def judge() -> Callable[..., str]:
    """The tier's word for a line."""

    def ask(policy: Policy, line: str, cwd: str = ".", **kwargs: object) -> str:
        return policy.decide(ToolCall.shell(line, cwd=cwd, **kwargs)).tier.word

    return ask
