"""One word of bash: quotes removed, expansions found, nested commands handed to the grammar. Pure.

The reader follows bash's own order: joined lines, quotes, braces, then everything that is only known when it runs.
A piece that is not known is dynamic; a form that bash and this reader might read differently is noted as unexplained.
"""

import re
from collections.abc import Sequence

from ringfence.shell.braces import Piece, expand
from ringfence.shell.collect import Stop
from ringfence.shell.expansions import Expansions
from ringfence.shell.reader import BODY
from ringfence.shell.syntax import Word

MAX_VALUES = 64
_PLAIN = re.compile(r"[\w./,:@%+=^\-\[\]*?~{}!#\u00a1-\U0010ffff]+")
_SPECIAL = re.compile(r"[*?\[{~]")
_DOUBLE = re.compile(r'[^"\\$`]+')
_SINGLE = re.compile(r"[^']*")
_TILDE = re.compile(r"~[\w.+-]*(?=/|\Z)", re.ASCII)
_TILDE_INSIDE = re.compile(r"([A-Za-z_]\w*\+?=(?:[^~]*:)?)~", re.ASCII)
_HOME = re.compile(r"\$(?:HOME|\{HOME\}|PWD|\{PWD\})(?=/|\Z)")


class WordReader(Expansions):
    """Reads words at ``pos``."""

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
        """A single-quoted part."""
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

    # Text that bash may evaluate later.

    def note_word(self, word: Word, why: str) -> None:
        """A word that may be evaluated: noted, and what it would start is looked for."""
        self.collected.note(word.start, word.end, word.raw, why)
        if not word.dynamic and ("$" in word.text or "`" in word.text):
            self.expansions(word.text, word.start, word.end)

    def expansions(self, text: str, start: int, end: int) -> None:
        """The substitutions in a text that is only expanded later, such as a quoted subscript."""
        inner = type(self)(text, self.collected, span=(start, end), depth=self.depth)
        inner.places, inner.bash = self.places, self.bash
        try:
            self.collected.spend(len(text), self.pos)
            inner.live_text(BODY, "\\$`\n", 0)
        except Stop as stop:
            self.collected.note(start, end, text, stop.why)

    # Finishing.

    def finish(self, pieces: list[Piece], start: int) -> list[Word]:
        """The words of the pieces, braces expanded."""
        if len(pieces) == 1 and pieces[0].kind == "L" and not _SPECIAL.search(pieces[0].text):
            raw = self.text[start : self.pos]
            first, last = self.span or (start + self.base, self.pos + self.base)
            return [Word(text=pieces[0].text, raw=raw, start=first, end=last)]
        if not any(piece.kind == "L" and "{" in piece.text for piece in pieces):
            return [self.one(pieces, start)]
        return self.braces(pieces, start)

    def braces(self, pieces: list[Piece], start: int) -> list[Word]:
        """Brace expansion; a word too large for it has an unknown value."""
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
        return [self.one(_coalesced(word), start) for word in expanded]

    def one(self, pieces: Sequence[Piece], start: int) -> Word:
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
        if len(pieces) == 1 and pieces[0].kind == "P":
            return Word(text=raw, raw=raw, start=first, end=last, dynamic=True, prefix="/dev/fd/", pipe=True)
        if pattern is None and (names := _names(pieces)):
            before = re.split(r"[*?\[\\]", names, maxsplit=1)[0]
            return Word(
                text=names, raw=raw, start=first, end=last, dynamic=True, prefix=before, glob=True, quoted=quoted
            )
        values = _product(pieces) if dynamic and pattern is None else ()
        glob = pattern is not None and not dynamic  # with a part of unknown value, nobody can look what it stands for
        return Word(
            text=pattern if pattern is not None and not dynamic else raw,
            raw=raw,
            start=first,
            end=last,
            dynamic=True,
            prefix=_prefix(pieces),
            may_split=pattern is not None or any(piece.splits for piece in dynamic),
            glob=glob,
            quoted=quoted,
            values=values,
        )

    def tilde(self, pieces: Sequence[Piece], raw: str) -> str | None:
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

    def tilde_word(self, pieces: Sequence[Piece], raw: str, tilde: str, first: int, last: int) -> Word:
        """A word that begins with a tilde prefix."""
        rest = list(pieces)
        if rest[0].kind == "L":
            rest[0] = Piece("L", rest[0].text[len(tilde) :], rest[0].raw)
        else:
            index = next(number for number, piece in enumerate(rest) if piece.kind == "D")
            rest = [piece for piece in rest[:index] if piece.text] + rest[index + 1 :]
        unknown = any(piece.kind in "DP" for piece in rest)
        dynamic = unknown or _pattern(rest) is not None
        text = tilde + "".join(piece.text for piece in rest)
        return Word(
            text=text, raw=raw, start=first, end=last, dynamic=dynamic, tilde=True,
            prefix=tilde + _prefix(rest) if dynamic else "", glob=_pattern(rest) is not None and not unknown,
            may_split=dynamic, quoted=any(piece.kind == "Q" for piece in pieces),
        )  # fmt: skip


def _coalesced(pieces: Sequence[Piece]) -> list[Piece]:
    """Unquoted pieces side by side as one: a tilde prefix may have come together only now."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.kind in "LB" and joined[-1].kind == "L":
            joined[-1] = Piece("L", joined[-1].text + piece.text, joined[-1].raw + piece.raw)
        else:
            joined.append(Piece("L", piece.text, piece.raw) if piece.kind == "B" else piece)
    return joined


def _pattern(pieces: Sequence[Piece]) -> str | None:
    """The glob pattern that a word is, quoted parts escaped; None where it holds no unquoted glob character."""
    unquoted = "".join(piece.text if piece.kind == "L" else "\x00" for piece in pieces)
    if "*" not in unquoted and "?" not in unquoted:
        opening = unquoted.find("[")
        if opening < 0 or "]" not in unquoted[opening + 1 :]:
            return None
    return "".join(
        piece.text if piece.kind in "LB" else re.sub(r"([*?\[\]\\])", r"\\\1", piece.text) for piece in pieces
    )


def _prefix(pieces: Sequence[Piece]) -> str:
    parts: list[str] = []
    for piece in pieces:
        if piece.kind in "DP":
            break
        if piece.kind == "L" and (match := re.search(r"[*?\[]", piece.text)):
            parts.append(piece.text[: match.start()])
            break
        parts.append(piece.text)
    return "".join(parts)


def _names(pieces: Sequence[Piece]) -> str:
    """The pattern that the word is one name of: a loop's variable alone, in quotes; else empty."""
    held = [piece for piece in pieces if piece.text]
    return held[0].pattern if len(held) == 1 else ""


def _product(pieces: Sequence[Piece]) -> tuple[str, ...]:
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
