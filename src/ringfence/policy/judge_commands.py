"""Every simple command of a line, one by one: rules, wrappers, options, directories, assignments. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.model.call import Context
from ringfence.model.decision import Place, Reason
from ringfence.model.facts import PathKind
from ringfence.model.ids import RuleId
from ringfence.model.tier import Scope, Tier
from ringfence.policy import protected
from ringfence.policy.assignments import is_free
from ringfence.policy.compile import Command, Compiled, place
from ringfence.policy.conditions import Circumstances, holds, only_remote, push_targets
from ringfence.policy.facts_index import FactsIndex, join, normal, within
from ringfence.policy.globs import PathPattern, split
from ringfence.policy.judge_paths import PathJudge, PathUse, relative_place
from ringfence.policy.match import Texts, doubt, has_argument, match_prefix, names_may_be
from ringfence.policy.prepare import MAX_COMMANDS, Prepared, PreparedCommand
from ringfence.policy.understanding import Concern
from ringfence.policy.yaml_tree import show
from ringfence.shell.syntax import Assignment, SimpleCommand

_BUILTIN = Place(file="builtin")
_EXPLICIT = frozenset({"rule", "protected", "hidden", "floor", "fault"})


class CommandJudge:
    """Judges the commands of one line against one compiled policy."""

    __slots__ = ("_allows", "_calm_bases", "_compiled", "_context", "_index", "_paths", "_prepared", "_usual")

    def __init__(self, compiled: Compiled, index: FactsIndex, prepared: Prepared, context: Context) -> None:
        self._compiled = compiled
        self._index = index
        self._prepared = prepared
        self._context = context
        self._paths = PathJudge(compiled, index, context, prepared.cwd)
        self._calm_bases: set[str] = set()
        """Directories that nothing speaks against, so that the parts of a pipeline ask once."""
        self._allows: dict[int, list[tuple[Command, int]]] = {}
        """By command, the rules that allow it: what it starts may need them."""
        self._usual = () if index.facts.root == "/usr" or within(index.facts.root, "/usr") else ("/usr/", "/bin/")

    def judge(self) -> list[Reason]:
        """The reasons of every command, redirection and assignment of the line, in order; never empty."""
        line = self._prepared.line
        reasons: list[Reason] = []
        for command in self._prepared.commands:
            reasons += self._skimmed(command) if command.skimmed else self._command(command)
        if len(line.commands) > MAX_COMMANDS:
            why = f"the line starts {len(line.commands)} commands; {MAX_COMMANDS} are looked at"
            reasons.append(self.default("unexplained", f"{len(line.commands)} commands", why))
        for use in self._prepared.redirections:
            reasons += self._paths.judge(use)
        for assignment in line.assignments:
            reasons += self._assignment(assignment)
        for name in line.functions:
            reasons.append(self.default("unexplained", name, "a function or alias is defined: it can take any name"))
        for place_ in line.unexplained:
            reasons.append(self.default("unexplained", place_.text, place_.why, (place_.start, place_.end)))
        if not reasons:
            empty = not line.commands and not line.redirections
            reasons.append(
                self.default("default", line.source, "there is no command on the line" if empty else "nothing")
            )
        return reasons

    def default(
        self, kind: str, matched: str, because: str, span: tuple[int, int] | None = None, tier: Tier | None = None
    ) -> Reason:
        """A reason with the tier of what is not surely understood or allowed."""
        return Reason(
            rule=RuleId("commands.default"),
            scope=Scope.BUILTIN,
            place=self._compiled.default_place,
            tier=self._compiled.default if tier is None else tier,
            matched=show(matched, 200),
            because=because,
            kind=kind,
            span=span,
        )

    def _command(self, prepared: PreparedCommand) -> list[Reason]:
        command = prepared.command
        reasons: list[Reason] = []
        for assignment in command.assignments:
            if assignment.name != "IFS" or not command.words or command.words[0].text != "read":
                reasons += self._assignment(assignment)
        for use in prepared.redirections:
            reasons += self._paths.judge(use)
        if not command.words:
            if not reasons and command.redirections and not command.assignments:
                # `> file` alone: nothing runs, and the paths were judged.
                reasons.append(self.default("path", "redirection", "only redirections, all inside", None, Tier.ALLOW))
            return reasons
        if command.words[0].dynamic:
            why = "which program this starts is not known before it runs"
            return [*reasons, self.default("unexplained", command.words[0].raw, why, _span(command))]
        opinion, allows = self._opinion(prepared)
        reasons += opinion
        lent = bool(command.is_wrapper and command.wraps) and self._compiled.lends
        if command.covered:
            starter = self._prepared.line.commands[command.wrapper or 0]
            allows = [*allows, *self._allows.get(id(starter), ())]
        if command.wraps:
            self._allows[id(command)] = allows
        if command.covered:
            # Its starter's rule speaks for it; what it reaches counts as of any other.
            reasons = [reason for reason in reasons if reason.kind in _EXPLICIT]
            reasons += [*self._written(prepared), *self._paths_of(prepared, allows)]
            if prepared.program is not None:
                reasons += self._paths.judge(PathUse(prepared.program, command.words[0].text, "read", _span(command)))
            return [*reasons, *(self._network(prepared) if prepared.understood.connects else ())]
        if not opinion and not lent:
            reasons.append(self.default("default", prepared.joined, "no rule covers this command", _span(command)))
        reasons += self._written(prepared)
        reasons += self._concerns(prepared, allows, lent=lent)
        reasons += self._directories(prepared)
        reasons += self._paths_of(prepared, allows)
        return reasons

    def _skimmed(self, prepared: PreparedCommand) -> list[Reason]:
        if not prepared.texts or prepared.texts[0] is None:
            return []
        strict = [reason for reason in self._opinion(prepared)[0] if reason.tier is not Tier.ALLOW]
        return [*strict, *self._written(prepared)]

    def _paths_of(self, prepared: PreparedCommand, allows: list[tuple[Command, int]]) -> list[Reason]:
        found: list[Reason] = []
        for use in prepared.uses:
            if use.asked is None and use.access == "read" and any("unknown" in rule.rule.grants for rule, _ in allows):
                continue  # the rule leaves reading of what is not known beforehand to the box's view
            found += self._paths.judge(use)
        return found

    def _opinion(self, prepared: PreparedCommand) -> tuple[list[Reason], list[tuple[Command, int]]]:
        """The reasons of the rules that speak about a command; the allowing rules and how many words each names."""
        command = prepared.command
        found: list[Reason] = []
        allows: list[tuple[Command, int]] = []
        name = command.words[0].text
        base = name.rpartition("/")[2] if "/" in name else name
        rules: Sequence[Command] = self._compiled.by_name.get(base, ())
        if "/" in name:
            rules = [*rules, *self._compiled.by_path, *self._behind_link(prepared, base)]
        if base == "ringfence" or (base.startswith("python") and prepared.texts[1:3] == ("-m", "ringfence")):
            found += self._own(prepared)
        if not rules:
            return found, allows
        barred = command.remote or command.privileged
        covers = None
        covered = False
        plain = prepared.canonical is prepared.texts
        second = prepared.texts[1] if len(prepared.texts) > 1 else None
        for rule in rules:
            if plain and rule.tier is Tier.ALLOW and rule.rest and second not in rule.rest[0]:
                continue  # most rules of a program differ in the first word after it
            length = match_prefix(rule, prepared.texts, prepared.canonical)
            if not length:
                continue
            if rule.tier is Tier.ALLOW:
                if barred:
                    continue
                if rule.has_path or covers is None:
                    is_program = self._is_program(rule, prepared)
                    covers = covers if rule.has_path else is_program
                else:
                    is_program = covers
                if not is_program:
                    continue
            if not self._applies(rule, prepared, length):
                continue
            if rule.tier is Tier.ALLOW:
                allows.append((rule, length))
            found.append(self._reason(rule, prepared))
            covered = covered or rule.tier is not Tier.ASK or (rule.scope, "commands") not in self._compiled.locked
        if found and not covered:
            why = "a wider scope locks this section: the question alone does not open it"
            found.append(self.default("default", prepared.joined, why, _span(command)))
        if barred and not found:
            why = "runs on another machine" if command.remote else "runs with other rights"
            found.append(self.default("default", prepared.joined, f"{why}; no allow rule reaches it", _span(command)))
        return found, allows

    def _behind_link(self, prepared: PreparedCommand, base: str) -> list[Command]:
        """Deny and ask rules for the program that a path really leads to: a link is no other name for it."""
        fact = self._index.path(prepared.program or "")
        name = base if fact is None else fact.real.rpartition("/")[2]
        if name == base:
            return []
        return [rule for rule in self._compiled.by_name.get(name, ()) if rule.tier is not Tier.ALLOW]

    def _applies(self, rule: Command, prepared: PreparedCommand, length: int) -> bool:
        strict = rule.tier is not Tier.ALLOW
        written = rule.rule
        if written.unless_args or written.any_args:
            arguments = prepared.arguments(length)
            patterns = prepared.patterns(length) if None in arguments else ()
            if written.unless_args and _has(written.unless_args, arguments, patterns, widens=strict):
                return False
            if written.any_args and not (
                _has(written.any_args, arguments, patterns, widens=not strict)
                or (strict and any(word in prepared.values for word in written.any_args))
            ):
                return False
        return written.when is None or holds(written.when, self._circumstances(prepared), unknown=strict)

    def _circumstances(self, prepared: PreparedCommand) -> Circumstances:
        branches: tuple[str | None, ...] = ()
        remote = None
        own = True
        texts = prepared.canonical
        if texts[0] == "git" or str(texts[0]).endswith("/git"):
            own = not prepared.understood.essential
            if len(texts) > 1 and texts[1] == "push":
                if None in texts:
                    branches = (None,)
                else:
                    branches, remote = push_targets(tuple(str(text) for text in texts[2:]), self._context)
            elif len(texts) > 1 and texts[1] in {"fetch", "pull", "ls-remote"}:
                operands = [text for text in texts[2:] if text is None or not text.startswith("-")]
                remote = operands[0] if operands else only_remote(self._context)
        base = prepared.bases[0] if len(prepared.bases) == 1 else None
        cwd = None if base is None else relative_place(self._index, base)
        return Circumstances(context=self._context, cwd=cwd, branches=branches, remote=remote, own_repository=own)

    def _is_program(self, rule: Command, prepared: PreparedCommand) -> bool:
        """Whether an allow rule's program is the one this word starts."""
        name = prepared.command.words[0].text
        paths = [first for first in rule.program if "/" in first]
        if "/" in name:
            if prepared.program_folder is None:
                return False
            fact = self._index.path(prepared.program_folder)
            if fact is None or fact.kind is not PathKind.DIRECTORY:
                return False
            real = f"{fact.real.rstrip('/')}/{name.rpartition('/')[2]}"
            target = self._index.path(prepared.program or "")
            if target is not None and any(self._is_at(path, real, target.real) for path in paths):
                return True
            trusted = fact.real in self._compiled.directories
            return trusted and len(paths) < len(rule.program)
        if len(paths) == len(rule.program):
            return False
        real_program = self._index.program(name)
        if real_program is None or real_program.startswith(self._usual):
            return True
        # A program found inside the tree is the agent's own text, whatever its name.
        return not self._paths.inside(real_program) or any(
            within(real_program, folder) for folder in self._compiled.directories
        )

    def _is_at(self, path: str, real: str, target: str) -> bool:
        """Whether a rule's program path, exact or a glob, is where this program lies. A glob covers no link that leads out."""
        if "*" not in path:
            return normal(join(self._index.facts.root, path)) == real
        root = self._index.facts.root
        if within(real, root) and not within(target, root):
            return False
        inside = within(real, root) and not path.startswith("/")
        return PathPattern(path).matches(split(real[len(root) :] if inside else real), loose=False) and (
            inside or path.startswith("/")
        )

    def _own(self, prepared: PreparedCommand) -> list[Reason]:
        rest = [text for text in prepared.texts[1:] if text not in {"-m", "ringfence"}]
        if rest and rest[0] in protected.OWN_COMMANDS:
            return []
        return [
            Reason(
                rule=RuleId("builtin.protected"),
                scope=Scope.BUILTIN,
                place=_BUILTIN,
                tier=Tier.DENY,
                matched=prepared.joined,
                because="the fence is not steered by what it fences; check, why and doctor are open",
                kind="protected",
                span=_span(prepared.command),
            )
        ]

    def _reason(self, rule: Command, prepared: PreparedCommand) -> Reason:
        written = rule.rule
        return Reason(
            rule=RuleId(written.id),
            scope=rule.scope,
            place=rule.place,
            tier=rule.tier,
            matched=prepared.joined,
            because=rule.because + doubt(rule, prepared),
            span=_span(prepared.command),
            approvals=written.approvals,
            not_owner=written.not_owner,
        )

    def _written(self, prepared: PreparedCommand) -> list[Reason]:
        """Denied substrings and denied prefixes, both judged on the words as written."""
        found = []
        joined = prepared.whole
        for text, scope, where in self._compiled.substrings:
            if text in joined:
                found.append(substring_reason(text, scope, where, joined, _span(prepared.command)))
        prefixes = self._compiled.deny_written_texts
        if not prefixes:
            return found
        for word in prepared.command.words[1:]:
            text = word.raw if word.dynamic else word.text
            if not text.startswith(prefixes):
                continue
            for root, scope in self._compiled.deny_written:
                if not text.startswith(root.path) or (text.startswith("/") and self._within_roots(text)):
                    continue
                found.append(
                    Reason(
                        rule=RuleId("working_tree.deny_path_prefixes"),
                        scope=scope,
                        place=place(root.at),
                        tier=Tier.DENY,
                        matched=show(text, 200),
                        because=f"begins with the denied prefix `{root.path}`",
                        span=(word.start, word.end),
                    )
                )
        return found

    def _within_roots(self, text: str) -> bool:
        fact = self._index.path(text)
        return self._paths.inside(fact.real if fact is not None else normal(text))

    def _concerns(self, prepared: PreparedCommand, allows: list[tuple[Command, int]], *, lent: bool) -> list[Reason]:
        """Effects of options that no allowing rule names or grants, and connections where they are not allowed."""
        understood = prepared.understood
        found = []
        for concern in understood.concerns:
            if any(self._says_yes(rule, length, concern, prepared) for rule, length in allows):
                continue
            matched = show(_words_text(prepared.command, concern.words), 200) or prepared.joined
            span = _word_span(prepared.command, concern.word)
            found.append(self.default("option", matched, concern.why, span))
        if understood.connects and (allows or lent):
            found += self._network(prepared)
        return found

    def _says_yes(self, rule: Command, length: int, concern: Concern, prepared: PreparedCommand) -> bool:
        if concern.kind.value.replace("_", "-") in rule.rule.grants:
            return True
        essential = prepared.understood.essential
        named = essential[:length] if essential else range(length)
        # Naming the program alone says nothing about what it reads from standard input.
        return any(concern.words) and all(word in named for word in concern.words)

    def _network(self, prepared: PreparedCommand) -> list[Reason]:
        """What an allowed command that connects meets: the network rules for the hosts on the line.

        Hosts that no word names are left to the egress worker, which sees every connection; where the network is off
        there is none, and the command is not allowed.
        """
        from ringfence.model.call import NetworkAccess
        from ringfence.policy.judge_network import judge_network

        span = _span(prepared.command)
        off = self._compiled.network_off
        if off or not any(tier is not Tier.DENY for _, _, _, tier in self._compiled.network):
            reason = self.default("rule", prepared.joined, "opens a connection, and the network is off", span)
            return [_moved(reason, place(off[0][0])) if off else reason]
        reasons: list[Reason] = []
        here = self._circumstances(prepared)
        for host in prepared.understood.hosts:
            if host is None:
                continue
            request = NetworkAccess(host=host[0], port=host[1])
            reasons += [r for r in judge_network(self._compiled, request, here) if r.tier is not Tier.ALLOW]
        return reasons

    def _directories(self, prepared: PreparedCommand) -> list[Reason]:
        """Where the command runs must be known and inside, and no repository that brings its own git config."""
        found: list[Reason] = []
        command = prepared.command
        is_git = (prepared.texts[0] or "").rpartition("/")[2] == "git"
        for base in (*prepared.bases, *prepared.elsewhere):
            if base is None:
                why = "the directory it runs in is not known before it runs"
                found.append(self.default("path", prepared.joined, why, _span(command)))
                continue
            if base not in self._calm_bases:
                against = self._paths.judge(PathUse(base, base, "read", _span(command)))
                if base in prepared.bases[1:]:
                    against = [_if_moved_not(reason) for reason in against]
                if not against:
                    self._calm_bases.add(base)
                found += against
            if not is_git:
                continue
            fact = self._index.path(base)
            if fact is not None and fact.git_directory:
                why = "a nested repository brings its own git configuration, which can name programs"
                found.append(self.default("path", base, why, _span(command)))
        return found

    def _assignment(self, assignment: Assignment) -> list[Reason]:
        if is_free(assignment, self._compiled.assignable, local=self._compiled.local_variables):
            return []
        why = f"sets `{show(assignment.name, 60)}`, which `process.env.assign` does not list"
        return [self.default("option", assignment.name, why, (assignment.start, assignment.end))]


def substring_reason(text: str, scope: Scope, where: Place, matched: str, span: tuple[int, int] | None) -> Reason:
    """A DENY by ``deny_substrings``."""
    return Reason(
        rule=RuleId("commands.deny_substrings"),
        scope=scope,
        place=where,
        tier=Tier.DENY,
        matched=show(matched, 200),
        because=f"holds the denied text `{show(text)}`",
        span=span,
    )


def _has(wanted: Sequence[str], arguments: Texts, patterns: Sequence[str], *, widens: bool) -> bool:
    """Whether an argument, or a name that a pattern may stand for, is one of the wanted ones."""
    return has_argument(wanted, arguments, widens=widens, patterns=len(patterns)) or (
        not widens and any(names_may_be(wanted, pattern) for pattern in patterns)
    )


def _if_moved_not(reason: Reason) -> Reason:
    hint = " (where it runs if an earlier `cd` fails: `cd DIR && …` rules that out)"
    return replace(reason, because=reason.because + hint)


def _moved(reason: Reason, where: Place) -> Reason:
    return replace(reason, place=where, rule=RuleId("network.allow"))


def _span(command: SimpleCommand) -> tuple[int, int]:
    return (command.start, command.end)


def _words_text(command: SimpleCommand, words: tuple[int, ...]) -> str:
    return " ".join(command.words[word].text for word in words if 0 <= word < len(command.words))


def _word_span(command: SimpleCommand, word: int) -> tuple[int, int]:
    if 0 <= word < len(command.words):
        return (command.words[word].start, command.words[word].end)
    return _span(command)


__all__ = ["CommandJudge", "substring_reason"]
