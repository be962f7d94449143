"""awk programs: whether they run anything, open the network, or write and read files of their own. Pure."""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs.reading import EffectKind
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n)|(?P<comment>#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<name>@?[A-Za-z_]\w*(?:::\w+)?)"
    r"|(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)|(?P<op>\|\||\|&|>>|>=|==|&&|\+\+|--|\S|\n)",
    re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[(?:\^?\]?)(?:[^\]\\\n]|\\.)*\])*/", re.DOTALL)
_BEFORE_REGEX = frozenset({"print", "printf", "return", "exit", "in", "if", "while", "case", "do", "else"})
_EITHER = frozenset({"getline", "length", "++", "--", "$"})
_GOES_ON = frozenset({",", "&&", "||"})
"""What a statement goes on behind in the next line."""
_CONDITIONS = frozenset({"if", "while", "for", "switch"})
_CALLS = {
    "system": "awk's `system` runs a shell",
    "extension": "loads a library into awk",
    "@load": "loads a library into awk",
    "@include": "reads program text from a file",
}
_LOOKUPS = frozenset({"ARGV", "ARGC"})
_STREAMS = frozenset({"/dev/stdin", "/dev/stdout", "/dev/stderr"})


def scan_awk(reader: "Reader", word: Word, words: tuple[int, ...]) -> None:
    """Effects and paths of one program word."""
    if word.dynamic and not word.values:
        reader.effect(EffectKind.PROGRAM_TEXT, word.raw, words, "an awk program that is not known before it runs")
        return
    for text in word.values if word.dynamic else (word.text,):
        _Scanner(reader, text, word, words).read()


class _Scanner:
    """One pass over the tokens of a program."""

    def __init__(self, reader: "Reader", text: str, word: Word, words: tuple[int, ...]) -> None:
        self.reader = reader
        self.text = text
        self.word = word
        self.words = words
        self.position = 0
        self.previous = ""
        self.opened: list[bool] = []
        """For every open parenthesis whether a condition stands in it."""
        self.after_condition = False
        self.printing: int | None = None
        """How many parentheses were open at the `print` of this statement."""
        self.taking: int | None = None
        """The same of its `getline`."""

    def read(self) -> None:
        text = self.text
        while self.position < len(text):
            if text[self.position] == "/" and self.regex_may_stand() and (match := _REGEX.match(text, self.position)):
                self.position, self.previous = match.end(), "/"
                continue
            match = _TOKEN.match(text, self.position)
            if not match or self.is_doubtful(match[0]):
                self.effect(EffectKind.PROGRAM_TEXT, text, "an awk program that could not be read")
                return
            self.position = match.end()
            goes_on = match[0] == "\n" and self.previous in _GOES_ON
            if match.lastgroup not in ("space", "comment") and not goes_on:
                self.token(str(match.lastgroup), match[0])
                self.previous = match[0]

    def token(self, kind: str, text: str) -> None:
        after_condition, self.after_condition = self.after_condition, False
        if kind == "string" and "/inet" in text:
            self.effect(EffectKind.NETWORK, text, "awk opens a network connection")
        elif kind == "name":
            self.name(text.removeprefix("awk::"))
        elif text == "(":
            self.opened.append(self.previous in _CONDITIONS)
        elif text == ")":
            self.after_condition = self.opened.pop() if self.opened else after_condition
            if self.taking is not None and len(self.opened) < self.taking:
                self.taking = None
        elif text in (";", "\n", "}", "{"):
            self.printing = self.taking = None
        elif text in ("|", "|&"):
            self.effect(EffectKind.EXECUTES, text, "awk starts a program behind a pipe")
        elif text in (">", ">>") and self.printing is not None and len(self.opened) <= self.printing:
            self.file(write=True)
        elif text == "<" and self.taking is not None:
            self.taking = None
            self.file(write=False)

    def is_doubtful(self, token: str) -> bool:
        """A string without its end, or a slash that one awk takes for a division and another for an expression."""
        return token in ('"', "\\") or (token[0] == "/" and self.previous in _EITHER)

    def regex_may_stand(self) -> bool:
        """Whether a slash begins a regular expression rather than a division."""
        previous = self.previous
        if not previous or previous in _BEFORE_REGEX or self.after_condition:
            return True
        return not (previous[-1].isalnum() or previous[-1] in '_)]"' or previous in _EITHER)

    def name(self, name: str) -> None:
        if name in ("print", "printf"):
            self.printing = len(self.opened)
        elif name == "getline":
            self.taking = len(self.opened)
        elif name in _CALLS:
            self.effect(EffectKind.EXECUTES, name, _CALLS[name])
        elif name.startswith("@"):
            self.effect(EffectKind.EXECUTES, name, "calls a function whose name is computed")
        elif name in _LOOKUPS:
            self.effect(EffectKind.UNKNOWN, name, "may name files that do not stand on the line")

    def file(self, *, write: bool) -> None:
        """A file that the program names itself: surely known only where it is one string."""
        literal = re.compile(r"\s*\"([^\"\\]*)\"\s*(?=[;}\n)]|\Z)").match(self.text, self.position)
        if literal and literal[1] in _STREAMS:
            return
        text = literal[1] if literal else self.text[self.position :].strip()[:40]
        use = replace(self.word, text=text, dynamic=not literal, tilde=False, glob=False, values=(), prefix="")
        self.reader.path(use, self.words[-1], "write" if write else "read")
        if write:
            self.effect(EffectKind.WRITES, ">", "the awk program writes a file")

    def effect(self, kind: EffectKind, option: str, why: str) -> None:
        self.reader.effect(kind, option, self.words, why)
