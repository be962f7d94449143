"""Simple commands: assignments, words and redirections up to a separator. Pure."""

import re

from ringfence.shell.braces import Piece
from ringfence.shell.collect import Stop
from ringfence.shell.places import Flow
from ringfence.shell.redirections import REDIRECTION, Redirections
from ringfence.shell.syntax import Assignment, Redirection, Word

_EQUALS = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\[", re.ASCII)
_SUBSCRIPTED = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)
_ARRAY = re.compile(r"([A-Za-z_]\w*)\+?=\(", re.ASCII)
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})


class Simple(Redirections):
    """Reads simple commands; what they mean is decided one file further."""

    def simple(self) -> Flow:
        """Assignments, words and redirections up to a separator."""
        start = self.pos
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirections: list[Redirection] = []
        try:
            self.parts(words, assignments, redirections)
        except Stop:
            if words:
                self.command(words, assignments, redirections, start)
            raise
        if self.pos == start:
            raise Stop(start, f"unexpected `{self.text[start]}`")
        return self.command(words, assignments, redirections, start)

    def parts(self, words: list[Word], assignments: list[Assignment], redirections: list[Redirection]) -> None:
        """Everything up to the separator, sorted into the three lists."""
        text, size = self.text, self.size
        while self.pos < size:
            character = text[self.pos]
            if character in " \t\\#":
                before = self.pos
                self.blanks()
                if self.pos > before:
                    continue
            if character in "\n;|)":
                return
            if character in "<>&0123456789{":
                match = REDIRECTION.match(text, self.pos)
                if match:
                    self.redirection(match, redirections)
                    continue
                if character == "&":
                    return
            if character == "(":
                raise Stop(self.pos, "unexpected `(`")
            if character == "{" and (match := _DESCRIPTOR.match(text, self.pos)):
                self.note(self.pos, match.end(), "a descriptor's name with a subscript, which is evaluated")
                self.expansions(text[self.pos : self.pos + 300], self.place(self.pos), self.place(match.end()))
            if not words and character not in "'\"$`\\" and (match := _EQUALS.match(text, self.pos)):
                assignments.append(self.assignment(match[1], match.end()))
                continue
            if words and words[0].text in _DECLARING and (match := _ARRAY.match(text, self.pos)):
                words.append(self.array_word(match))
                continue
            before = self.pos
            first = not words
            words.extend(self.words())
            if (
                first
                and _SUBSCRIPTED.match(text, before)
                and ("]=" in text[before : self.pos] or "]+=" in text[before : self.pos])
            ):
                self.note(before, self.pos, "an assignment to an array element, whose subscript is evaluated")
            if text[self.pos : self.pos + 1] in ("<", ">") and re.fullmatch(r"(?:\d|\\\n)+", text[before : self.pos]):
                self.note(before, self.pos, "a joined number in front of a redirection")

    def array_word(self, match: re.Match[str]) -> Word:
        """``NAME=(…)`` as an argument of declare and its like."""
        start = self.pos
        self.assignment(match[1], match.end() - 1)
        raw = self.text[start : self.pos]
        return Word(
            text=raw, raw=raw, start=self.place(start), end=self.place(self.pos), dynamic=True, prefix=match[1] + "="
        )

    def assignment(self, name: str, position: int) -> Assignment:
        """``NAME=value``, the position behind the equals sign."""
        start = self.pos
        self.pos = position
        if self.text.startswith("(", position):
            self.bash_only(start, "an array")
            self.array()
            self.collected.arrays.add(name)
            value = None
        else:
            value = self.value()
        if name == "PS4" and not (value and not value.dynamic and "$" not in value.text and "`" not in value.text):
            self.note(start, self.pos, "`PS4` is expanded before every command that is traced")
        return Assignment(name=name, value=value, start=self.place(start), end=self.place(self.pos))

    def value(self) -> Word:
        """An assigned value: no braces, no globs, no splitting; a tilde may also follow a colon."""
        start = self.pos
        pieces = [
            Piece("Q", piece.text, piece.raw) if piece.kind == "L" and not piece.text.startswith("~") else piece
            for piece in self.pieces()
        ]
        word = self.one(pieces, start)
        if ":~" in word.raw and not word.dynamic:
            return Word(text=word.raw, raw=word.raw, start=word.start, end=word.end, dynamic=True)
        return word

    def array(self) -> None:
        """``(…)`` behind an equals sign."""
        start = self.pos
        self.pos += 1
        while True:
            self.newlines()
            if self.pos >= self.size:
                raise Stop(start, "an array that is never closed")
            if self.text[self.pos] == ")":
                self.pos += 1
                return
            if self.text[self.pos] == "[":
                self.note(self.pos, self.pos + 1, "an array subscript that is evaluated")
            before = self.pos
            self.words()
            if self.pos == before:
                raise Stop(before, f"unexpected `{self.text[before]}`")
