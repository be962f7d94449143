"""A call taken apart once: its commands, what each accesses, and every question to the file system. Pure."""

import functools
import re

from msgspec import Struct

from ringfence.model.call import Argv, ShellLine, ToolCall
from ringfence.policy.facts_index import join
from ringfence.policy.judge_paths import PathUse
from ringfence.policy.understanding import NOTHING, Operand, Understood, read_argv, read_line, understand
from ringfence.policy.yaml_tree import show
from ringfence.shell.syntax import Access, Directory, Line, Redirection, SimpleCommand, Word

MAX_COMMANDS = 4096
"""Commands of one line that are looked at closely. A line with more is not allowed; deny and ask rules see the rest too."""

_ACCESS = {Access.READ: ("read",), Access.WRITE: ("write",), Access.READ_WRITE: ("write", "read"), Access.NONE: ()}


_MOVES = frozenset({"cd", "pushd"})
"""Builtins that only say where later commands run; from where an earlier one may have failed, each of those is judged itself."""
_XARGS_PLAIN = re.compile(r"-[0rt]+|--null|--no-run-if-empty|-[nPL]\d*|\d+|-I(?:\{\})?|\{\}")
_FIND_OTHERWISE = frozenset({"-L", "-follow", "-print", "-printf", "-ls", "-fls", "-files0-from"})
"""What makes find follow links, or say something else than the names it finds."""


class PreparedCommand(Struct, frozen=True, gc=False):
    """One command with its words as rules compare them and the paths it uses."""

    command: SimpleCommand
    understood: Understood
    texts: tuple[str | None, ...]
    canonical: tuple[str | None, ...]
    """The same without the options between program and subcommand; the very same tuple where there are none."""
    whole: str
    joined: str
    """The words joined by one space, as shown."""
    bases: tuple[str | None, ...]
    uses: tuple[PathUse, ...]
    redirections: tuple[PathUse, ...]
    program_folder: str | None
    program: str | None
    """Absolute path of a program that is named by a path."""
    elsewhere: tuple[str | None, ...] = ()
    """Other directories that it works in, absolute."""
    skimmed: bool = False
    """Beyond the cap of commands: only deny and ask rules look at it."""

    def arguments(self, named: int) -> tuple[str | None, ...]:
        """The options and operands that a rule's prefix of ``named`` words does not name; no values of options."""
        understood = self.understood
        left_out = set(understood.essential[:named]) if understood.essential else set(range(named))
        left_out |= understood.values
        return tuple([text for number, text in enumerate(self.texts) if number not in left_out])

    def patterns(self, named: int) -> tuple[str, ...]:
        """The patterns of the shell among the arguments: what they stand for begins as they do."""
        understood = self.understood
        left_out = set(understood.essential[:named]) if understood.essential else set(range(named))
        left_out |= understood.values
        words = enumerate(self.command.words)
        return tuple([word.text for number, word in words if word.glob and number not in left_out])

    @property
    def values(self) -> list[str | None]:
        """The words that are values of options."""
        return [self.texts[number] for number in self.understood.values]


class Prepared(Struct, frozen=True, gc=False):
    """A shell line or argument vector, prepared."""

    cwd: str
    line: Line
    commands: tuple[PreparedCommand, ...]
    redirections: tuple[PathUse, ...]
    globs: tuple[str, ...]


def prepare(call: ToolCall, *, home: str) -> Prepared:
    """Take a shell line or argument vector apart. ``home`` is what ``~`` means.

    Asking for facts and judging want the same of one call, one after the other: the last few are remembered.
    """
    return _remembered(call.request, call.cwd, home)


@functools.lru_cache(maxsize=8)
def _remembered(request: object, cwd: str, home: str) -> Prepared:
    line = read_line(request.line) if isinstance(request, ShellLine) else read_argv(_argv(request))
    globs: list[str] = []
    builder = _Builder(cwd, home, globs, line)
    commands = tuple([builder.command(command) for command in line.commands[:MAX_COMMANDS]])
    if len(line.commands) > MAX_COMMANDS:
        commands += tuple([builder.skimmed(command) for command in line.commands[MAX_COMMANDS:]])
    loose: list[PathUse] = []
    if line.redirections:
        directories = line.directories or (Directory(),) * len(line.redirections)
        for redirection, directory in zip(line.redirections, directories, strict=False):
            loose += builder.redirection(redirection, builder.bases(directory))
    return Prepared(cwd, line, commands, tuple(loose), tuple(dict.fromkeys(globs)) if globs else ())


def _argv(request: object) -> tuple[str, ...]:
    if not isinstance(request, Argv):
        raise TypeError(request)
    return request.argv


class _Builder:
    def __init__(self, cwd: str, home: str, globs: list[str], line: Line) -> None:
        self._cwd = cwd
        self._line = line
        self._by_end: dict[int, SimpleCommand] | None = None
        self._home = home
        self._globs = globs

    def bases(self, directory: Directory) -> tuple[str | None, ...]:
        if directory.path == "." and not directory.alternatives:
            return (self._cwd,)
        return tuple(
            None if path is None else self._asked(path, self._cwd, tilde=True)
            for path in (directory.path, *directory.alternatives)
        )

    def command(self, command: SimpleCommand) -> PreparedCommand:
        texts = tuple([None if word.dynamic else word.text for word in command.words])
        understood = understand(command) if command.words else NOTHING
        canonical = texts
        if understood.essential:
            canonical = tuple([texts[number] for number in understood.essential])
        bases = self.bases(command.directory)
        whole = " ".join([word.text for word in command.words])
        name = texts[0] if texts else None
        folder = program = None
        if name is not None and "/" in name and bases[0] is not None:
            folder = join(bases[0], name.rpartition("/")[0] or "/")
            program = join(bases[0], name)
        redirections: tuple[PathUse, ...] = ()
        if command.redirections:
            redirections = tuple(use for item in command.redirections for use in self.redirection(item, bases))
        elsewhere: tuple[str | None, ...] = ()
        if understood.elsewhere:
            elsewhere = tuple(self._in(place, base) for place in understood.elsewhere for base in bases)
        uses = tuple(self._uses(command, understood, bases)) if understood.operands else ()
        return PreparedCommand(
            command,
            understood,
            texts,
            canonical,
            whole,
            show(whole, 200),
            bases,
            uses,
            redirections,
            folder,
            program,
            elsewhere,
        )

    def skimmed(self, command: SimpleCommand) -> PreparedCommand:
        """A command beyond the cap: its words, and nothing about its arguments."""
        texts = tuple([None if word.dynamic else word.text for word in command.words])
        whole = " ".join([word.text for word in command.words])
        return PreparedCommand(
            command, NOTHING, texts, texts, whole, show(whole, 200), (self._cwd,), (), (), None, None, skimmed=True
        )

    def redirection(self, redirection: Redirection, bases: tuple[str | None, ...]) -> list[PathUse]:
        target = redirection.target
        if target is None:
            return []
        span = (redirection.start, redirection.end)
        found = []
        for access in _ACCESS[redirection.access]:
            for base in bases:
                asked = None if target.dynamic or target.glob else self._word(target, target.text, base)
                found.append(PathUse(asked=asked, shown=target.raw, access=access, span=span))
        return found

    def _uses(self, command: SimpleCommand, understood: Understood, bases: tuple[str | None, ...]) -> list[PathUse]:
        found = []
        found_by_find = command.wrapper is not None and self._runs_on_found(command)
        for operand in understood.operands:
            word = command.words[operand.word] if 0 <= operand.word < len(command.words) else None
            if found_by_find and operand.text is None and operand.access == "read" and _is_found(word):
                continue
            span = (word.start, word.end) if word is not None else None
            for base in bases[:1] if _base(command) in _MOVES else bases:
                asked = None
                here = base if operand.directory == "." else self._in(operand.directory, base)
                if operand.text is not None:
                    if operand.tilde or here is None:
                        asked = self._asked(operand.text, here, tilde=operand.tilde)
                    else:
                        asked = join(here, operand.text)
                if operand.glob and asked is not None:
                    self._globs.append(asked)
                shown = operand.text if operand.text is not None else (word.raw if word is not None else "?")
                if operand.glob and operand.access != "read" and self._globbed_elsewhere(command, operand):
                    asked = None
                into = None
                if operand.into is not None:
                    into = None if here is None else join(here, operand.into)
                    asked = asked if into is not None else None
                found.append(PathUse(asked, shown, operand.access, span, operand.glob, into))
        return found

    def _globbed_elsewhere(self, command: SimpleCommand, operand: Operand) -> bool:
        """Whether a pattern was expanded in another directory than its names are then seen from (``env -C``, ``tar -C``)."""
        if operand.directory != ".":
            return True
        outer = command
        while outer.wrapper is not None:
            outer = self._line.commands[outer.wrapper]
        return outer.directory != command.directory

    def _in(self, directory: str | None, base: str | None) -> str | None:
        return None if directory is None else self._asked(directory, base, tilde=True)

    def _runs_on_found(self, command: SimpleCommand) -> bool:
        """Started by ``find -exec`` without following links: what it is given lies below find's own starting points."""
        if command.wrapper is None:
            return False
        starter = self._line.commands[command.wrapper]
        if _base(starter) == "xargs":
            return self._is_fed_by_find(starter, len(starter.words) - len(command.words))
        return _base(starter) == "find" and not {"-L", "-follow"} & {word.text for word in starter.words}

    def _is_fed_by_find(self, xargs: SimpleCommand, own: int) -> bool:
        """Whether ``xargs -0`` gets what ``find … -print0`` in front of it finds, and nothing else."""
        options = [word.text for word in xargs.words[1:own]]
        if xargs.wrapper is not None or any(item.input for item in xargs.redirections):
            return False
        if not {"-0", "--null", "-0r", "-r0"} & set(options) or not all(map(_XARGS_PLAIN.fullmatch, options)):
            return False
        near = max(0, xargs.start - 64)
        before = self._line.source[near : xargs.start].rstrip()
        if not before.endswith("|") or before.endswith("||"):
            return False
        if self._by_end is None:
            self._by_end = {command.end: command for command in self._line.commands}
        command = self._by_end.get(near + len(before[:-1].rstrip()))
        if command is None or command.wrapper is not None or command.wraps or command.redirections:
            return False
        texts = [word.text for word in command.words]
        return (
            _base(command) == "find" and texts[-1] == "-print0" and command.directory == xargs.directory
            and not any(text in _FIND_OTHERWISE or text.startswith("-fprint") for text in texts)
        )  # fmt: skip

    def _word(self, word: Word, text: str, base: str | None) -> str | None:
        return self._asked(text, base, tilde=word.tilde)

    def _asked(self, text: str, base: str | None, *, tilde: bool) -> str | None:
        if tilde and text.startswith("~"):
            name, slash, rest = text.partition("/")
            if name == "~":
                return join(self._home, rest) if slash else self._home
            if name == "~+":
                return None if base is None else join(base, rest)
            return None
        if text.startswith("/"):
            return text
        return None if base is None else join(base, text)


def _base(command: SimpleCommand) -> str:
    """The name of a command's program without its folder."""
    return command.words[0].text.rpartition("/")[2]


def _is_found(word: Word | None) -> bool:
    return word is None or word.text == "{}"


def questions_of(prepared: Prepared) -> list[str]:
    """Every path whose place in the file system the decision needs."""
    found = [prepared.cwd]
    for command in prepared.commands:
        found += [base for base in (*command.bases, *command.elsewhere) if base is not None]
        found += [use.asked for use in (*command.uses, *command.redirections) if use.asked is not None and not use.glob]
        if command.program_folder is not None:
            found.append(command.program_folder)
        if command.program is not None:
            found.append(command.program)
    found += [use.asked for use in prepared.redirections if use.asked is not None]
    return list(dict.fromkeys(found))


def programs_of(prepared: Prepared) -> list[str]:
    """Bare program names on the line."""
    names = [command.texts[0] for command in prepared.commands if command.texts]
    return list(dict.fromkeys(name for name in names if name and "/" not in name))


def prepare_line(line: str) -> tuple[PreparedCommand, ...]:
    """The commands of a line on its own, for the examples of a policy."""
    return prepare(ToolCall.shell(line, cwd="/"), home="/nonexistent").commands


__all__ = ["Prepared", "PreparedCommand", "prepare", "prepare_line", "programs_of", "questions_of"]
