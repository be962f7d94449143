"""What one simple command means: what it starts, as a wrapper or by a script, and what a builtin changes. Pure."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.arithmetic import names
from ringfence.shell.builtins import BUILTINS
from ringfence.shell.collect import Stop
from ringfence.shell.directories import changed
from ringfence.shell.grammar import Grammar
from ringfence.shell.places import UNKNOWN, Flow, Places, change, directory, still
from ringfence.shell.reader import KEYWORDS, NUMERIC_OUTPUT
from ringfence.shell.syntax import Assignment, Redirection, SimpleCommand, Word
from ringfence.shell.wrapper_options import Wrapped, base_name
from ringfence.shell.wrappers import wrapped

MAX_COMMANDS = 20_000
MAX_WRAPPERS = 30
_PLAIN_LINE = re.compile(r"[\w./,:@%+^-][\w./,:@%+=^-]*(?: +[\w./,:@%+=^-]+)*\Z", re.ASCII)
_SAME_SHELL = frozenset({"eval", "command", "builtin"})
_OWN_ARGUMENTS = frozenset({"find", "gfind"})
"""Wrappers whose last words are not the last words of what they start."""


class Commands(Grammar):
    """The grammar with what simple commands mean."""

    vector = False
    """Started without a shell: there are no builtins."""

    def command(
        self, words: list[Word], assignments: list[Assignment], redirections: list[Redirection], start: int
    ) -> Flow:
        """One simple command as it was read."""
        if len(self.collected.commands) >= MAX_COMMANDS:
            raise Stop(start, f"more than {MAX_COMMANDS} commands")
        if not words:
            return self.bare(assignments, redirections)
        first = words[0]
        if not first.dynamic and not first.quoted and first.text in KEYWORDS and first.raw != first.text:
            self.collected.note(first.start, first.end, first.raw, "a reserved word in an odd spelling")
        end = max(words[-1].end, redirections[-1].end if redirections else 0)
        return self.started(words, assignments, redirections, self.place(start), end)

    def bare(self, assignments: list[Assignment], redirections: list[Redirection]) -> Flow:
        """Assignments that stay, and redirections without a command."""
        for assignment in assignments:
            value = assignment.value
            self.collected.assign(
                assignment.name, value, assignment.start, assignment.end, "shell",
                numeric=value is not None and _numeric(value.raw),
            )  # fmt: skip
            if self.followed(assignment):
                self.collected.follow(assignment.name, value.values or (value.text,))  # type: ignore[union-attr]
        self.collected.redirections.extend(redirections)
        self.collected.directories.extend(directory(self.places) for _ in redirections)
        return still(self.places)

    def followed(self, assignment: Assignment) -> bool:
        """Whether a variable surely holds this value from here on."""
        value = assignment.value
        if value is None or value.tilde or (value.dynamic and not value.values):
            return False
        return not self.conditional and not self.loops and self.collected.only_once(assignment.name)

    def started(
        self, words: Sequence[Word], assignments: Sequence[Assignment] = (), redirections: Sequence[Redirection] = (),
        start: int | None = None, end: int | None = None, *, vector: bool = False,
    ) -> Flow:  # fmt: skip
        """One simple command and all that it starts; answers where the shell stands afterwards."""
        self.vector = vector
        begin = words[0].start if start is None else start
        finish = words[-1].end if end is None else end
        return self.emit(words, assignments, redirections, self.places, start=begin, end=finish)

    def emit(
        self, words: Sequence[Word], assignments: Sequence[Assignment], redirections: Sequence[Redirection], places: Places,
        *, start: int | None = None, end: int | None = None, wrapper: int | None = None, depth: int = 0,
        remote: bool = False, privileged: bool = False, covered: bool = False, extra: bool = False, function: bool = True,
    ) -> Flow:  # fmt: skip
        """Record one command, look through it if it is a wrapper, follow it if it is a builtin."""
        index = len(self.collected.commands)
        for assignment in assignments:
            self.collected.lent(assignment)
        self.collected.commands.append(
            SimpleCommand(
                words=tuple(words), assignments=tuple(assignments), redirections=tuple(redirections),
                directory=directory(places), start=words[0].start if start is None else start,
                end=words[-1].end if end is None else end, wrapper=wrapper, remote=remote,
                privileged=privileged, covered=covered, extra_arguments=extra,
            )
        )  # fmt: skip
        found = wrapped(words)
        if found:
            self.collected.spend(8 * len(words), self.pos)
        if found is not None and extra and not any(item.named for item in found):
            why = "which program this starts is not known before it runs: its words are added then"
            self.collected.note(words[0].start, words[-1].end, words[0].raw, why)
        if found is not None and depth >= MAX_WRAPPERS:
            self.collected.note(
                words[0].start, words[-1].end, words[0].raw, f"more than {MAX_WRAPPERS} wrappers in one another"
            )
            self.last_of_wrappers(words, places, index)
            found = None
        flow = None
        if found:
            flow = self.inside(index, found, places, depth, remote=remote, privileged=privileged, covered=covered)
        first = words[0]
        if first.dynamic or remote:
            return flow or still(places)
        if flow is not None and first.text in _SAME_SHELL:
            return flow
        return self.builtin(words, places, function=function)

    def last_of_wrappers(self, words: Sequence[Word], places: Places, wrapper: int) -> None:
        """Past the cap: the first word that is no wrapper, so that deny still sees it."""
        for number, word in enumerate(words):
            if word.text.startswith("-") or "=" in word.text:
                continue
            found = wrapped(words[number : number + 2])
            if not found or any(item.privileged or item.remote or item.covered for item in found):
                self.emit(words[number:], (), (), places, wrapper=wrapper, depth=0)
                return

    def inside(
        self,
        index: int,
        found: list[Wrapped],
        places: Places,
        depth: int,
        *,
        remote: bool,
        privileged: bool,
        covered: bool,
    ) -> Flow | None:
        """The commands that a wrapper starts."""
        collected = self.collected
        outer = collected.commands[index]
        flow: Flow | None = None
        inner_indexes: list[int] = []
        added = outer.extra_arguments and base_name(outer.words[0]) not in _OWN_ARGUMENTS
        for item in found:
            if item.why:
                at = item.at or outer.words[0]
                collected.note(at.start, outer.end, outer.words[0].raw, item.why)
            first = len(collected.commands)
            where = places if item.directory == "." else change(places, item.directory, logical=False).ok
            flags = {
                "remote": remote or item.remote,
                "privileged": privileged or item.privileged,
                "covered": covered or item.covered,
            }
            assigned = [_assigned(word) for word in item.assigned]
            if item.words:
                flow = self.emit(
                    item.words, assigned, (), where, wrapper=index, depth=depth + 1, extra=item.extra or added,
                    function=outer.words[0].text not in _SAME_SHELL, **flags,
                )  # fmt: skip
                inner_indexes.append(first)
            elif item.script is not None and item.at is not None:
                flow = self.script_inside(item, where)
                inner_indexes.extend(self.adopt(first, index, flags))
            if assigned and not item.words:
                collected.commands[index] = replace(
                    collected.commands[index], assignments=(*outer.assignments, *assigned)
                )
        collected.commands[index] = replace(
            collected.commands[index], wraps=tuple(inner_indexes), is_wrapper=not all(item.covered for item in found)
        )
        return flow

    def adopt(self, first: int, wrapper: int, flags: dict[str, bool]) -> list[int]:
        """Mark what a script started as started by the wrapper; the direct ones are returned."""
        direct: list[int] = []
        commands = self.collected.commands
        for number in range(first, len(commands)):
            command = commands[number]
            if command.wrapper is None:
                direct.append(number)
                command = replace(command, wrapper=wrapper)
            if any(flags.values()):
                command = replace(
                    command,
                    remote=command.remote or flags["remote"],
                    privileged=command.privileged or flags["privileged"],
                    covered=command.covered or flags["covered"],
                )
            commands[number] = command
        return direct

    def script_inside(self, item: Wrapped, places: Places) -> Flow:
        """A text that a shell reads as a line of its own."""
        at = item.at
        assert at is not None
        inner = type(self)(item.script or "", self.collected, span=(at.start, at.end), depth=self.depth + 1)
        inner.places = places
        inner.conditional, inner.loops = self.conditional, self.loops
        own = item.reader in ("eval", "trap")
        inner.bash = self.bash if own else item.reader in ("bash", "rbash")
        if (
            not own
            and item.reader not in ("bash", "rbash", "sh", "dash", "ash")
            and not _PLAIN_LINE.match(item.script or "")
        ):
            self.collected.note(at.start, at.end, at.raw, f"`{item.reader}` reads lines differently from bash")
        self.collected.spend(len(inner.text), self.pos)
        values = self.collected.values
        if not own:
            self.collected.values = {}
        if inner.depth > 40:
            inner.salvage(Stop(0, "scripts nested too deeply"))
            return still(UNKNOWN)
        flow = inner.run(top=False)
        self.collected.values = values
        return flow if item.reader == "eval" else still(places)

    # Builtins.

    def builtin(self, words: Sequence[Word], places: Places, *, function: bool) -> Flow:
        """What a builtin changes; answers where the shell stands afterwards."""
        name = words[0].text
        if self.vector:
            return still(places)
        if function and name in self.collected.functions:
            return still(UNKNOWN)
        if name in ("cd", "chdir", "pushd", "popd"):
            return changed(name, words, places, assigned=self.collected.was_assigned("CDPATH", "HOME"))
        if (builtin := BUILTINS.get(name)) is not None:
            builtin(self, list(words))
        return still(places)

    def declared(self, name: str, value: Word | None, word: Word, scope: str) -> Assignment:
        """A variable that a builtin sets."""
        return self.collected.assign(name, value, word.start, word.end, scope)

    def arithmetic_word(self, word: Word) -> None:
        """A builtin's word that is arithmetic."""
        for name, sets, _ in names(word.text):
            self.collected.evaluate(name, word.start, word.end, sets=sets)

    def doubt(self, word: Word, why: str) -> None:
        """A builtin's word that may be evaluated or change what follows."""
        self.note_word(word, why)

    def alias(self, name: str, word: Word) -> None:
        """An alias is a definition of its name; its text is looked into as a line."""
        self.collected.functions.append(name)
        if not word.dynamic:
            text = word.text.partition("=")[2]
            self.script_inside(Wrapped(script=text, at=word, reader="eval"), UNKNOWN)

    def compound(self, name: str, word: Word, text: str, *, array: bool) -> bool:
        """Whether ``declare`` reads a value as a list: a parenthesis in it, and an array to go to."""
        if not (array or name in self.collected.arrays):
            return False
        if re.match(rf"{name}\+?=\(", word.raw):
            return False
        return word.dynamic or text.startswith("(")

    def number(self, word: Word) -> bool:
        """Whether a dynamic word is surely one number."""
        if _numeric(word.raw):
            return True
        name = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", word.raw)
        return bool(name) and name[1] in self.collected.assigned and name[1] not in self.collected.not_numeric  # type: ignore[index]


def _numeric(raw: str) -> bool:
    """Whether a word surely becomes one number: arithmetic, or the output of a program that counts."""
    return bool(NUMERIC_OUTPUT.match(raw) or re.fullmatch(r"\"?\$(?:[#?$!]|\{#\w+\}|\(\([^`]*\)\))\"?", raw))


def _assigned(word: Word) -> Assignment:
    """``NAME=value`` that a wrapper sets for what it starts."""
    name, _, text = word.text.partition("=")
    value = None if word.dynamic else replace(word, text=text)
    return Assignment(name=name, value=value, start=word.start, end=word.end)
