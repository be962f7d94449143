"""One word of bash: quotes removed, expansions found, nested commands handed to the grammar. Pure.

The reader follows bash's own order: joined lines, quotes, braces, then everything that is only known when it runs.
A piece that is not known is dynamic; a form that bash and this reader might read differently is noted as unexplained.
"""

import re

from ringfence.shell.braces import Piece, expand
from ringfence.shell.collect import Collected, Stop
from ringfence.shell.places import START, Places
from ringfence.shell.syntax import Word

MAX_DEPTH = 50
MAX_VALUES = 64
_PLAIN = re.compile(r"[\w./,:@%+=^\-\[\]*?~{}!#\u00a1-\U0010ffff]+")
_SPECIAL = re.compile(r"[*?\[{~]")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DOUBLE = re.compile(r'[^"\\$`]+')
_BODY = re.compile(r"[^\\$`]+")
_BACKTICK = re.compile(r"[^\\`]+")
_SINGLE = re.compile(r"[^']*")
_NUMERIC = re.compile(r"-?\d+\Z", re.ASCII)
_ARITHMETIC = re.compile(r"[\s\w+\-*/%<>=!&|^~?:,().@#]+", re.ASCII)
_IDENTIFIER = re.compile(r"(?<![\w#$@])([A-Za-z_]\w*)(\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=)))?", re.ASCII)
_BEFORE = re.compile(r"(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII)
_SIMPLE_ESCAPES = {
    "n": "\n", "t": "\t", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v", "r": "\r",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_TILDE = re.compile(r"~[\w.+-]*(?=/|\Z)", re.ASCII)
_TILDE_INSIDE = re.compile(r"([A-Za-z_]\w*\+?=(?:[^~]*:)?)~", re.ASCII)
_HOME = re.compile(r"\$(?:HOME|\{HOME\}|PWD|\{PWD\})(?=/|\Z)")
DYNAMIC = "D"


class WordReader:
    """Reads words at ``pos``. The grammar above it supplies :meth:`nested_list` for substitutions."""

    def __init__(
        self, text: str, collected: Collected, *, base: int = 0, span: tuple[int, int] | None = None, depth: int = 0
    ) -> None:
        self.text = text
        self.size = len(text)
        self.pos = 0
        self.collected = collected
        self.base = base
        self.span = span
        self.depth = depth
        self.places: Places = START
        self.bash = True
        """False for sh, dash and the like, which do not know all of bash's forms."""

    # What the grammar supplies.

    def nested_list(self, closer: str) -> None:
        """Read a list of commands up to ``closer``, in a shell of its own."""
        raise NotImplementedError

    def nested_text(self, text: str, start: int, *, exact: bool) -> None:
        """Read ``text`` as a script of its own (backticks)."""
        raise NotImplementedError

    # Notes.

    def place(self, position: int) -> int:
        """``position`` of this text in the line that the caller has."""
        return self.span[0] if self.span else position + self.base

    def note(self, start: int, end: int, why: str) -> None:
        """Say that a part is not explained."""
        first, last = self.span or (start + self.base, end + self.base)
        self.collected.note(first, last, self.text[start:end], why)

    def bash_only(self, start: int, form: str) -> None:
        """A form of bash that a plain sh reads differently."""
        if not self.bash:
            self.note(start, self.pos, f"{form}: sh reads this differently from bash")

    def deeper(self) -> None:
        """One level of nesting more."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Stop(self.pos, f"nested deeper than {MAX_DEPTH} levels")

    # Words.

    def words(self) -> list[Word]:
        """The words that the source word at ``pos`` becomes: one, or several by brace expansion."""
        start = self.pos
        pieces = self.pieces()
        return self.finish(pieces, start)

    def word(self) -> Word:
        """The one word at ``pos``, braces left alone (redirection targets, assignment values, case words)."""
        start = self.pos
        return self.one(self.pieces(), start)

    def pieces(self) -> list[Piece]:
        """Read up to an unquoted separator."""
        text, size = self.text, self.size
        pieces: list[Piece] = []
        while self.pos < size:
            match = _PLAIN.match(text, self.pos)
            if match:
                self.pos = match.end()
                pieces.append(Piece("L", match[0], match[0]))
                continue
            character = text[self.pos]
            if character in " \t\n;|&()":
                break
            if character in "<>":
                if not text.startswith("(", self.pos + 1):
                    break
                pieces.append(self.process_substitution())
            elif character == "'":
                pieces.append(self.single())
            elif character == '"':
                pieces.extend(self.double())
            elif character == "\\":
                self.escape(pieces)
            elif character == "$":
                pieces.extend(self.dollar(quoted=False))
            elif character == "`":
                pieces.append(self.backtick(quoted=False))
            else:
                pieces.append(Piece("L", character, character))
                self.pos += 1
        return pieces

    def escape(self, pieces: list[Piece]) -> None:
        """A backslash outside quotes: the next character is literal, a joined line is nothing."""
        following = self.text[self.pos + 1 : self.pos + 2]
        if following == "\n":
            self.pos += 2
            return
        if not following:
            self.note(self.pos, self.pos + 1, "a backslash at the very end")
            following = "\\"
        pieces.append(Piece("Q", following, "\\" + following))
        self.pos += 2

    def single(self) -> Piece:
        start = self.pos
        match = _SINGLE.match(self.text, start + 1)
        end = match.end() if match else self.size
        if end >= self.size:
            raise Stop(start, "a single quote that is never closed")
        self.pos = end + 1
        return Piece("Q", self.text[start + 1 : end], self.text[start : end + 1])

    def double(self) -> list[Piece]:
        """A double-quoted part, its opening quote at ``pos``."""
        start = self.pos
        self.pos += 1
        pieces = self.live_text(_DOUBLE, '"\\$`\n', start)
        self.pos += 1
        return [Piece("Q", "", '"'), *pieces, Piece("Q", "", '"')]

    def live_text(self, plain: re.Pattern[str], escapable: str, start: int) -> list[Piece]:
        """Text in which expansions live, up to a closing quote or the end (``plain`` says which)."""
        closing = plain is _DOUBLE
        pieces: list[Piece] = []
        while self.pos < self.size:
            match = plain.match(self.text, self.pos)
            if match:
                self.pos = match.end()
                pieces.append(Piece("Q", match[0], match[0]))
                continue
            character = self.text[self.pos]
            if character == "$":
                pieces.extend(self.dollar(quoted=True))
            elif character == "`":
                pieces.append(self.backtick(quoted=True))
            elif character == "\\":
                following = self.text[self.pos + 1 : self.pos + 2]
                kept = following if following and following in escapable else "\\" + following
                if following != "\n":
                    pieces.append(Piece("Q", kept, "\\" + following))
                self.pos += 2
            else:
                return pieces
        if closing:
            raise Stop(start, "a double quote that is never closed")
        return pieces

    # Expansions.

    def dollar(self, *, quoted: bool) -> list[Piece]:
        """What begins with ``$`` at ``pos``."""
        start, text = self.pos, self.text
        following = text[start + 1 : start + 2]
        if following == "(":
            return [self.parenthesis(quoted=quoted)]
        if following == "{":
            return [self.parameter(quoted=quoted)]
        match = _NAME.match(text, start + 1)
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
        raw = self.text[start : self.pos]
        values = self.collected.values_of(name)
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
        self.deeper()
        self.nested_list(closer)
        self.depth -= 1

    def process_substitution(self) -> Piece:
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
        hexadecimal, short, long, octal, control, other = match.groups()
        if other is not None:
            return _SIMPLE_ESCAPES.get(other, "\\" + other)
        if control is not None:
            self.note(match.start(), match.end(), "a control escape in a quoted string")
            self.pos -= 1
            return "\ufffd"
        if octal is not None:
            code = int(octal, 8) & 0xFF
        else:
            code = int(hexadecimal or short or long or "0", 16)
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
        match = re.compile(r"(#?)(?:([A-Za-z_]\w*)|\d+|[?$!@*#-])\}", re.ASCII).match(text, self.pos)
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
        match = re.compile(r"[#!]?(?:([A-Za-z_]\w*)|\d+|[?$@*!#-])", re.ASCII).match(text, self.pos)
        if not match:
            self.note(start, self.pos, "a parameter expansion without a plain name")
            return
        if text[self.pos] == "!" and not re.compile(r"!\w+\[[@*]\]\}", re.ASCII).match(text, self.pos):
            self.note(start, match.end(), "indirect expansion: reads a variable whose name is computed")
        self.pos = match.end()
        if text.startswith("[", self.pos):
            self.subscript()
        if text.startswith("@", self.pos) and not text.startswith(("@Q}", "@U}", "@u}", "@L}"), self.pos):
            self.note(start, self.pos + 2, "an expansion operator that may evaluate its value")
        operator = re.compile(r":?[-=?+]|:|##?|%%?|/[/#%]?|\^\^?|,,?|@|(?=\})").match(text, self.pos)
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
        if re.compile(r"[\s\d:-]*").fullmatch(self.text, self.pos, end):
            self.pos = end
            return
        self.note(self.pos, end, "an offset or length that is not a plain number")

    def subscript(self) -> None:
        """``[…]`` behind a name: evaluated as arithmetic, whatever its quotes."""
        start = self.pos
        match = re.compile(r"\[(?:[@*]|-?\d+)\]").match(self.text, start)
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

    # Arithmetic.

    def arithmetic_end(self, position: int) -> int | None:
        """Where the ``))`` that closes an arithmetic text beginning at ``position`` stands; None where none surely does."""
        depth, text = 0, self.text
        finder = re.compile(r"[()'\"\\`]")
        while match := finder.search(text, position):
            position = match.end()
            character = match[0]
            if character == "(":
                depth += 1
            elif character == ")":
                if depth == 0:
                    return match.start() if text.startswith(")", position) else None
                depth -= 1
            else:
                return self.arithmetic_end_quoted(match.start(), depth)
        return None

    def arithmetic_end_quoted(self, position: int, depth: int) -> int | None:
        """The same past the first quote, conservatively: quotes are skipped as bash's own scanner does."""
        text = self.text
        while position < self.size:
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
                if character not in '"':
                    self.note(start, start + 1, "arithmetic that is not plain")
                self.pos += 1

    def arithmetic_names(self, text: str, start: int) -> None:
        for match in _IDENTIFIER.finditer(text):
            if match[1][0] in "xXbBoO" and text[match.start() - 1 : match.start()] == "0":
                continue
            first = self.place(start + match.start())
            self.collected.arithmetic.append((match[1], first, first + len(match[1])))
            if match[2]:
                self.collected.assign(match[1], None, first, first + len(match[1]), "shell", numeric=True)
        for match in _BEFORE.finditer(text):
            first = self.place(start + match.start())
            self.collected.assign(match[1], None, first, first + len(match[0]), "shell", numeric=True)

    def arithmetic_value(self, pieces: list[Piece], start: int) -> None:
        for piece in pieces:
            name = _NAME.fullmatch(piece.raw.strip("${}"))
            if piece.raw.startswith(("${#", "$((")) or piece.raw in ("$#", "$?", "$$", "$!", "$"):
                continue
            if piece.values and all(_NUMERIC.match(value) for value in piece.values):
                continue
            if name:
                self.collected.arithmetic.append((name[0], self.place(start), self.place(self.pos)))
                continue
            self.note(start, self.pos, "a value that is evaluated as arithmetic")

    # Finishing.

    def finish(self, pieces: list[Piece], start: int) -> list[Word]:
        if len(pieces) == 1 and pieces[0].kind == "L" and not _SPECIAL.search(pieces[0].text):
            raw = self.text[start : self.pos]
            first, last = self.span or (start + self.base, self.pos + self.base)
            return [Word(text=pieces[0].text, raw=raw, start=first, end=last)]
        if not any(piece.kind == "L" and "{" in piece.text for piece in pieces):
            return [self.one(pieces, start)]
        return self.braces(pieces, start)

    def braces(self, pieces: list[Piece], start: int) -> list[Word]:
        split: list[Piece] = []
        for piece in pieces:
            if piece.kind != "L":
                split.append(piece)
                continue
            split.extend(
                Piece("B" if part in ("{", ",", "}") else "L", part, part)
                for part in re.split(r"([{},])", piece.text)
                if part
            )
        expanded = expand(split) if len(split) <= 2000 else None
        if expanded is None:
            raw = self.text[start : self.pos]
            prefix = raw[: raw.find("{")] if re.match(r"[\w./-]*\{", raw) else ""
            first, last = self.span or (start + self.base, self.pos + self.base)
            return [Word(text=raw, raw=raw, start=first, end=last, dynamic=True, prefix=prefix, may_split=True)]
        if len(expanded) > 1:
            self.bash_only(start, "brace expansion")
            expanded = [word for word in expanded if word]
        return [self.one(word, start) for word in expanded]

    def one(self, pieces: list[Piece], start: int) -> Word:
        """One word of its pieces, with what is known of its value."""
        raw = self.text[start : self.pos]
        first, last = self.span or (start + self.base, self.pos + self.base)
        quoted = any(piece.kind == "Q" for piece in pieces)
        tilde = self.tilde(pieces, raw)
        if tilde is not None:
            return self.tilde_word(pieces, raw, tilde, first, last)
        if pieces and pieces[0].kind == "L" and "~" in raw and (match := _TILDE_INSIDE.match(pieces[0].text)):
            return Word(text=raw, raw=raw, start=first, end=last, dynamic=True, prefix=match[1], quoted=quoted)
        dynamic = [piece for piece in pieces if piece.kind in "DP"]
        pattern = _pattern(pieces)
        if not dynamic and pattern is None:
            text = "".join([piece.text for piece in pieces])
            return Word(text=text, raw=raw, start=first, end=last, quoted=quoted)
        values = _product(pieces) if dynamic and pattern is None else ()
        glob = pattern is not None
        return Word(
            text=pattern if pattern is not None and not dynamic else raw,
            raw=raw,
            start=first,
            end=last,
            dynamic=True,
            prefix=_prefix(pieces),
            may_split=glob or any(piece.splits for piece in dynamic),
            glob=glob,
            quoted=quoted,
            values=values,
        )

    def tilde(self, pieces: list[Piece], raw: str) -> str | None:
        """The tilde prefix of a word that has one: ``~``, ``~name``, or ``~`` for a leading ``$HOME``."""
        if not pieces:
            return None
        head = pieces[0]
        if head.kind == "L" and head.text.startswith("~"):
            match = _TILDE.match(head.text)
            if match and (match.end() < len(head.text) or len(pieces) == 1):
                return match[0]
            return None
        match = _HOME.match(raw.replace('"', ""))
        if match and not self.collected.was_assigned("HOME", "PWD", "OLDPWD"):
            return "~" if "HOME" in match[0] else "~+"
        return None

    def tilde_word(self, pieces: list[Piece], raw: str, tilde: str, first: int, last: int) -> Word:
        rest = list(pieces)
        if rest[0].kind == "L":
            rest[0] = Piece("L", rest[0].text[len(tilde) :], rest[0].raw)
        else:
            index = next(number for number, piece in enumerate(rest) if piece.kind == "D")
            rest = [piece for piece in rest[:index] if piece.text] + rest[index + 1 :]
        dynamic = any(piece.kind in "DP" for piece in rest) or _pattern(rest) is not None
        text = tilde + "".join(piece.text for piece in rest)
        return Word(
            text=text, raw=raw, start=first, end=last, dynamic=dynamic, tilde=True,
            prefix=tilde + _prefix(rest) if dynamic else "", glob=_pattern(rest) is not None,
            may_split=dynamic, quoted=any(piece.kind == "Q" for piece in pieces),
        )  # fmt: skip


def _splits(value: str) -> bool:
    return not value or any(character in value for character in " \t\n*?[\\")


def _pattern(pieces: list[Piece]) -> str | None:
    """The glob pattern that a word is, quoted parts escaped; None where it holds no unquoted glob character."""
    unquoted = "".join(piece.text if piece.kind == "L" else "\x00" for piece in pieces)
    if "*" not in unquoted and "?" not in unquoted:
        opening = unquoted.find("[")
        if opening < 0 or "]" not in unquoted[opening + 1 :]:
            return None
    return "".join(
        piece.text if piece.kind in "LB" else re.sub(r"([*?\[\]\\])", r"\\\1", piece.text) for piece in pieces
    )


def _prefix(pieces: list[Piece]) -> str:
    parts: list[str] = []
    for piece in pieces:
        if piece.kind in "DP":
            break
        if piece.kind == "L" and (match := re.search(r"[*?\[]", piece.text)):
            parts.append(piece.text[: match.start()])
            break
        parts.append(piece.text)
    return "".join(parts)


def _product(pieces: list[Piece]) -> tuple[str, ...]:
    """Every value of a word whose dynamic parts all have known values; empty where one has not, or they are too many."""
    values = [""]
    for piece in pieces:
        if piece.kind == "P" or (piece.kind == "D" and not piece.values):
            return ()
        options = piece.values if piece.kind == "D" else (piece.text,)
        values = [head + tail for head in values for tail in options]
        if len(values) > MAX_VALUES:
            return ()
    return tuple(dict.fromkeys(values))
