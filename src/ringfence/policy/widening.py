"""What a repository's policy allows beyond the presets it extends, for the person who is asked to trust it. Pure."""

from collections.abc import Iterator

from ringfence.model.tier import Scope, Tier
from ringfence.policy.document import At, Document, When
from ringfence.policy.policy import Policy
from ringfence.policy.presets import load_preset
from ringfence.policy.yaml_tree import show


def beyond_presets(policy: Policy) -> tuple[str, ...]:
    """One line for every ALLOW and every grant of the repository's own document."""
    documents = [document for scope, document in policy.scopes if scope is Scope.REPOSITORY]
    return tuple(line for document in documents for line in _lines(document))


def _lines(document: Document) -> Iterator[str]:
    for rule in document.commands:
        if _own(rule.tier, rule.at):
            prefix = " ".join(w[0] if len(w) == 1 else "[" + "|".join(w) + "]" for w in rule.prefix)
            yes = f", {' and '.join(rule.grants)} too" if rule.grants else ""
            yield f"run      {show(prefix)} …{yes}{_end(rule.when, rule.at)}"
    for access in ("read", "write", "delete"):
        for path in getattr(document.files, access) or ():
            if _own(path.tier, path.at):
                yield f"{access:8} {show(path.pattern)}{_end(path.when, path.at)}"
    for host in document.network:
        if _own(host.tier, host.at):
            yield f"connect  {show(host.host or 'preset ' + host.preset)}{_end(host.when, host.at)}"
    for tool in document.tools:
        if _own(tool.tier, tool.at):
            yield f"tool     {show(tool.server)}/{show(tool.tool)}{_end(tool.when, tool.at)}"
    for root in document.roots or ():
        if root.path not in {".", "./"} and _own(Tier.ALLOW, root.at):
            yield f"root     {show(root.path)}{_end(None, root.at)}"
    for name, value in document.process.env_set:
        yield f"set      {show(name)}={show(value)}"
    known = {name for preset in document.extends for name in load_preset(preset).process.env_assign}
    for name in document.process.env_assign:
        if name not in known:
            yield f"assign   {show(name)}"
    aliased = {pair for preset in document.extends for pair in load_preset(preset).aliases}
    for name, others in document.aliases:
        if (name, others) not in aliased:
            yield f"names    {show(' '.join(others))} count as {show(name)}"
    for folder in document.toolchains:
        yield f"programs {show(folder)}"


def _own(tier: Tier, at: At) -> bool:
    return tier is Tier.ALLOW and not at[0].startswith("preset:")


def _end(when: When | None, at: At) -> str:
    condition = " under conditions" if when is not None else ""
    return f"{condition}  ({at[0]}:{at[1]})"
