"""Paths that the gate refuses whatever the policy says: a second wall behind the evaluator's own list. Pure.

Names are compared without case and without characters that some file systems drop, because a tree may be checked
out on one that does.
"""

import itertools
import unicodedata
from dataclasses import dataclass

from ringfence.model.tier import Tier

POLICY_FILES = frozenset({"sandbox_policy.yaml", "sandbox_fixtures.json"})
AGENT_FOLDERS = frozenset(
    {
        ".claude",
        ".codex",
        ".gemini",
        ".cursor",
        ".opencode",
        ".agents",
        ".copilot",
        ".windsurf",
        ".ringfence",
        ".kiro",
        ".roo",
        ".amp",
        ".continue",
    }
)
AGENT_FILES = frozenset({".mcp.json", ".claude.json", "opencode.json", ".cursorrules", ".aider.conf.yml"})
EDITOR_FOLDERS = frozenset(
    {
        ".vscode",
        ".idea",
        ".devcontainer",
        ".husky",
        ".direnv",
        ".zed",
        ".fleet",
        ".run",
        ".vs",
        ".mvn",
        ".hg",
        ".jj",
        ".sl",
        ".svn",
    }
)
START_FILES = frozenset(
    {
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".envrc", ".gitconfig",
        ".ripgreprc", ".exrc", ".vimrc", ".nvimrc", ".lldbinit", ".gdbinit", ".mise.toml", "mise.toml",
        ".devcontainer.json", ".dir-locals.el", ".rprofile", ".pnpmfile.cjs", "lefthook.yml", ".lefthook.yml", ".nvim.lua",
        ".yarnrc.yml", ".yarnrc",
    }
)  # fmt: skip
CI_FILES = frozenset(
    {
        ".gitlab-ci.yml", "jenkinsfile", "azure-pipelines.yml", ".travis.yml", ".drone.yml", "bitbucket-pipelines.yml",
        "appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".pre-commit-config.yaml", "buildspec.yml", "cloudbuild.yaml",
    }
)  # fmt: skip
CI_FOLDERS = frozenset({".circleci", ".buildkite", ".woodpecker", ".ci", ".tekton"})

_GIT_PROTECTED = frozenset(
    {"hooks", "config", "config.worktree", "modules", "worktrees", "commondir", "gitdir", "common", "shallow"}
)
_GIT_PROTECTED_INFO = frozenset({"attributes", "grafts", "exclude", "sparse-checkout"})
_GIT_PROTECTED_OBJECTS = frozenset({"alternates", "http-alternates"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Why a path may not simply be committed. ``tier`` is DENY, or ASK where a person may still say yes."""

    tier: Tier
    rule: str
    because: str


def protection(path: str) -> Protection | None:
    """What protects ``path`` (relative, ``/`` between components), or None. Looks at every component, at any depth."""
    parts = path.split("/")
    for index, part in enumerate(parts):
        found = _component(part, parts[index + 1 :])
        if found is not None:
            return found
    return _workflow([fold(part) for part in parts])


def is_git_name(name: str) -> bool:
    """Whether some file system would take ``name`` for ``.git``."""
    folded = fold(name)
    return folded in {".git", "git~1"} or folded.startswith((".git:", "git~1:"))


def fold(name: str) -> str:
    """``name`` as the most forgiving file system compares it: no case, no ignorable characters, no trailing dots."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    kept = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", kept.casefold()).rstrip(". ") or name


def git_internal(path: str) -> bool:
    """Whether ``path`` is git's own bookkeeping in the root's ``.git``: carried over as history, never as a file."""
    parts = path.split("/")
    return len(parts) > 1 and parts[0] == ".git" and _inside_git(parts[1:]) is None


def _component(part: str, rest: list[str]) -> Protection | None:
    folded = fold(part)
    if is_git_name(part):
        if part != ".git":
            return _deny("git-lookalike", "some file systems read this name as .git")
        return _inside_git(rest) or _deny("git-directory", "git's own files leave a box as history, never as files")
    if folded in POLICY_FILES:
        return _deny("policy-file", "the policy that fences an agent is not the agent's to change")
    if folded in AGENT_FOLDERS or folded in AGENT_FILES:
        return _deny("agent-settings", "settings and hooks of an agent run outside the box")
    if folded in EDITOR_FOLDERS:
        return _deny("editor-tasks", "editors and tools run what this folder holds, outside the box")
    if folded == ".cargo" and rest and fold(rest[0]) in {"config", "config.toml"}:
        return _deny("editor-tasks", "the next build starts the programs that this file names, outside the box")
    if folded.endswith(".code-workspace") and not rest:
        return _deny("editor-tasks", "editors run what this file names, outside the box")
    if folded in START_FILES and not rest:
        return _deny("start-file", "a shell or tool reads this file when it starts, outside the box")
    if folded == "codeowners" and not rest:
        return Protection(tier=Tier.ASK, rule="protected/owners", because="it names who must look at a change")
    if (folded in CI_FILES and not rest) or folded in CI_FOLDERS:
        return Protection(
            tier=Tier.ASK, rule="protected/ci", because="continuous integration runs this with its own rights"
        )
    return None


def _inside_git(rest: list[str]) -> Protection | None:
    if not rest:
        return _deny("git-directory", "the repository itself was replaced, moved or made in the box")
    head = fold(rest[0])
    second = fold(rest[1]) if len(rest) > 1 else ""
    if head in _GIT_PROTECTED or (head == "info" and second in _GIT_PROTECTED_INFO):
        return _deny(f"git-{head}", "git outside the box would obey this file")
    if head == "objects" and second == "info" and len(rest) > 2 and fold(rest[2]) in _GIT_PROTECTED_OBJECTS:
        return _deny("git-alternates", "git outside the box would take objects from elsewhere")
    if head == "refs" and second == "replace":
        return _deny("git-replace", "git outside the box would show other objects than the ones named")
    return None


def _workflow(folded: list[str]) -> Protection | None:
    for first, second in itertools.pairwise(folded):
        if first in {".github", ".gitea", ".forgejo"} and second in {"workflows", "actions"}:
            return Protection(
                tier=Tier.ASK, rule="protected/ci", because="continuous integration runs this with its own rights"
            )
    return None


def _deny(rule: str, because: str) -> Protection:
    return Protection(tier=Tier.DENY, rule=f"protected/{rule}", because=because)
