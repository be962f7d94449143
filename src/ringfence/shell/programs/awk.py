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
_BEFORE_REGEX = frozenset({"print", "printf", "return", "in", "if", "while", "case", "getline", "do", "else"})
_CALLS = {
    "system": "awk's `system` runs a shell",
    "extension": "loads a library into awk",
    "@load": "loads a library into awk",
    "@include": "reads program text from a file",
}
_LOOKUPS = frozenset({"ARGV", "ARGC", "PROCINFO"})


def scan_awk(reader: "Reader", word: Word, words: tuple[int, ...]) -> None:
    """Effects and paths of one program word."""
    if word.dynamic and not word.values:
        reader.effect(EffectKind.PROGRAM_TEXT, word.raw, words, "an awk program that is not known before it runs")
        return
    for text in word.values if word.dynamic else (word.text,):
        _scan(reader, text, word, words)


def _scan(reader: "Reader", text: str, word: Word, words: tuple[int, ...]) -> None:
    position, previous, printing, depth = 0, "", False, 0
    while position < len(text):
        if text[position] == "/" and _regex_may_stand(previous) and (match := _REGEX.match(text, position)):
            position, previous = match.end(), "/"
            continue
        match = _TOKEN.match(text, position)
        if not match:
            reader.effect(EffectKind.PROGRAM_TEXT, text, words, "an awk program that could not be read")
            return
        position = match.end()
        kind, token = match.lastgroup, match[0]
        if kind in ("space", "comment"):
            continue
        if kind == "string" and "/inet" in token:
            reader.effect(EffectKind.NETWORK, token, words, "awk opens a network connection")
        elif kind == "name":
            printing = printing or token in ("print", "printf")
            _name(reader, text, position, token, word, words)
        elif kind == "op":
            depth += {"(": 1, ")": -1}.get(token, 0)
            printing = printing and token not in (";", "\n", "}", "{")
            if token in ("|", "|&"):
                reader.effect(EffectKind.EXECUTES, token, words, "awk starts a program behind a pipe")
            elif token in (">", ">>") and printing and depth <= 0:
                _file(reader, text, position, word, words, write=True)
        previous = token


def _regex_may_stand(previous: str) -> bool:
    """Whether a slash begins a regular expression rather than a division."""
    if not previous or previous in _BEFORE_REGEX:
        return True
    return not (previous[-1].isalnum() or previous[-1] in '_)]"$' or previous in ("++", "--"))


def _name(  # noqa: PLR0917 -- a scanner's state
    reader: "Reader", text: str, position: int, name: str, word: Word, words: tuple[int, ...]
) -> None:
    if name in _CALLS:
        kind = EffectKind.EXECUTES
        reader.effect(kind, name, words, _CALLS[name])
    elif name.startswith("@"):
        reader.effect(EffectKind.EXECUTES, name, words, "calls a function whose name is computed")
    elif name in _LOOKUPS and name != "PROCINFO":
        reader.effect(EffectKind.UNKNOWN, name, words, "may name files that do not stand on the line")
    elif name == "getline":
        source = re.compile(r"\s*(?:[A-Za-z_$]\w*(?:\[[^\]]*\])?)?\s*<").match(text, position)
        if source:
            _file(reader, text, source.end(), word, words, write=False)


def _file(reader: "Reader", text: str, position: int, word: Word, words: tuple[int, ...], *, write: bool) -> None:
    """A file that the program names itself: surely known only where it is one string."""
    literal = re.compile(r"\s*\"([^\"\\]*)\"\s*(?=[;}\n)]|\Z)").match(text, position)
    if literal:
        use = replace(word, text=literal[1], dynamic=False, tilde=False, glob=False, values=())
    else:
        use = replace(
            word, text=text[position:].strip()[:40], dynamic=True, tilde=False, glob=False, values=(), prefix=""
        )
    if literal and literal[1].startswith("/dev/std"):
        return
    reader.path(use, words[-1], "write" if write else "read")
    if write:
        reader.effect(EffectKind.WRITES, ">", words, "the awk program writes a file")
