"""Redirections of every spelling, and here-documents with their bodies. Pure."""

import re

from msgspec.structs import replace

from ringfence.shell.collect import Stop
from ringfence.shell.places import directory
from ringfence.shell.reader import BLANK, BODY
from ringfence.shell.syntax import Access, Redirection, Word
from ringfence.shell.words import WordReader

REDIRECTION = re.compile(
    r"(\d+|\{[A-Za-z_]\w*(?:\[[@*\w]*\])?\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||&>>|&>|<|>)(?!\()", re.ASCII
)
_DUPLICATE = re.compile(r"(?:\d+-?|-)\Z")
_DELIMITER = re.compile(r"(?:[^\s;&|<>()'\"\\]+|'[^']*'|\"[^\"]*\"|\\.)+", re.DOTALL)
_ACCESS = {
    "<": Access.READ,
    ">": Access.WRITE,
    ">>": Access.WRITE,
    ">|": Access.WRITE,
    "&>": Access.WRITE,
    "&>>": Access.WRITE,
    "<>": Access.READ_WRITE,
}


class Redirections(WordReader):
    """Reads redirections at ``pos``."""

    def trailing_redirections(self) -> None:
        """Those of a compound, in the directory where it started."""
        while True:
            self.blanks()
            match = REDIRECTION.match(self.text, self.pos)
            if not match:
                return
            found: list[Redirection] = []
            self.redirection(match, found)
            self.collected.redirections.extend(found)
            self.collected.directories.extend(directory(self.places) for _ in found)

    def redirection(self, match: re.Match[str], into: list[Redirection]) -> None:
        """One redirection at ``pos``."""
        start, operator = self.pos, match[2]
        self.pos = match.end()
        if match[1] and match[1][0] == "{":
            self.bash_only(start, "{name}>")
            name, _, subscript = match[1].strip("{}").partition("[")
            if subscript and not subscript[:-1].isdigit():
                self.note(start, match.end(1), "a descriptor's name with a subscript, which is evaluated")
            self.collected.assign(name, None, self.place(start), self.place(match.end(1)), "shell", numeric=True)
        if operator in ("&>", "&>>", "<<<"):
            self.bash_only(start, operator)
        if blank := BLANK.match(self.text, self.pos):
            self.pos = blank.end()
        takes_input = int(match[1]) == 0 if match[1] and match[1].isdigit() else not match[1] and operator[0] == "<"
        if operator in ("<<", "<<-"):
            self.here_document(start, operator, into, takes_input=takes_input)
            return
        before = self.pos
        target = self.word() if operator == "<<<" else self.target()
        if self.pos == before:
            raise Stop(before, "the target of a redirection is missing")
        found = self.redirected(operator, match[1], target, start)
        into.append(replace(found, input=True) if takes_input else found)

    def target(self) -> Word:
        """A redirection's file. Several words would be refused by bash; here they stand as one of unknown value."""
        start = self.pos
        words = self.words()
        if len(words) == 1:
            return words[0]
        raw = self.text[start : self.pos]
        return Word(text=raw, raw=raw, start=self.place(start), end=self.place(self.pos), dynamic=True)

    def redirected(self, operator: str, descriptor: str | None, target: Word, start: int) -> Redirection:
        """What a redirection does to its target."""
        first, last = self.place(start), self.place(self.pos)
        if operator == "<<<":
            body = None if target.dynamic or target.tilde else target.text + "\n"
            return Redirection(operator=operator, access=Access.NONE, target=None, start=first, end=last, body=body)
        if operator in ("<&", ">&"):
            if any(character in target.text for character in "$`\\\"'~*?[") and not target.dynamic:
                # Bash expands this word a second time: even a single-quoted substitution in it runs.
                self.note_word(target, f"the target of `{operator}` is expanded twice")
            if not target.dynamic and _DUPLICATE.match(target.text):
                return Redirection(operator=operator, access=Access.NONE, target=None, start=first, end=last)
            access = Access.READ if operator == "<&" else Access.WRITE
            if operator == ">&" and descriptor is None:
                self.bash_only(start, ">&")
            return Redirection(operator=operator, access=access, target=target, start=first, end=last)
        if target.pipe:
            return Redirection(operator=operator, access=Access.NONE, target=None, start=first, end=last)
        return Redirection(operator=operator, access=_ACCESS[operator], target=target, start=first, end=last)

    # Here-documents.

    def here_document(self, start: int, operator: str, into: list[Redirection], *, takes_input: bool) -> None:
        """``<<WORD``: the body follows the next newline; any quoting in the word makes it literal."""
        before = self.pos
        raw_end = self.delimiter_end()
        raw = self.text[before:raw_end]
        if not raw:
            raise Stop(before, "a here-document without a delimiter")
        if any(character in raw for character in "$`\n") and not re.fullmatch(r"'[^'\n]*'", raw):
            self.note(before, raw_end, "a here-document delimiter that is not plain")
        self.pos = raw_end
        delimiter = re.sub(r"\\(.)|[\"']", r"\1", raw, flags=re.DOTALL)
        literal = any(character in raw for character in "'\"\\")
        slot = Redirection(
            operator=operator, access=Access.NONE, target=None, start=self.place(start), end=self.place(raw_end), input=takes_input,
        )  # fmt: skip
        into.append(slot)
        self.pending.append((delimiter, literal, operator == "<<-", slot))

    def delimiter_end(self) -> int:
        """Where the delimiter word ends."""
        position = self.pos
        match = _DELIMITER.match(self.text, position)
        return match.end() if match else position

    def bodies(self) -> None:
        """Read the bodies that wait, in order; ``pos`` stands behind the newline."""
        waiting, self.pending = self.pending, []
        for delimiter, literal, dash, slot in waiting:
            start = self.pos
            end = self.body_end(delimiter, literal=literal, dash=dash)
            body = self.text[start:end]
            self.check_text(start, end)
            if literal or not any(character in body for character in "$`\\"):
                text: str | None = re.sub(r"(?m)^\t+", "", body) if dash else body
            else:
                text = None
                self.body_expansions(body, start)
            self.collected.bodies[id(slot)] = (slot, text)

    def body_end(self, delimiter: str, *, literal: bool, dash: bool) -> int:
        """Where the body ends; ``pos`` moves behind the line of the delimiter, or behind the delimiter alone."""
        size = self.size
        while self.pos < size:
            start = self.pos
            line, self.pos = self.body_line(literal=literal)
            found = line.lstrip("\t") if dash else line
            if found == delimiter:
                return start
            if self.substituting and found.startswith(delimiter) and ")" in found[len(delimiter) :]:
                after = self.early_end(start, line, found[len(delimiter) :])
                if after >= 0:
                    self.pos = after
                    return start
        self.note(size, size, "a here-document that is never closed")
        return size

    def early_end(self, start: int, line: str, rest: str) -> int:
        """In a substitution bash ends a body at a line that only begins with the delimiter, if ``)`` follows in it.

        Read so where nothing but blanks stands between (``EOF)``); gives the position behind the delimiter, else -1.
        Source: ``make_here_document`` of bash 4.4 to 5.2; sh does not.
        """
        if self.bash and rest.lstrip(" \t").startswith(")") and self.text.startswith(line, start):
            return start + len(line) - len(rest)
        self.note(start, self.pos, "a line of a here-document that a shell may take for its end")
        return -1

    def body_line(self, *, literal: bool) -> tuple[str, int]:
        """The next line of a body and the position behind it; unquoted bodies join lines at a backslash."""
        text, position = self.text, self.pos
        parts: list[str] = []
        while True:
            end = text.find("\n", position)
            if end < 0:
                end = self.size
            line = text[position:end]
            backslashes = len(line) - len(line.rstrip("\\"))
            if literal or backslashes % 2 == 0 or end >= self.size:
                parts.append(line)
                return "".join(parts), min(end + 1, self.size)
            parts.append(line[:-1])
            position = end + 1

    def body_expansions(self, body: str, start: int) -> None:
        """What runs inside a body that is expanded."""
        span = self.span
        inner = type(self)(body, self.collected, base=start + self.base, span=span, depth=self.depth)
        inner.places, inner.bash = self.places, self.bash
        try:
            inner.live_text(BODY, "\\$`\n", 0)
        except Stop as stop:
            inner.salvage(stop)
