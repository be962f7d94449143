"""The grammar of a line: lists, pipelines, compounds, functions, here-documents. Pure.

A recursive reader that follows bash's rules; every form it does not surely know stops it with a reason, and the rest of
the text is then searched for whatever might start, so that a deny rule still finds it.
"""

import re

from ringfence.shell.braces import Piece
from ringfence.shell.collect import Collected, Stop
from ringfence.shell.places import UNKNOWN, Flow, Places, directory, merge, still
from ringfence.shell.syntax import Access, Assignment, Redirection, Word
from ringfence.shell.words import _BODY, WordReader

_BLANK = re.compile(r"(?:[ \t]+|\\\n)+")
_RESERVED = re.compile(
    r"(?:if|then|else|elif|fi|while|until|do|done|for|select|case|esac|function|time|coproc|in|\[\[|\]\]|[{}!])(?=[\s;&|<>()]|\Z)"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[)?", re.ASCII)
_EQUALS = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_REDIRECTION = re.compile(
    r"(\d+|\{[A-Za-z_]\w*(?:\[[@*\w]*\])?\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||&>>|&>|<|>)(?!\()", re.ASCII
)
_FUNCTION = re.compile(r"([^\s;&|<>()$`'\"\\=]+)[ \t]*\([ \t]*\)")
_DUPLICATE = re.compile(r"(?:\d+-?|-)\Z")
_ACCESS = {
    "<": Access.READ,
    ">": Access.WRITE,
    ">>": Access.WRITE,
    ">|": Access.WRITE,
    "&>": Access.WRITE,
    "&>>": Access.WRITE,
    "<>": Access.READ_WRITE,
}
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}", "in", "]]"})
KEYWORDS = _CLOSERS | {"if", "while", "until", "for", "select", "case", "function", "time", "coproc", "[[", "{", "!"}


class Grammar(WordReader):
    """Reads lists of commands. What a simple command means is :meth:`command`'s business, one file further."""

    def __init__(
        self, text: str, collected: Collected, *, base: int = 0, span: tuple[int, int] | None = None, depth: int = 0
    ) -> None:
        super().__init__(text, collected, base=base, span=span, depth=depth)
        self.pending: list[tuple[str, bool, bool, Redirection]] = []
        self.loops = 0
        self.conditional = 0

    def command(
        self, words: list[Word], assignments: list[Assignment], redirections: list[Redirection], start: int
    ) -> Flow:
        """Record one simple command."""
        raise NotImplementedError

    # Blanks, comments, newlines.

    def blanks(self) -> None:
        match = _BLANK.match(self.text, self.pos)
        if match:
            self.pos = match.end()
        if self.pos < self.size and self.text[self.pos] == "#":
            end = self.text.find("\n", self.pos)
            self.pos = end if end >= 0 else self.size

    def newlines(self) -> None:
        """Blanks and newlines; a newline first brings the bodies of the here-documents that wait."""
        self.blanks()
        while self.pos < self.size and self.text[self.pos] == "\n":
            self.newline()
            self.blanks()

    def newline(self) -> None:
        self.pos += 1
        if self.pending:
            self.bodies()

    def reserved(self) -> str:
        """The reserved word at ``pos``, or nothing."""
        match = _RESERVED.match(self.text, self.pos)
        return match[0] if match else ""

    def expect(self, word: str) -> None:
        self.newlines()
        if self.reserved() != word:
            raise Stop(self.pos, f"`{word}` expected here")
        self.pos += len(word)

    # Lists.

    def script(self) -> Flow:
        """The whole text."""
        flow = self.sequence("")
        if self.pos < self.size:
            raise Stop(self.pos, "a word or sign that does not belong here")
        if self.pending:
            self.bodies()
        return flow

    def sequence(self, closer: str) -> Flow:
        """Commands up to ``closer`` (a parenthesis), a closing reserved word, or the end."""
        flow = still(self.places)
        while True:
            self.newlines()
            if self.pos >= self.size:
                return flow
            character = self.text[self.pos]
            if character == ")" and closer == ")":
                return flow
            if character in ";&|)" and not self.text.startswith("&>", self.pos):
                if closer == ";;" and self.text.startswith((";;", ";&"), self.pos):
                    return flow
                raise Stop(self.pos, f"unexpected `{character}`")
            if self.reserved() in _CLOSERS:
                return flow
            before, values = self.places, dict(self.collected.values)
            flow = self.and_or()
            self.places = flow.any
            self.blanks()
            if self.pos >= self.size:
                return flow
            character = self.text[self.pos]
            if character == ";" and not self.text.startswith((";;", ";&"), self.pos):
                self.pos += 1
            elif character == "&" and not self.text.startswith(("&&", "&>"), self.pos):
                self.pos += 1
                self.places, self.collected.values = before, values
                flow = still(before)
            elif character != "\n":
                if character not in ");" and not self.reserved() in _CLOSERS:
                    raise Stop(self.pos, f"unexpected `{character}`")

    def and_or(self) -> Flow:
        flow = self.pipeline()
        self.conditional += 1
        while True:
            self.blanks()
            if self.text.startswith("&&", self.pos):
                self.pos += 2
                self.newlines()
                self.places = flow.ok
                right = self.pipeline()
                flow = Flow(right.ok, merge(flow.fail, right.fail))
            elif self.text.startswith("||", self.pos):
                self.pos += 2
                self.newlines()
                self.places = flow.fail
                right = self.pipeline()
                flow = Flow(merge(flow.ok, right.ok), right.fail)
            else:
                self.conditional -= 1
                return flow

    def pipeline(self) -> Flow:
        negated = False
        while True:
            self.blanks()
            word = self.reserved()
            if word == "!":
                negated = not negated
            elif word != "time":
                break
            self.pos += len(word)
            if word == "time":
                self.bash_only(self.pos - 4, "time")
                self.blanks()
                for option in ("-p", "--"):
                    if re.compile(rf"{option}(?=[\s;&|]|\Z)").match(self.text, self.pos):
                        self.pos += 2
                        self.blanks()
            self.blanks()
            if self.pos >= self.size or (
                self.text[self.pos] in "\n;&|)" and not self.text.startswith("&>", self.pos)
            ):
                return still(self.places)
        before, values = self.places, dict(self.collected.values)
        flow = self.any_command()
        several = False
        while True:
            self.blanks()
            if not self.text.startswith("|", self.pos) or self.text.startswith("||", self.pos):
                break
            self.pos += 2 if self.text.startswith("|&", self.pos) else 1
            if self.text[self.pos - 1] == "&":
                self.bash_only(self.pos - 2, "|&")
            several = True
            self.newlines()
            self.places = before
            self.any_command()
        if several:
            # Each part of a pipe is a shell of its own: no directory change outlives it.
            flow = still(before)
            self.collected.values = values
        self.places = before
        return Flow(flow.fail, flow.ok) if negated else flow

    # Commands.

    def any_command(self) -> Flow:
        self.blanks()
        if self.pos >= self.size:
            raise Stop(self.pos, "a command is missing at the end")
        start, text = self.pos, self.text
        if text[start] == "(":
            return self.parenthesised(start)
        word = self.reserved()
        if word in ("", "in"):
            if match := _FUNCTION.match(text, start):
                self.pos = match.end()
                return self.function(match[1])
            return self.simple()
        compound = {
            "{": self.group, "if": self.conditionals, "while": self.loop, "until": self.loop, "for": self.for_loop,
            "select": self.for_loop, "case": self.case, "[[": self.test, "function": self.function_keyword,
            "coproc": self.coproc,
        }.get(word)  # fmt: skip
        if compound is None:
            raise Stop(start, f"unexpected `{word}`")
        self.pos += len(word)
        self.deeper()
        flow = compound()
        self.depth -= 1
        if word not in ("function", "coproc"):
            self.trailing_redirections()
        return flow

    def parenthesised(self, start: int) -> Flow:
        """A subshell, or ``((…))``."""
        self.deeper()
        if self.text.startswith("((", start):
            end = self.arithmetic_end(start + 2)
            if end is not None:
                self.pos = start + 2
                self.arithmetic(end)
                self.pos = end + 2
                self.bash_only(start, "((…))")
                self.trailing_redirections()
                self.depth -= 1
                return still(self.places)
            self.note(start, start + 2, "(( that is not plain arithmetic")
        self.pos = start + 1
        self.nested_list(")")
        self.depth -= 1
        self.trailing_redirections()
        return still(self.places)

    def nested_list(self, closer: str) -> None:
        """A list in a shell of its own: directories and variables set in it end with it."""
        places, values = self.places, dict(self.collected.values)
        waiting, self.pending = self.pending, []
        start = self.pos
        self.sequence(closer)
        if not self.text.startswith(closer, self.pos):
            raise Stop(self.pos if self.pos < self.size else start, f"`{closer}` expected here")
        self.pos += 1
        if self.pending:
            self.note(start, self.pos, "a here-document whose body does not stand inside its substitution")
        if waiting and "\n" in self.text[start : self.pos]:
            self.note(start, self.pos, "a here-document that waits while a substitution spans lines")
        self.pending = waiting + self.pending
        self.places, self.collected.values = places, values

    def nested_text(self, text: str, start: int, *, exact: bool) -> None:
        """A script of its own in a shell of its own (backticks)."""
        first = self.place(start)
        span = self.span or (None if exact else (first, first + len(text)))
        self.inner(text, base=first, span=span)

    def inner(self, text: str, *, base: int = 0, span: tuple[int, int] | None = None) -> None:
        """Read another text with the same collection, then go on here whatever happened there."""
        inner = type(self)(text, self.collected, base=base, span=span, depth=self.depth)
        inner.places, inner.bash, inner.loops = self.places, self.bash, self.loops
        values = dict(self.collected.values)
        inner.run(top=False)
        self.collected.values = values

    def run(self, *, top: bool = True) -> Flow:
        """Read the whole text; a stop becomes a note and a search of the rest."""
        raise NotImplementedError

    def group(self) -> Flow:
        flow = self.sequence("")
        self.close("}")
        return flow

    def close(self, word: str) -> None:
        self.newlines()
        if self.reserved() != word:
            raise Stop(self.pos, f"`{word}` expected here")
        self.pos += len(word)

    def conditionals(self) -> Flow:
        """``if`` … ``fi``."""
        self.conditional += 1
        ends: list[Places] = []
        condition = self.sequence("")
        while True:
            self.close("then")
            self.places = condition.ok
            ends.append(self.sequence("").any)
            self.newlines()
            self.places = condition.fail
            word = self.reserved()
            if word != "elif":
                break
            self.pos += 4
            condition = self.sequence("")
        if word == "else":
            self.pos += 4
            ends.append(self.sequence("").any)
        else:
            ends.append(condition.fail)
        self.close("fi")
        self.conditional -= 1
        return still(merge(*ends))

    def loop(self) -> Flow:
        """``while`` and ``until``."""
        self.loops += 1
        entry, first = self.places, len(self.collected.commands)
        condition = self.sequence("")
        self.places = merge(condition.ok, condition.fail)
        body = self.body()
        self.loops -= 1
        return self.repeated(entry, merge(condition.any, body.any), first)

    def repeated(self, entry: Places, after: Places, first: int) -> Flow:
        """A loop that moves: its commands run in places that depend on the round."""
        if all(place in entry for place in after):
            return still(merge(entry, after))
        self.collected.unknown_directory(first)
        return still(UNKNOWN)

    def body(self) -> Flow:
        self.newlines()
        if self.text.startswith(";", self.pos):
            self.pos += 1
            self.newlines()
        if self.reserved() == "{":
            self.pos += 1
            return self.group()
        self.close("do")
        flow = self.sequence("")
        self.close("done")
        return flow

    def for_loop(self) -> Flow:
        """``for NAME in …``, ``for ((…))``, ``select``."""
        self.blanks()
        self.loops += 1
        entry, first = self.places, len(self.collected.commands)
        name, saved = "", None
        if self.text.startswith("((", self.pos):
            end = self.arithmetic_end(self.pos + 2)
            if end is None:
                raise Stop(self.pos, "a for loop whose arithmetic is not plain")
            self.pos += 2
            if "=" in self.text[self.pos : end]:
                self.collected.values.clear()
            self.arithmetic_loop(end)
            self.pos = end + 2
        else:
            name, saved = self.for_head()
        body = self.body()
        self.loops -= 1
        if name:
            self.collected.values.pop(name, None)
            if saved:
                self.collected.values[name] = saved
        return self.repeated(entry, body.any, first)

    def arithmetic_loop(self, end: int) -> None:
        while self.pos < end:
            part = self.text.find(";", self.pos, end)
            self.arithmetic(part if part >= 0 else end)
            self.pos = min(self.pos + 1, end)

    def for_head(self) -> tuple[str, tuple[str, ...] | None]:
        match = _EQUALS_NAME.match(self.text, self.pos)
        if not match:
            raise Stop(self.pos, "a loop without a plain variable name")
        name, start = match[0], self.pos
        self.pos = match.end()
        words: list[Word] = []
        self.newlines()
        listed = self.reserved() == "in"
        if listed:
            self.pos += 2
            self.blanks()
            while self.pos < self.size and self.text[self.pos] not in ";\n":
                if self.text[self.pos] in "&|<>()" and not self.text.startswith(("<(", ">("), self.pos):
                    raise Stop(self.pos, f"unexpected `{self.text[self.pos]}`")
                words.extend(self.words())
                self.blanks()
        values = tuple(dict.fromkeys(value for word in words for value in (word.values or (word.text,))))
        known = listed and bool(words) and all(not word.dynamic or word.values for word in words)
        known = known and not any(word.tilde for word in words)
        self.loop_variable(name, values if known else (), start)
        return name, None

    def loop_variable(self, name: str, values: tuple[str, ...], start: int) -> None:
        """The variable of a loop is an assignment; with a closed list of values it is one that can be followed."""
        first = self.place(start)
        numeric = bool(values) and all(re.fullmatch(r"-?\d+", value) for value in values)
        self.collected.loop_variable(name, values, first, first + len(name), numeric=numeric)

    def case(self) -> Flow:
        """``case WORD in … esac``."""
        self.conditional += 1
        self.blanks()
        self.word()
        self.expect("in")
        entry, ends = self.places, [self.places]
        while True:
            self.newlines()
            if self.reserved() == "esac":
                self.pos += 4
                self.conditional -= 1
                return still(merge(*ends))
            if self.text.startswith("(", self.pos):
                self.pos += 1
            self.patterns()
            self.places = merge(*ends)
            ends.append(self.sequence(";;").any)
            self.newlines()
            match = re.compile(r";;&|;;|;&").match(self.text, self.pos)
            if match:
                self.pos = match.end()
            elif self.reserved() != "esac":
                raise Stop(self.pos, "`;;` or `esac` expected here")
            self.places = entry

    def patterns(self) -> None:
        while True:
            self.blanks()
            start = self.pos
            self.pieces()
            if self.pos == start:
                raise Stop(start, "a case pattern is missing")
            self.blanks()
            if self.text.startswith("|", self.pos):
                self.pos += 1
            elif self.text.startswith(")", self.pos):
                self.pos += 1
                return
            else:
                raise Stop(self.pos, "a case pattern that is not plain")

    def function_keyword(self) -> Flow:
        self.blanks()
        match = re.compile(r"[^\s;&|<>()$`'\"\\]+").match(self.text, self.pos)
        if not match:
            raise Stop(self.pos, "a function without a plain name")
        self.pos = match.end()
        self.blanks()
        if parentheses := re.compile(r"\([ \t]*\)").match(self.text, self.pos):
            self.pos = parentheses.end()
        return self.function(match[0])

    def function(self, name: str) -> Flow:
        """A definition: its commands may run wherever it is called."""
        places, values = self.places, dict(self.collected.values)
        self.collected.functions.append(name)
        self.newlines()
        if self.pos >= self.size or not (self.text[self.pos] in "({" or self.reserved()):
            raise Stop(self.pos, "a function body is missing")
        self.deeper()
        self.places = UNKNOWN
        self.collected.values.clear()
        self.any_command()
        self.depth -= 1
        self.places, self.collected.values = places, values
        return still(places)

    def coproc(self) -> Flow:
        self.blanks()
        start = self.pos
        match = re.compile(r"([A-Za-z_]\w*)[ \t]+(?=[{(]|(?:if|while|until|for|select|case|\[\[)\s)").match(
            self.text, start
        )
        name = "COPROC"
        if match:
            name, self.pos = match[1], match.end()
        self.collected.assign(name, None, self.place(start), self.place(self.pos), "shell")
        places = self.places
        self.any_command()
        return still(places)

    # [[ … ]]

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
            match = None if regex else re.compile(r"&&|\|\||[()]|[<>](?!\()").match(self.text, self.pos)
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
        if word.values and all(re.fullmatch(r"-?\d+", value) for value in word.values):
            return
        name = re.fullmatch(r'"?\$?\{?([A-Za-z_]\w*)\}?"?', word.raw)
        if name:
            self.collected.arithmetic.append((name[1], word.start, word.end))
            if word.dynamic and name[1] not in self.collected.assigned:
                self.note_word(word, "a value that is evaluated as arithmetic")
        elif word.dynamic or not re.fullmatch(r"-?\d+", word.text):
            self.note_word(word, "a value that is evaluated as arithmetic")

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
            inner.live_text(_BODY, "\\$`\n", 0)
        except Stop as stop:
            self.collected.note(start, end, text, stop.why)

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

    # Simple commands.

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
                match = _REDIRECTION.match(text, self.pos)
                if match:
                    self.redirection(match, redirections)
                    continue
                if character == "&":
                    return
            if character == "(":
                raise Stop(self.pos, "unexpected `(`")
            if character == "{" and (match := _DESCRIPTOR.match(text, self.pos)):
                self.note(self.pos, match.end(), "a descriptor's name with a subscript, which is evaluated")
                self.expansions(match[0], self.place(self.pos), self.place(match.end()))
            if not words and character not in "'\"$`\\" and (match := _EQUALS.match(text, self.pos)):
                assignments.append(self.assignment(match[1], match.end()))
                continue
            if not words and (match := _SUBSCRIPTED.match(text, self.pos)):
                self.note(self.pos, match.end(), "an assignment to an array element, whose subscript is evaluated")
            if words and words[0].text in _DECLARING and (match := _ARRAY.match(text, self.pos)):
                words.append(self.array_word(match))
                continue
            before = self.pos
            words.extend(self.words())
            if text[self.pos : self.pos + 1] in ("<", ">") and re.fullmatch(r"(?:\d|\\\n)+", text[before : self.pos]):
                self.note(before, self.pos, "a joined number in front of a redirection")

    def array_word(self, match: re.Match[str]) -> Word:
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

    # Redirections.

    def trailing_redirections(self) -> None:
        """Those of a compound, in the directory where it started."""
        while True:
            self.blanks()
            match = _REDIRECTION.match(self.text, self.pos)
            if not match:
                return
            found: list[Redirection] = []
            self.redirection(match, found)
            self.collected.redirections.extend(found)
            self.collected.directories.extend(directory(self.places) for _ in found)

    def redirection(self, match: re.Match[str], into: list[Redirection]) -> None:
        start, operator = self.pos, match[2]
        self.pos = match.end()
        if match[1] and match[1][0] == "{":
            self.bash_only(start, "{name}>")
            name = match[1].strip("{}")
            self.collected.assign(name, None, self.place(start), self.place(match.end(1)), "shell", numeric=True)
        if operator in ("&>", "&>>", "<<<"):
            self.bash_only(start, operator)
        if blank := _BLANK.match(self.text, self.pos):
            self.pos = blank.end()
        if operator in ("<<", "<<-"):
            self.here_document(start, operator, into)
            return
        before = self.pos
        target = self.word() if operator == "<<<" else self.target()
        if self.pos == before:
            raise Stop(before, "the target of a redirection is missing")
        into.append(self.redirected(operator, match[1], target, start))

    def target(self) -> Word:
        """A redirection's file. Several words would be refused by bash; here they stand as one of unknown value."""
        start = self.pos
        words = self.words()
        if len(words) == 1:
            return words[0]
        raw = self.text[start : self.pos]
        return Word(text=raw, raw=raw, start=self.place(start), end=self.place(self.pos), dynamic=True)

    def redirected(self, operator: str, descriptor: str | None, target: Word, start: int) -> Redirection:
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
        if target.raw.startswith(("<(", ">(")) and target.text == target.raw:
            return Redirection(operator=operator, access=Access.NONE, target=None, start=first, end=last)
        return Redirection(operator=operator, access=_ACCESS[operator], target=target, start=first, end=last)

    # Here-documents.

    def here_document(self, start: int, operator: str, into: list[Redirection]) -> None:
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
            operator=operator, access=Access.NONE, target=None, start=self.place(start), end=self.place(raw_end)
        )
        into.append(slot)
        self.pending.append((delimiter, literal, operator == "<<-", slot))

    def delimiter_end(self) -> int:
        position = self.pos
        finder = re.compile(r"(?:[^\s;&|<>()'\"\\]+|'[^']*'|\"[^\"]*\"|\\.)+", re.DOTALL)
        match = finder.match(self.text, position)
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
        """Where the body ends; ``pos`` moves behind the line of the delimiter."""
        text, size = self.text, self.size
        while self.pos < size:
            start = self.pos
            line, self.pos = self.body_line(literal=literal)
            if (line.lstrip("\t") if dash else line) == delimiter:
                return start
        self.note(size, size, "a here-document that is never closed")
        return size

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
            inner.live_text(_BODY, "\\$`\n", 0)
        except Stop as stop:
            inner.salvage(stop)

    def salvage(self, stop: Stop) -> None:
        """Note a stop and search the rest of the text."""
        raise NotImplementedError

    def check_text(self, start: int, end: int) -> None:
        """A part that is only data."""


_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\[[^\n]*?\][^\s]*?\}(?=[<>])", re.ASCII)
_EQUALS_NAME = re.compile(r"[A-Za-z_]\w*(?=[\s;]|\Z)", re.ASCII)
_SUBSCRIPTED = re.compile(r"[A-Za-z_]\w*\[[^=\s]*\]?[^=\s]*\+?=", re.ASCII)
_ARRAY = re.compile(r"([A-Za-z_]\w*)\+?=\(", re.ASCII)
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})
