"""sed scripts: which files they read and write, and whether they run anything. Pure.

Reads GNU sed's grammar; what it cannot read is reported as program text that is not known.
"""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs.reading import EffectKind
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_SKIP = re.compile(r"[\s;]*")
_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+)")
_PLAIN = re.compile(r"[=dDgGhHnNpPxzF]|[lLqQ]\s*\d*")
_BRACKET = re.compile(r"\[\^?\]?(?:\[[:.=][^\]\n]*[:.=]\]|[^\]\n])*\]")
_LABEL = re.compile(r"[ \t]*[^\s;}]*")
_LINE = re.compile(r"[^\n]*")


class _Unread(Exception):
    """The script is not read any further."""


def scan_sed(reader: "Reader", word: Word, words: tuple[int, ...]) -> None:
    """Effects and paths of one script word."""
    if word.dynamic and not word.values:
        reader.effect(EffectKind.PROGRAM_TEXT, word.raw, words, "a sed script that is not known before it runs")
        return
    for text in word.values if word.dynamic else (word.text,):
        try:
            _Script(reader, text, word, words).read()
        except _Unread:
            reader.effect(EffectKind.PROGRAM_TEXT, text, words, "a sed script that could not be read")


class _Script:
    def __init__(self, reader: "Reader", text: str, word: Word, words: tuple[int, ...]) -> None:
        self.reader = reader
        self.text = text
        self.word = word
        self.words = words
        self.pos = 0

    def read(self) -> None:
        text, size = self.text, len(self.text)
        while True:
            self.skip(_SKIP)
            if self.pos >= size:
                return
            if text[self.pos] == "#":
                self.skip(_LINE)
                continue
            self.addresses()
            if self.pos >= size:
                raise _Unread
            self.command(text[self.pos])

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.pos)
        found = match[0] if match else ""
        self.pos += len(found)
        return found

    def addresses(self) -> None:
        for _ in range(2):
            self.address()
            self.blanks()
            if not self.text.startswith(",", self.pos):
                break
            self.pos += 1
            self.blanks()
        self.blanks()
        while self.text.startswith("!", self.pos):
            self.pos += 1
            self.blanks()

    def address(self) -> None:
        if self.skip(_ADDRESS):
            return
        if self.text.startswith("/", self.pos):
            self.delimited("/", self.pos + 1)
        elif self.text.startswith("\\", self.pos) and self.pos + 1 < len(self.text):
            self.delimited(self.text[self.pos + 1], self.pos + 2)
        else:
            return
        self.skip(re.compile("[IM]*"))

    def blanks(self) -> None:
        self.skip(re.compile(r"[ \t]*"))

    def delimited(self, delimiter: str, position: int, *, regex: bool = True) -> None:
        """Move behind the next ``delimiter`` that no backslash hides, nor, in a regular expression, a bracket."""
        if delimiter in "\n\\":
            raise _Unread
        text = self.text
        while position < len(text):
            if text[position] == "\\":
                position += 2
                continue
            if text[position] == delimiter:
                self.pos = position + 1
                return
            if regex and text[position] == "[" and (bracket := _BRACKET.match(text, position)):
                position = bracket.end()
                continue
            position += 1
        raise _Unread

    def command(self, character: str) -> None:
        if character in "{}":
            self.pos += 1
        elif self.skip(_PLAIN):
            return
        elif character in "aic":
            self.lines()
        elif character in ":btT":
            self.pos += 1
            self.skip(_LABEL if character != ":" else re.compile(r"[ \t]*[^\s;]*"))
        elif character in "rRwW":
            self.pos += 1
            self.file(self.skip(_LINE).strip(" \t"), write=character in "wW")
        elif character == "s":
            self.substitute()
        elif character == "y":
            delimiter = self.text[self.pos + 1 : self.pos + 2] or "\n"
            self.delimited(delimiter, self.pos + 2, regex=False)
            self.delimited(delimiter, self.pos, regex=False)
        elif character == "e":
            self.reader.effect(EffectKind.EXECUTES, "e", self.words, "the sed command `e` runs a program")
            self.skip(_LINE)
        else:
            raise _Unread

    def lines(self) -> None:
        """Text of a, i, c: up to a line end that no backslash hides."""
        while True:
            line = self.skip(_LINE)
            if self.pos >= len(self.text) or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                return
            self.pos += 1

    def substitute(self) -> None:
        delimiter = self.text[self.pos + 1 : self.pos + 2] or "\n"
        self.delimited(delimiter, self.pos + 2)
        self.delimited(delimiter, self.pos, regex=False)
        flags = self.skip(re.compile(r"[gpiImM0-9e]*"))
        if "e" in flags:
            self.reader.effect(EffectKind.EXECUTES, "e", self.words, "the flag `e` of sed's `s` runs what it made")
        if self.text.startswith("w", self.pos):
            self.pos += 1
            self.file(self.skip(_LINE).strip(" \t"), write=True)

    def file(self, name: str, *, write: bool) -> None:
        if not name:
            raise _Unread
        word = replace(self.word, text=name, dynamic=False, tilde=False, glob=False, values=())
        self.reader.path(word, self.words[-1], "write" if write else "read")
        if write and name not in ("/dev/stdout", "/dev/stderr"):
            self.reader.effect(EffectKind.WRITES, "w", self.words, "the sed script writes a file")
