"""The policy file as values: one document a scope. Pure; msgspec structs so that the effective policy can be stored.

A document never says where it applies or whether it is trusted: the scope it is put into says that (``scopes``).
"""

import msgspec

from ringfence.model.tier import Tier

At = tuple[str, int, int]
"""File, line and column of a rule."""


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Conditions of a rule: all of those given must hold. Texts are globs; several are alternatives."""

    cwd: tuple[str, ...] = ()
    branch: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    env_class: tuple[str, ...] = ()
    interactive: bool | None = None


class CommandRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An opinion on commands that begin with ``prefix``; each place of the prefix holds alternatives."""

    tier: Tier
    id: str
    prefix: tuple[tuple[str, ...], ...]
    at: At
    unless_args: tuple[str, ...] = ()
    any_args: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    when: When | None = None
    because: str = ""
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()
    approvals: int = 1
    not_owner: bool = False


class SubstringRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Text that is denied wherever it stands in the raw line or in a command's words joined by one space."""

    text: str
    at: At


class PathRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An opinion on one kind of access to the paths that ``pattern`` names: glob, prefix (ends in /) or exact path."""

    tier: Tier
    id: str
    pattern: str
    at: At
    because: str = ""
    when: When | None = None


class FileRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Path rules by access. ``None`` means that the document says nothing about that access."""

    read: tuple[PathRule, ...] | None = None
    write: tuple[PathRule, ...] | None = None
    delete: tuple[PathRule, ...] | None = None


class NetworkRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An opinion on connections or requests. Empty ``ports`` means 443; empty ``methods`` or ``paths`` means any."""

    tier: Tier
    id: str
    host: str
    at: At
    ports: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    preset: str = ""
    inspect: bool = False
    """Requests to this host are looked into: TLS ends at the fence, methods, paths and bodies are judged."""
    because: str = ""
    when: When | None = None
    approvals: int = 1
    not_owner: bool = False


class ToolRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An opinion on calls of API and MCP tools. ``arguments`` maps a dotted path into the arguments to globs."""

    tier: Tier
    id: str
    server: str
    tool: str
    at: At
    arguments: tuple[tuple[str, tuple[str, ...]], ...] = ()
    because: str = ""
    when: When | None = None
    approvals: int = 1
    not_owner: bool = False


class PatternRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An opinion on every call in one of whose ``on`` fields the regular expression is found."""

    tier: Tier
    id: str
    on: tuple[str, ...]
    regex: str
    at: At
    because: str = ""
    when: When | None = None


class ProcessRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of one tool call and the box's environment. ``None``: not stated in this document."""

    max_runtime_ms: int | None = None
    max_output_bytes: int | None = None
    max_memory_bytes: int | None = None
    max_processes: int | None = None
    max_disk_bytes: int | None = None
    max_cpu_ms: int | None = None
    max_open_files: int | None = None
    max_file_size_bytes: int | None = None
    env_pass: tuple[str, ...] = ()
    env_assign: tuple[str, ...] = ()
    env_set: tuple[tuple[str, str], ...] = ()
    env_local: bool = False
    """Whether a line may set lowercase variables of its own, which are not exported."""


LIMITS = tuple(name for name in ProcessRules.__struct_fields__ if name.startswith("max_"))
"""The limits of one tool call, by their names in the policy file."""


class Root(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One allowed root or denied prefix, as written."""

    path: str
    at: At


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The least days that audit records stay at hand, and stay at all. ``None``: not stated."""

    at: At
    operational_days: int | None = None
    compliance_days: int | None = None


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One policy file, or one preset."""

    file: str
    version: int = 1
    extends: tuple[str, ...] = ()
    roots: tuple[Root, ...] | None = None
    deny_prefixes: tuple[Root, ...] = ()
    network_off: At | None = None
    """Where ``network: {allow: false}`` is written."""
    default: Tier | None = None
    commands: tuple[CommandRule, ...] = ()
    substrings: tuple[SubstringRule, ...] = ()
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    toolchains: tuple[str, ...] = ()
    files: FileRules = FileRules()
    network: tuple[NetworkRule, ...] = ()
    tools: tuple[ToolRule, ...] = ()
    patterns: tuple[PatternRule, ...] = ()
    process: ProcessRules = ProcessRules()
    minimum_enforcement: str | None = None
    locked: tuple[str, ...] = ()
    ceiling: Tier | None = None
    retention: Retention | None = None
    """In the organisation's policy alone."""

    @property
    def small(self) -> bool:
        """Whether the file says nothing beyond the small format: prefixes that may start, substrings that may not.

        Such a file means what its users have always read in it: a program that is not listed does not start, a
        wrapper (``bash -c``, ``env``) no less than any other.
        """
        grown = (self.extends, self.aliases, self.toolchains, self.network, self.tools, self.patterns, self.locked)
        return (
            not any(grown)
            and self.default is None
            and self.files == FileRules()
            and all(
                rule.tier is Tier.ALLOW and not (rule.unless_args or rule.any_args or rule.when)
                for rule in self.commands
            )
        )


PATTERN_FIELDS = (
    "command.line",
    "command.argument",
    "file.read.path",
    "file.write.path",
    "file.delete.path",
    "file.write.content",
    "net.host",
    "net.path",
    "net.query",
    "net.body",
    "tool.name",
    "tool.arguments",
)
"""What a pattern can look at: contents, destinations, endpoints, arguments."""

GRANTS = ("executes", "program-text", "writes", "unknown-option", "unknown")
"""Effects of options that a rule can say yes to without naming the option in its prefix."""

SECTIONS = ("commands", "files", "network", "tools", "process", "working_tree")
"""Sections that a scope can lock."""
