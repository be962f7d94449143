"""``when`` conditions: what a rule asks about the caller, the place and, for ``git push``, where it pushes to. Pure."""

from dataclasses import dataclass

from ringfence.model.call import Context
from ringfence.policy.document import When
from ringfence.policy.globs import text_matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What conditions are judged against. ``None`` is not known: it never holds for an ALLOW, always for DENY and ASK."""

    context: Context
    cwd: str | None
    """Where the command runs, relative to the root (``.`` for the root), or absolute where outside it."""
    branches: tuple[str | None, ...] = ()
    """Branches that the command would change elsewhere; empty: the branch checked out."""
    remote: str | None = None
    """The remote that the command speaks to, by name or address."""
    own_repository: bool = True
    """False where ``git -C``, ``--git-dir`` and the like point at another repository than the context describes."""


def holds(when: When, circumstances: Circumstances, *, unknown: bool) -> bool:
    """Whether all conditions hold; ``unknown`` is the answer for one that cannot be judged."""
    context = circumstances.context
    return (
        _text(when.cwd, circumstances.cwd, unknown=unknown)
        and _text(when.agent, context.agent, unknown=unknown)
        and _text(when.env_class, context.env_class, unknown=unknown)
        and _branch(when, circumstances, unknown=unknown)
        and _remote(when, circumstances, unknown=unknown)
        and (when.interactive is None or when.interactive == context.interactive)
    )


def _text(patterns: tuple[str, ...], value: str | None, *, unknown: bool) -> bool:
    if not patterns:
        return True
    return unknown if value is None else text_matches(patterns, value)


def _branch(when: When, circumstances: Circumstances, *, unknown: bool) -> bool:
    if not when.branch:
        return True
    branches = circumstances.branches
    if not branches:
        branches = (circumstances.context.branch if circumstances.own_repository else None,)
    answers = [unknown if branch is None else text_matches(when.branch, branch) for branch in branches]
    # An ALLOW needs every branch that is changed to match; a DENY or ASK is called up by any.
    return any(answers) if unknown else all(answers)


def _remote(when: When, circumstances: Circumstances, *, unknown: bool) -> bool:
    if not when.remote:
        return True
    remote = circumstances.remote
    if remote is None or not circumstances.own_repository:
        return unknown
    if text_matches(when.remote, remote):
        return True
    return any(name == remote and text_matches(when.remote, url) for name, url in circumstances.context.remotes)


_SAFE_PUSH_OPTIONS = frozenset(
    {"-u", "--set-upstream", "-q", "--quiet", "-v", "--verbose", "--progress", "-n", "--dry-run", "--porcelain"}
)


def push_targets(words: tuple[str, ...], context: Context) -> tuple[tuple[str | None, ...], str | None]:
    """The branches and the remote that ``git push`` with these arguments changes; None for what is not surely known."""
    operands = [word for word in words if not word.startswith("-")]
    if any(word.startswith("-") and word not in _SAFE_PUSH_OPTIONS for word in words):
        return (None,), operands[0] if operands else None
    remote = operands[0] if operands else only_remote(context)
    branches = tuple(_destination(spec, context) for spec in operands[1:])
    return branches or (context.branch,), remote


def only_remote(context: Context) -> str | None:
    """The remote that git takes when none is named: known where there is just one."""
    names = [name for name, _ in context.remotes]
    return names[0] if len(names) == 1 else None


def _destination(spec: str, context: Context) -> str | None:
    if spec.startswith("+") or "*" in spec:
        return None
    source, colon, target = spec.partition(":")
    if colon and not source:
        return None  # a deletion
    name = target or source
    if name in {"HEAD", "@"}:
        return None if colon else context.branch
    if name.startswith("refs/"):
        return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None
    return name
