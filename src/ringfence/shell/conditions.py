"""``[[ … ]]``: words, of which some are evaluated as arithmetic or name a variable. Pure."""

import re

from ringfence.shell.braces import Piece
from ringfence.shell.collect import Stop
from ringfence.shell.places import Flow, still
from ringfence.shell.reader import NUMERIC_OUTPUT
from ringfence.shell.simple import Simple
from ringfence.shell.syntax import Word

_JOINER = re.compile(r"&&|\|\||[()]|[<>](?!\()")


class Conditions(Simple):
    """Reads conditional expressions."""

    def test(self) -> Flow:
        """``[[ … ]]``: words, of which some are evaluated as arithmetic or name a variable."""
        start = self.pos - 2
        self.bash_only(start, "[[ … ]]")
        previous: list[Word] = []
        while True:
            self.newlines()
            if self.pos >= self.size:
                raise Stop(start, "a [[ that is never closed")
            if self.reserved() == "]]":
                self.pos += 2
                return still(self.places)
            regex = bool(previous) and not previous[-1].quoted and previous[-1].text == "=~"
            match = None if regex else _JOINER.match(self.text, self.pos)
            if match:
                self.pos = match.end()
                previous = []
                continue
            if self.text[self.pos] in "&|;":
                raise Stop(self.pos, f"unexpected `{self.text[self.pos]}`")
            before = self.pos
            word = self.regex() if regex else self.word()
            if self.pos == before:
                raise Stop(before, f"unexpected `{self.text[before]}`")
            previous = self.test_word(word, previous)

    def test_word(self, word: Word, previous: list[Word]) -> list[Word]:
        """One word of a condition, and what the operator before it does with it."""
        operator = previous[-1].text if previous else ""
        if operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
            self.evaluated(previous[-2] if len(previous) > 1 else word)
            self.evaluated(word)
        elif operator in ("-v", "-R") and (word.dynamic or not re.fullmatch(r"[A-Za-z_]\w*", word.text)):
            self.note_word(word, "a variable test that evaluates a subscript")
        return [*previous[-2:], word]

    def evaluated(self, word: Word) -> None:
        """An operand that ``[[`` evaluates as arithmetic."""
        if re.fullmatch(r"\$(?:[#?$!]|\{#\w+\})|\"\$(?:[#?$!]|\{#\w+\})\"", word.raw):
            return
        if NUMERIC_OUTPUT.match(word.raw):
            return
        if word.values and all(re.fullmatch(r"-?\d+", value) for value in word.values):
            return
        name = re.fullmatch(r'"?\$?\{?([A-Za-z_]\w*)\}?"?', word.raw)
        if name:
            self.collected.arithmetic.append((name[1], word.start, word.end))
            if word.dynamic and name[1] not in self.collected.assigned:
                self.note_word(word, "a value that is evaluated as arithmetic")
        elif word.dynamic or not re.fullmatch(r"-?\d+", word.text):
            self.note_word(word, "a value that is evaluated as arithmetic")

    def regex(self) -> Word:
        """The right side of ``=~``: parentheses and bars belong to it."""
        start, depth = self.pos, 0
        pieces: list[Piece] = []
        while self.pos < self.size:
            pieces.extend(self.pieces())
            if self.pos >= self.size:
                break
            character = self.text[self.pos]
            if character in " \t\n" and depth == 0:
                break
            if character in ";&" and depth == 0:
                break
            if character == ")" and depth == 0:
                break
            depth += {"(": 1, ")": -1}.get(character, 0)
            pieces.append(Piece("L", character, character))
            self.pos += 1
        return self.one(pieces, start)
