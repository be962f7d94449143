"""Scoped documents to one compiled policy: rules indexed by program, path patterns by component. Pure.

What scopes may do to each other is settled here, once: a locked section drops the ALLOW rules of lower scopes, a
ceiling raises their tier, an untrusted repository turns every ALLOW into ASK when the decision is made.
"""

import functools
import operator

import msgspec

from ringfence.model.decision import Place, Reason
from ringfence.model.errors import PolicyError
from ringfence.model.ids import RuleId
from ringfence.model.tier import Scope, Tier
from ringfence.policy import protected
from ringfence.policy.document import (
    At,
    CommandRule,
    Document,
    NetworkRule,
    PathRule,
    PatternRule,
    Root,
    ToolRule,
)
from ringfence.policy.globs import Calm, PathPattern, PatternIndex
from ringfence.policy.hosts import HostRule

ORDER = (Scope.ORGANISATION, Scope.USER, Scope.REPOSITORY, Scope.MISSION)
STANDARD_DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/bin")
"""Behind the toolchains, and in the order that every distribution's PATH has."""
ACCESSES = ("read", "write", "delete")


class Scoped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A document in its scope."""

    scope: Scope
    document: Document
    trusted: bool = True


class Command:
    """One command rule in its scope. ``tier`` is what counts after ceilings; ``rest`` the prefix after the program."""

    __slots__ = ("because", "has_path", "place", "program", "rest", "rule", "scope", "tier")

    def __init__(self, rule: CommandRule, scope: Scope, tier: Tier) -> None:
        self.rule = rule
        self.scope = scope
        self.tier = tier
        self.rest = rule.prefix[1:]
        self.program = rule.prefix[0]
        words = " ".join(words[0] if len(words) == 1 else f"[{' '.join(words)}]" for words in rule.prefix)
        self.because = rule.because or f"begins with `{words}`"
        if tier is not rule.tier:
            self.because += f"; a wider scope's ceiling makes it {tier.word}"
        self.has_path = any("/" in first for first in rule.prefix[0])
        self.place = place(rule.at)


class Access:
    """Path rules of all scopes for one kind of access."""

    __slots__ = ("allow", "listed", "selective", "strict")

    def __init__(self, entries: list[tuple[PathPattern, tuple[PathRule, Scope, Tier]]], *, listed: bool) -> None:
        self.strict = PatternIndex([e for e in entries if e[1][2] is not Tier.ALLOW], loose=True)
        self.allow = PatternIndex([e for e in entries if e[1][2] is Tier.ALLOW], loose=False)
        self.listed = listed
        """Whether some scope lists what is allowed, so that the rest is not."""
        everything = [p for p, (rule, _, tier) in entries if tier is Tier.ALLOW and p.everything and rule.when is None]
        self.selective = listed and not any(not p.absolute and not p.home for p in everything)
        """Whether that list leaves out something inside the roots."""


class Compiled:
    """Everything a decision needs of the policies in force."""

    __slots__ = (
        "access",
        "aliases",
        "assignable",
        "by_name",
        "by_path",
        "calm",
        "default",
        "default_place",
        "deny_absolute",
        "deny_written",
        "deny_written_texts",
        "directories",
        "hidden",
        "lends",
        "local_variables",
        "locked",
        "network",
        "network_off",
        "only_root",
        "patterns",
        "protected",
        "roots",
        "scopes",
        "substrings",
        "tools",
        "trusted",
    )

    def __init__(self, scopes: tuple[Scoped, ...]) -> None:
        self.scopes = tuple(sorted(scopes, key=lambda scoped: ORDER.index(scoped.scope)))
        self.trusted = all(scoped.trusted for scoped in self.scopes)
        self.locked = self._locked()
        """Scopes and sections in which a wider scope leaves room for tightening alone."""
        self._compile_commands()
        self._compile_paths()
        self._compile_rest()

    def _locked(self) -> frozenset[tuple[Scope, str]]:
        return frozenset(
            (below.scope, section)
            for number, above in enumerate(self.scopes)
            for below in self.scopes[number + 1 :]
            for section in above.document.locked
        )

    def _compile_commands(self) -> None:
        self.by_name: dict[str, list[Command]] = {}
        self.by_path: list[Command] = []
        """Rules whose program is a glob over paths (``./scripts/*``)."""
        self.substrings: list[tuple[str, Scope, Place]] = []
        self.aliases: dict[str, dict[str, Scope]] = {}
        directories: dict[str, None] = {}
        for scoped in self.scopes:
            document = scoped.document
            for name, others in document.aliases:
                for other in others:
                    self.aliases.setdefault(name, {}).setdefault(other, scoped.scope)
            directories |= dict.fromkeys(document.toolchains)
            self.substrings += [(rule.text, scoped.scope, place(rule.at)) for rule in document.substrings]
        for scoped in self.scopes:
            for rule in scoped.document.commands:
                tier = self._tier(rule.tier, scoped.scope, "commands")
                if tier is not None:
                    self._index(Command(rule, scoped.scope, tier))
        self.directories = tuple(directories | dict.fromkeys(STANDARD_DIRECTORIES))
        self.lends = not any(scoped.document.commands and scoped.document.small for scoped in self.scopes)
        """Whether a wrapper needs no rule of its own when what it wraps is allowed."""

    def _index(self, command: Command) -> None:
        by_name = self.by_name
        for first in command.program:
            if "/" in first and "*" in first:
                self.by_path.append(command)
                continue
            base = first.rpartition("/")[2]
            by_name.setdefault(base, []).append(command)
            if "/" not in first and first in self.aliases:
                for other, scope in self.aliases[first].items():
                    if command.tier is Tier.ALLOW and ORDER.index(scope) > ORDER.index(command.scope):
                        continue  # a narrower scope gives no new names to what a wider one allows
                    by_name.setdefault(other, []).append(command)

    def _tier(self, tier: Tier, scope: Scope, section: str) -> Tier | None:
        """What is left of a rule's tier under the scopes above it; None where a lock drops it."""
        if tier is not Tier.ALLOW:
            return tier
        if (scope, section) in self.locked:
            return None
        for above in self.scopes:
            if ORDER.index(above.scope) >= ORDER.index(scope):
                break
            if above.document.ceiling is not None:
                tier = max(tier, above.document.ceiling)
        return tier

    def _compile_paths(self) -> None:
        self.access: dict[str, Access] = {}
        for access in ACCESSES:
            entries = []
            listed = False
            for scoped in self.scopes:
                rules = getattr(scoped.document.files, access)
                for rule in rules or ():
                    tier = self._tier(rule.tier, scoped.scope, "files")
                    listed = listed or rule.tier is Tier.ALLOW
                    if tier is not None:
                        entries.append((PathPattern(rule.pattern), (rule, scoped.scope, tier)))
            self.access[access] = Access(entries, listed=listed)
        self.protected = PatternIndex([(PathPattern(p), (p, tier)) for p, tier in protected.PROTECTED], loose=True)
        self.hidden = PatternIndex([(PathPattern(p), p) for p in protected.HIDDEN], loose=True)
        self.roots = self._compile_roots()
        self.only_root = len(self.roots) == 1 and [root.path for root in self.roots[0]] == ["."]
        """Whether the repository's root is the one allowed root, as nearly always."""
        self.calm = {access: self._calm(access) for access in (*ACCESSES, "maybe")}
        prefixes = [(root, scoped.scope) for scoped in self.scopes for root in scoped.document.deny_prefixes]
        self.deny_absolute = tuple((root, scope) for root, scope in prefixes if root.path.startswith("/"))
        self.deny_written = tuple((root, scope) for root, scope in prefixes)
        self.deny_written_texts = tuple(root.path for root, _ in prefixes)

    def _calm(self, access: str) -> Calm | None:
        """What a path has about which a list or a path rule speaks. None: always look closely."""
        if access == "delete" or (access != "maybe" and self.access[access].selective):
            return None
        if access == "maybe" and self.access["read"].selective:
            return None
        used = ("read", "write") if access == "maybe" else (access,)
        found = [self.hidden.calm, self.protected.calm, *(self.access[name].strict.calm for name in used)]
        known = [calm for calm in found if calm is not None]
        return functools.reduce(operator.or_, known) if len(known) == len(found) else None

    def _compile_roots(self) -> tuple[tuple[Root, ...], ...]:
        """The roots of every scope that names some: a path must lie inside one of each."""
        found = []
        locked = False
        for scoped in self.scopes:
            roots = scoped.document.roots
            if roots is not None and not locked:
                found.append(roots)
            locked = locked or "working_tree" in scoped.document.locked
        return tuple(found) or ((Root(path=".", at=("builtin", 0, 0)),),)

    def _compile_rest(self) -> None:
        self.network: list[tuple[NetworkRule, HostRule | None, Scope, Tier]] = []
        self.tools: list[tuple[ToolRule, Scope, Tier]] = []
        self.patterns: list[tuple[PatternRule, Scope]] = []
        self.network_off: list[tuple[At, Scope]] = []
        self.assignable: set[str] = set()
        self.local_variables = False
        defaults: list[tuple[Tier, Document]] = []
        locked = False
        for scoped in self.scopes:
            document = scoped.document
            for rule in document.network:
                tier = self._tier(rule.tier, scoped.scope, "network")
                if tier is not None:
                    host = HostRule(rule.host) if rule.host else None
                    self.network.append((rule, host, scoped.scope, tier))
            for tool in document.tools:
                tier = self._tier(tool.tier, scoped.scope, "tools")
                if tier is not None:
                    self.tools.append((tool, scoped.scope, tier))
            self.patterns += [(pattern, scoped.scope) for pattern in document.patterns]
            if document.network_off is not None:
                self.network_off.append((document.network_off, scoped.scope))
            if not locked:
                self.assignable.update(document.process.env_assign)
                self.local_variables = self.local_variables or document.process.env_local
            locked = locked or "process" in document.locked
            if document.default is not None:
                defaults.append((document.default, document))
        if defaults:
            strictest = max(defaults, key=lambda pair: pair[0])
            self.default, self.default_place = strictest[0], Place(file=strictest[1].file)
        else:
            self.default, self.default_place = Tier.DENY, Place(file="builtin")


def place(at: At) -> Place:
    """Where a rule stands, for a reason."""
    return Place(file=at[0], line=at[1], column=at[2])


def builtin_reason(compiled: Compiled, shown: str, kind: str, because: str, tier: Tier) -> Reason:
    """What no rule of the document says: a fault, the floor, or the default."""
    default = kind == "default"
    return Reason(
        rule=RuleId("commands.default" if default else f"builtin.{kind}"),
        scope=Scope.BUILTIN,
        place=compiled.default_place if default else Place(file="builtin"),
        tier=tier,
        matched=shown,
        because=because,
        kind=kind,
    )


def check_roots(roots: tuple[Root, ...], home: str, resolved: dict[str, str]) -> None:
    """Refuse roots that are ``/`` or a home directory once resolved. Raises PolicyError with the place."""
    for root in roots:
        real = resolved[root.path]
        above = real in {"/", home} or home.startswith(real.rstrip("/") + "/")
        if above or real in {"/home", "/root", "/Users"} or (real.startswith("/home/") and real.count("/") == 2):
            raise PolicyError(
                "root-too-broad",
                f"allowed root `{root.path}` is {real!r}, which holds more than one project",
                where=str(place(root.at)),
                remedy="put the policy into the project's own folder and write `.`",
            )
