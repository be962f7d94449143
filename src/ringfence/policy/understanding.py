"""What a command's arguments mean for the policy: which are paths, which run, write or connect. Pure.

``shell.programs`` reads the arguments with the table of the program. Here the readings become what the judge compares:
operands with an access, concerns that an ALLOW for the program does not cover by itself, hosts.
"""

import re

from msgspec import Struct

from ringfence.shell.parse import parse_argv, parse_line
from ringfence.shell.programs.names import joined_path
from ringfence.shell.programs.read import read_arguments
from ringfence.shell.programs.reading import Effect, EffectKind, PathAccess, PathUse, Reading
from ringfence.shell.syntax import Line, SimpleCommand, Word

DEFAULT_PORT = 443


class Operand(Struct, frozen=True, gc=False):
    """A path among the arguments. ``text`` is None where it is not known before the command runs."""

    text: str | None
    access: str
    word: int
    glob: bool = False
    tilde: bool = False
    directory: str | None = "."
    into: str | None = None
    """The folder, if it is one, that this goes into by its own name."""


class Concern(Struct, frozen=True, gc=False):
    """Something an ALLOW for the program does not cover unless its rule names all the words that cause it."""

    kind: EffectKind
    why: str
    words: tuple[int, ...]

    @property
    def word(self) -> int:
        """The first word that causes it, -1 where none does."""
        return self.words[0] if self.words else -1


class Understood(Struct, frozen=True, gc=False):
    """One command's arguments, as far as they are known."""

    known: bool
    operands: tuple[Operand, ...] = ()
    concerns: tuple[Concern, ...] = ()
    connects: bool = False
    hosts: tuple[tuple[str, int] | None, ...] = ()
    """Host and port; None where one is not known before it runs."""
    essential: tuple[int, ...] = ()
    """Indexes of the words without the options between program and subcommand; empty: all words."""
    values: frozenset[int] = frozenset()
    """Indexes of words that are values of options, and so no options themselves."""
    elsewhere: tuple[str | None, ...] = ()
    """Other directories that it works in (``git -C``)."""


_NONE: frozenset[int] = frozenset()
NOTHING = Understood(known=True)
_ACCESS = {
    PathAccess.READ: "read",
    PathAccess.WRITE: "write",
    PathAccess.DELETE: "delete",
    PathAccess.EXECUTE: "read",
}


def read_line(source: str) -> Line:
    """A shell line taken apart."""
    return parse_line(source)


def read_argv(argv: tuple[str, ...]) -> Line:
    """An argument vector as a line of one command and what it wraps."""
    return parse_argv(argv)


def tables_version() -> str:
    """Digest of the program tables in use."""
    from ringfence.shell.programs.load import BUILTIN

    return str(getattr(BUILTIN, "digest", ""))


def understand(command: SimpleCommand) -> Understood:
    """What the arguments of one command mean."""
    if command.words[0].dynamic:
        return NOTHING
    reading = read_arguments(command)
    words = command.words
    operands: list[Operand] = []
    for path in reading.paths:
        operands += _operands(path, words, known=reading.known)
    if not reading.known:
        operands += [
            Operand(text=value, access="maybe", word=n)
            for n, word in enumerate(words)
            if n and (value := joined_path(word))
        ]
    concerns: tuple[Concern, ...] = ()
    connects = False
    if reading.effects:
        concerns, connects = _concerns(reading.effects)
    hosts: tuple[tuple[str, int] | None, ...] = ()
    if reading.hosts:
        connects = True
        hosts = tuple(None if use.host is None else (use.host, use.port or DEFAULT_PORT) for use in reading.hosts)
    essential = reading.essential
    return Understood(
        reading.known,
        tuple(operands),
        concerns,
        connects,
        hosts,
        essential if len(essential) < len(words) else (),
        frozenset([word for option in reading.options for word in option.words[1:]]) if reading.options else _NONE,
        _elsewhere(reading) if reading.options or reading.paths else (),
    )


def _operands(path: PathUse, words: tuple[Word, ...], *, known: bool) -> list[Operand]:
    access = _ACCESS[path.access]
    if not known:
        access = "maybe"
    word = words[path.word] if 0 <= path.word < len(words) else None
    if path.into is not None:
        return [Operand(path.text, access, path.word, path.glob, directory=path.directory, into=path.into)]
    if path.text is None and word is not None and word.values and path.word > 0 and _is_whole_path(word):
        return [Operand(text=value, access=access, word=path.word, directory=path.directory) for value in word.values]
    if word is not None and word.values and path.text in word.values and not _is_whole_path(word):
        return [Operand(None, access, path.word)]
    if path.text is None and path.maybe and known:
        # A plain word of unknown value where only a guess says path: it is judged as a word, by the concerns.
        return []
    return [Operand(path.text, access, path.word, path.glob, path.tilde, path.directory, path.into)]


_PATH_START = re.compile(r"[\"']?[\w./]*[\"']?\$")


def _is_whole_path(word: Word) -> bool:
    """Whether the word's closed set of values are the paths themselves.

    Not where the path is a part of the word (``--file=$f``, ``if=$f``, ``@$f``), and not where a value would be an option.
    """
    return _PATH_START.match(word.raw) is not None and not any(value.startswith("-") for value in word.values)


def _concerns(effects: tuple[Effect, ...]) -> tuple[tuple[Concern, ...], bool]:
    found = []
    connects = False
    for effect in effects:
        if effect.kind is EffectKind.NETWORK:
            connects = True
        elif effect.kind is not EffectKind.CHANGES_DIRECTORY:
            found.append(Concern(kind=effect.kind, why=effect.why, words=effect.words))
    return tuple(found), connects


def _elsewhere(reading: Reading) -> tuple[str | None, ...]:
    found: dict[str | None, None] = {}
    for path in reading.paths:
        if path.directory != ".":
            found[path.directory] = None
    for option in reading.options:
        if option.top and option.name == "-C":
            found[option.value] = None
    return tuple(found)
