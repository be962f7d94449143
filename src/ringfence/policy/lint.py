"""What a policy says that its author probably did not mean: broad, dead, shadowed and contradicting rules. Pure.

Findings speak about the document's own rules, never about those of presets.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.model.tier import Scope, Tier
from ringfence.policy.document import At, CommandRule, Document
from ringfence.policy.fixtures import Fixture
from ringfence.policy.lint_words import dead_word, program_is_known, runs_anything, substring_advice
from ringfence.policy.yaml_tree import show

WARNING, NOTE = "warning", "note"
SHORT_DAYS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: a stable code, how much it matters, where, and what to do."""

    code: str
    level: str
    message: str
    at: At
    fix: str


def lint(
    document: Document, *, scope: Scope, fixtures: tuple[Fixture, ...] | None, fixtures_file: str
) -> list[Finding]:
    """All findings of one document and its fixtures, in the order of the file."""
    found = [
        *_broad(document),
        *_dead(document),
        *_relations(document),
        *_substrings(document),
        *_environment(document, scope),
        *_network(document),
        *_tools(document),
        *_retention(document),
    ]
    if fixtures is not None:
        found += _fixtures(fixtures, fixtures_file)
    return sorted(found, key=lambda finding: (finding.at[0], finding.at[1], finding.at[2], finding.code))


def _own(at: At) -> bool:
    return not at[0].startswith("preset:")


def _rules(document: Document) -> Iterator[CommandRule]:
    return (rule for rule in document.commands if _own(rule.at))


def _spelled(rule: CommandRule) -> str:
    return show(" ".join(words[0] if len(words) == 1 else "[" + "|".join(words) + "]" for words in rule.prefix), 100)


def _broad(document: Document) -> Iterator[Finding]:
    for rule in _rules(document):
        if rule.tier is not Tier.ALLOW:
            continue
        names = [name.rpartition("/")[2] for name in rule.prefix[0]]
        broad = [why for name in names if (why := runs_anything(name)) is not None]
        if len(rule.prefix) == 1 and broad:
            yield Finding(
                code="broad-rule",
                level=WARNING,
                message=f"`{_spelled(rule)}` alone allows nearly everything: {broad[0]}",
                at=rule.at,
                fix="name the subcommand, module or script too, as `[git, status]` or `[python, -m, pytest]`",
            )
        elif {"executes", "program-text"} & set(rule.grants):
            yield Finding(
                code="grants-execution",
                level=NOTE,
                message=f"`{_spelled(rule)}` may run programs or program text that its arguments choose",
                at=rule.at,
                fix="keep it only where the box is meant to be the wall",
            )
        unknown = [name for name in names if not program_is_known(name)]
        if unknown and not rule.unless_args and "/" not in rule.prefix[0][0]:
            yield Finding(
                code="options-not-known",
                level=NOTE,
                message=f"no table tells what the options of `{show(unknown[0])}` do; the prefix covers whatever follows",
                at=rule.at,
                fix="add `unless_args` for options that run, write or connect",
            )


def _dead(document: Document) -> Iterator[Finding]:
    for rule in _rules(document):
        for place, words in enumerate(rule.prefix):
            for word in words:
                why = dead_word(word, first=place == 0)
                if why is not None:
                    yield Finding(
                        code="dead-rule",
                        level=WARNING,
                        message=f"`{show(word)}` in `argv_prefix` never matches: {why}",
                        at=rule.at,
                        fix="write one word an entry, as the program receives it after quoting",
                    )


def _plain(rule: CommandRule) -> bool:
    return rule.when is None and not rule.unless_args and not rule.any_args


def _covers(wide: CommandRule, narrow: CommandRule) -> bool:
    """Whether every command that ``narrow`` speaks about is one that ``wide`` speaks about, by prefixes alone."""
    if len(wide.prefix) > len(narrow.prefix):
        return False
    return all(set(theirs) <= set(ours) for ours, theirs in zip(wide.prefix, narrow.prefix, strict=False))


def _relations(document: Document) -> Iterator[Finding]:
    """Contradictions, rules that a stricter one silences, and rules that a wider one repeats."""
    rules = list(_rules(document))
    by_name: dict[str, list[CommandRule]] = {}
    for rule in rules:
        for name in rule.prefix[0]:
            by_name.setdefault(name, []).append(rule)
    for rule in rules:
        others = {id(other): other for name in rule.prefix[0] for other in by_name[name] if other is not rule}
        for other in others.values():
            if not _plain(other) or not _covers(other, rule):
                continue
            same = other.prefix == rule.prefix and _plain(rule)
            if same and other.tier is not rule.tier and other.tier > rule.tier:
                yield _relation("contradiction", rule, f"has the same prefix as a {other.tier.word} rule", other)
            elif not same and other.tier > rule.tier:
                yield _relation("never-decides", rule, f"is silenced by the wider {other.tier.word} rule", other)
            elif other.tier is rule.tier and _earlier(other, rule, same=same) and set(rule.grants) <= set(other.grants):
                yield _relation("shadowed", rule, f"adds nothing to the wider {other.tier.word} rule", other)
            else:
                continue
            break


def _earlier(other: CommandRule, rule: CommandRule, *, same: bool) -> bool:
    return not same or other.at < rule.at


def _relation(code: str, rule: CommandRule, message: str, other: CommandRule) -> Finding:
    return Finding(
        code=code,
        level=WARNING if code != "shadowed" else NOTE,
        message=f"{rule.tier.word} rule `{_spelled(rule)}` {message} on line {other.at[1]}",
        at=rule.at,
        fix="remove one, or tell them apart with `when`, `any_args` or a longer prefix",
    )


def _substrings(document: Document) -> Iterator[Finding]:
    for rule in document.substrings:
        if not _own(rule.at):
            continue
        example, instead = substring_advice(rule.text)
        yield Finding(
            code="substring-refuses-work",
            level=NOTE,
            message=f"`{show(rule.text)}` is searched as text and also refuses `{example}`",
            at=rule.at,
            fix=f"write a structured rule instead: `deny: [{instead}]`",
        )


_CODE_IN_ENVIRONMENT = re.compile(
    r"PATH|.*_PATH|LD_.*|DYLD_.*|BASH_ENV|ENV|PS[0-4]|IFS|PAGER|.*_PAGER|EDITOR|VISUAL|.*EDITOR|GIT_.*|.*_OPTIONS|.*OPTS"
    r"|PYTHONSTARTUP|PYTHONHOME|PERL5.*|RUBYOPT|MAKEFLAGS|SHELL|CDPATH|PROMPT_COMMAND|.*_PROXY|npm_.*|HOME|XDG_.*"
)
_HARMLESS = re.compile(
    r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|GIT_MERGE_AUTOEDIT|PYTEST_ADDOPTS|.*=.*"
)
"""What the pattern above takes for code and is none, and names with the values that they may have."""


def _environment(document: Document, scope: Scope) -> Iterator[Finding]:
    at: At = (document.file, 0, 0)
    for name in (*document.process.env_assign, *(name for name, _ in document.process.env_set)):
        if _CODE_IN_ENVIRONMENT.fullmatch(name) and not _HARMLESS.fullmatch(name):
            yield Finding(
                code="environment-is-code",
                level=WARNING,
                message=f"`{show(name)}` decides which programs or code run; a command may set it",
                at=at,
                fix="remove it from `process.env`",
            )
    if scope is Scope.REPOSITORY and document.process.env_pass:
        yield Finding(
            code="not-honoured",
            level=WARNING,
            message="`process.env.pass` counts only in the organisation's, the user's or a mission's policy",
            at=at,
            fix="move it to the user's policy",
        )
    if scope is Scope.REPOSITORY and document.minimum_enforcement == "landlock":
        yield Finding(
            code="not-honoured",
            level=WARNING,
            message="a repository cannot lower `minimum_enforcement`",
            at=at,
            fix="remove it, or write it into the user's policy",
        )


def _network(document: Document) -> Iterator[Finding]:
    for rule in document.network:
        if rule.tier is not Tier.ALLOW or not _own(rule.at) or not rule.host:
            continue
        labels = rule.host.split(".")
        fixed = [label for label in labels if "*" not in label]
        if len(fixed) < 2 and "*" in rule.host:
            yield Finding(
                code="broad-host",
                level=WARNING,
                message=f"`{show(rule.host)}` allows hosts of people who have nothing to do with each other",
                at=rule.at,
                fix="name the domain: `*.example.org`",
            )


def _tools(document: Document) -> Iterator[Finding]:
    for rule in document.tools:
        if rule.tier is Tier.ALLOW and _own(rule.at) and rule.tool == "*" and not rule.arguments:
            yield Finding(
                code="broad-tool",
                level=WARNING,
                message=f"every tool of `{show(rule.server)}` is allowed, those it gets later too",
                at=rule.at,
                fix='name the tools that only read, as `tool: "get_*"`',
            )


def _retention(document: Document) -> Iterator[Finding]:
    days = document.retention
    if days is None:
        return
    if days.operational_days is not None and days.operational_days < SHORT_DAYS:
        yield Finding(
            code="retention-short",
            level=NOTE,
            message=f"audit records are compressed after {days.operational_days} days, before most reviews have looked at them",
            at=days.at,
            fix=f"keep `operational_days` at {SHORT_DAYS} or more",
        )
    if days.operational_days is not None and days.operational_days == days.compliance_days:
        yield Finding(
            code="retention-without-archive",
            level=NOTE,
            message="audit records are removed as soon as they were archived",
            at=days.at,
            fix="let `compliance_days` be more than `operational_days`",
        )


def _fixtures(fixtures: tuple[Fixture, ...], file: str) -> Iterator[Finding]:
    at: At = (file, 0, 0)
    refused = [f for f in fixtures if f.expect_allow is False or f.expect in {"deny", "ask", "not_allow"}]
    texts = [f.command or " ".join(f.argv or ()) or f.path or "" for f in refused]
    allowed = [f.command.split()[0] for f in fixtures if f.command and f.command.split() and f not in refused]
    cases = (
        (
            "a path escape",
            any(".." in text or text.startswith(("/", "~")) or " /" in text or " ~" in text for text in texts),
        ),
        (
            "a network case",
            any(f.kind == "network" or re.search(r"\b(curl|wget|ssh|https?:)", f.command or "") for f in refused),
        ),
        (
            "an extra subcommand of an allowed program",
            any(t.split()[0] in allowed for t in texts if len(t.split()) > 1),
        ),
    )
    for what, present in cases:
        if not present:
            yield Finding(
                code="fixture-missing",
                level=WARNING,
                message=f"no fixture refuses {what}",
                at=at,
                fix="add one, so that a later change of the policy cannot open it unseen",
            )
