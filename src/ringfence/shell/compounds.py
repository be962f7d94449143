"""Compound commands: groups, conditions, loops, case, functions, coprocesses. Pure."""

import re

from ringfence.shell.collect import Pattern, Stop
from ringfence.shell.conditions import Conditions
from ringfence.shell.places import UNKNOWN, Flow, Places, merge, still
from ringfence.shell.syntax import Word

_LOOP_NAME = re.compile(r"[A-Za-z_]\w*(?=[\s;]|\Z)", re.ASCII)
_CASE_END = re.compile(r";;&|;;|;&")
_FUNCTION_NAME = re.compile(r"[^\s;&|<>()$`'\"\\]+")
_PARENTHESES = re.compile(r"\([ \t]*\)")
_COPROC = re.compile(r"([A-Za-z_]\w*)[ \t]+(?=\(|\{\s|(?:if|while|until|for|select|case|\[\[)\s)")


class Compounds(Conditions):
    """Reads what stands between reserved words."""

    def group(self) -> Flow:
        """``{ … }``."""
        flow = self.sequence("")
        self.close("}")
        return flow

    def close(self, word: str) -> None:
        """The reserved word that must stand here."""
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
        """The body of a loop."""
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
        name = ""
        if self.text.startswith("((", self.pos):
            end = self.arithmetic_end(self.pos + 2)
            if end is None:
                raise Stop(self.pos, "a for loop whose arithmetic is not plain")
            self.pos += 2
            if "=" in self.text[self.pos : end]:
                self.collected.values = {}
            self.arithmetic_loop(end)
            self.pos = end + 2
        else:
            name = self.for_head()
        body = self.body()
        self.loops -= 1
        if name:
            self.collected.forget(name)
        return self.repeated(entry, body.any, first)

    def arithmetic_loop(self, end: int) -> None:
        """The three parts of ``for ((…))``."""
        while self.pos < end:
            part = self.text.find(";", self.pos, end)
            self.arithmetic(part if part >= 0 else end)
            self.pos = min(self.pos + 1, end)

    def for_head(self) -> str:
        """Name and list of a ``for``."""
        match = _LOOP_NAME.match(self.text, self.pos)
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
        if listed and len(words) == 1 and words[0].glob and not words[0].tilde:
            values, known = (Pattern.seen_from(words[0].text, self.places),), True
        self.loop_variable(name, values if known else (), start)
        return name

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
            match = _CASE_END.match(self.text, self.pos)
            if match:
                self.pos = match.end()
            elif self.reserved() != "esac":
                raise Stop(self.pos, "`;;` or `esac` expected here")
            self.places = entry

    def patterns(self) -> None:
        """The patterns of one case, up to their parenthesis."""
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
        """``function NAME``."""
        self.blanks()
        match = _FUNCTION_NAME.match(self.text, self.pos)
        if not match:
            raise Stop(self.pos, "a function without a plain name")
        self.pos = match.end()
        self.blanks()
        if parentheses := _PARENTHESES.match(self.text, self.pos):
            self.pos = parentheses.end()
        return self.function(match[0])

    def function(self, name: str) -> Flow:
        """A definition: its commands may run wherever it is called."""
        places, values = self.places, self.collected.values
        self.collected.functions.append(name)
        self.newlines()
        if self.pos >= self.size or not (self.text[self.pos] in "({" or self.reserved()):
            raise Stop(self.pos, "a function body is missing")
        self.deeper()
        self.places = UNKNOWN
        self.collected.values = {}
        self.any_command()
        self.depth -= 1
        self.places, self.collected.values = places, values
        return still(places)

    def coproc(self) -> Flow:
        """``coproc``: a command in the background, with a variable for its descriptors."""
        self.blanks()
        start = self.pos
        match = _COPROC.match(self.text, start)
        name = "COPROC"
        if match:
            name, self.pos = match[1], match.end()
        self.collected.assign(name, None, self.place(start), self.place(self.pos), "shell")
        places = self.places
        self.any_command()
        return still(places)
