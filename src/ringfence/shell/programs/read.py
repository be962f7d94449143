"""Reads the words of a command with the table of its program. Pure: the tables arrive as an argument or are the shipped ones."""

from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.programs import languages, names, options, roles, scanners
from ringfence.shell.programs.load import BUILTIN, Tables
from ringfence.shell.programs.reading import (
    ACCESS,
    Effect,
    EffectKind,
    HostUse,
    OptionUse,
    PathAccess,
    PathUse,
    Reading,
)
from ringfence.shell.programs.table import Table
from ringfence.shell.syntax import SimpleCommand, Word

_LOOSE_ACCESS = {
    "node": "execute", "requirement": "execute", "arguments": "maybe", "revision": "maybe", "awkfile": "read", "remotewrite": "write", "listed": "read",
}  # fmt: skip
"""Roles of operands that are mostly paths, and the access that they then are."""
FREE_PATHS = frozenset({"-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})


def read_arguments(command: SimpleCommand, tables: Tables = BUILTIN) -> Reading:
    """What the arguments of one command mean. Never raises; a program without a table is read as ``known=False``."""
    if not command.words or command.words[0].dynamic:
        return Reading(program="", known=False)
    name = command.words[0].text.rsplit("/", 1)[-1]
    program = tables.program(name)
    table = tables.table(program)
    if table is None:
        return _unknown(command, name)
    return Reader(command, program, table, tables).read()


def _unknown(command: SimpleCommand, name: str) -> Reading:
    """No table: every word is essential, operands may be paths."""
    words = command.words
    paths = [
        _path_use(word, index, PathAccess.READ, maybe=True)
        for index, word in enumerate(words)
        if index and (word.dynamic or not word.text.startswith("-"))
    ]
    return Reading(
        program=name, known=False, essential=tuple(range(len(words))), paths=tuple(paths),
        operands=tuple(path.word for path in paths),
    )  # fmt: skip


def _path_use(word: Word, index: int, access: PathAccess, *, maybe: bool = False, recursive: bool = False) -> PathUse:
    known = not word.dynamic or word.glob
    return PathUse(
        word=index, text=word.text if known else None, access=access, tilde=word.tilde, glob=word.glob,
        prefix=word.prefix, maybe=maybe, recursive=recursive,
    )  # fmt: skip


class Reader:
    """One pass over the words of one command."""

    def __init__(self, command: SimpleCommand, program: str, table: Table, tables: Tables) -> None:
        self.command = command
        self.words: Sequence[Word] = command.words
        self.program = program
        self.table = table
        self.tables = tables
        self.options: list[OptionUse] = []
        self.operands: list[int] = []
        self.paths: list[PathUse] = []
        self.hosts: list[HostUse] = []
        self.effects: list[Effect] = []
        self.subcommand: tuple[str, ...] = ()
        self.essential: list[int] = [0]
        self.dashes: int | None = None
        self.directory: str | None = "."
        self.fulfilled = False
        self.edits = False
        self.targeted = False
        self.exits = False
        self.suffix = ""
        self.recursive = table.recursive
        self.known = True
        self.index = 1

    def read(self) -> Reading:
        """``read``: the variables that it sets."""
        if self.table.reader:
            scanners.READERS[self.table.reader](self)
        else:
            self.all_words()
        self.extra()
        return Reading(
            program=self.program, known=self.known, subcommand=self.subcommand, essential=tuple(self.essential),
            options=tuple(self.options), operands=tuple(self.operands),
            paths=self.finished_paths(), hosts=tuple(self.hosts),
            effects=tuple(self.effects),
        )  # fmt: skip

    def finished_paths(self) -> tuple[PathUse, ...]:
        """The paths with what only the end of the line says about them."""
        if self.table.packs:
            self.paths += names.unpacked(self.paths)
        if self.table.target:
            self.paths += names.into_folders(self)
        if self.suffix:
            self.paths += names.backups(self.paths, self.suffix)
        if not self.recursive:
            return tuple(self.paths)
        return tuple([
            path if path.recursive or path.access is PathAccess.WRITE else replace(path, recursive=True)
            for path in self.paths
        ])  # fmt: skip

    # Words.

    def all_words(self) -> None:
        """Options and operands in any order, until the table says otherwise."""
        words, size = self.words, len(self.words)
        while self.index < size:
            index = self.index
            word = words[index]
            self.index += 1
            is_option = self.is_option(word)
            if not self.table.subcommands:
                self.essential.append(index)
            elif not is_option:
                if self.subcommand_here(index):
                    continue
                return
            if not is_option:
                self.operand(index)
                continue
            if word.text == "--" and not word.dynamic:
                self.dashes = index
                continue
            options.read_option(self, index, word)
        self.finish_operands()

    def is_option(self, word: Word) -> bool:
        """Whether a word stands where options stand and looks like one."""
        if self.dashes is not None or self.table.style == "none":
            return False
        text = word.prefix if word.dynamic else word.text
        if word.dynamic and not text:
            if word.glob and all(role in ACCESS for role in self.table.operands):
                return False  # each name it stands for is judged as a path, and whether it looks like an option
            if not word.values or any(value.startswith("-") for value in word.values):
                self.doubtful(word)
            return False
        return (text.startswith("-") and text != "-") or (self.table.plus and text.startswith("+"))

    def doubtful(self, word: Word) -> None:
        """A word of unknown value where an option may stand."""
        if self.table.plain:
            return
        index = self.index - 1
        self.effect(EffectKind.UNKNOWN, word.raw, (index,), "may become an option that does more than read")

    def subcommand_here(self, index: int) -> bool:
        """Enter the subcommand at ``index``; False where nothing more can be read with a table."""
        word = self.words[index]
        if word.dynamic:
            self.known = False
            self.essential.extend(range(index, len(self.words)))
            self.effect(EffectKind.UNKNOWN, word.raw, (index,), "the subcommand is not known before it runs")
            return False
        self.subcommand = (*self.subcommand, word.text)
        table = self.tables.table(self.program, *self.subcommand)
        self.essential.append(index)
        if table is None:
            self.known = False
            if self.tables.has_subcommands(self.program):
                named = tuple(self.essential)
                why = f"`{' '.join((self.program, *self.subcommand))}` is not in the table of `{self.program}`"
                self.effect(EffectKind.UNKNOWN_OPTION, word.text, named, why)
            self.essential.extend(range(index + 1, len(self.words)))
            self.paths.extend(
                self.placed(_path_use(other, number, PathAccess.READ, maybe=True))
                for number, other in enumerate(self.words[index + 1 :], index + 1)
                if other.dynamic or not other.text.startswith("-")
            )
            return False
        self.table = table
        self.recursive = self.recursive or table.recursive
        if table.reader:
            scanners.READERS[table.reader](self)
            return False
        return True

    # Operands.

    def operand(self, index: int) -> None:
        """A word that is no option."""
        self.operands.append(index)
        if self.table.style == "posix" and self.dashes is None and self.table.operands:
            # The first operand ends the options of the program; the rest belongs to what it starts.
            rest = list(range(self.index, len(self.words)))
            self.operands.extend(rest)
            self.essential.extend(rest)
            self.index = len(self.words)

    def finish_operands(self) -> None:
        """What the end of the words says: connections, the roles of operands, or what it means that there are none."""
        table = self.table
        if table.networked and not self.exits:
            named = tuple(self.essential[: 1 + len(self.subcommand)])
            self.effect(EffectKind.NETWORK, " ".join(self.subcommand), named, f"`{table.name}` opens connections")
        if self.operands:
            self.give_roles(list(table.operands), table.repeat)
        if table.stdin and not self.exits and (table.stdin == "always" or not (self.operands or self.fulfilled)):
            why = f"`{self.program}` reads program text from standard input"
            self.effect(EffectKind.PROGRAM_TEXT, "standard input", (0,), why)

    def give_roles(self, roles: list[str], repeat: int) -> None:
        """Give every operand its role, of the roles that the table lists and the index of the one that repeats."""
        if self.fulfilled and roles and roles[0] in ("pattern", "script", "code", "mode"):
            roles.pop(0)
            repeat -= repeat >= 0
        if self.targeted and len(roles) > 1 and repeat >= 0:
            roles = [roles[repeat]]
            repeat = 0
        for index, role in zip(self.operands, self.spread(roles, repeat, len(self.operands)), strict=False):
            self.give_role(index, role)

    @staticmethod
    def spread(roles: list[str], repeat: int, count: int) -> list[str]:
        """One role for each of ``count`` operands."""
        if repeat < 0:
            return (roles + [roles[-1] if roles else "text"] * count)[:count]
        after = len(roles) - repeat - 1
        middle = max(count - repeat - after, 0)
        return (
            (roles[:repeat] + [roles[repeat]] * middle + roles[repeat + 1 :])[:count]
            if count > repeat
            else roles[:count]
        )

    def give_role(self, index: int, role: str) -> None:
        """What one operand is to the program."""
        word = self.words[index]
        if role in ("text", "pattern", "subcommand"):
            return
        if role == "script":
            self.scan(self.table.scan, word, (index,))
        elif role == "code":
            self.effect(EffectKind.PROGRAM_TEXT, word.raw, (index,), f"`{self.program}` takes program text")
        elif role == "executes":
            self.effect(EffectKind.EXECUTES, word.raw, (index,), f"`{self.program}` runs this")
        elif role == "host":
            roles.host(self, word, index)
        elif role == "target":
            scanners.make_target(self, word, index)
        elif role == "revision":
            roles.revision(self, word, index)
        elif role == "remote":
            roles.remote(self, word, index)
        elif role in ACCESS:
            self.path(word, index, "write" if self.edits and role == "read" else role)
        else:
            languages.give_language_role(self, index, role, word)

    def path(self, word: Word, index: int, role: str, *, recursive: bool = False) -> None:
        """A path, or every path that a word of known values may be."""
        if word.pipe and role != "execute" and not self.table.networked:
            return
        texts = word.values if word.dynamic and word.values else (None,)
        for text in texts:
            use = word if text is None else replace(word, text=text, dynamic=False, glob=False)
            if not use.dynamic and use.text in FREE_PATHS and not use.tilde:
                continue
            found = _path_use(
                use, index, ACCESS[role], maybe=role in ("maybe", "changed"), recursive=recursive or role == "tree"
            )
            self.paths.append(self.placed(found))

    def placed(self, path: PathUse) -> PathUse:
        """A path as seen from the command's directory."""
        return path if self.directory == "." else replace(path, directory=self.directory)

    def scan(self, kind: str, word: Word, words: tuple[int, ...]) -> None:
        """Program text that is only a danger where it does more than compute."""
        scanners.SCANNERS[kind](self, word, words)

    def effect(self, kind: EffectKind, option: str, words: tuple[int, ...], why: str) -> None:
        """Record one effect."""
        self.effects.append(Effect(kind=kind, option=option, words=words, why=why))

    def extra(self) -> None:
        """Arguments of unknown value that are added when it runs."""
        if not self.command.extra_arguments:
            return
        if not self.table.plain and self.dashes is None:
            self.effect(
                EffectKind.UNKNOWN, "added arguments", (), "arguments that are added when it runs may be options"
            )
        for role in self.added_roles():
            if role in ACCESS or role in _LOOSE_ACCESS:
                access = PathAccess.WRITE if self.edits else ACCESS[_LOOSE_ACCESS.get(role, role)]
                self.paths.append(self.placed(PathUse(word=-1, text=None, access=access)))
            elif role in ("script", "code", "target", "executes"):
                why = f"`{self.program}` may take program text that is added when it runs"
                self.effect(EffectKind.PROGRAM_TEXT, "added arguments", (), why)

    def added_roles(self) -> set[str]:
        """What the arguments that are added when it runs may be to the program."""
        roles = list(self.table.operands)
        if self.fulfilled and roles and roles[0] in ("pattern", "script", "code", "mode"):
            roles.pop(0)
        return set(roles[min(len(self.operands), len(roles) - 1) :]) if roles else set()
