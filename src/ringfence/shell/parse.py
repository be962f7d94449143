"""A command line, or an argument vector, to everything that it starts, reads, writes and sets. Pure.

:func:`parse_line` never raises: what it cannot read is an ``Unexplained``, and the text behind it is still searched
for commands, so that a deny rule finds them.
"""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.braces import Piece
from ringfence.shell.builtins import BUILTINS
from ringfence.shell.characters import suspects
from ringfence.shell.collect import Collected, Stop
from ringfence.shell.commands import MAX_WRAPPERS, Commands
from ringfence.shell.places import UNKNOWN, Flow, merge, still
from ringfence.shell.plain import Part, split
from ringfence.shell.reader import KEYWORDS
from ringfence.shell.syntax import Line, SimpleCommand, Word
from ringfence.shell.wrapper_options import Wrapped, base_name
from ringfence.shell.wrapper_scripts import reads_elsewhere, reads_input
from ringfence.shell.wrapper_specs import SHELLS
from ringfence.shell.wrappers import NAMES

MAX_PARTS = 1_000
MAX_SALVAGED = 5_000
MAX_SALVAGES = 20
_SEPARATORS = re.compile(r"[;|&(){}`\n<>!]+|\$[({]?")


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


class Parser(Commands):
    """Reads one text to its end, whatever it holds."""

    def __init__(
        self, text: str, collected: Collected, *, base: int = 0, span: tuple[int, int] | None = None, depth: int = 0
    ) -> None:
        super().__init__(text, collected, base=base, span=span, depth=depth)
        self.data: list[tuple[int, int]] = []

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

    # What a shell reads from its input.

    def vector_started(self, words: Sequence[Word]) -> None:
        """A program started without a shell."""
        self.started(words, vector=True)
        self.scripts_from_input()

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


_NOT_PLAIN = KEYWORDS | NAMES | frozenset(BUILTINS) | {"cd", "chdir", "pushd", "popd", "source", "."}
