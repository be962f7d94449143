"""Single rules of a policy file: commands, network, tools, patterns, conditions. Pure."""

from collections.abc import Callable
from typing import TypeVar

from ringfence.model.tier import Tier
from ringfence.policy import reading
from ringfence.policy.document import (
    GRANTS,
    PATTERN_FIELDS,
    CommandRule,
    NetworkRule,
    PatternRule,
    ToolRule,
    When,
)
from ringfence.policy.hosts import bad_host_rule
from ringfence.policy.reading import Source
from ringfence.policy.yaml_tree import Mapping, Node, Sequence, show

Rule = TypeVar("Rule")

_COMMON = ("id", "because", "when", "approvals", "not_owner")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


def tiers(
    source: Source, node: Node | None, name: str, read: Callable[[Source, Node, Tier, int], Rule]
) -> tuple[Rule, ...]:
    """The rules of a section's ``allow``, ``ask`` and ``deny`` lists."""
    if node is None:
        return ()
    keys = reading.fields(source, node, name, ("allow", "ask", "deny"))
    found: list[Rule] = []
    for tier in Tier:
        if tier.word in keys:
            items = reading.listed(source, keys[tier.word], f"{name}.{tier.word}")
            found += [read(source, item, tier, number) for number, item in enumerate(items, 1)]
    return tuple(found)


def read_command_rule(source: Source, node: Node, tier: Tier, number: int) -> CommandRule:
    """One rule of ``commands``."""
    if type(node) is Mapping and len(node.pairs) == 1 and node.pairs[0][0].text == "argv_prefix":
        # The usual small rule, read without the general way: a policy of a thousand of these must load at once.
        prefix = _prefix(source, node.pairs[0][1], tier)
        at = (source.file, node.line, node.column)
        return CommandRule(tier=tier, id=f"commands.{tier.word}-{number}", prefix=prefix, at=at)
    known = (*_COMMON, "argv_prefix", "unless_args", "any_args", "grants", "match", "no_match")
    keys = reading.fields(source, node, "a command rule", known)
    if "argv_prefix" not in keys:
        raise source.fault("key-missing", "a command rule names no `argv_prefix`", node, "write `argv_prefix: [git]`")
    return CommandRule(
        tier=tier,
        prefix=_prefix(source, keys["argv_prefix"], tier),
        at=source.at(node),
        unless_args=_words(source, keys, "unless_args"),
        any_args=_some_words(source, keys, "any_args"),
        grants=_grants(source, keys),
        match=_words(source, keys, "match"),
        no_match=_words(source, keys, "no_match"),
        id=read_id(source, keys, f"commands.{tier.word}-{number}"),
        because=_because(source, keys),
        when=read_when(source, keys.get("when")),
        approvals=_approvals(source, keys, tier),
        not_owner=_not_owner(source, keys),
    )


def _prefix(source: Source, node: Node, tier: Tier) -> tuple[tuple[str, ...], ...]:
    items = reading.listed(source, node, "argv_prefix")
    if not items:
        raise source.fault("empty-prefix", "`argv_prefix` is empty and would match all", node, "name a program")
    found = []
    for item in items:
        if isinstance(item, Sequence):
            words = tuple(reading.text(source, word, "argv_prefix") for word in item.items)
            if not words:
                raise source.fault("empty-prefix", "a list of alternatives is empty", item, "name one or remove it")
            found.append(words)
        else:
            found.append((reading.text(source, item, "argv_prefix"),))
    for program in found[0] if tier is not Tier.ALLOW else ():
        if problem := _bad_program(program):
            raise source.fault("wrong-value", f"program `{show(program)}`: {problem[0]}", items[0], problem[1])
    return tuple(found)


def _bad_program(name: str) -> tuple[str, str] | None:
    """Why no program is ever called this, and what to write: a deny or ask rule for it would be silently dead."""
    if "/" in name:
        return None
    if name.split() != [name]:
        return "a name holds no blanks", "write each word for itself: `[git, status]`"
    if "*" in name or "?" in name:
        return "a bare name is no glob", "list the names as alternatives, or write a path: `./scripts/*`"
    return None


def read_when(source: Source, node: Node | None) -> When | None:
    """The conditions of a rule."""
    if node is None:
        return None
    keys = reading.fields(source, node, "when", ("cwd", "branch", "remote", "agent", "env_class", "interactive"))
    interactive = keys.pop("interactive", None)
    return When(
        **{key: reading.some_texts(source, value, key) for key, value in keys.items()},
        interactive=None if interactive is None else reading.boolean(source, interactive, "interactive"),
    )


def read_network_rule(source: Source, node: Node, tier: Tier, number: int) -> NetworkRule:
    """One rule of ``network``: a host or a preset."""
    keys = reading.fields(
        source, node, "a network rule", (*_COMMON, "host", "ports", "methods", "paths", "preset", "inspect")
    )
    if ("host" in keys) == ("preset" in keys):
        raise source.fault("key-missing", "a network rule names either `host` or `preset`", node, "write one of them")
    host = reading.text(source, keys["host"], "host") if "host" in keys else ""
    if host and (problem := bad_host_rule(host)):
        raise source.fault("wrong-value", f"host `{show(host)}`: {problem}", keys["host"], "write a name, glob or CIDR")
    ports = reading.listed(source, keys["ports"], "ports") if "ports" in keys else ()
    if "ports" in keys and not ports:
        raise reading.empty_list(source, keys["ports"], "ports")
    methods = _some_words(source, keys, "methods")
    if bad := [method for method in methods if method not in METHODS]:
        raise source.fault(
            "wrong-value", f"method `{show(bad[0])}`", keys["methods"], f"write one of: {', '.join(METHODS)}"
        )
    paths = _some_words(source, keys, "paths")
    if bad := [path for path in paths if not path.startswith("/")]:
        raise source.fault("wrong-value", f"path `{show(bad[0])}` has no leading `/`", keys["paths"], "write `/api/**`")
    return NetworkRule(
        tier=tier,
        id=read_id(source, keys, f"network.{tier.word}-{number}"),
        host=host,
        at=source.at(node),
        ports=tuple(reading.integer(source, port, "ports", minimum=1, maximum=65535) for port in ports),
        methods=methods,
        paths=paths,
        preset=reading.text(source, keys["preset"], "preset") if "preset" in keys else "",
        inspect="inspect" in keys and reading.boolean(source, keys["inspect"], "inspect"),
        because=_because(source, keys),
        when=read_when(source, keys.get("when")),
        approvals=_approvals(source, keys, tier),
        not_owner=_not_owner(source, keys),
    )


def read_tool_rule(source: Source, node: Node, tier: Tier, number: int) -> ToolRule:
    """One rule of ``tools``."""
    keys = reading.fields(source, node, "a tool rule", (*_COMMON, "server", "tool", "arguments"))
    for key in ("server", "tool"):
        if key not in keys:
            raise source.fault("key-missing", f"a tool rule names no `{key}`", node, f'write `{key}: "name"` or a glob')
    arguments = reading.pairs(source, keys["arguments"], "arguments") if "arguments" in keys else ()
    return ToolRule(
        tier=tier,
        id=read_id(source, keys, f"tools.{tier.word}-{number}"),
        server=reading.text(source, keys["server"], "server"),
        tool=reading.text(source, keys["tool"], "tool"),
        at=source.at(node),
        arguments=tuple((key.text, reading.some_texts(source, value, key.text)) for key, value in arguments),
        because=_because(source, keys),
        when=read_when(source, keys.get("when")),
        approvals=_approvals(source, keys, tier),
        not_owner=_not_owner(source, keys),
    )


def read_pattern_rule(source: Source, node: Node, number: int) -> PatternRule:
    """One rule of ``patterns``. That RE2 takes the expression is checked when the policy is compiled."""
    keys = reading.fields(source, node, "a pattern", ("id", "on", "regex", "tier", "because", "when"))
    for key in ("on", "regex", "tier"):
        if key not in keys:
            raise source.fault("key-missing", f"a pattern names no `{key}`", node, f"write `{key}:`")
    on = reading.some_texts(source, keys["on"], "on")
    for field in on:
        if field not in PATTERN_FIELDS:
            raise source.fault(
                "wrong-value", f"`{show(field)}` is no field", keys["on"], f"fields: {', '.join(PATTERN_FIELDS)}"
            )
    return PatternRule(
        tier=Tier[reading.one_of(source, keys["tier"], "tier", ("ask", "deny")).upper()],
        id=read_id(source, keys, f"patterns-{number}"),
        on=on,
        regex=reading.text(source, keys["regex"], "regex"),
        at=source.at(node),
        because=_because(source, keys),
        when=read_when(source, keys.get("when")),
    )


def _words(source: Source, keys: dict[str, Node], key: str) -> tuple[str, ...]:
    return reading.texts(source, keys[key], key) if key in keys else ()


def _some_words(source: Source, keys: dict[str, Node], key: str) -> tuple[str, ...]:
    return reading.some_texts(source, keys[key], key) if key in keys else ()


def _grants(source: Source, keys: dict[str, Node]) -> tuple[str, ...]:
    found = _words(source, keys, "grants")
    if bad := [name for name in found if name not in GRANTS]:
        raise source.fault(
            "wrong-value", f"grant `{show(bad[0])}`", keys["grants"], f"write one of: {', '.join(GRANTS)}"
        )
    return found


def read_id(source: Source, keys: dict[str, Node], otherwise: str) -> str:
    """The id of a rule: its own, or one from its place."""
    if "id" not in keys:
        return otherwise
    name = reading.text(source, keys["id"], "id")
    if not name.isprintable() or name.startswith(("builtin.", "commands.default")):
        raise source.fault(
            "wrong-value", f"id `{show(name)}` is taken or not printable", keys["id"], "name it otherwise"
        )
    return name


def _because(source: Source, keys: dict[str, Node]) -> str:
    return reading.text(source, keys["because"], "because") if "because" in keys else ""


def _approvals(source: Source, keys: dict[str, Node], tier: Tier) -> int:
    if "approvals" not in keys:
        return 1
    if tier is not Tier.ASK:
        raise source.fault(
            "wrong-value", "`approvals` belongs to ask rules", keys["approvals"], "move the rule to `ask`"
        )
    return reading.integer(source, keys["approvals"], "approvals", minimum=1, maximum=2)


def _not_owner(source: Source, keys: dict[str, Node]) -> bool:
    return reading.boolean(source, keys["not_owner"], "not_owner") if "not_owner" in keys else False
