"""What bash's own builtins change: variables, options, aliases, and forms that evaluate text. Pure."""

import re
from collections.abc import Callable
from typing import Protocol

from ringfence.shell.syntax import Assignment, Word

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_SAFE_SET = re.compile(r"[-+][eufxvnCmh]+\Z|--\Z|-\Z")
_SAFE_SET_O = frozenset(
    {"pipefail", "errexit", "nounset", "noglob", "xtrace", "noclobber", "verbose", "noexec", "monitor"}
)
_SAFE_SHOPT = frozenset(
    {"globstar", "nullglob", "dotglob", "failglob", "nocaseglob", "inherit_errexit", "checkwinsize"}
)
_PLAIN_ARITHMETIC = re.compile(r"[\s\w+\-*/%<>=!&|^~?:,()]*\Z", re.ASCII)
_NAME_AT_START = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)


class Shell(Protocol):
    """What a builtin may tell the reader."""

    def declared(self, name: str, value: Word | None, word: Word, scope: str) -> Assignment:
        """A variable that a builtin sets."""

    def arithmetic_word(self, word: Word) -> None:
        """A word whose names arithmetic evaluates or sets."""

    def doubt(self, word: Word, why: str) -> None:
        """A word that may be evaluated or change what follows."""

    def alias(self, name: str, word: Word) -> None:
        """``alias``: definitions."""

    def number(self, word: Word) -> bool:
        """Whether a dynamic word is surely one number."""

    def compound(self, name: str, word: Word, text: str, *, array: bool) -> bool:
        """Whether a value is read as a list."""


def declare(shell: Shell, words: list[Word]) -> None:
    """export, declare, typeset, local, readonly."""
    scope = "export" if words[0].text == "export" else "shell"
    array = any(not word.dynamic and re.match(r"-\w*[aA]", word.text) for word in words[1:])
    for word in words[1:]:
        if word.text.startswith(("-", "+")) and not word.dynamic:
            if set(word.text) & set("inF"):
                shell.doubt(word, f"`{words[0].text} {word.text}` makes later assignments mean something else")
            if "x" in word.text:
                scope = "export"
            continue
        match = _NAME_AT_START.match(word.prefix if word.dynamic else word.text)
        if match:
            text = word.text[match.end() :]
            if shell.compound(match[1], word, text, array=array):
                shell.doubt(
                    word, "a value that is read as a list, with its substitutions, although it is quoted or computed"
                )
            start = word.start + match.end()
            value = None if word.dynamic else Word(text=text, raw=text, start=start, end=word.end, quoted=word.quoted)
            shell.declared(match[1], value, word, scope)
        elif not word.dynamic and _IDENTIFIER.match(word.text):
            shell.declared(word.text, None, word, scope)
        else:
            shell.doubt(word, "declares a name that is not plain")


def _names(shell: Shell, words: list[Word], valued: str, default: str, named: str = "") -> None:
    """The variables that an option-taking builtin sets; ``named`` lists options whose value is a name."""
    index, found = 1, False
    while index < len(words):
        word = words[index]
        if word.dynamic or not word.text.startswith("-") or word.text in ("-", "--"):
            index += word.text == "--"
            break
        index += 1
        for position, letter in enumerate(word.text[1:], 1):
            if letter in valued:
                attached = word.text[position + 1 :]
                if letter in named:
                    target = word if attached else words[index] if index < len(words) else word
                    _name(shell, target, attached or target.text)
                    found = True
                index += not attached
                break
    for word in words[index:]:
        _name(shell, word, word.text)
        found = True
    if not found and default:
        shell.declared(default, None, words[0], "shell")


def _name(shell: Shell, word: Word, text: str) -> None:
    if word.dynamic or not _IDENTIFIER.match(text):
        shell.doubt(word, "sets a variable whose name is not plain")
    else:
        shell.declared(text, None, word, "shell")


def read(shell: Shell, words: list[Word]) -> None:
    """``read``: the variables that it sets."""
    _names(shell, words, "adinNptu", "REPLY", "a")


def mapfile(shell: Shell, words: list[Word]) -> None:
    """``mapfile``: the array that it sets, and a callback that it runs."""
    if any(word.dynamic or re.match(r"-[a-zA-Z]*[Cc]", word.text) for word in words[1:]):
        shell.doubt(words[0], "mapfile with a callback or a word that may be one")
    _names(shell, words, "dnOsuCc", "MAPFILE")


def printf(shell: Shell, words: list[Word]) -> None:
    """``printf -v``: the variable that it sets."""
    if len(words) > 1 and words[1].text.startswith("-v"):
        attached = words[1].text[2:]
        target = words[1] if attached else words[2] if len(words) > 2 else words[1]
        _name(shell, target, attached or target.text)
    elif len(words) > 1 and words[1].dynamic and not words[1].prefix and words[1].may_split:
        shell.doubt(words[1], "the first word of printf may be an option that sets a variable")


def getopts(shell: Shell, words: list[Word]) -> None:
    """``getopts``: the variable that it sets."""
    if len(words) > 2:
        _name(shell, words[2], words[2].text)


def unset(shell: Shell, words: list[Word]) -> None:
    """``unset``: a name that later means something else."""
    for word in words[1:]:
        if not word.text.startswith("-") or word.dynamic:
            _name(shell, word, word.text)


def let(shell: Shell, words: list[Word]) -> None:
    """``let``: arithmetic in words."""
    for word in words[1:]:
        if word.dynamic or not _PLAIN_ARITHMETIC.match(word.text):
            shell.doubt(word, "let evaluates this as arithmetic")
        shell.arithmetic_word(word)


def set_options(shell: Shell, words: list[Word]) -> None:
    """``set``: the usual strictness is fine; an option that changes how lines are read is not."""
    index = 1
    while index < len(words):
        word = words[index]
        text = word.text
        index += 1
        if word.dynamic:
            shell.doubt(word, "`set` with a word that may be an option")
            return
        if text == "--":
            return
        if re.fullmatch(r"[-+][a-zA-Z]*o", text):
            option = words[index].text if index < len(words) else ""
            index += 1
            if (option and option not in _SAFE_SET_O) or not (_SAFE_SET.match(text[:-1]) or len(text) == 2):
                shell.doubt(word, f"`set {text} {option}` changes how the shell reads lines")
        elif text.startswith(("-", "+")) and not _SAFE_SET.match(text):
            shell.doubt(word, f"`set {text}` changes how the shell reads lines")
        elif not text.startswith(("-", "+")):
            return


def shopt(shell: Shell, words: list[Word]) -> None:
    """``shopt``: options that change how lines are read."""
    for word in words[1:]:
        if word.dynamic or (not word.text.startswith("-") and word.text not in _SAFE_SHOPT) or ("o" in word.text[:4] and word.text.startswith("-")):  # fmt: skip
            shell.doubt(word, f"`shopt {word.raw}` may change how the shell reads lines")


def alias(shell: Shell, words: list[Word]) -> None:
    """``alias``: definitions."""
    for word in words[1:]:
        name, equals, _ = word.text.partition("=")
        if equals or word.dynamic:
            shell.alias(name, word)


def test(shell: Shell, words: list[Word]) -> None:
    """``[`` and ``test``: ``-v`` evaluates a subscript, and an unquoted value may become ``-v``."""
    operands = words[1:-1] if words[0].text == "[" and words[-1].text == "]" else words[1:]
    for index, word in enumerate(operands):
        if word.dynamic and word.may_split and not word.glob and not shell.number(word):
            shell.doubt(word, "an unquoted value in a test may become an operator; put it in double quotes")
        elif not word.dynamic and word.text in ("-v", "-R") and index + 1 < len(operands):
            target = operands[index + 1]
            if target.dynamic or not _IDENTIFIER.match(target.text):
                shell.doubt(target, "a variable test that evaluates a subscript")
    if len(operands) == 2 and operands[0].dynamic:
        shell.doubt(operands[0], "a test whose operator is not known before it runs")


def refused(shell: Shell, words: list[Word]) -> None:
    """Builtins whose arguments give names or keys another meaning."""
    if len(words) > 1:
        shell.doubt(words[0], f"`{words[0].text}` may change what later commands mean")


def hash_builtin(shell: Shell, words: list[Word]) -> None:
    """``hash -p``: a name that means another program."""
    if any(word.dynamic or re.match(r"-[a-z]*p", word.text) for word in words[1:]):
        shell.doubt(words[0], "`hash -p` makes a name mean another program")


def jobs(shell: Shell, words: list[Word]) -> None:
    """``jobs -x``: a command that is started."""
    if any(word.dynamic or re.match(r"-[a-z]*x", word.text) for word in words[1:]):
        shell.doubt(words[0], "`jobs -x` starts a command")


def wait(shell: Shell, words: list[Word]) -> None:
    """``wait -p``: the variable that it sets."""
    for index, word in enumerate(words[1:], 1):
        if re.match(r"-[a-z]*p", word.text) and not word.dynamic:
            target = words[index + 1] if index + 1 < len(words) else word
            _name(shell, target, target.text)


BUILTINS: dict[str, Callable[[Shell, list[Word]], None]] = {
    "export": declare, "declare": declare, "typeset": declare, "local": declare, "readonly": declare,
    "read": read, "mapfile": mapfile, "readarray": mapfile, "printf": printf, "getopts": getopts, "unset": unset,
    "let": let, "set": set_options, "shopt": shopt, "alias": alias, "test": test, "[": test,
    "enable": refused, "bind": refused, "complete": refused, "compgen": refused, "compopt": refused, "fc": refused,
    "history": refused, "hash": hash_builtin, "jobs": jobs, "wait": wait,
}  # fmt: skip
