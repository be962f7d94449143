"""A command line, or an argument vector, to everything that it starts, reads, writes and sets. Pure.

:func:`parse_line` never raises: what it cannot read is an ``Unexplained``, and the text behind it is still searched
for commands, so that a deny rule finds them.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.arithmetic import names
from ringfence.shell.braces import Piece
from ringfence.shell.builtins import BUILTINS
from ringfence.shell.characters import suspects
from ringfence.shell.collect import Collected, Stop
from ringfence.shell.directories import changed
from ringfence.shell.grammar import Grammar
from ringfence.shell.places import UNKNOWN, Flow, Places, change, directory, merge, still
from ringfence.shell.plain import Part, split
from ringfence.shell.reader import KEYWORDS, NUMERIC_OUTPUT
from ringfence.shell.syntax import Assignment, Line, Redirection, SimpleCommand, Word
from ringfence.shell.wrapper_options import Wrapped, base_name
from ringfence.shell.wrapper_scripts import reads_elsewhere, reads_input
from ringfence.shell.wrapper_specs import SHELLS
from ringfence.shell.wrappers import NAMES, wrapped

MAX_COMMANDS = 20_000
MAX_PARTS = 1_000
MAX_SALVAGED = 5_000
MAX_SALVAGES = 20
MAX_WRAPPERS = 30
_SEPARATORS = re.compile(r"[;|&(){}`\n<>!]+|\$[({]?")
_PLAIN_LINE = re.compile(r"[\w./,:@%+^-][\w./,:@%+=^-]*(?: +[\w./,:@%+=^-]+)*\Z", re.ASCII)
_SAME_SHELL = frozenset({"eval", "command", "builtin"})


def parse_line(line: str) -> Line:
    """What bash would do with ``line``. Linear in its length; what is not surely read is in ``unexplained``."""
    parts = split(line)
    if parts is not None and len(parts) <= MAX_PARTS:
        return _plain(line, parts)
    return _parse(line)


def parse_argv(argv: tuple[str, ...]) -> Line:
    """The same for a program started without a shell: every word is literal, wrappers are seen through all the same."""
    words, position = [], 0
    for argument in argv:
        raw = (
            argument
            if re.fullmatch(r"[\w./,:@%+=^-]+", argument, re.ASCII)
            else "'" + argument.replace("'", "'\\''") + "'"
        )
        words.append(Word(text=argument, raw=raw, start=position, end=position + len(raw), quoted=raw != argument))
        position += len(raw) + 1
    source = " ".join(word.raw for word in words)
    collected = Collected(source)
    parser = Parser("", collected, span=(0, len(source)))
    if not words or not words[0].text:
        collected.note(0, 0, "", "no program is named")
    else:
        _guarded(parser, lambda: parser.vector_started(words))
        _characters(source, collected, vector=True)
    return _finish(source, collected)


def _plain(line: str, parts: list[Part]) -> Line:
    """A line of plain words: every command is known, only what it starts and where it runs is left to find out."""
    first = parts[0].words[0].text
    if len(parts) == 1 and first not in _NOT_PLAIN and first.rsplit("/", 1)[-1] not in _NOT_PLAIN:
        redirections = parts[0].redirections
        end = max(parts[0].words[-1].end, redirections[-1].end if redirections else 0)
        command = SimpleCommand(
            words=tuple(parts[0].words), redirections=tuple(redirections), start=parts[0].words[0].start, end=end
        )
        return Line(source=line, commands=(command,))
    collected = Collected(line)
    parser = Parser(line, collected)
    _guarded(parser, lambda: parser.run_plain(parts))
    return _finish(line, collected)


def _parse(line: str) -> Line:
    collected = Collected(line)
    parser = Parser(line, collected)
    _guarded(parser, parser.run)
    _characters(line, collected, quoted=parser.data)
    return _finish(line, collected)


def _guarded(parser: "Parser", read: "object") -> None:
    try:
        read()  # type: ignore[operator]
    except RecursionError:
        parser.salvage(Stop(0, "nested too deeply"))
    except Stop as stop:
        parser.salvage(stop)


def _characters(
    line: str, collected: Collected, *, quoted: Sequence[tuple[int, int]] = (), vector: bool = False
) -> None:
    """Characters that a person would not see, or would see in another place."""
    for suspect in suspects(line):
        fine = suspect.quoted_is_fine and (vector or any(start <= suspect.position < end for start, end in quoted))
        if not fine:
            collected.note(
                suspect.position,
                suspect.position + 1,
                line[suspect.position],
                f"an invisible or odd character: {suspect.name}",
            )


def _finish(line: str, collected: Collected) -> Line:
    unexplained = collected.unexplained
    if len(unexplained) > 1:
        unexplained = sorted(dict.fromkeys(unexplained), key=lambda item: item.start)
    return Line(
        source=line,
        commands=tuple(collected.commands),
        redirections=tuple(collected.redirections),
        directories=tuple(collected.directories),
        assignments=(*collected.assignments, *collected.loops),
        functions=tuple(dict.fromkeys(collected.functions)),
        unexplained=tuple(unexplained),
    )


class Parser(Grammar):
    """The grammar with what simple commands mean."""

    def __init__(
        self, text: str, collected: Collected, *, base: int = 0, span: tuple[int, int] | None = None, depth: int = 0
    ) -> None:
        super().__init__(text, collected, base=base, span=span, depth=depth)
        self.data: list[tuple[int, int]] = []
        self.vector = False

    def run(self, *, top: bool = True) -> Flow:
        """Read the whole text; a stop becomes a note and a search of the rest."""
        try:
            flow = self.script()
        except Stop as stop:
            self.salvage(stop)
            flow = still(UNKNOWN)
        if top:
            self.scripts_from_input()
            self.collected.finish_arithmetic()
            if self.collected.unexplained:
                self.quoted_substitutions()
        return flow

    def run_plain(self, parts: list[Part]) -> None:
        """The same as reading the text, for one that was split already."""
        index = 0
        while index < len(parts):
            flow, index = self.plain_pipeline(parts, index)
            while index < len(parts) and parts[index].joined in ("&&", "||"):
                both = parts[index].joined == "&&"
                self.places = flow.ok if both else flow.fail
                right, index = self.plain_pipeline(parts, index)
                if both:
                    flow = Flow(right.ok, merge(flow.fail, right.fail))
                else:
                    flow = Flow(merge(flow.ok, right.ok), right.fail)
            self.places = flow.any
        self.scripts_from_input()
        self.collected.finish_arithmetic()
        if self.collected.unexplained:
            self.quoted_substitutions()

    def plain_pipeline(self, parts: list[Part], index: int) -> tuple[Flow, int]:
        """The commands joined by ``|`` from ``index`` on, and the index behind them."""
        before, first = self.places, index
        while True:
            part = parts[index]
            self.places = before
            self.pos = part.words[-1].end
            flow = self.command(part.words, [], part.redirections, part.words[0].start)
            index += 1
            if index >= len(parts) or parts[index].joined != "|":
                break
        self.places = before
        return (flow if index - first == 1 else still(before)), index

    # Parts that could not be read.

    def salvage(self, stop: Stop) -> None:
        """Note where reading ended, and take every word behind it that could start a command for one that does."""
        position = min(stop.position, self.size)
        self.note(position, self.size, stop.why)
        self.collected.salvages += 1
        if self.collected.salvages > MAX_SALVAGES:
            return
        seen: set[tuple[str, ...]] = set()
        for chunk in _SEPARATORS.split(self.text[position:]):
            words = [re.sub(r"[\"'\\]", "", part) for part in chunk.split()[:40]]
            while words and (words[0] in KEYWORDS or not words[0] or re.match(r"[A-Za-z_]\w*=", words[0])):
                words.pop(0)
            if not words or tuple(words[:3]) in seen:
                continue
            if len(seen) >= MAX_SALVAGED:
                break
            seen.add(tuple(words[:3]))
            first, last = self.place(position), self.place(self.size)
            found = [Word(text=word, raw=word, start=first, end=last) for word in words]
            try:
                self.emit(found, (), (), UNKNOWN, depth=MAX_WRAPPERS - 3)
            except Stop:
                continue

    def check_text(self, start: int, end: int) -> None:
        """Here-document bodies are data: typographic blanks in them are fine."""
        self.data.append((start, end))

    def single(self) -> Piece:
        """A single-quoted part."""
        start = self.pos
        piece = super().single()
        self.data.append((start, self.pos))
        return piece

    def double(self) -> list[Piece]:
        """A double-quoted part."""
        start = self.pos
        pieces = super().double()
        self.data.append((start, self.pos))
        return pieces

    # Simple commands.

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

    def vector_started(self, words: Sequence[Word]) -> None:
        """A program started without a shell."""
        self.started(words, vector=True)
        self.scripts_from_input()

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
        inner = Parser(item.script or "", self.collected, span=(at.start, at.end), depth=self.depth + 1)
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

    def scripts_from_input(self) -> None:
        """Here-documents get their bodies; a shell that reads its script from one has it read as a line of its own."""
        collected = self.collected
        bodies, collected.bodies = collected.bodies, {}
        for index in range(len(collected.commands)):
            command = collected.commands[index]
            if bodies and any(id(item) in bodies for item in command.redirections):
                filled = tuple(
                    replace(item, body=bodies[id(item)][1]) if id(item) in bodies else item
                    for item in command.redirections
                )
                collected.commands[index] = replace(command, redirections=filled)
            if index >= collected.shells_read:
                self.script_from_input(index)
        collected.shells_read = len(collected.commands)
        for index, item in enumerate(collected.redirections):
            if id(item) in bodies:
                collected.redirections[index] = replace(item, body=bodies[id(item)][1])

    def quoted_substitutions(self) -> None:
        """On a line that is not explained, quoted text may be evaluated after all: deny rules see what is in it."""
        words = [word for command in self.collected.commands for word in command.words]
        words += [item.value for item in self.collected.assignments if item.value is not None]
        for word in words[:MAX_SALVAGED]:
            if not word.dynamic and ("$(" in word.text or "`" in word.text):
                self.expansions(word.text, word.start, word.end)

    def script_from_input(self, index: int) -> None:
        """A shell without ``-c`` and without a file runs what it reads."""
        command = self.collected.commands[index]
        first = command.words[0]
        if first.dynamic or base_name(first) not in SHELLS or command.is_wrapper or not reads_input(command.words):
            return
        collected, start = self.collected, len(self.collected.commands)
        inputs = [item for item in command.redirections if item.input]
        body = inputs[-1].body if inputs and not reads_elsewhere(command.words) else None
        if body is None:
            collected.note(
                command.start, command.end, first.raw, f"`{first.text}` runs commands that it reads from its input"
            )
            return
        at = Word(text="", raw="", start=command.start, end=command.end)
        self.script_inside(Wrapped(script=body, at=at, reader=base_name(first)), UNKNOWN)
        direct = self.adopt(
            start, index, {"remote": command.remote, "privileged": command.privileged, "covered": command.covered}
        )
        collected.commands[index] = replace(command, wraps=tuple(direct), is_wrapper=bool(direct))

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


_OWN_ARGUMENTS = frozenset({"find", "gfind"})
"""Wrappers whose last words are not the last words of what they start."""
_NOT_PLAIN = KEYWORDS | NAMES | frozenset(BUILTINS) | {"cd", "chdir", "pushd", "popd", "source", "."}
