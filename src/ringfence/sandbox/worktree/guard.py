"""Paths that the gate refuses whatever the policy says: a second wall behind the evaluator's own list. Pure.

Names are compared without case and without characters that some file systems drop, because a tree may be checked
out on one that does.
"""

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.model.spelling import fold
from ringfence.model.tier import Tier

STAGE = ".ringfence-stage-"
"""Begins the name of the folder at a worktree's root in which a commit is prepared, where ``.git`` is no place for it."""
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


_REPOSITORIES = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""Names by which git takes a folder for a repository, whatever it is called: all in place, or its common part elsewhere."""
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of what follows."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line of the evaluator's list: folded names, and whether all below the last one is meant."""

    parts: tuple[str, ...]
    below: bool
    tier: Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Why a path may not simply be committed. ``tier`` is DENY, or ASK where a person may still say yes."""

    tier: Tier
    rule: str
    because: str


def protection(path: str) -> Protection | None:
    """What protects ``path`` (relative, ``/`` between components), or None. Looks at every component, at any depth."""
    parts = path.split("/")
    asked = None
    for index, part in enumerate(parts):
        found = _component(part, parts[index + 1 :])
        if found is not None and found.tier is Tier.DENY:
            return found
        asked = asked or found
    folded = [fold(part) for part in parts]
    return _listed(folded) or asked or _workflow(folded)


def stands_for_protected(path: str) -> str:
    """The protected name that would lie below ``path``; empty where there is none. A link there would hide what it leads to."""
    folded = [fold(part) for part in path.split("/")]
    for index in range(len(folded)):
        rest = folded[index:]
        for pattern in _patterns(rest[0]):
            if len(pattern.parts) + pattern.below > len(rest) and _match(rest, pattern.parts):
                return "/".join(pattern.parts)
    return ""


def misnamed(path: str) -> Protection | None:
    """Why no mission may make a path of this name without a person, or None.

    Terminals obey and hide what control and direction-changing characters say; a shell that expands ``*`` hands a name
    with a hyphen in front to its program as an option.
    """
    if misleading(path):
        return _deny("name-control", "a terminal would obey the name, or show it as another one")
    if any(part.startswith("-") for part in path.split("/")):
        why = "a shell that expands * hands this name to a program as an option"
        return Protection(tier=Tier.ASK, rule="protected/name-option", because=why)
    return None


def is_git_name(name: str) -> bool:
    """Whether some file system would take ``name`` for ``.git``."""
    return re.split(r"[:\\]", fold(name), maxsplit=1)[0].rstrip(". ") in {".git", "git~1"}


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder that holds these names for a repository: its configuration would start programs."""
    folded = {fold(name) for name in names}
    return any(shape <= folded for shape in _REPOSITORIES)


def is_repository_part(name: str) -> bool:
    """Whether a folder that holds this name may be, or become, one that ``is_repository`` means."""
    return any(fold(name) in shape for shape in _REPOSITORIES)


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
    if folded.startswith(("gitmodules~", "gi7eba~")) and not rest:
        return _deny("git-lookalike", "some file systems read this name as .gitmodules")
    if folded in POLICY_FILES:
        return _deny("policy-file", "the policy that fences an agent is not the agent's to change")
    if folded in AGENT_FOLDERS or folded in AGENT_FILES:
        return _deny("agent-settings", "settings and hooks of an agent run outside the box")
    if folded.startswith(STAGE):
        return _deny("stage", "commits are prepared in folders of this name, and what lies there is removed")
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


def misleading(text: str) -> bool:
    """Whether a terminal would obey or turn round a part of the text; line breaks and tabs are plain."""
    return _OBEYED.search(text) is not None


def _listed(folded: list[str]) -> Protection | None:
    """By the evaluator's list, in any spelling: the strictest pattern that names this path or a folder above it."""
    asked = None
    for index in range(len(folded)):
        rest = folded[index:]
        for pattern in _patterns(rest[0]):
            fits = len(rest) >= len(pattern.parts) if pattern.below else len(rest) == len(pattern.parts)
            if fits and _match(rest, pattern.parts):
                if pattern.tier is Tier.DENY:
                    return _deny("listed", "it can run code later or changes what the fence allows")
                asked = asked or pattern
    if asked is None:
        return None
    return Protection(tier=asked.tier, rule="protected/listed", because="others run or obey this with their own rights")


def _patterns(first: str) -> Iterator["_Pattern"]:
    yield from _BY_NAME.get(first, ())
    yield from _BY_GLOB


def _match(names: list[str], patterns: tuple[str, ...]) -> bool:
    """As far as both go."""
    return all(name == part or fnmatch.fnmatchcase(name, part) for name, part in zip(names, patterns, strict=False))


def _workflow(folded: list[str]) -> Protection | None:
    for first, second in itertools.pairwise(folded):
        if first in {".github", ".gitea", ".forgejo"} and second in {"workflows", "actions"}:
            return Protection(
                tier=Tier.ASK, rule="protected/ci", because="continuous integration runs this with its own rights"
            )
    return None


def _deny(rule: str, because: str) -> Protection:
    return Protection(tier=Tier.DENY, rule=f"protected/{rule}", because=because)


def _compiled() -> Iterator[_Pattern]:
    for tier, patterns in ((Tier.DENY, PROTECTED_DENY), (Tier.ASK, PROTECTED_ASK)):
        for text in patterns:
            parts = tuple(fold(part) for part in text.removeprefix("**/").removesuffix("/**").split("/"))
            if parts[0] != ".git":  # judged name by name: most of it is git's own bookkeeping
                yield _Pattern(parts, text.endswith("/**"), tier)


_BY_NAME: dict[str, list[_Pattern]] = {}
_BY_GLOB: list[_Pattern] = []
for _one in _compiled():
    (_BY_GLOB if "*" in _one.parts[0] else _BY_NAME.setdefault(_one.parts[0], [])).append(_one)
