"""What a program's arguments mean: options, paths with their access, hosts, effects. Values only. Pure."""

import enum

from msgspec import Struct


class PathAccess(enum.Enum):
    """What a program does with a path it is given."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    EXECUTE = "execute"
    """Runs the file or loads it as code."""


ACCESS = {
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
"""The access of each role that is a path in any case."""


class EffectKind(enum.Enum):
    """Why an allowed program may do more than its name says."""

    EXECUTES = "executes"
    """Starts another program, or loads code from a place that the arguments choose."""
    PROGRAM_TEXT = "program_text"
    """Runs program text that stands in the arguments or comes from standard input."""
    WRITES = "writes"
    """Writes, edits or removes files although the program's plain form only reads."""
    NETWORK = "network"
    """Opens a connection."""
    UNKNOWN_OPTION = "unknown_option"
    """The program has a table and this option is not in it."""
    CHANGES_DIRECTORY = "changes_directory"
    """Runs in another directory; the paths of the reading are already seen from there."""
    UNKNOWN = "unknown"
    """A word of unknown value may be an option, or names files that do not stand on the line."""


class Effect(Struct, frozen=True, kw_only=True, gc=False):
    """One effect and the words that cause it. A rule whose prefix names all of ``words`` has said yes to it."""

    kind: EffectKind
    option: str
    words: tuple[int, ...]
    """Indexes into the command's words; empty where no word of the line is the cause."""
    why: str

    @property
    def word(self) -> int:
        """The first word that causes it, -1 where none does."""
        return self.words[0] if self.words else -1


class PathUse(Struct, frozen=True, kw_only=True, gc=False):
    """A path in the arguments. ``text`` is None where it is not known before it runs."""

    word: int
    """Index into the command's words; -1 for arguments that are added when it runs."""
    text: str | None
    access: PathAccess
    directory: str | None = "."
    """The folder that relative text is seen from, itself seen from the command's directory; None: not known."""
    tilde: bool = False
    """``text`` begins with a tilde that the shell expands."""
    glob: bool = False
    """``text`` is a pattern of the shell."""
    prefix: str = ""
    """Where ``text`` is None: what the path surely starts with."""
    recursive: bool = False
    """Everything below is meant too."""
    maybe: bool = False
    """Only a guess: a word in a place where a path may stand, or a revision, or a plain word."""
    into: str | None = None
    """The folder that ``text`` goes into by its own name, if it is a folder."""


class HostUse(Struct, frozen=True, kw_only=True, gc=False):
    """A host that the program connects to. None: not known before it runs."""

    word: int
    host: str | None
    port: int | None
    url: str | None = None


class OptionUse(Struct, frozen=True, kw_only=True, gc=False):
    """One option as it was read."""

    name: str
    """As the table spells it, after abbreviation and cluster."""
    words: tuple[int, ...]
    """The word it stands in, and the word of its value where that is another."""
    value: str | None = None
    top: bool = False
    """Stands before the subcommand."""
    harmless: bool = True


class Reading(Struct, frozen=True, kw_only=True, gc=False):
    """A command read with the table of its program."""

    program: str
    known: bool
    """A table covers the program (and its subcommand, where it has such)."""
    subcommand: tuple[str, ...] = ()
    essential: tuple[int, ...] = ()
    """Word indexes without the options that stand before the subcommand: what deny and ask prefixes are held against."""
    options: tuple[OptionUse, ...] = ()
    operands: tuple[int, ...] = ()
    """Word indexes of operands of the program or its subcommand."""
    paths: tuple[PathUse, ...] = ()
    hosts: tuple[HostUse, ...] = ()
    effects: tuple[Effect, ...] = ()
