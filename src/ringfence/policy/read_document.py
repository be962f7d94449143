"""A policy file's tree to a Document: every key known, every type right, every fault with its place. Pure."""

import re

import msgspec

from ringfence.model.tier import Tier
from ringfence.policy import reading
from ringfence.policy.document import (
    LIMITS,
    SECTIONS,
    CommandRule,
    Document,
    FileRules,
    PathRule,
    ProcessRules,
    Retention,
    Root,
    SubstringRule,
)
from ringfence.policy.read_rules import read_command_rule, read_network_rule, read_pattern_rule, read_tool_rule, tiers
from ringfence.policy.reading import Source
from ringfence.policy.yaml_tree import Mapping, Node, Scalar, Sequence, read_tree, show

KEYS = (
    "version",
    "fail_closed",
    "extends",
    "working_tree",
    "network",
    "process",
    "commands",
    "files",
    "tools",
    "patterns",
    "minimum_enforcement",
    "locked",
    "ceiling",
    "audit",
)
LEAST_COMPLIANCE_DAYS = 365
MOST_DAYS = 36_500
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_document(text: str, *, file: str, preset: bool = False) -> Document:
    """The document that a policy text says.

    ``file`` is shown in places. A preset needs no ``fail_closed``; a policy must say ``fail_closed: true``.
    Raises PolicyError.
    """
    source = Source(file)
    tree = read_tree(text, file=file)
    keys = (*KEYS, "preset") if preset else KEYS
    top = reading.fields(source, tree, "the policy", keys)
    _check_head(source, tree, top, preset=preset)
    commands = _commands(source, top.get("commands"))
    tree_roots, prefixes = _working_tree(source, top.get("working_tree"))
    off, network = _network(source, top.get("network"))
    ceiling = top.get("ceiling")
    enforcement = top.get("minimum_enforcement")
    document = Document(
        file=file,
        extends=_extends(source, top.get("extends")),
        roots=tree_roots,
        deny_prefixes=prefixes,
        network_off=off,
        network=network,
        files=_files(source, top.get("files")),
        tools=tiers(source, top.get("tools"), "tools", read_tool_rule),
        patterns=_patterns(source, top.get("patterns")),
        process=_process(source, top.get("process")),
        minimum_enforcement=None
        if enforcement is None
        else reading.one_of(source, enforcement, "minimum_enforcement", ("landlock", "namespaces")),
        locked=_locked(source, top.get("locked")),
        ceiling=None if ceiling is None else Tier[reading.one_of(source, ceiling, "ceiling", ("ask", "deny")).upper()],
        retention=_audit(source, top.get("audit")),
    )
    return msgspec.structs.replace(document, **commands)


def _check_head(source: Source, tree: Node, top: dict[str, Node], *, preset: bool) -> None:
    if "version" not in top:
        raise source.fault("version-missing", "the policy does not say its version", tree, "write `version: 1` first")
    reading.integer(source, top["version"], "version", minimum=1, maximum=1)
    if preset:
        return
    if "fail_closed" not in top:
        raise source.fault(
            "fail-closed-missing", "the policy does not say `fail_closed: true`", tree, "write `fail_closed: true`"
        )
    if not reading.boolean(source, top["fail_closed"], "fail_closed"):
        raise source.fault(
            "fail-closed-false",
            "`fail_closed` is false; a policy that opens when it fails is refused",
            top["fail_closed"],
            "write `fail_closed: true`",
        )


def _working_tree(source: Source, node: Node | None) -> tuple[tuple[Root, ...] | None, tuple[Root, ...]]:
    if node is None:
        return None, ()
    keys = reading.fields(source, node, "working_tree", ("allowed_roots", "deny_path_prefixes"))
    roots = None
    if "allowed_roots" in keys:
        listed = reading.listed(source, keys["allowed_roots"], "allowed_roots")
        roots = tuple(_root(source, item, "allowed_roots") for item in listed)
    prefixes = keys.get("deny_path_prefixes")
    denied = () if prefixes is None else reading.listed(source, prefixes, "deny_path_prefixes")
    return roots, tuple(_root(source, item, "deny_path_prefixes") for item in denied)


def _root(source: Source, node: Node, key: str) -> Root:
    path = reading.text(source, node, key)
    parts = path.split("/")
    if key == "allowed_roots":
        if not path.startswith("/") and ".." in parts:
            raise source.fault(
                "root-too-broad", f"allowed root `{show(path)}` climbs out", node, "name a path below `.`"
            )
        if path.startswith("~"):
            raise source.fault("root-too-broad", "an allowed root may not be a home directory", node, "write `.`")
        if path.startswith("/") and not [part for part in parts if part not in {"", "."}]:
            raise source.fault("root-too-broad", "an allowed root may not be `/`", node, "write `.`")
    return Root(path=path, at=source.at(node))


def _network(source: Source, node: Node | None) -> tuple[tuple[str, int, int] | None, tuple]:  # type: ignore[type-arg]
    if node is None:
        return None, ()
    keys = reading.fields(source, node, "network", ("allow", "ask", "deny"))
    allow = keys.get("allow")
    off = None
    if allow is not None and not isinstance(allow, Sequence):
        if reading.boolean(source, allow, "allow"):
            raise source.fault(
                "network-too-broad",
                "`network.allow: true` would allow every host",
                allow,
                'list the hosts: `allow: [{host: "*.example.org"}]`',
            )
        off = source.at(allow)
        node = Mapping(tuple(pair for pair in node.pairs if pair[0].text != "allow"), node.line, node.column)  # type: ignore[union-attr]
    return off, tiers(source, node, "network", read_network_rule)


def _commands(source: Source, node: Node | None) -> dict[str, object]:
    if node is None:
        return {}
    known = ("default", "allow", "ask", "deny", "deny_substrings", "aliases", "toolchains")
    keys = reading.fields(source, node, "commands", known)
    default = keys.get("default")
    rules: list[CommandRule] = []
    for tier in Tier:
        if tier.word in keys:
            items = reading.listed(source, keys[tier.word], f"commands.{tier.word}")
            rules += [read_command_rule(source, item, tier, number) for number, item in enumerate(items, 1)]
    substrings = keys.get("deny_substrings")
    return {
        "default": None
        if default is None
        else Tier[reading.one_of(source, default, "default", ("ask", "deny")).upper()],
        "commands": tuple(rules),
        "substrings": ()
        if substrings is None
        else tuple(
            SubstringRule(text=reading.text(source, item, "deny_substrings"), at=source.at(item))
            for item in reading.listed(source, substrings, "deny_substrings")
        ),
        "aliases": _aliases(source, keys.get("aliases")),
        "toolchains": _toolchains(source, keys.get("toolchains")),
    }


def _extends(source: Source, node: Node | None) -> tuple[str, ...]:
    from ringfence.policy.presets import NAMES

    if node is None:
        return ()
    return tuple(
        reading.one_of(source, item, "extends", NAMES, code="unknown-preset")
        for item in (node.items if isinstance(node, Sequence) else (node,))
    )


def _aliases(source: Source, node: Node | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if node is None:
        return ()
    found = []
    for key, value in reading.pairs(source, node, "aliases"):
        names = reading.texts(source, value, key.text)
        for name in (key.text, *names):
            if "/" in name or not name:
                raise source.fault("wrong-value", f"alias `{show(name)}` is not a bare name", value, "write bare names")
        found.append((key.text, names))
    return tuple(found)


def _toolchains(source: Source, node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    found = []
    for item in reading.listed(source, node, "toolchains"):
        path = reading.text(source, item, "toolchains")
        if not path.startswith("/") or ".." in path.split("/"):
            raise source.fault("wrong-value", f"toolchain `{show(path)}` is not absolute", item, "write `/opt/x/bin`")
        if not path.strip("/."):
            raise source.fault("root-too-broad", "a toolchain may not be `/`", item, "write `/opt/x/bin`")
        found.append(path.rstrip("/") or "/")
    return tuple(found)


def _files(source: Source, node: Node | None) -> FileRules:
    if node is None:
        return FileRules()
    keys = reading.fields(source, node, "files", ("read", "write", "delete"))
    return FileRules(**{access: _path_rules(source, value, access) for access, value in keys.items()})


def _path_rules(source: Source, node: Node, access: str) -> tuple[PathRule, ...]:
    keys = reading.fields(source, node, f"files.{access}", ("allow", "ask", "deny"))
    found = []
    for tier in Tier:
        if tier.word in keys:
            items = reading.listed(source, keys[tier.word], f"files.{access}.{tier.word}")
            found += [_path_rule(source, item, tier, f"{access}-{tier.word}-{n}") for n, item in enumerate(items, 1)]
    return tuple(found)


def _path_rule(source: Source, node: Node, tier: Tier, name: str) -> PathRule:
    from ringfence.policy.read_rules import read_id, read_when

    if isinstance(node, Mapping):
        keys = reading.fields(source, node, "a path rule", ("path", "id", "because", "when"))
        if "path" not in keys:
            raise source.fault("key-missing", "a path rule names no `path`", node, 'write `path: "src/**"`')
        pattern = _path_pattern(source, keys["path"], "path")
        return PathRule(
            tier=tier,
            id=read_id(source, keys, f"files.{name}"),
            pattern=pattern,
            at=source.at(node),
            because=reading.text(source, keys["because"], "because") if "because" in keys else "",
            when=read_when(source, keys.get("when")),
        )
    return PathRule(tier=tier, id=f"files.{name}", pattern=_path_pattern(source, node, name), at=source.at(node))


_FOREIGN = (
    (re.compile(r"\{[^{}/]*,[^{}/]*\}"), "alternatives in braces are not read", "write one pattern for each"),
    (re.compile(r"[!@+]\("), "extended globs are not read", "write one pattern for each"),
    (re.compile(r"^!"), "a pattern is not turned round by `!`", "write the rule under another tier"),
    (re.compile(r"(?:^|/)\.\.(?:/|$)"), "`..` stands in no resolved path", "write an absolute path, or one below `.`"),
    (re.compile(r"\*\*[^/]|[^/]\*\*"), "`**` is a whole component", "write `**/*.pem` or `src/**`"),
    (re.compile(r"^\$"), "variables are not read", "write `~/` for the home, or an absolute path"),
    (re.compile(r"^\s|\s$"), "a blank stands at its edge", "remove the blank"),
)


def _path_pattern(source: Source, node: Node, key: str) -> str:
    """A path pattern. What other tools read in another way would be silently dead here, so it is refused."""
    pattern = reading.text(source, node, key)
    for foreign, problem, remedy in _FOREIGN:
        if foreign.search(pattern):
            raise source.fault("wrong-value", f"path `{show(pattern)}`: {problem}", node, remedy)
    return pattern


def _patterns(source: Source, node: Node | None) -> tuple:  # type: ignore[type-arg]
    if node is None:
        return ()
    items = reading.listed(source, node, "patterns")
    return tuple(read_pattern_rule(source, item, number) for number, item in enumerate(items, 1))


def _process(source: Source, node: Node | None) -> ProcessRules:
    if node is None:
        return ProcessRules()
    keys = reading.fields(source, node, "process", (*LIMITS, "env"))
    limits = {key: reading.integer(source, keys[key], key, minimum=1) for key in LIMITS if key in keys}
    env = (
        reading.fields(source, keys["env"], "process.env", ("pass", "assign", "set", "local")) if "env" in keys else {}
    )
    names = {
        key: tuple(
            _variable(source, item, key, valued=key == "assign") for item in reading.listed(source, env[key], key)
        )
        for key in ("pass", "assign")
        if key in env
    }
    local = reading.boolean(source, env["local"], "local") if "local" in env else False
    pairs = reading.pairs(source, env["set"], "set") if "set" in env else ()
    values = tuple((_variable(source, key, "set"), _value(source, value, key.text)) for key, value in pairs)
    return ProcessRules(
        **limits, env_pass=names.get("pass", ()), env_assign=names.get("assign", ()), env_set=values, env_local=local
    )


def _audit(source: Source, node: Node | None) -> Retention | None:
    if node is None:
        return None
    keys = reading.fields(source, node, "audit", ("retention",))
    if "retention" not in keys:
        return None
    found = keys["retention"]
    given = reading.fields(source, found, "audit.retention", ("operational_days", "compliance_days"))
    least = {"operational_days": 1, "compliance_days": LEAST_COMPLIANCE_DAYS}
    days = {
        key: reading.integer(source, value, key, minimum=least[key], maximum=MOST_DAYS) for key, value in given.items()
    }
    if days.get("operational_days", 0) > days.get("compliance_days", LEAST_COMPLIANCE_DAYS):
        compliance = days.get("compliance_days")
        stated = f"`compliance_days` is {compliance}" if compliance else f"{LEAST_COMPLIANCE_DAYS} are the default"
        raise source.fault(
            "out-of-range",
            f"`operational_days` is {days['operational_days']} and {stated}; records leave only after they were archived",
            given["operational_days"],
            f"write `compliance_days: {days['operational_days']}` or more, or fewer `operational_days`",
        )
    return Retention(at=source.at(found), **days)


def _variable(source: Source, node: Node, key: str, *, valued: bool = False) -> str:
    name = reading.text(source, node, key)
    if not _NAME.fullmatch(name.partition("=")[0] if valued else name):
        fix = "write NAME, or NAME=VALUE" if valued else "write NAME"
        raise source.fault("wrong-value", f"`{show(name)}` is not a variable's name", node, fix)
    return name


def _value(source: Source, node: Node, key: str) -> str:
    if isinstance(node, Scalar) and not node.plain and not node.text:
        return ""
    return reading.text(source, node, key)


def _locked(source: Source, node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    return tuple(reading.one_of(source, item, "locked", SECTIONS) for item in reading.listed(source, node, "locked"))
