"""The policy in force: loaded from files, judged in process. ``decide`` needs no supervisor.

Policies of all scopes become one effective policy with one digest. The digest covers the documents with presets as
expanded, the program tables, the built-in lists and the evaluator's version, so that a decision can be made again.
"""

import functools
import hashlib
from typing import Protocol, Self

import msgspec

from ringfence.model.box import Level, Limits
from ringfence.model.call import Argv, FileAccess, ShellLine, ToolCall
from ringfence.model.decision import Decision
from ringfence.model.facts import PathFacts
from ringfence.model.ids import Sha256
from ringfence.model.tier import Scope, Tier
from ringfence.policy import protected
from ringfence.policy.compile import Compiled
from ringfence.policy.document import Document, NetworkRule, Retention
from ringfence.policy.effective import Effective, decode, encode, limits_of, minimum_of, trust_digest_of
from ringfence.policy.evaluate import evaluate, fault, file_path
from ringfence.policy.globs import PatternIndex, Views, split
from ringfence.policy.prepare import Prepared, prepare, programs_of, questions_of
from ringfence.policy.questions import Questions

_LINES = frozenset({ShellLine, Argv})


class NetworkPresets(Protocol):
    """Gives the rules of a network preset by name, or raises PolicyError for a name it does not know."""

    def __call__(self, name: str, *, inspect: bool) -> tuple[NetworkRule, ...]:
        """``inspect``: requests are looked into, so that methods and paths can be held to what reading needs."""
        ...


class Explanation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A decision with everything found on the line, for ``why``."""

    decision: Decision
    prepared: Prepared | None


class Policy:
    """An effective policy. Immutable; equal digests decide alike."""

    def __init__(self, effective: Effective, *, root: str, home: str) -> None:
        """Compile the scopes. Prefer ``load``, ``parse`` or ``from_effective``."""
        self._effective = effective
        self._compiled = Compiled(effective.scopes)
        self._home = home
        self.root = root
        """Absolute path of the repository: what ``.`` means."""

    # -- making one ---------------------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: str,
        *,
        trusted: bool | None = None,
        organisation: str | None = None,
        user: str | None = None,
        mission: str | None = None,
        network_presets: NetworkPresets | None = None,
        scope: Scope = Scope.REPOSITORY,
    ) -> Self:
        """The policy at ``path`` with those of the other scopes.

        ``trusted`` says whether a person has trusted the repository's policy; None means yes (library use). Paths of
        other scopes may be None, or name files that do not exist: then the scope says nothing. ``scope`` says as whose
        policy the file itself speaks, for a review of one that is to be the organisation's. Raises PolicyError.
        """
        from ringfence.policy.load import load

        root, home, effective = load(
            path,
            trusted=trusted is not False,
            organisation=organisation,
            user=user,
            mission=mission,
            network_presets=network_presets,
            scope=scope,
        )
        return cls(effective, root=root, home=home)

    @classmethod
    def parse(
        cls,
        text: str,
        root: str = ".",
        *,
        file: str = "sandbox_policy.yaml",
        trusted: bool = True,
        network_presets: NetworkPresets | None = None,
    ) -> Self:
        """The policy that a text says, for the repository at ``root``. Raises PolicyError."""
        from ringfence.policy.load import parse

        real_root, home, effective = parse(text, root=root, file=file, trusted=trusted, network_presets=network_presets)
        return cls(effective, root=real_root, home=home)

    @classmethod
    def from_effective(cls, stored: bytes, *, root: str = "/", home: str = "/nonexistent") -> Self:
        """The policy that ``effective()`` once gave, for making a decision again with stored facts."""
        return cls(decode(stored), root=root, home=home)

    def with_trust(self, *, trusted: bool) -> "Policy":
        """The same policy with the repository's trust set."""
        scopes = tuple(
            msgspec.structs.replace(scoped, trusted=trusted) if scoped.scope is Scope.REPOSITORY else scoped
            for scoped in self._effective.scopes
        )
        return Policy(msgspec.structs.replace(self._effective, scopes=scopes), root=self.root, home=self._home)

    # -- what it is ---------------------------------------------------------------------------------------------

    @functools.cached_property
    def _encoded(self) -> bytes:
        return encode(self._effective)

    def effective(self) -> bytes:
        """Canonical bytes of everything the decisions depend on; ``digest`` is their SHA-256."""
        return self._encoded

    @functools.cached_property
    def digest(self) -> Sha256:
        """Names the effective policy, wherever the repository lies."""
        return Sha256(hashlib.sha256(self._encoded).hexdigest())

    @functools.cached_property
    def trust_digest(self) -> Sha256:
        """Names what a person trusts: the repository's own document, whatever its layout and comments."""
        return trust_digest_of(self._effective)

    @property
    def home(self) -> str:
        """What ``~`` means: the home of the user it was loaded for."""
        return self._home

    @property
    def trusted(self) -> bool:
        """Whether the repository's policy is trusted."""
        return self._compiled.trusted

    @property
    def scopes(self) -> tuple[tuple[Scope, Document], ...]:
        """The documents in force, presets expanded."""
        return tuple((scoped.scope, scoped.document) for scoped in self._compiled.scopes)

    # -- deciding -----------------------------------------------------------------------------------------------

    def questions(self, call: ToolCall) -> Questions:
        """What deciding needs to know of the file system. Pure."""
        return self._questions(call, self._prepare(call, self._home))

    def decide(self, call: ToolCall) -> Decision:
        """Gather the facts, then decide. A relative ``cwd`` is taken from the policy's root."""
        return self.explain(call).decision

    def decide_with(self, call: ToolCall, facts: PathFacts) -> Decision:
        """Decide from stored facts alone. Pure: a fact that is missing is a DENY."""
        return self.explain(call, facts).decision

    def explain(self, call: ToolCall, facts: PathFacts | None = None) -> Explanation:
        """The decision and what was found on the line. Gathers the facts where none are given.

        Never raises for what a call holds: a fault of ours while judging is a DENY that says so.
        """
        call = self.absolute(call)
        try:
            return self._explain(call, facts)
        except Exception as error:  # noqa: BLE001 - the edge for callers without a supervisor: a crash is no permission
            reason = fault(f"judging failed ({type(error).__name__}); this is a fault of ringfence, please report it")
            decision = Decision(call_id=call.id, policy_digest=self.digest, reasons=(reason,))
            return Explanation(decision=decision, prepared=None)

    def _explain(self, call: ToolCall, facts: PathFacts | None) -> Explanation:
        home = self._home if facts is None else facts.home
        prepared = self._prepare(call, home)
        if facts is None:
            from ringfence.policy.facts import gather

            facts = gather(self._questions(call, prepared), call, root=self.root, home=self._home)
        reasons = evaluate(self._compiled, self._patterns, call, facts, prepared)
        decision = Decision(call_id=call.id, policy_digest=self.digest, reasons=reasons)
        return Explanation(decision=decision, prepared=prepared)

    def absolute(self, call: ToolCall) -> ToolCall:
        """The call with its working directory made absolute, from the policy's root."""
        if call.cwd.startswith("/"):
            return call
        import dataclasses

        from ringfence.policy.facts_index import join

        return dataclasses.replace(call, cwd=join(self.root, call.cwd))

    def _prepare(self, call: ToolCall, home: str) -> Prepared | None:
        return prepare(call, home=home) if type(call.request) in _LINES else None

    def _questions(self, call: ToolCall, prepared: Prepared | None) -> Questions:
        roots = self._written_roots
        if prepared is not None:
            working = tuple(
                dict.fromkeys(b for c in prepared.commands for b in (*c.bases, *c.elsewhere) if b is not None)
            )
            return Questions(
                paths=tuple(questions_of(prepared)),
                globs=prepared.globs,
                programs=tuple(programs_of(prepared)),
                roots=roots,
                directories=self._compiled.directories,
                working=working,
            )
        if isinstance(call.request, FileAccess):
            return Questions(paths=(file_path(call, self._home),), roots=roots)
        return Questions(roots=roots)

    @functools.cached_property
    def _written_roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(root.path for roots in self._compiled.roots for root in roots))

    @functools.cached_property
    def _patterns(self) -> tuple:  # type: ignore[type-arg]  # of Pattern, whose module loads RE2
        if not self._compiled.patterns:
            return ()
        from ringfence.policy.judge_patterns import Pattern

        return tuple(Pattern(rule, scope) for rule, scope in self._compiled.patterns)

    # -- what the ledger keeps ----------------------------------------------------------------------------------

    @property
    def retention(self) -> Retention | None:
        """The least days that the organisation asks to keep audit records, or None where it asks for none."""
        for scope, document in self.scopes:
            if scope is Scope.ORGANISATION:
                return document.retention
        return None

    # -- what the box is built from -----------------------------------------------------------------------------

    @functools.cached_property
    def limits(self) -> Limits:
        """Caps on one tool call: the narrowest of all scopes."""
        return limits_of(self._effective)

    @functools.cached_property
    def minimum_level(self) -> Level:
        """The weakest enforcement that may run anything."""
        return minimum_of(self._effective)

    @functools.cached_property
    def roots(self) -> tuple[str, ...]:
        """Allowed roots, resolved. Where several scopes name roots, those that lie inside one of every scope."""
        import os

        from ringfence.policy.facts_index import join, within

        sets = [[os.path.realpath(join(self.root, root.path)) for root in roots] for roots in self._compiled.roots]
        unique = dict.fromkeys(root for roots in sets for root in roots)
        return tuple(root for root in unique if all(any(within(root, other) for other in roots) for roots in sets))

    @property
    def environment(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Names passed from the caller, names a command may assign, and pairs that are set.

        Passed names count only from organisation, user and mission: never from the repository.
        """
        passed: dict[str, None] = {}
        pairs: dict[str, str] = {}
        for scoped in self._compiled.scopes:
            process = scoped.document.process
            if scoped.scope is not Scope.REPOSITORY:
                passed |= dict.fromkeys(process.env_pass)
            pairs |= dict(process.env_set) if scoped.trusted else {}
        return tuple(passed), tuple(sorted(self._compiled.assignable)), tuple(pairs.items())

    @property
    def trusted_directories(self) -> tuple[str, ...]:
        """Where bare program names are looked up, toolchains included."""
        return self._compiled.directories

    @property
    def write_allow_patterns(self) -> tuple[str, ...]:
        """The patterns of every ``files.write.allow`` of trusted scopes."""
        found: dict[str, None] = {}
        for scoped in self._compiled.scopes:
            for rule in scoped.document.files.write or ():
                if rule.tier is Tier.ALLOW and scoped.trusted:
                    found[rule.pattern] = None
        return tuple(found)

    @property
    def secret_patterns(self) -> tuple[str, ...]:
        """Regular expressions that deny contents, bodies or arguments: what they find must not enter the ledger either."""
        return tuple(
            rule.regex
            for rule, _ in self._compiled.patterns
            if rule.tier is Tier.DENY
            and any(on in {"file.write.content", "net.body", "tool.arguments"} for on in rule.on)
        )

    def read_denies(self, relative_path: str) -> bool:
        """Whether a path, relative to the root, must not be seen in the box.

        Beside what the scopes deny or ask about: files like ``.env`` hold secrets by custom, so they are not in the view
        unless a ``files.read.allow`` names the file itself.
        """
        if protected.like_env(relative_path.rpartition("/")[2]) and not self._names(relative_path):
            return True
        views = self._relative_views(relative_path)
        return bool(self._compiled.access["read"].strict.find(views) or self._compiled.hidden.find(views))

    def _names(self, relative_path: str) -> bool:
        name = relative_path.rpartition("/")[2]
        allowed = (
            rule.pattern
            for scoped in self._compiled.scopes
            if scoped.trusted
            for rule in scoped.document.files.read or ()
            if rule.tier is Tier.ALLOW
        )
        return any(pattern.rpartition("/")[2] == name for pattern in allowed)

    def _relative_views(self, relative_path: str) -> Views:
        root = split(self.root)
        path = f"{self.root.rstrip('/')}/{relative_path}"
        return Views(path, roots=(root,), home=split(self._home))

    @property
    def reaches_network(self) -> bool:
        """Whether any connection could be allowed, at once or by a person."""
        tiers = {tier for _, _, _, tier in self._compiled.network}
        return not self._compiled.network_off and bool(tiers - {Tier.DENY})

    def inspects(self, host: str, port: int) -> bool:
        """Whether a rule for this host speaks of methods or paths, so that its requests must be seen to be judged."""
        return any(
            (rule.inspect or rule.methods or rule.paths)
            and pattern is not None
            and pattern.matches(host)
            and port in (rule.ports or (443,))
            for rule, pattern, _, _ in self._compiled.network
        )

    @property
    def reads_bodies(self) -> bool:
        """Whether a pattern looks into the bodies of requests, so that inspected ones must be read whole."""
        return any("net.body" in rule.on for rule, _ in self._compiled.patterns)

    @property
    def inspects_anything(self) -> bool:
        """Whether any network rule needs requests to be seen."""
        return any(rule.inspect or rule.methods or rule.paths for rule, _, _, _ in self._compiled.network)


__all__ = ["Explanation", "NetworkPresets", "PatternIndex", "Policy"]
