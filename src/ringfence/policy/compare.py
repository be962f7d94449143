"""What changes in meaning between two policies: over fixtures, given calls, and a probe for every rule that differs."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringfence.model.call import ToolCall
from ringfence.model.decision import Decision
from ringfence.policy.document import CommandRule, Document
from ringfence.policy.explain import described
from ringfence.policy.policy import Policy
from ringfence.policy.read_document import LEAST_COMPLIANCE_DAYS

DEFAULT_DAYS = {"operational_days": 90, "compliance_days": 365}
"""What is kept where nobody says it."""
LEAST_DAYS = {"operational_days": 1, "compliance_days": LEAST_COMPLIANCE_DAYS}
"""What is the floor anyway, so that saying it changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A call that the two policies answer differently."""

    call: ToolCall
    before: Decision
    after: Decision
    source: str
    """``fixture``, ``call``, ``example`` or ``probe``."""

    @property
    def widens(self) -> bool:
        """Whether the second policy is softer."""
        return self.after.tier < self.before.tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How long audit records are kept, where the two policies differ. ``None``: the policy does not say."""

    name: str
    before: int | None
    after: int | None

    @property
    def widens(self) -> bool:
        """Whether records may leave sooner: fewer days than before, or a floor that is gone."""
        usual = DEFAULT_DAYS[self.name]
        return self.after is None or self.after < (usual if self.before is None else self.before)


def compare_retention(before: Policy, after: Policy) -> tuple[Kept, ...]:
    """The days of retention that differ between two policies of the organisation."""
    found = []
    for name in DEFAULT_DAYS:
        old, new = (None if p.retention is None else getattr(p.retention, name) for p in (before, after))
        if old != new and {old, new} != {None, LEAST_DAYS[name]}:
            found.append(Kept(name=name, before=old, after=new))
    return tuple(found)


def compare(before: Policy, after: Policy, calls: Iterable[tuple[str, ToolCall]]) -> tuple[Change, ...]:
    """Every call, given or probed, whose tier differs; the same call is judged once."""
    found = []
    seen = set()
    for source, call in (*calls, *_probes(before, after)):
        key = call.digest()
        if key in seen:
            continue
        seen.add(key)
        old, new = before.decide(call), after.decide(call)
        if old.tier is not new.tier:
            found.append(Change(call=call, before=old, after=new, source=source))
    return tuple(found)


def _probes(before: Policy, after: Policy) -> Iterator[tuple[str, ToolCall]]:
    """Calls for what stands in one policy and not in the other, and the examples of both."""
    for policy, other in ((before, after), (after, before)):
        theirs = [document for _, document in other.scopes]
        for _, document in policy.scopes:
            for rule in document.commands:
                for example in (*rule.match, *rule.no_match):
                    yield "example", ToolCall.shell(example)
                if not any(_has_rule(their, rule) for their in theirs):
                    yield from (("probe", ToolCall.argv(words)) for words in _commands(rule))
            yield from _other_probes(document)


def _has_rule(document: Document, rule: CommandRule) -> bool:
    return any(_meaning(other) == _meaning(rule) for other in document.commands)


def _meaning(rule: CommandRule) -> tuple[object, ...]:
    return (rule.tier, rule.prefix, rule.unless_args, rule.any_args, rule.grants, rule.when, rule.approvals)


def _commands(rule: CommandRule) -> Iterator[list[str]]:
    """The commands of a rule's prefix, one for each alternative at each place, with and without its arguments."""
    first = [words[0] for words in rule.prefix]
    variants = [first]
    for place, words in enumerate(rule.prefix):
        variants += [[*first[:place], word, *first[place + 1 :]] for word in words[1:]]
    for variant in variants:
        yield variant
        yield [*variant, "x"]
        for argument in (*rule.unless_args, *rule.any_args):
            yield [*variant, argument.replace("*", "x")]


def _other_probes(document: Document) -> Iterator[tuple[str, ToolCall]]:
    for access in ("read", "write", "delete"):
        for path in getattr(document.files, access) or ():
            yield "probe", ToolCall.file(access, path.pattern.replace("**", "x").replace("*", "x"))
    for rule in document.network:
        if rule.host:
            host = rule.host.replace("**", "x").replace("*", "x").split("/")[0]
            for port in rule.ports or (443,):
                yield "probe", ToolCall.network(host, port)
                for method in rule.methods:
                    path = (rule.paths[0] if rule.paths else "/").replace("**", "x").replace("*", "x")
                    yield "probe", ToolCall.network(host, port, method=method, path=path)
    for tool in document.tools:
        yield "probe", ToolCall.tool(tool.server.replace("*", "x"), tool.tool.replace("*", "x"))


def as_json(changes: tuple[Change, ...], kept: tuple[Kept, ...] = ()) -> list[dict[str, object]]:
    """One object a change."""
    days: list[dict[str, object]] = [
        {"kind": "retention", "call": k.name, "before": k.before, "after": k.after, "widens": k.widens} for k in kept
    ]
    return days + [
        {
            "kind": change.call.kind,
            "call": described(change.call),
            "source": change.source,
            "before": change.before.tier.word,
            "after": change.after.tier.word,
            "widens": change.widens,
            "before_rules": [f"{r.rule} {r.place}" for r in change.before.deciding],
            "after_rules": [f"{r.rule} {r.place}" for r in change.after.deciding],
        }
        for change in changes
    ]


def as_text(changes: tuple[Change, ...], kept: tuple[Kept, ...] = ()) -> str:
    """One line a change, the widening ones first."""
    lines = [
        f"{'WIDER   ' if k.widens else 'narrower'} audit.retention.{k.name}: {_days(k.before)} -> {_days(k.after)}"
        for k in sorted(kept, key=lambda k: not k.widens)
    ]
    for change in sorted(changes, key=lambda change: not change.widens):
        mark = "WIDER   " if change.widens else "narrower"
        shown = described(change.call)
        shown = shlex.quote(shown) if not shown.isprintable() else shown
        lines.append(
            f"{mark} {change.before.tier.word:5} -> {change.after.tier.word:5}  {change.call.kind}: {shown[:200]}"
        )
    widened = sum([*(change.widens for change in changes), *(k.widens for k in kept)])
    lines.append(f"{widened} wider, {len(changes) + len(kept) - widened} narrower")
    return "\n".join(lines)


def _days(days: int | None) -> str:
    return "not stated" if days is None else f"{days} days"
