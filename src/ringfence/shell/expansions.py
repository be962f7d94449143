"""What begins with ``$`` or a backtick: variables, substitutions, parameter expansions, encoded strings. Pure."""

import re

from ringfence.shell.arithmetic import Arithmetic
from ringfence.shell.braces import Piece
from ringfence.shell.collect import Pattern, Stop
from ringfence.shell.reader import NAME

_BACKTICK = re.compile(r"[^\\`]+")
_SIMPLE_ESCAPES = {
    "n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v", "r": "\r",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_PLAIN_PARAMETER = re.compile(r"(#?)(?:([A-Za-z_]\w*)|\d+|[?$!@*#-])\}", re.ASCII)
_PARAMETER = re.compile(r"[#!]?(?:([A-Za-z_]\w*)|\d+|[?$@*!#-])", re.ASCII)
_KEYS = re.compile(r"!\w+\[[@*]\]\}", re.ASCII)
_OPERATOR = re.compile(r":?[-=?+]|:|##?|%%?|/[/#%]?|\^\^?|,,?|@|(?=\})")
_OFFSETS = re.compile(r"[\s\d:-]*")
_SUBSCRIPT = re.compile(r"\[(?:[@*]|-?\d+)\]")


class Expansions(Arithmetic):
    """Reads expansions; nested commands go to the grammar."""

    def dollar(self, *, quoted: bool) -> list[Piece]:
        """What begins with ``$`` at ``pos``."""
        start, text = self.pos, self.text
        following = text[start + 1 : start + 2]
        if following == "(":
            return [self.parenthesis(quoted=quoted)]
        if following == "{":
            return [self.parameter(quoted=quoted)]
        match = NAME.match(text, start + 1)
        if match:
            self.pos = match.end()
            return [self.variable(match[0], start, quoted=quoted)]
        if following and following in "0123456789?#$!@*-":
            self.pos = start + 2
            splits = following == "@" or not quoted
            return [Piece("D", text[start : self.pos], text[start : self.pos], splits=splits)]
        if following == "'" and not quoted:
            self.bash_only(start, "$'…'")
            return [self.ansi()]
        if following == '"' and not quoted:
            self.note(start, start + 2, 'a translated string ($"…")')
            self.pos += 1
            return self.double()
        if following == "[":
            self.note(start, start + 2, "old arithmetic ($[…])")
        if following == "\\" and text.startswith("\n", start + 2):
            self.note(start, start + 3, "a joined line after $")
            self.pos = start + 3
            return self.joined_dollar(quoted=quoted)
        self.pos = start + 1
        return [Piece("Q", "$", "$")]

    def joined_dollar(self, *, quoted: bool) -> list[Piece]:
        """``$``, backslash, newline: bash removes the join and reads what follows as if it stood after the ``$``."""
        while self.text.startswith("\\\n", self.pos):
            self.pos += 2
        if self.text.startswith(("(", "{"), self.pos):
            self.pos -= 1
            return [
                self.parenthesis(quoted=quoted) if self.text[self.pos + 1] == "(" else self.parameter(quoted=quoted)
            ]
        return [Piece("D", "$", "$", splits=not quoted)]

    def variable(self, name: str, start: int, *, quoted: bool) -> Piece:
        """``$NAME``, with its values where they are followed."""
        raw = self.text[start : self.pos]
        values = self.collected.values_of(name)
        if values and isinstance(values[0], Pattern):
            # Elsewhere the same name is another file, and unquoted it may be several words.
            same = quoted and values[0].places == self.places
            return Piece("D", raw, raw, splits=not quoted, pattern=str(values[0]) if same else "")
        if values and not quoted and any(_splits(value) for value in values):
            values = ()
        return Piece("D", raw, raw, splits=not quoted and not values, values=values)

    def parenthesis(self, *, quoted: bool) -> Piece:
        """``$(…)`` or ``$((…))``, the ``$`` at ``pos``."""
        start = self.pos
        if self.text.startswith("((", start + 1):
            end = self.arithmetic_end(start + 3)
            if end is not None:
                self.pos = start + 3
                self.arithmetic(end)
                self.pos = end + 2
                raw = self.text[start : self.pos]
                return Piece("D", raw, raw, splits=False)
            self.note(start, start + 3, "$(( that is not plain arithmetic")
        self.pos = start + 2
        self.substitution(")")
        raw = self.text[start : self.pos]
        return Piece("D", raw, raw, splits=not quoted)

    def substitution(self, closer: str) -> None:
        """Commands up to ``closer``, in a shell of their own."""
        self.deeper()
        self.substituting += 1
        self.nested_list(closer)
        self.substituting -= 1
        self.depth -= 1

    def process_substitution(self) -> Piece:
        """``<(…)`` or ``>(…)``: a file name that is not known before it runs."""
        start = self.pos
        self.pos += 2
        self.bash_only(start, "process substitution")
        self.substitution(")")
        raw = self.text[start : self.pos]
        return Piece("P", raw, raw)

    def backtick(self, *, quoted: bool) -> Piece:
        """The old substitution: its text is unescaped once and read as a script of its own."""
        start = self.pos
        self.pos += 1
        parts: list[str] = []
        exact = True
        while True:
            match = _BACKTICK.match(self.text, self.pos)
            if match:
                parts.append(match[0])
                self.pos = match.end()
            if self.pos >= self.size:
                raise Stop(start, "a backtick that is never closed")
            if self.text[self.pos] == "`":
                self.pos += 1
                break
            following = self.text[self.pos + 1 : self.pos + 2]
            exact = False
            parts.append(following if following and following in "$`\\" + ('"' if quoted else "") else "\\" + following)
            self.pos += 2
        self.deeper()
        self.nested_text("".join(parts), start + 1, exact=exact)
        self.depth -= 1
        raw = self.text[start : self.pos]
        return Piece("D", raw, raw, splits=not quoted)

    def ansi(self) -> Piece:
        """``$'…'``: decoded as bash does; a zero or a raw byte is not explained."""
        start = self.pos
        self.pos += 2
        parts: list[str] = []
        while self.pos < self.size:
            character = self.text[self.pos]
            if character == "'":
                self.pos += 1
                return Piece("Q", "".join(parts), self.text[start : self.pos])
            if character != "\\":
                parts.append(character)
                self.pos += 1
                continue
            match = _ANSI.match(self.text, self.pos)
            if not match:
                break
            self.pos = match.end()
            parts.append(self.ansi_escape(match))
        raise Stop(start, "a $'…' that is never closed")

    def ansi_escape(self, match: re.Match[str]) -> str:
        """One escape of ``$'…'``."""
        hexadecimal, short, long, octal, control, other = match.groups()
        if other is not None:
            return _SIMPLE_ESCAPES.get(other, "\\" + other)
        if control is not None:
            self.note(match.start(), match.end(), "a control escape in a quoted string")
            self.pos -= 1
            return "\ufffd"
        code = int(octal, 8) & 0xFF if octal is not None else int(hexadecimal or short or long or "0", 16)
        raw_byte = (hexadecimal or octal) and code > 0x7F
        if code == 0 or raw_byte or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.note(match.start(), match.end(), "an escape that stands for a zero, a raw byte or no character")
            return "\ufffd"
        return chr(code)

    # ${…}

    def parameter(self, *, quoted: bool) -> Piece:
        """``${…}``, the ``$`` at ``pos``."""
        start, text = self.pos, self.text
        self.pos += 2
        match = _PLAIN_PARAMETER.match(text, self.pos)
        if match:
            self.pos = match.end()
            if match[2] and not match[1]:
                return self.variable(match[2], start, quoted=quoted)
            raw = text[start : self.pos]
            splits = not match[1] and (not quoted or raw == "${@}")
            return Piece("D", raw, raw, splits=splits)
        self.deeper()
        self.parameter_head(start)
        self.parameter_rest(start, quoted=quoted)
        self.depth -= 1
        raw = text[start : self.pos]
        return Piece("D", raw, raw, splits=not quoted or "@" in raw)

    def parameter_head(self, start: int) -> None:
        """Name, subscript and operator; what is not plain is noted."""
        text = self.text
        match = _PARAMETER.match(text, self.pos)
        if not match:
            self.note(start, self.pos, "a parameter expansion without a plain name")
            return
        if text[self.pos] == "!" and not _KEYS.match(text, self.pos):
            self.note(start, match.end(), "indirect expansion: reads a variable whose name is computed")
        self.pos = match.end()
        if text.startswith("[", self.pos):
            self.subscript()
        if text.startswith("@", self.pos) and not text.startswith(("@Q}", "@U}", "@u}", "@L}"), self.pos):
            self.note(start, self.pos + 2, "an expansion operator that may evaluate its value")
        operator = _OPERATOR.match(text, self.pos)
        if not operator:
            self.note(start, self.pos + 1, "an unknown form of parameter expansion")
            return
        self.pos = operator.end()
        if operator[0] in ("=", ":=") and match[1]:
            self.collected.assign(match[1], None, self.place(start), self.place(self.pos), "shell")
        if operator[0] == ":":
            self.substring(start)

    def substring(self, start: int) -> None:
        """``:offset:length`` is arithmetic up to the closing brace."""
        end = self.text.find("}", self.pos)
        if end < 0:
            raise Stop(start, "a ${…} that is never closed")
        if _OFFSETS.fullmatch(self.text, self.pos, end):
            self.pos = end
            return
        self.note(self.pos, end, "an offset or length that is not a plain number")

    def subscript(self) -> None:
        """``[…]`` behind a name: evaluated as arithmetic, whatever its quotes."""
        start = self.pos
        match = _SUBSCRIPT.match(self.text, start)
        if match:
            self.pos = match.end()
            return
        end = self.text.find("]", start)
        self.note(start, end + 1 if end > 0 else self.size, "an array subscript that is evaluated")
        self.pos = start + 1

    def parameter_rest(self, start: int, *, quoted: bool) -> None:
        """The word of an expansion, up to its closing brace; expansions in it live whatever the operator."""
        text = self.text
        while self.pos < self.size:
            character = text[self.pos]
            if character == "}":
                self.pos += 1
                return
            if character == "$":
                self.dollar(quoted=quoted)
            elif character == "`":
                self.backtick(quoted=quoted)
            elif character == "\\":
                self.pos += 2
            elif character == '"':
                self.double()
            elif character == "'":
                if quoted:
                    self.note(self.pos, self.pos + 1, "a single quote in an expansion inside double quotes")
                    self.pos += 1
                else:
                    self.single()
            elif character in "<>" and text.startswith("(", self.pos + 1):
                self.note(self.pos, self.pos + 2, "a process substitution inside an expansion")
                self.process_substitution()
            else:
                if character == "{":
                    self.note(self.pos, self.pos + 1, "a brace inside an expansion")
                self.pos += 1
        raise Stop(start, "a ${…} that is never closed")


def _splits(value: str) -> bool:
    return not value or any(character in value for character in " \t\n*?[\\")
