"""What a command's arguments mean for the policy: which are paths, which run, write or connect. Pure.

Programs with a table are read by ``shell.programs``; for the rest the words after the program are taken for operands,
and the operands for paths, as the small format says.
"""

from dataclasses import dataclass

from ringfence.shell.syntax import Line, SimpleCommand, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A path among the arguments. ``text`` is None where it is not known before the command runs."""

    text: str | None
    access: str
    word: int
    glob: bool = False
    tilde: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Something an ALLOW for the program does not cover by itself."""

    kind: str
    """``executes``, ``program-text``, ``unknown-option``, ``network``, ``dynamic`` and the like."""
    why: str
    word: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """One command's arguments, as far as they are known."""

    known: bool
    operands: tuple[Operand, ...] = ()
    concerns: tuple[Concern, ...] = ()
    hosts: tuple[tuple[str, int], ...] = ()
    subcommand: int | None = None
    """Index of the subcommand's word where options may stand in front of it (``git -C dir status``)."""


NOTHING = Understood(known=True)


def understand(command: SimpleCommand) -> Understood:
    """What the arguments of one command mean."""
    if len(command.words) < 2:
        return NOTHING
    return _without_table(command.words)


def _without_table(words: tuple[Word, ...]) -> Understood:
    operands: list[Operand] = []
    concerns: list[Concern] = []
    literal = False
    for number, word in enumerate(words[1:], 1):
        text = word.text
        if word.dynamic and not word.glob:
            operands.append(Operand(text=None, access="maybe", word=number))
        elif text == "--" and not literal:
            literal = True
        elif not literal and text.startswith("-") and len(text) > 1:
            _option(text, number, operands)
        elif text:
            operands.append(Operand(text=text, access="maybe", word=number, glob=word.glob, tilde=word.tilde))
    return Understood(known=False, operands=tuple(operands), concerns=tuple(concerns))


def _option(text: str, number: int, operands: list[Operand]) -> None:
    """A value joined to an option of an unknown program is a path where it looks like one."""
    value = text.partition("=")[2] if "=" in text else text[2:]
    if "/" in value or value.startswith(("~", "..")):
        start = value.find("/") if "=" not in text and not value.startswith((".", "~", "/")) else 0
        operands.append(Operand(text=value[max(start, 0) :], access="maybe", word=number))


def read_line(source: str) -> Line:
    """A shell line taken apart."""
    from ringfence.shell.parse import parse_line

    return parse_line(source)


def read_argv(argv: tuple[str, ...]) -> Line:
    """An argument vector as a line of one command and what it wraps."""
    from ringfence.shell.parse import parse_argv

    return parse_argv(argv)


def tables_version() -> str:
    """Digest of the program tables in use."""
    return ""
