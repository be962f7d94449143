"""What a repository's policy allows beyond the presets it extends, for the person who is asked to trust it. Pure."""

from ringfence.model.tier import Scope, Tier
from ringfence.policy.document import At, When
from ringfence.policy.policy import Policy
from ringfence.policy.yaml_tree import show


def beyond_presets(policy: Policy) -> tuple[str, ...]:
    """One line for every ALLOW and every grant of the repository's own document."""
    lines: list[str] = []
    for scope, document in policy.scopes:
        if scope is not Scope.REPOSITORY:
            continue
        for rule in document.commands:
            if rule.tier is Tier.ALLOW and _own(rule.at):
                prefix = " ".join(w[0] if len(w) == 1 else "[" + "|".join(w) + "]" for w in rule.prefix)
                lines.append(f"run      {show(prefix)} …{_when(rule.when)}  ({_at(rule.at)})")
        for access in ("read", "write", "delete"):
            for path in getattr(document.files, access) or ():
                if path.tier is Tier.ALLOW and _own(path.at):
                    lines.append(f"{access:8} {show(path.pattern)}{_when(path.when)}  ({_at(path.at)})")
        for host in document.network:
            if host.tier is Tier.ALLOW and _own(host.at):
                lines.append(
                    f"connect  {show(host.host or 'preset ' + host.preset)}{_when(host.when)}  ({_at(host.at)})"
                )
        for tool in document.tools:
            if tool.tier is Tier.ALLOW and _own(tool.at):
                lines.append(f"tool     {show(tool.server)}/{show(tool.tool)}{_when(tool.when)}  ({_at(tool.at)})")
        for root in document.roots or ():
            if root.path not in {".", "./"} and _own(root.at):
                lines.append(f"root     {show(root.path)}  ({_at(root.at)})")
        process = document.process
        lines += [f"set      {show(name)}={show(value)}" for name, value in process.env_set]
        lines += [f"assign   {show(name)}" for name in process.env_assign if not document.extends]
    return tuple(lines)


def _own(at: At) -> bool:
    return not at[0].startswith("preset:")


def _at(at: At) -> str:
    return f"{at[0]}:{at[1]}"


def _when(when: When | None) -> str:
    return " (under conditions)" if when is not None else ""
