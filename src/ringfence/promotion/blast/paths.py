"""Counts that need no understanding of a file: paths, services, bytes, links, submodules, protected files. Pure."""

from collections import Counter
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from ringfence.model.protected import PROTECTED_ASK, PROTECTED_DENY
from ringfence.promotion.change import Change, Side, Touched, is_link
from ringfence.promotion.findings import Finding, finding
from ringfence.promotion.globs import matches_any_case
from ringfence.promotion.objects import GITLINK
from ringfence.promotion.policy import POLICY_PATH, Policy
from ringfence.promotion.unseen import unseen_lines

# What steers CI, reviews, releases or git itself, beside what the fence protects from an agent's writes anyway.
_STEERING = (
    "**/.gitattributes",
    "**/.lfsconfig",
    "**/.mailmap",
    "**/CODEOWNERS",
    ".github/**",
    ".gitlab/**",
    "**/*.gitlab-ci.y*ml",
    ".gitlab-ci/**",
    "**/action.y*ml",
    ".forgejo/**",
    ".gitea/**",
    "**/.prow/**",
    "**/.travis.y*ml",
    "**/.drone.*",
    "**/.woodpecker*",
    "**/.woodpecker*/**",
    "**/.cirrus.*",
    "**/.scrutinizer.yml",
    "**/.vela.y*ml",
    "**/appveyor.y*ml",
    "**/bamboo-specs/**",
    "**/buddy.yml",
    "**/.buddy/**",
    "**/codefresh.y*ml",
    "**/screwdriver.yaml",
    "**/wercker.yml",
    "**/zuul.yaml",
    "**/*.gocd.y*ml",
    "**/Earthfile",
    "**/azure-pipelines*.y*ml",
    "**/Jenkinsfile*",
    "**/*.jenkinsfile",
    "**/cloudbuild*.y*ml",
    "**/cloudbuild.json",
    "**/buildspec*.y*ml",
    "**/renovate.json*",
    "**/.renovaterc*",
    "**/.goreleaser.y*ml",
    "**/.releaserc*",
    "**/release.config.*",
    "**/.ebextensions/**",
    "**/.platform/**",
    "**/lefthook.y*ml",
    "**/.lefthook.y*ml",
    "**/.vscode/**",
    "**/.claude/**",
    "**/.pre-commit-hooks.yaml",
    "promotion/**",
)
ALWAYS_PROTECTED = (*PROTECTED_DENY, *PROTECTED_ASK, *_STEERING)
"""No policy can take these away: one list with the one that the evaluator and the commit gate hold."""
# What agents read as orders. A person changes them every day, so they are not refused; but whoever reviews code reads past them.
INSTRUCTIONS = (
    "**/AGENT.md",
    "**/AGENTS.md",
    "**/AGENTS.*.md",
    "**/CLAUDE.md",
    "**/CLAUDE.*.md",
    "**/CODEX.md",
    "**/CRUSH.md",
    "**/GEMINI.md",
    "**/IFLOW.md",
    "**/QWEN.md",
    "**/WARP.md",
    "**/SKILL.md",
    "**/*.instructions.md",
    "**/*.prompt.md",
    "**/*.chatmode.md",
    "**/*.agent.md",
    "**/.rules",
)
# What both runs read and the change can poison: not refused, counted for the reviewer.
SHARED_INPUTS = (
    "**/*.lock",
    "**/*lock.json",
    "**/*lock.yaml",
    "**/*.lockfile",
    "**/npm-shrinkwrap.json",
    "**/pnpm-workspace.yaml",
    "**/go.work*",
    "**/Package.resolved",
    "**/Package.swift",
    "**/verification-metadata.xml",
    "**/constraints*.txt",
    "**/requirements/**",
    "**/*.gemspec",
    "**/mix.exs",
    "**/deno.json*",
    "**/pubspec.yaml",
    "**/*.nix",
    "**/vendor/**",
    "**/third_party/**",
    "**/*.min.js",
    "**/go.sum",
    "**/go.mod",
    "**/Cargo.toml",
    "**/Gemfile",
    "**/composer.json",
    "**/Pipfile",
    "**/pom.xml",
    "**/*.gradle",
    "**/*.gradle.kts",
    "**/gradle/wrapper/**",
    "**/build.sbt",
    "**/build.rs",
    "**/*.csproj",
    "**/Directory.*.props",
    "**/environment.y*ml",
    "**/.yarn/**",
    "**/.cargo/**",
    "**/.python-version",
    "**/.nvmrc",
    "**/requirements*.txt",
    "**/pyproject.toml",
    "**/setup.py",
    "**/setup.cfg",
    "**/package.json",
    "**/Makefile",
    "**/GNUmakefile",
    "**/*.mk",
    "**/CMakeLists.txt",
    "**/meson.build",
    "**/BUILD",
    "**/BUILD.bazel",
    "**/WORKSPACE*",
    "**/MODULE.bazel",
    "**/Rakefile",
    "**/justfile",
    "**/Taskfile.y*ml",
    "**/noxfile.py",
    "**/Dockerfile*",
    "**/Containerfile*",
    "**/*compose*.y*ml",
    "**/.dockerignore",
    "**/conftest.py",
    "**/*.pth",
    "**/tox.ini",
    "**/pytest.ini",
    "**/.coveragerc",
    "**/codecov.y*ml",
    "**/jest.config.json",
    "**/.pytest.ini",
    "**/pytest.toml",
    "**/ava.config.*",
    "**/.c8rc*",
    "**/turbo.json",
    "**/nx.json",
    "**/gulpfile.*",
    "**/Gruntfile.*",
    "**/rollup.config.*",
    "**/__snapshots__/**",
    "**/*.snap",
    "**/*.ambr",
    "**/*.approved.*",
    "**/golden/**",
    "**/cassettes/**",
    "**/.gitleaks.toml",
    "**/.gitleaksignore",
    "**/.trivyignore*",
    "**/.snyk",
    "**/.secretlintrc*",
    "**/.secrets.baseline",
    "**/.semgrepignore",
    "**/.checkov.y*ml",
    "**/.bandit*",
    "**/osv-scanner.toml",
    "**/deny.toml",
    "**/sonar-project.properties",
    "**/.nycrc*",
    "**/.mocharc*",
    "**/jest.*.*s",
    "**/vitest.*.*s",
    "**/karma.*.*s",
    "**/playwright.*.*s",
    "**/cypress.*.*s",
    "**/vite.config.*",
    "**/webpack.config.*",
    "**/.babelrc*",
    "**/babel.config.*",
    "**/tsconfig*.json",
    "**/phpunit.xml*",
    "**/.rspec",
    "**/fixtures/**",
    "**/testdata/**",
)

_PROSE = (".md", ".rst", ".adoc", ".txt", ".csv", ".tsv", ".po", ".svg")


def measure_paths(change: Change, policy: Policy) -> tuple[list[Finding], dict[str, int]]:
    """Findings and the numbers behind them."""
    limits, label = policy.limits, change.label
    services = touched_services(change, policy)
    numbers = {
        "paths": len(change.touched) - len(change.sources),
        "moved_unchanged": len(change.sources),
        "services": len(services),
        "added_bytes": sum(added_bytes(item) for item in change.touched if item.path not in change.sources),
        "opaque_files": sum(_adds_opaque(item) for item in change.touched),
        "symlinks": sum(is_link(item.new) for item in change.touched),
        "submodules": sum(_is_gitlink(item) for item in change.touched),
        "commits": len(change.commits),
        "altered_inputs": len(altered_inputs(change)),
    }
    caps = (
        ("blast.paths", "paths", limits.paths),
        ("blast.services", "services", limits.services),
        ("blast.bytes", "added_bytes", limits.added_bytes),
        ("blast.bytes", "opaque_files", limits.opaque_files),
        ("blast.bytes", "symlinks", limits.symlinks),
        ("blast.submodule", "submodules", limits.submodules),
        ("blast.paths", "commits", limits.commits),
    )
    found = [
        finding(code, f"{name} {numbers[name]} of {cap}", label) for code, name, cap in caps if numbers[name] > cap
    ]
    found.extend(_protected(change, policy))
    found.extend(_instructions(change))
    found.extend(_unseen(change))
    return found, numbers


def altered_inputs(change: Change) -> list[str]:
    """Paths of the change that both runs read as given: what is built, with what, and how it is tested and scanned."""
    return [item.path for item in change.touched if matches_any_case(item.path, SHARED_INPUTS)]


def touched_services(change: Change, policy: Policy) -> set[str]:
    """Names of services with a path in the change, both ends of a move; an unlisted folder beside listed ones is one too."""
    names, parents = set(), {_parent(glob) for globs in policy.services.values() for glob in globs}
    for item in change.touched:
        owners = [name for name, globs in policy.services.items() if matches_any_case(item.path, globs)]
        names.update(owners)
        if not owners:
            parts = item.path.split("/")
            for depth in range(1, len(parts) - 1):
                if "/".join(parts[:depth]).casefold() in parents:
                    names.add("/".join(parts[: depth + 1]))
    return names


def _parent(glob: str) -> str:
    """The folder that holds services: of ``services/checkout/**`` it is ``services``."""
    stem = glob.removesuffix("/**")
    return dirname(stem).casefold() if stem != glob and "*" not in stem and dirname(stem) else "\0"


def added_bytes(item: Touched) -> int:
    """Bytes of lines that the new side has and the old one has not; all of it where it cannot be compared by line."""
    new, old = item.new, item.old
    if new is None or new.mode == GITLINK:
        return 0
    if new.lfs_size is not None:
        return max(new.lfs_size, new.size)
    if new.content is None or old is None or old.content is None or new.opaque or old.opaque:
        return 0 if _same(old, new) else new.size
    added = Counter(new.content.split(b"\n"))
    added.subtract(Counter(old.content.split(b"\n")))
    return sum((len(line) + 1) * count for line, count in added.items() if count > 0)


def _same(old: Side | None, new: Side) -> bool:
    return old is not None and old.content is not None and old.content == new.content


def _adds_opaque(item: Touched) -> bool:
    new = item.new
    return new is not None and new.mode != GITLINK and new.opaque and not _same(item.old, new)


def _is_gitlink(item: Touched) -> bool:
    return any(side is not None and side.mode == GITLINK for side in (item.old, item.new))


def _protected(change: Change, policy: Policy) -> Iterator[Finding]:
    globs = (*policy.protected_paths, *ALWAYS_PROTECTED, *change.called, policy.owners, POLICY_PATH)
    for item in change.touched:
        rule = _meant(item.path, globs)
        if rule is None and is_link(item.new) and item.new is not None and item.new.content is not None:
            target = item.new.content.decode("utf-8", "replace")
            aimed = normpath(join(dirname(item.path), target))
            if target.startswith("/") or aimed.startswith(".."):
                yield finding("blast.bytes", f"{item.path} is a link out of the repository", change.label)
            rule = _meant(aimed, globs)
        if rule is not None:
            yield finding("blast.protected_path", f"{item.path} ({rule})", change.label)


def _meant(path: str, globs: tuple[str, ...]) -> str | None:
    """The glob that means the path, or what would lie below it: a link or a file in a folder's place is that folder."""
    return matches_any_case(path, globs) or matches_any_case(f"{path}/_", globs)


def _instructions(change: Change) -> Iterator[Finding]:
    for item in change.touched:
        if matches_any_case(item.path, INSTRUCTIONS):
            yield finding("agents.instructed", f"{item.path} tells agents what to do", change.label)


def _unseen(change: Change) -> Iterator[Finding]:
    """Lines that the change brings and a reviewer does not see as they are."""
    for item in change.touched:
        if item.new is None or item.new.content is None or item.path in change.sources:
            continue
        old = item.old.content if item.old is not None and item.old.content is not None else b""
        prose = item.path.casefold().endswith(_PROSE)
        brought = unseen_lines(item.new.content, prose=prose) - unseen_lines(old, prose=prose)
        if brought:
            mark = min(mark for _, mark in brought)
            yield finding("blast.bytes", f"{item.path} hides text from the reader (U+{mark:04X})", change.label)
