"""Reads the words of a command with the table of its program. Pure: the tables arrive as an argument or are the shipped ones."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.programs import languages, names, roles, scanners
from ringfence.shell.programs.load import BUILTIN, Tables
from ringfence.shell.programs.reading import Effect, EffectKind, HostUse, OptionUse, PathAccess, PathUse, Reading
from ringfence.shell.programs.table import Option, Table
from ringfence.shell.syntax import SimpleCommand, Word

_ACCESS = {
    "read": PathAccess.READ,
    "write": PathAccess.WRITE,
    "delete": PathAccess.DELETE,
    "execute": PathAccess.EXECUTE,
    "directory": PathAccess.READ,
    "indirect": PathAccess.READ,
    "tree": PathAccess.READ,
    "maybe": PathAccess.READ,
    "changed": PathAccess.WRITE,
}
_LOOSE_ACCESS = {
    "node": "execute", "requirement": "execute", "arguments": "maybe", "revision": "maybe", "awkfile": "read", "remotewrite": "write", "listed": "read",
}  # fmt: skip
"""Roles of operands that are mostly paths, and the access that they then are."""
_NUMBER = re.compile(r"-\d+\Z")
_EFFECTS = {
    "executes": (EffectKind.EXECUTES, "names a program or command that is run"),
    "execute": (EffectKind.EXECUTES, "names a file that is run or loaded as code"),
    "runs": (EffectKind.EXECUTES, "runs another program"),
    "code": (EffectKind.PROGRAM_TEXT, "takes program text"),
    "writes": (EffectKind.WRITES, "changes or removes files"),
    "network": (EffectKind.NETWORK, "opens a connection"),
    "refuse": (EffectKind.UNKNOWN_OPTION, "is not safe to allow by the program's name alone"),
    "indirect": (EffectKind.UNKNOWN, "names files that do not stand on the line"),
}
_STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
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
            self.option(index, word)
        self.finish_operands()

    def is_option(self, word: Word) -> bool:
        """Whether a word stands where options stand and looks like one."""
        if self.dashes is not None or self.table.style == "none":
            return False
        text = word.prefix if word.dynamic else word.text
        if word.dynamic and not text:
            if word.glob and all(role in _ACCESS for role in self.table.operands):
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

    # Options.

    def option(self, index: int, word: Word) -> None:
        """One word that is an option."""
        text = word.prefix if word.dynamic else word.text
        if text.startswith("+"):
            started = self.table.options.get("+")
            if started is not None and started.role == "flags" and "/" in text:
                self.unknown_option(index, word, text)  # a toolchain by its name, not one at some place
                self.path(replace(word, text=text[1:]), index, "execute")
            elif started is not None:
                self.apply(started, (index,), None)
        elif self.table.style == "single" or text.startswith("--"):
            self.long(index, word, text)
        elif self.table.numbers and _NUMBER.match(text) and not word.dynamic:
            self.options.append(OptionUse(name="-number", words=(index,), value=text[1:], top=self.table.subcommands))
        else:
            self.cluster(index, word, text)

    def long(self, index: int, word: Word, text: str) -> None:
        """A long option, its value attached or in the next word."""
        name, equals, attached = text.partition("=")
        option = self.table.options.get(name) or self.abbreviated(name)
        if option is None or (word.dynamic and not equals):
            self.unknown_option(index, word, name)
            return
        if equals:
            value = replace(word, text=attached, prefix=word.prefix[len(name) + 1 :] if word.dynamic else "")
            self.apply(option, (index,), value if option.takes else None)
            if not option.takes and option.role == "flags":
                self.unknown_option(index, word, text)
        elif option.takes and not option.optional:
            self.with_next(option, index)
        else:
            self.apply(option, (index,), None)

    def abbreviated(self, name: str) -> Option | None:
        """GNU takes any prefix that means one option only; of several the most harmful is assumed."""
        if not self.table.abbreviate or len(name) < 3 or self.table.style == "single":
            return None
        found = [self.table.options[long] for long in self.table.longs if long.startswith(name)]
        if not found:
            return None
        harmful = [option for option in found if option.role not in ("flags", "text")]
        return harmful[0] if harmful else found[0] if len(found) == 1 else None

    def cluster(self, index: int, word: Word, text: str) -> None:
        """Short options in one word."""
        whole = self.table.options.get(text)
        if whole is not None and len(text) > 2:
            if whole.takes and not whole.optional:
                self.with_next(whole, index)
            else:
                self.apply(whole, (index,), None)
            return
        for position in range(1, len(text)):
            name = text[0] + text[position]
            option = self.table.options.get(name)
            if option is None:
                self.unknown_option(index, word, name if name.isprintable() else text)
                return
            if not option.takes:
                self.apply(option, (index,), None)
                if self.table.style == "apart" and len(text) > position + 1:
                    self.unknown_option(index, word, text)
                    return
                continue
            attached = text[position + 1 :]
            if attached or (word.dynamic and word.prefix):
                if attached.startswith("=") and self.table.equals:
                    attached = attached[1:]
                rest = replace(word, text=attached, prefix=attached if word.dynamic else "")
                self.apply(option, (index,), rest)
            elif option.optional:
                self.apply(option, (index,), None)
            else:
                self.with_next(option, index)
            return
        if word.dynamic:
            self.unknown_option(index, word, text)

    def with_next(self, option: Option, index: int) -> None:
        """An option whose value is the next word."""
        for _ in range(option.skip):
            self.essential.extend([] if self.table.subcommands else [self.index])
            self.index += 1
        if self.index >= len(self.words):
            added = replace(
                self.words[index], text="", raw="added arguments", dynamic=True, prefix="", values=(), glob=False
            )
            self.apply(option, (index,), added if self.command.extra_arguments else None)
            return
        if not self.table.subcommands:
            self.essential.append(self.index)
        value = self.words[self.index]
        self.index += 1
        self.apply(option, (index, self.index - 1), value)

    def unknown_option(self, index: int, word: Word, name: str) -> None:
        """An option that the table does not know."""
        self.options.append(OptionUse(name=name, words=(index,), top=self.table.subcommands, harmless=False))
        why = f"`{name}` is not in the table of `{self.table.name}`"
        self.effect(EffectKind.UNKNOWN_OPTION, word.raw if word.dynamic else name, (index,), why)
        value = names.joined_path(word)
        if value:
            self.path(replace(word, text=value, tilde=False), index, "read")
            self.path(replace(word, text=value, tilde=False), index, "changed")

    def apply(self, option: Option, words: tuple[int, ...], value: Word | None) -> None:
        """What an option with its value means."""
        table, role = self.table, option.role
        top = table.subcommands
        harmless = option.harmless or (role in ("flags", "text") and not top)
        self.options.append(
            OptionUse(
                name=option.name, words=words, value=None if value is None else value.text, top=top, harmless=harmless
            )
        )
        if option.name in table.fulfils or role in ("pattern", "script"):
            self.fulfilled = True
        if option.name in table.target:
            self.targeted = True
        if role == "flags" and value is None:
            return
        self.edits = self.edits or (role == "writes" and table.edits)
        self.recursive = self.recursive or role == "recursive"
        self.exits = self.exits or role == "exits"
        if value is not None and len(words) == 2 and value.dynamic and value.may_split and not self.table.plain:
            self.effect(
                EffectKind.UNKNOWN, value.raw, (words[-1],), "may become several words, of which some are options"
            )
        if role in _EFFECTS:
            kind, why = _EFFECTS[role]
            self.effect(kind, option.name, words, table.why.get(option.name, f"`{option.name}` {why}"))
        if value is None:
            return
        if role == "writes" and option.optional and (value.dynamic or "/" in value.text):
            # A backup's name with a slash lies in another folder, which the option and the operand name together.
            self.path(replace(value, dynamic=True, glob=False, values=(), prefix=""), words[-1], "write")
        elif role == "writes" and option.optional:
            self.suffix = value.text
        elif role == "script":
            self.scan(table.scan, value, words)
        elif role == "host":
            roles.host(self, value, words[-1])
        elif role == "suffix":
            self.suffix = value.text
        elif role in ("plugin", "coverage", "upload", "stem", "setting", "mode"):
            languages.value_role(self, role, value, words, option.name)
        elif role in _ACCESS:
            self.path(value, words[-1], role)
            if role == "directory":
                self.move(value, option, words)
            if role == "execute" and value.text in _STDIN and not value.dynamic:
                why = f"`{option.name}` runs what stands on standard input"
                self.effect(EffectKind.PROGRAM_TEXT, option.name, words, why)
            if "://" in value.text:
                roles.host(self, value, words[-1])

    def move(self, value: Word, option: Option, words: tuple[int, ...]) -> None:
        """Paths of the reading are seen from the folder that an option names."""
        if value.dynamic or value.tilde or self.directory is None:
            self.directory = None
        else:
            joined = value.text if value.text.startswith("/") else f"{self.directory}/{value.text}"
            self.directory = joined.removeprefix("./") or "."
        self.effect(EffectKind.CHANGES_DIRECTORY, option.name, words, f"`{option.name}` changes the directory")

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
        elif role in _ACCESS:
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
                use, index, _ACCESS[role], maybe=role in ("maybe", "changed"), recursive=recursive or role == "tree"
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
            if role in _ACCESS or role in _LOOSE_ACCESS:
                access = PathAccess.WRITE if self.edits else _ACCESS[_LOOSE_ACCESS.get(role, role)]
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
