"""Programs that hand a text to a shell: shells themselves, ``su``, ``ssh``, ``watch``, ``eval`` and their like. Pure."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_options import Options, Wrapped, base_name, joined, skip_options
from ringfence.shell.wrapper_specs import spec

_WATCH = spec(
    "nqs", "bcdegptwxrCf", "interval equexit shotsdir",
    "beep color no-color differences errexit chgexit precise no-title no-wrap exec no-rerun",
)  # fmt: skip
_SSH_SHORT = re.compile(r"-([1246AaCfGgKkMNnqsTtVvXxYy]*)(?:([BbcDEeFIiJLlmOoPpQRSWw])(.*))?", re.DOTALL)
_SHELL_LETTERS = frozenset("cexuilnvfhoOabEBCpmrsT")
_CHANGING_LETTERS = frozenset("Osia")
_LOCAL_COMMAND = re.compile(
    r"\s*(?:proxycommand|localcommand|knownhostscommand)\s*[=\s]\s*(.*)", re.IGNORECASE | re.DOTALL
)
_INPUT = re.compile(r"/dev/(?:stdin|tty|fd/\d+)|/proc/(?:self|thread-self|\d+)/fd/\d+")
_OWN_INPUT = re.compile(r"/dev/(?:stdin|fd/0)|/proc/self/fd/0")
"""Files that are what a shell reads anyway; all other files of the kind are another descriptor's."""
_SHELL_FLAGS = frozenset({"--norc", "--noprofile", "--posix", "--login", "--verbose", "--noediting", "--restricted"})


class _ShellOptions(Options):
    __slots__ = ()
    signs = ("-", "+")
    ends = ("--", "-")


def shell(words: Sequence[Word]) -> list[Wrapped] | None:
    """``bash -c SCRIPT`` in every spelling of its flags; None where no ``-c`` is given."""
    name = base_name(words[0])
    options, takes_script = _ShellOptions(words, 1, name), False
    while (word := options.take()) is not None:
        text = word.text
        if text.startswith("--"):
            if text in ("--rcfile", "--init-file"):
                options.index += 1
                options.doubt(f"`{text}` names a file of commands")
            elif text not in _SHELL_FLAGS:
                options.unknown(text)
            continue
        letters = text[1:]
        if "c" in letters and text[0] == "-":
            takes_script = True
        options.index += letters.count("o") + letters.count("O")
        if not _SHELL_LETTERS.issuperset(letters):
            options.unknown(text)
        if not _CHANGING_LETTERS.isdisjoint(letters):
            options.doubt(f"`{text}` changes how `{name}` reads its script")
    if not takes_script:
        return None
    if options.index >= len(words):
        return []
    script = words[options.index]
    if script.dynamic or script.tilde:
        likely = re.sub(r"^([\"'])(.*)\1$", r"\2", script.raw, flags=re.DOTALL)
        return [Wrapped(script=likely, at=script, reader=name, why="the script is not known before it runs")]
    return [Wrapped(script=script.text, at=script, reader=name, why=options.why)]


def reads_input(words: Sequence[Word]) -> bool:
    """Whether a shell without ``-c`` gets its script from standard input rather than from a file."""
    index = 1
    while index < len(words):
        word = words[index]
        text = word.text
        if word.dynamic:
            return True
        if text in ("--version", "--help", "--dump-strings", "-D"):
            return False
        if text in ("--", "-"):
            return index + 1 >= len(words) or _is_input(words[index + 1])
        if not text.startswith(("-", "+")):
            return _is_input(word)
        if not text.startswith("--") and "s" in text[1:]:
            return True
        index += 2 if text in ("--rcfile", "--init-file") or (text[1:2] != "-" and text.endswith(("o", "O"))) else 1
    return True


def reads_elsewhere(words: Sequence[Word]) -> bool:
    """Whether what a shell reads may be another descriptor than its standard input."""
    return any(_is_input(word) and not _OWN_INPUT.fullmatch(word.text) for word in words[1:])


def _is_input(word: Word) -> bool:
    return bool(_INPUT.fullmatch(word.text)) or word.raw.startswith("<(")


def su(words: Sequence[Word]) -> list[Wrapped]:
    """``su -c``: a script run as another user."""
    for index, word in enumerate(words):
        match = re.fullmatch(r"-[a-zA-Z]*c(.*)|--command(?:=(.*))?", word.text, re.DOTALL)
        if match and index:
            attached = match[1] or match[2]
            at = word if attached else words[index + 1] if index + 1 < len(words) else None
            if at is not None:
                return [Wrapped(script=attached or at.text, at=at, privileged=True, why="runs as another user")]
    return [Wrapped(words=(), privileged=True, why="runs as another user")]


def ssh(words: Sequence[Word]) -> list[Wrapped]:
    """The remote command, and local commands that options name."""
    found: list[Wrapped] = []
    options, host = Options(words, 1, "ssh"), False
    while options.index < len(words):
        word = words[options.index]
        text = word.text
        if word.dynamic or not text.startswith("-") or text == "-":
            if host or text == "-":
                break
            host = True
            options.index += 1
            continue
        options.index += 1
        if text == "--":
            continue
        match = _SSH_SHORT.fullmatch(text)
        if not match:
            options.unknown(text)
        elif match[2]:
            value = options.value(word, match[3] or None)
            command = _LOCAL_COMMAND.match(value.text) if value is not None and match[2] == "o" else None
            if command:
                found.append(Wrapped(script=command[1], at=word if match[3] else value, why=options.why))
    if options.index < len(words):
        found.extend(joined(words[options.index :], remote=True))
    return found


def watch(words: Sequence[Word]) -> list[Wrapped]:
    """``watch``: its words are joined and handed to sh."""
    index, why = skip_options(words, 1, _WATCH)
    direct = any(re.fullmatch(r"-[a-z]*x[a-z]*|--exec", word.text) for word in words[1:index])
    if direct:
        return [Wrapped(words=tuple(words[index:]), why=why)] if index < len(words) else []
    return [replace(item, why=item.why or why) for item in joined(words[index:])]


def parallel(words: Sequence[Word]) -> list[Wrapped]:
    """GNU parallel: the command is a template that a shell reads."""
    index = 1
    while index < len(words) and words[index].text.startswith("-") and words[index].text != "--":
        takes = re.fullmatch(r"-[jnaNISsPLdEC]|--(?:jobs|colsep|arg-file|delay|timeout|tmpdir|results|joblog|max-args|sshlogin|workdir|wd|basefile|return)", words[index].text)  # fmt: skip
        index += 2 if takes else 1
    command = list(words[index:])
    end = next((number for number, word in enumerate(command) if word.text.startswith(":::")), len(command))
    template = command[:end]
    why = "`parallel` builds its commands when it runs"
    if not template:
        return [Wrapped(script=word.text, at=word, why=why) for word in command[end + 1 :] if not word.dynamic] or [
            Wrapped(why=why)
        ]
    return [replace(item, why=why) for item in joined(template)]


def script(words: Sequence[Word]) -> list[Wrapped]:
    """``script -c COMMAND``; without it an interactive shell."""
    for index, word in enumerate(words[1:], 1):
        match = re.fullmatch(r"-[aefqV]*c(.*)|--command(?:=(.*))?", word.text, re.DOTALL)
        if match:
            attached = match[1] or match[2]
            at = word if attached else words[index + 1] if index + 1 < len(words) else None
            if at is not None:
                unknown = "the script is not known before it runs" if at.dynamic else ""
                return [Wrapped(script=attached or at.text, at=at, why=unknown, covered=True)]
    return [Wrapped(why="`script` starts a shell that reads its input", covered=True)]


def evaluate(words: Sequence[Word]) -> list[Wrapped]:
    """``eval``: its words are joined and read as a line."""
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    return joined(rest, shell_name="eval")


def trap(words: Sequence[Word]) -> list[Wrapped]:
    """``trap``: a line that runs later."""
    rest = [word for word in words[1:] if word.text != "--"]
    if (
        not rest
        or rest[0].text in ("-", "", "-l", "-p", "-P")
        or (len(rest) == 1 and re.fullmatch(r"\d+|(?:SIG)?[A-Z]+\d?", rest[0].text))
    ):
        return []
    return joined(rest[:1], shell_name="trap")
