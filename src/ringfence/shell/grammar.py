"""The grammar of a line: lists, pipelines, compounds, functions, here-documents. Pure.

A recursive reader that follows bash's rules; every form it does not surely know stops it with a reason, and the rest of
the text is then searched for whatever might start, so that a deny rule still finds it.
"""

import re

from ringfence.shell.collect import Stop
from ringfence.shell.compounds import Compounds
from ringfence.shell.places import Flow, merge, still
from ringfence.shell.reader import CLOSERS

_FUNCTION = re.compile(r"([^\s;&|<>()$`'\"\\=]+)[ \t]*\([ \t]*\)")


class Grammar(Compounds):
    """Reads lists of commands. What a simple command means is decided one file further."""

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
            if self.reserved() in CLOSERS:
                return flow
            before, values = self.places, self.collected.values
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
            elif character not in "\n);" and self.reserved() not in CLOSERS:
                raise Stop(self.pos, f"unexpected `{character}`")

    def and_or(self) -> Flow:
        """Pipelines joined by ``&&`` and ``||``."""
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
        """Commands joined by pipes, with ``!`` and ``time`` in front."""
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
            if self.pos >= self.size or (self.text[self.pos] in "\n;&|)" and not self.text.startswith("&>", self.pos)):
                return still(self.places)
        before, values = self.places, self.collected.values
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
        """One command, simple or compound."""
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
        places, values = self.places, self.collected.values
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
        values = self.collected.values
        inner.run(top=False)
        self.collected.values = values
