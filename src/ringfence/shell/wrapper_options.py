"""What the readers of wrappers share: what they find, and how a program's own options are gone through. Pure."""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_specs import Spec

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)


class Wrapped(Struct, frozen=True, kw_only=True, gc=False):
    """One command that a wrapper starts: either ``words``, or ``script`` to be read as a line of its own."""

    words: tuple[Word, ...] = ()
    script: str | None = None
    at: Word | None = None
    """The word that holds the script, for its place."""
    reader: str = "sh"
    assigned: tuple[Word, ...] = ()
    """``NAME=value`` words that are set for it."""
    directory: str | None = "."
    """Where it runs, seen from the wrapper; None: not known."""
    remote: bool = False
    privileged: bool = False
    extra: bool = False
    unnamed: bool = False
    """No word of it stands on the line: it is what runs where none is added."""
    covered: bool = False
    why: str = ""
    """Why this reading is not sure; empty where it is."""

    @property
    def named(self) -> bool:
        """Whether the line itself says what is started."""
        return self.script is not None or bool(self.words and not self.unnamed)


class Options:
    """A program's own options, one after the other. ``index`` is the first word that is not read yet.

    ``why`` is the first reason for which they are not surely read; empty where there is none.
    """

    __slots__ = ("index", "name", "why", "words")
    signs: str | tuple[str, ...] = "-"
    """What an option begins with."""
    ends: tuple[str, ...] = ("--",)
    dash = False
    """Whether a ``-`` alone is an option too."""

    def __init__(self, words: Sequence[Word], index: int, name: str) -> None:
        self.words = words
        self.index = index
        self.name = name
        self.why = ""

    def take(self) -> Word | None:
        """The next option; None at one of ``ends``, which is passed, at the first operand, or at what may be an option.

        Whoever takes an option's value from the next word does so by ``value``.
        """
        index = self.index
        if index >= len(self.words):
            return None
        word = self.words[index]
        if word.dynamic and _may_be_option(word):
            self.doubt(f"`{word.raw}` may be an option")
            return None
        text = word.text
        if not text.startswith(self.signs):
            return None
        if text in self.ends:
            self.index = index + 1
            return None
        if text == "-" and not self.dash:
            return None
        self.index = index + 1
        return word

    def value(self, word: Word, attached: str | None) -> Word | None:
        """An option's value: what is attached to it, else the next word, which is read by this; None at the end."""
        if attached is not None:
            return replace(word, text=attached)
        self.index += 1
        return self.words[self.index - 1] if self.index <= len(self.words) else None

    def doubt(self, why: str) -> None:
        """The options are not surely read."""
        self.why = self.why or why

    def unknown(self, text: str) -> None:
        """An option that no table names."""
        self.doubt(f"`{text}` is not a known option of `{self.name}`")


def base_name(word: Word) -> str:
    """The program's name without its folder."""
    return word.text.rsplit("/", 1)[-1]


def skip_options(words: Sequence[Word], index: int, spec: Spec) -> tuple[int, str]:
    """The index of the first word that is no option, and a reason where the options are not surely read."""
    if index >= len(words) or not (words[index].dynamic or words[index].text.startswith("-")):
        return index, ""  # most have none
    options = Options(words, index, words[0].text)
    while (word := options.take()) is not None:
        text = word.text
        if text.startswith("--"):
            name, equals, _ = text[2:].partition("=")
            if name in spec.long or (not equals and abbreviates(name, spec.long)):
                options.index += not equals
            elif name not in spec.long_flags and not abbreviates(name, spec.long_flags):
                options.unknown(text)
        elif not (spec.numbers and re.fullmatch(r"--?\d+", text)):
            taken = _cluster(text, spec)
            if taken is None:
                options.unknown(text)
            elif taken:
                options.index += 1
    return options.index, options.why


def _may_be_option(word: Word) -> bool:
    """A word of unknown value that may turn out to be an option."""
    if word.prefix:
        return word.prefix.startswith("-")
    return not word.values or any(value.startswith("-") for value in word.values)


def assigns(word: Word) -> bool:
    """``NAME=value``, known or not."""
    return bool(_ASSIGNMENT.match(word.prefix if word.dynamic else word.text))


def abbreviates(name: str, names: frozenset[str]) -> bool:
    """Whether a long name is the beginning of exactly one of ``names``."""
    return bool(name) and sum(candidate.startswith(name) for candidate in names) == 1


def _cluster(text: str, spec: Spec) -> bool | None:
    """Whether a cluster of short options takes the next word; None where one is not known."""
    for position, letter in enumerate(text[1:], 1):
        if letter in spec.short:
            return position == len(text) - 1
        if letter not in spec.flags:
            return None
    return False


def joined(words: Sequence[Word], *, shell_name: str = "sh", **more: object) -> list[Wrapped]:
    """Words that a program joins with blanks and hands to a shell."""
    if not words:
        return []
    unknown = any(word.dynamic or word.tilde for word in words)
    result = Wrapped(
        script=" ".join(word.text for word in words), at=_span(words), reader=shell_name,
        why="the script is not known before it runs" if unknown else "", **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return [result]


def _span(words: Sequence[Word]) -> Word:
    return replace(words[0], end=words[-1].end)


def inserted(word: Word, mark: str, prefix: str | None = None) -> Word:
    """A word into which something of unknown value is put when it runs."""
    if not mark or mark not in word.text or word.dynamic:
        return word
    head = word.text[: word.text.index(mark)]
    return replace(word, dynamic=True, prefix=head + (prefix or ""), may_split=False, text=word.raw)
