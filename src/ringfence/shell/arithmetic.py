"""Arithmetic: ``$((…))``, ``((…))``, offsets. Bash evaluates the values it finds there, so what is in them counts. Pure."""

import re
from collections.abc import Iterator

from ringfence.shell.braces import Piece
from ringfence.shell.reader import NAME, NUMERIC_OUTPUT, Reader

_NUMERIC = re.compile(r"-?\d+\Z", re.ASCII)
_ARITHMETIC = re.compile(r"[\s\w+\-*/%<>=!&|^~?:,().@#]+", re.ASCII)
_IDENTIFIER = re.compile(r"(?<![\w#$@])([A-Za-z_]\w*)(\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=)))?", re.ASCII)
_BEFORE = re.compile(r"(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII)
_QUOTES = re.compile(r"[()'\"\\`]")


class Arithmetic(Reader):
    """Reads arithmetic text."""

    def arithmetic_end(self, position: int) -> int | None:
        """Where the ``))`` that closes an arithmetic text beginning at ``position`` stands; None where none surely does."""
        depth, text, start = 0, self.text, position
        while match := _QUOTES.search(text, position):
            position = match.end()
            character = match[0]
            if character == "(":
                depth += 1
            elif character == ")":
                if depth == 0:
                    self.collected.spend(position - start, self.pos)
                    return match.start() if text.startswith(")", position) else None
                depth -= 1
            else:
                self.collected.spend(position - start, self.pos)
                return self.arithmetic_end_quoted(match.start(), depth)
        self.collected.spend(self.size - start, self.pos)
        return None

    def arithmetic_end_quoted(self, position: int, depth: int) -> int | None:
        """The same past the first quote, conservatively: quotes are skipped as bash's own scanner does."""
        text = self.text
        self.collected.spend(min(self.size - position, 2000), self.pos)
        while position < self.size:
            self.collected.work += 1
            character = text[position]
            if character == "\\":
                position += 2
                continue
            if character in "'\"`":
                end = text.find(character, position + 1)
                if end < 0:
                    return None
                position = end + 1
                continue
            if character == "(":
                depth += 1
            elif character == ")":
                if depth == 0:
                    return position if text.startswith(")", position + 1) else None
                depth -= 1
            position += 1
        return None

    def arithmetic(self, end: int) -> None:
        """Read arithmetic from ``pos`` to ``end``: every value in it may itself be evaluated."""
        text = self.text
        while self.pos < end:
            match = _ARITHMETIC.match(text, self.pos, end)
            if match:
                self.arithmetic_names(match[0], match.start())
                self.pos = match.end()
                continue
            start, character = self.pos, text[self.pos]
            if character == "$":
                pieces = self.dollar(quoted=True)
                self.arithmetic_value(pieces, start)
            elif character == "`":
                self.backtick(quoted=True)
                self.note(start, self.pos, "output of a command evaluated as arithmetic")
            elif text.startswith("\\\n", start):
                self.pos += 2
            else:
                if character != '"':
                    self.note(start, start + 1, "arithmetic that is not plain")
                self.pos += 1

    def arithmetic_names(self, text: str, start: int) -> None:
        """Variables that arithmetic evaluates or sets."""
        for name, sets, at in names(text):
            first = self.place(start + at)
            self.collected.evaluate(name, first, first + len(name), sets=sets)

    def arithmetic_value(self, pieces: list[Piece], start: int) -> None:
        """An expansion inside arithmetic: its value is evaluated, so it must be a number."""
        for piece in pieces:
            name = NAME.fullmatch(piece.raw.strip("${}"))
            if piece.raw.startswith(("${#", "$((")) or piece.raw in ("$#", "$?", "$$", "$!", "$"):
                continue
            if piece.values and all(_NUMERIC.match(value) for value in piece.values):
                continue
            if NUMERIC_OUTPUT.match(piece.raw):
                continue
            if name:
                self.collected.arithmetic.append((name[0], self.place(start), self.place(self.pos)))
                continue
            self.note(start, self.pos, "a value that is evaluated as arithmetic")


def names(text: str) -> Iterator[tuple[str, bool, int]]:
    """Every variable in arithmetic text, whether it is set there, and where it stands."""
    stepped = {match.start(1) for match in _BEFORE.finditer(text)}
    for match in _IDENTIFIER.finditer(text):
        if match[1][0] in "xXbBoO" and text[match.start() - 1 : match.start()] == "0":
            continue
        yield match[1], bool(match[2]) or match.start(1) in stepped, match.start()
