"""One access to one path: hidden and protected lists, roots, denied prefixes, path rules. Pure.

An answer is a list of reasons that restrict; an empty list means that nothing speaks against the access.
"""

from msgspec import Struct
from msgspec.structs import replace

from ringfence.model.call import Context
from ringfence.model.decision import Place, Reason
from ringfence.model.facts import PathFact, PathKind
from ringfence.model.ids import RuleId
from ringfence.model.spelling import is_plain
from ringfence.model.tier import Scope, Tier
from ringfence.policy import protected
from ringfence.policy.compile import Compiled, place
from ringfence.policy.conditions import Circumstances, holds
from ringfence.policy.document import PathRule, Root
from ringfence.policy.facts_index import FactsIndex, join, normal, within
from ringfence.policy.globs import PathPattern, Views, split
from ringfence.policy.yaml_tree import show

_BUILTIN = Place(file="builtin")
_WORDS = {"read": "read", "write": "write", "delete": "delete", "maybe": "use"}


class PathUse(Struct, frozen=True, gc=False):
    """An access that a call makes. ``asked`` is absolute and unresolved; None where the path is not known beforehand."""

    asked: str | None
    shown: str
    access: str
    """``read``, ``write``, ``delete``, or ``maybe`` for an operand of a program that is not known."""
    span: tuple[int, int] | None = None
    glob: bool = False
    """``asked`` is a pattern that the shell replaces by the names of existing files."""
    into: str | None = None
    """Only where this is a folder: ``asked``, or what a pattern stands for, goes into it by its own name."""


class PathJudge:
    """Judges the paths of one call: holds what is the same for all of them."""

    __slots__ = ("_compiled", "_context", "_cwd", "_index", "_root_parts", "_root_sets", "_roots", "_seen")

    def __init__(self, compiled: Compiled, index: FactsIndex, context: Context, cwd: str) -> None:
        self._compiled = compiled
        self._index = index
        self._context = context
        self._cwd = cwd
        self._root_parts = split(index.facts.root)
        self._seen: dict[tuple[str | None, str], list[Reason]] = {}
        if compiled.only_root:
            self._root_sets: tuple[tuple[str | None, ...], ...] = ((index.facts.root,),)
        else:
            self._root_sets = tuple(tuple(self._real_root(root) for root in roots) for roots in compiled.roots)
        self._roots: tuple[tuple[str, ...], ...] | None = None

    def judge(self, use: PathUse) -> list[Reason]:
        """Everything that restricts this access; empty when it may happen."""
        if use.asked is None:
            return [self._default(use, "the path is not known before the command runs")]
        if use.into is not None:
            folder = self._index.path(use.into)
            if folder is None or folder.kind is not PathKind.DIRECTORY:
                return []
            if use.glob:
                return self._moved(use, folder)
        if use.glob:
            return self._expanded(use, use.asked)
        key = (use.asked, use.access)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._judge(use, use.asked)
        return found

    def inside(self, path: str) -> bool:
        """Whether a resolved path lies in the allowed roots of every scope."""
        if self._compiled.only_root:
            return within(path, self._index.facts.root)
        return all(any(root is not None and within(path, root) for root in roots) for roots in self._root_sets)

    def allowed_by(self, use: PathUse) -> Reason | None:
        """The reason that allows a file access of its own, after ``judge`` found nothing against it."""
        fact = self._index.path(use.asked or "")
        if fact is None:
            return None
        views = self._views(fact.real)
        for rule, scope, tier in self._compiled.access[use.access].allow.find(views):
            if self._holds(rule, unknown=False):
                return self._rule(rule, scope, tier, use)
        return Reason(
            rule=RuleId("working_tree.allowed_roots"),
            scope=Scope.REPOSITORY,
            place=place(self._compiled.roots[-1][0].at) if self._compiled.roots[-1] else _BUILTIN,
            tier=Tier.ALLOW,
            matched=show(use.shown, 200),
            because="inside an allowed root, and no rule restricts it",
            kind="path",
            span=use.span,
        )

    def _expanded(self, use: PathUse, asked: str) -> list[Reason]:
        """A pattern: every name it stands for is judged, and none may be taken for an option."""
        known = self._index.glob(asked)
        if known is None:
            return [self._fault(use, "nobody looked which files this pattern names, so it cannot be judged")]
        matches, complete = known
        if not complete:
            return [
                self._default(use, "which files the pattern names cannot be told: too many, or a folder cannot be read")
            ]
        found: list[Reason] = []
        for match in matches or (asked,):
            found += self.judge(replace(use, asked=match, glob=False))
            name = match.rpartition("/")[2]
            if name.startswith("-") and use.shown[:1] in "*?[":
                found.append(self._default(use, f"a file named `{show(name)}` would be taken for an option"))
        return found[:8]

    def _moved(self, use: PathUse, folder: PathFact) -> list[Reason]:
        """The names that a pattern stands for, each in a folder that they go into."""
        matches, _ = self._index.glob(use.asked or "") or ((), False)
        found: list[Reason] = []
        for match in matches:
            view = self._views(f"{folder.real}/{match.rpartition('/')[2]}")
            found += self._lists(use, [view])
            found += self._rules(use, [view], use.access)
        return found[:8]

    def _judge(self, use: PathUse, asked: str) -> list[Reason]:
        free = protected.FREE_TO_READ if use.access == "read" else protected.FREE_TO_WRITE
        if asked in free or (use.access == "maybe" and asked in protected.FREE_TO_READ):
            return []
        fact = self._index.path(asked)
        if fact is not None and self._is_calm(use, fact):
            return []
        if fact is None:
            return [
                self._fault(
                    use, "nobody looked where this path leads (a line may name 4,096 paths), so it cannot be judged"
                )
            ]
        if fact.kind is PathKind.UNREADABLE:
            return [self._default(use, "the path cannot be resolved")]
        views = [self._views(fact.real)]
        if asked != fact.real and (written := normal(asked)) != fact.real:
            views.append(self._views(written))
        found = self._lists(use, views)
        found += self._bounds(use, fact, views[0])
        accesses = ("read",) if use.access == "maybe" else (use.access,)
        for access in accesses:
            found += self._rules(use, views, access)
        return found

    def _is_calm(self, use: PathUse, fact: PathFact) -> bool:
        """The usual case, told at once: inside the one root, no link on the way, no component that any rule names."""
        calm = self._compiled.calm[use.access]
        if calm is None or not self._compiled.only_root or fact.kind is PathKind.UNREADABLE:
            return False
        real = fact.real
        if real != fact.asked or not within(real, self._index.facts.root) or not is_plain(real):
            return False
        return calm.passes(real.lower())

    def _lists(self, use: PathUse, views: list[Views]) -> list[Reason]:
        """The built-in lists and, for writing, removing and unknown programs, the strict write rules."""
        found: list[Reason] = []
        for view in views:
            why = "holds credentials or the fence's own state"
            hidden = self._compiled.hidden.find(view)
            if use.access == "delete":
                hidden += self._compiled.hidden.below(view)
            found += [self._builtin(use, Tier.DENY, "hidden", pattern, why) for pattern in hidden]
            if use.access == "read":
                continue
            names = self._compiled.protected.find(view)
            if use.access == "delete":
                names += self._compiled.protected.below(view)
                if any(not path for path in view.inside) or view.absolute == self._root_parts[: len(view.absolute)]:
                    names.append((".git", Tier.DENY))
            why = "can run code later or changes what the fence allows"
            found += [self._builtin(use, tier, "protected", pattern, why) for pattern, tier in names]
            if use.access == "maybe":
                for rule, scope, tier in self._compiled.access["write"].strict.find(view):
                    if self._holds(rule, unknown=True):
                        found.append(self._rule(rule, scope, tier, use))
        return found[:4]

    def _bounds(self, use: PathUse, fact: PathFact, view: Views) -> list[Reason]:
        inside = self.inside(fact.real)
        found = []
        if not inside:
            for root, scope in self._compiled.deny_absolute:
                if within(fact.real, normal(root.path)) or within(normal(fact.asked), normal(root.path)):
                    found.append(self._prefix(root, scope, use))
            if not self._reaches(use, view):
                where = f"leads to `{show(fact.real)}`, " if fact.real != use.shown else ""
                found.append(self._default(use, f"{where}outside the allowed roots"))
        return found

    def _reaches(self, use: PathUse, view: Views) -> bool:
        """Whether an absolute path rule allows an access outside the roots.

        A rule that holds the repository's own surroundings (``/tmp/**`` for a repository in /tmp) does not count: it
        means the box's own folder, and must not open the neighbours.
        """
        access = "read" if use.access == "maybe" else use.access
        if access == "delete" and not self._compiled.access[access].listed:
            access = "write"
        around = self._views(self._index.facts.root.rpartition("/")[0] or "/")
        for rule, _, _ in self._compiled.access[access].allow.find(view):
            pattern = PathPattern(rule.pattern)
            reaching = pattern.absolute or pattern.home
            if reaching and not around.covered_by(pattern, loose=False) and self._holds(rule, unknown=False):
                return True
        return False

    def _rules(self, use: PathUse, views: list[Views], access: str) -> list[Reason]:
        rules = self._compiled.access[access]
        found = []
        strict: list[tuple[PathRule, Scope, Tier]] = []
        for view in views:
            strict += rules.strict.find(view)
            if access == "delete":
                strict += rules.strict.below(view) + self._compiled.access["write"].strict.below(view)
                strict += self._compiled.access["write"].strict.find(view)
        for rule, scope, tier in dict.fromkeys(strict):
            if self._holds(rule, unknown=True):
                found.append(self._rule(rule, scope, tier, use))
        listed = rules.listed or (access == "delete" and self._compiled.access["write"].listed)
        if listed and not found:
            allows = rules.allow if rules.listed else self._compiled.access["write"].allow
            if not any(self._holds(rule, unknown=False) for rule, _, _ in allows.find(views[0])):
                found.append(self._default(use, f"no `files.{access}` rule allows it"))
        return found

    def _views(self, path: str) -> Views:
        if self._roots is None:
            unique = dict.fromkeys(root for roots in self._root_sets for root in roots if root is not None)
            self._roots = tuple(split(root) for root in ({self._index.facts.root: None} | unique))
        return Views(path, roots=self._roots, home=self._index.home_parts)

    def _real_root(self, root: Root) -> str | None:
        asked = join(self._index.facts.root, root.path)
        if asked == self._index.facts.root:
            return asked
        fact = self._index.path(asked)
        return None if fact is None or fact.kind is PathKind.UNREADABLE else fact.real

    def _holds(self, rule: PathRule, *, unknown: bool) -> bool:
        if rule.when is None:
            return True
        here = Circumstances(context=self._context, cwd=relative_place(self._index, self._cwd))
        return holds(rule.when, here, unknown=unknown)

    def _rule(self, rule: PathRule, scope: Scope, tier: Tier, use: PathUse) -> Reason:
        return Reason(
            rule=RuleId(rule.id),
            scope=scope,
            place=place(rule.at),
            tier=tier,
            matched=show(use.shown, 200),
            because=rule.because or f"{_WORDS[use.access]} of a path that `{rule.pattern}` covers",
            span=use.span,
        )

    def _prefix(self, root: Root, scope: Scope, use: PathUse) -> Reason:
        return Reason(
            rule=RuleId("working_tree.deny_path_prefixes"),
            scope=scope,
            place=place(root.at),
            tier=Tier.DENY,
            matched=show(use.shown, 200),
            because=f"leads below the denied prefix `{root.path}`",
            span=use.span,
        )

    def _builtin(self, use: PathUse, tier: Tier, kind: str, pattern: str, because: str) -> Reason:
        return Reason(
            rule=RuleId(f"builtin.{kind}"),
            scope=Scope.BUILTIN,
            place=_BUILTIN,
            tier=tier,
            matched=show(use.shown, 200),
            because=f"{_WORDS[use.access]} of `{pattern}`, which {because}",
            kind=kind,
            span=use.span,
        )

    def _default(self, use: PathUse, because: str) -> Reason:
        return Reason(
            rule=RuleId("commands.default"),
            scope=Scope.BUILTIN,
            place=self._compiled.default_place,
            tier=self._compiled.default,
            matched=show(use.shown, 200),
            because=f"{_WORDS[use.access]} of a path: {because}",
            kind="path",
            span=use.span,
        )

    def _fault(self, use: PathUse, because: str) -> Reason:
        return Reason(
            rule=RuleId("builtin.facts"),
            scope=Scope.BUILTIN,
            place=_BUILTIN,
            tier=Tier.DENY,
            matched=show(use.shown, 200),
            because=because,
            kind="fault",
            span=use.span,
        )


def relative_place(index: FactsIndex, path: str) -> str:
    """A directory as ``when.cwd`` sees it: from the root (``.`` for the root itself), absolute where it is outside."""
    root = index.facts.root
    fact = index.path(path)
    real = fact.real if fact is not None else normal(path)
    if real == root:
        return "."
    return real[len(root.rstrip("/")) + 1 :] if within(real, root) else real
