"""The values that understanding a command line yields. Positions count characters of the line from 0.

They are structs of msgspec: frozen and compared like frozen dataclasses, and made in a twentieth of the time, which is
what most of reading a short line was. They hold no cycles, so the garbage collector need not look at them.
"""

import enum

from msgspec import Struct


class Word(Struct, frozen=True, kw_only=True, gc=False):
    """One word. ``text`` is what the program receives after quote removal when ``dynamic`` is false.

    ``dynamic``: the value is not known before it runs (expansion, substitution, glob, brace that could not be expanded).
    For a dynamic word ``text`` is the raw source, to show and never to trust. ``prefix`` is the literal text that the
    value surely starts with (``src/`` of ``src/$NAME``), ``may_split`` whether it may become no word or several.
    """

    text: str
    raw: str
    start: int
    end: int
    dynamic: bool = False
    prefix: str = ""
    may_split: bool = False
    glob: bool = False
    """Holds an unquoted ``*``, ``?`` or ``[``: may stand for names of existing files, each matching ``text``."""
    tilde: bool = False
    """Begins with an unquoted ``~``; ``text`` keeps the tilde, the evaluator resolves it with the facts."""
    quoted: bool = False
    pipe: bool = False
    """Nothing but ``<(…)`` or ``>(…)``: the name of a pipe, whose other end is on the line."""
    values: tuple[str, ...] = ()
    """For a dynamic word: the closed set of values it may have, where all are known (``$f`` of ``for f in a b``)."""


class Access(enum.Enum):
    """What a redirection does to its target."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read-write"
    NONE = "none"
    """Descriptor duplication or closing, here-document, here-string."""


class Redirection(Struct, frozen=True, kw_only=True, gc=False):
    """One redirection, of a command or of the compound it stands in. ``target`` is None where there is no path."""

    operator: str
    access: Access
    target: Word | None
    start: int
    end: int
    body: str | None = None
    """The text of a here-document or here-string where it is literal."""
    input: bool = False
    """Whether standard input comes from it, rather than another descriptor."""


class Assignment(Struct, frozen=True, kw_only=True, gc=False):
    """``NAME=value`` in front of a command, alone, or by export, declare, read, printf -v and the like."""

    name: str
    value: Word | None
    start: int
    end: int
    scope: str = "command"
    """``command`` (in front of one), ``shell`` (stays set), ``export``, or ``loop`` (the variable of a ``for``)."""


class Directory(Struct, frozen=True, kw_only=True, gc=False):
    """Where a command runs. ``path`` is absolute, or relative to the start directory; None: not known before it runs.

    A path that begins with ``~`` is below a home directory, as in a tilde word; a folder of that name is ``./~``.
    """

    path: str | None = "."
    alternatives: tuple[str, ...] = ()
    """Other directories it may run in, where a cd on the line may or may not have succeeded."""


class SimpleCommand(Struct, frozen=True, kw_only=True, gc=False):
    """One program start (or builtin) found on the line, wrappers and what they wrap both in the list."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    directory: Directory = Directory()
    start: int = 0
    end: int = 0
    wrapper: int | None = None
    """Index (in ``Line.commands``) of the wrapper that starts this one: ``env``, ``xargs``, ``bash -c`` …"""
    wraps: tuple[int, ...] = ()
    """Indexes of the commands that this one starts; a wrapper with these needs no rule of its own."""
    is_wrapper: bool = False
    remote: bool = False
    """Runs on another machine (``ssh host cmd``): never a local allow."""
    extra_arguments: bool = False
    """More arguments of unknown value are added when it runs (``xargs``, ``find -exec … +``)."""
    privileged: bool = False
    """Started by sudo, doas, su: never an allow."""
    covered: bool = False
    """Started by a program whose own rule must cover it (``npx``, ``uv run``, ``strace``): only deny and ask look here."""


class Unexplained(Struct, frozen=True, kw_only=True, gc=False):
    """A place that the grammar does not surely explain, and why. One of these and the line is never ALLOW."""

    start: int
    end: int
    text: str
    why: str


class Line(Struct, frozen=True, kw_only=True, gc=False):
    """Everything found on one command line."""

    source: str
    commands: tuple[SimpleCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    """Of groups, loops and bare ones (``> f``), with the directory in ``directories`` at the same index."""
    directories: tuple[Directory, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    """Not in front of a command: bare, exported, declared, read, or by functions and aliases."""
    functions: tuple[str, ...] = ()
    unexplained: tuple[Unexplained, ...] = ()
