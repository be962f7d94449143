"""Interpreters, compilers, shells and wrappers: where code begins and what follows is its own business. Pure."""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs import modes, names, options, roles
from ringfence.shell.programs.reading import EffectKind
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_COMPILER_FLAG = re.compile(
    r"-(?:f(?!plugin)[\w=-]+|W(?!p,|a,|l,)[\w=,+-]*|m[\w=.+-]+|O[\w]*|g[\w=-]*|std=[\w+]+|[DU]\w+(?:=[\w.\"\\-]*)?|l[\w+.:-]+|[cSEvwP#]|pipe|"
    r"shared|static|pthread|pie|no-pie|nostdlib|nostdinc|rdynamic|ansi|pedantic(?:-errors)?|M{1,2}[DPG]?|s|dumpversion|dumpmachine|"
    r"print-[\w-]+(?:=[\w.+-]+)?|x|export-dynamic|-version|-help)\Z"
)


_PYTHON_FLAGS = re.compile("-[bBdEIOPqsSuvx]+")
_WARNINGS = frozenset({"default", "error", "always", "module", "once", "ignore"})
"""Options of python that change nothing about what is run: passed over like those before a subcommand."""


def read_python(reader: "Reader") -> None:
    """Options, then ``-c TEXT``, ``-m MODULE`` or a script; what follows belongs to that."""
    words = reader.words
    while reader.index < len(words):
        index, word = reader.index, words[reader.index]
        text = word.prefix if word.dynamic else word.text
        module = re.fullmatch(r"-([bBdEhiIOPqsSuvVx]*)m(.*)", text, re.DOTALL)
        if module and not text.startswith("--"):
            _module(reader, index, word, module[2])
            return
        code = re.fullmatch(r"-([bBdEhiIOPqsSuvVx]*)c(.*)", text, re.DOTALL)
        if code:
            _code(reader, index, code[2])
            return
        reader.index += 1
        if not word.dynamic and _PYTHON_FLAGS.fullmatch(text):
            options.read_option(reader, index, word)
            continue
        if text == "-W" and reader.index < len(words) and words[reader.index].text in _WARNINGS:
            reader.index += 1
            continue
        reader.essential.append(index)
        if not reader.is_option(word) or text == "-":
            if text == "-":
                break
            reader.operand(index)
            reader.finish_operands()
            return
        options.read_option(reader, index, word)
    if not reader.exits:
        reader.effect(
            EffectKind.PROGRAM_TEXT,
            "standard input",
            (0,),
            f"`{reader.program}` reads program text from standard input",
        )


def _code(reader: "Reader", index: int, attached: str) -> None:
    named = (index,) if attached or index + 1 >= len(reader.words) else (index, index + 1)
    reader.effect(EffectKind.PROGRAM_TEXT, "-c", named, f"`{reader.program} -c` runs program text from the line")
    reader.essential.extend(range(index, len(reader.words)))
    reader.operands.extend(range(named[-1] + 1, len(reader.words)))
    reader.index = len(reader.words)


def _module(reader: "Reader", index: int, word: Word, attached: str) -> None:
    words = reader.words
    where = index if attached else index + 1
    if where >= len(words):
        options.unknown_option(reader, index, word, "-m")
        return
    name = attached or words[where].text
    named = (index,) if attached else (index, where)
    if words[where].dynamic:
        reader.effect(EffectKind.PROGRAM_TEXT, words[where].raw, named, "the module is not known before it runs")
        name = ""
    reader.effect(EffectKind.PROGRAM_TEXT, f"-m {name}", named, f"`{reader.program} -m` runs the module `{name}`")
    reader.essential.extend(named)
    reader.index = where + 1
    table = reader.tables.table(reader.program, "-m", name) or reader.tables.table(name)
    reader.subcommand = ("-m", name)
    if table is None or table.reader == "python":
        reader.known = False
        arguments(reader, range(reader.index, len(words)))
        return
    reader.table = table
    reader.all_words()


def arguments(reader: "Reader", indexes: range | list[int]) -> None:
    """Arguments of a script: paths only where they look like one."""
    for index in indexes:
        reader.essential.append(index)
        reader.operands.append(index)
        argument(reader, index)


def argument(reader: "Reader", index: int) -> None:
    """One argument of a script."""
    word = reader.words[index]
    if word.dynamic or not word.text.startswith("-"):
        reader.path(word, index, "maybe")
    elif "=" in word.text:
        reader.path(replace(word, text=word.text.split("=", 1)[1]), index, "maybe")


def read_compiler(reader: "Reader") -> None:
    """Gcc and clang: flags by their families, ``-o`` writes, plugins and wrappers run code."""
    words = reader.words
    while reader.index < len(words):
        index, word = reader.index, words[reader.index]
        reader.index += 1
        reader.essential.append(index)
        text = word.prefix if word.dynamic else word.text
        if not text.startswith("-"):
            reader.operands.append(index)
            _listed(reader, index, word)
            continue
        valued = re.match(
            r"-(o|-output=?|I|L|include|isystem|iquote|idirafter|isysroot|MF|MJ|MT|MQ|-serialize-diagnostics)(.*)",
            text,
            re.DOTALL,
        )
        if valued:
            target, use = index, replace(word, text=valued[2])
            if not valued[2] and reader.index < len(words):
                target, use = reader.index, words[reader.index]
                reader.essential.append(target)
                reader.index += 1
            if valued[1] not in ("MT", "MQ"):
                reader.path(use, target, "write" if valued[1] in _WRITTEN else "read")
        elif text == "-x":
            reader.essential.append(reader.index)
            reader.index += 1
        elif re.match(r"-(?:fplugin|B|wrapper|specs|Xclang|load|fuse-ld|-config|-use-ld)", text):
            reader.effect(
                EffectKind.EXECUTES, text, (index,), f"`{text}` names a program or plugin that the compiler runs"
            )
            if path := names.joined_path(word):
                reader.path(replace(word, text=path), index, "execute")
        elif re.match("-W[alp],", text) and not word.dynamic:
            _passed_on(reader, index, word)
        elif not _COMPILER_FLAG.match(text) or word.dynamic:
            options.unknown_option(reader, index, word, text)


_WRITTEN = frozenset({"o", "-output", "-output=", "MF", "MJ", "-serialize-diagnostics"})
_PASSED_OUTPUT = re.compile(r"(-o|--?output|-Map|--?dependency-file|-MM?D|-MF)=?(.*)", re.DOTALL)
_PASSED_PLACE = re.compile(r"--?(?:rpath(?:-link)?|dynamic-linker|soname|install_name)(?:=|\Z)|-R")


def _passed_on(reader: "Reader", index: int, word: Word) -> None:
    """``-Wl,A,B``: options for the linker, assembler or preprocessor, which may name files too."""
    options.unknown_option(reader, index, replace(word, text=word.text[:3]), word.text)
    parts = word.text[4:].split(",")
    for before, part in zip(["", *parts], parts, strict=False):
        output = _PASSED_OUTPUT.fullmatch(part)
        after = _PASSED_OUTPUT.fullmatch(before)
        if output and output[2]:
            reader.path(replace(word, text=output[2]), index, "write")
        elif after and not after[2]:
            reader.path(replace(word, text=part), index, "write")
        elif not _PASSED_PLACE.match(before) and not _PASSED_PLACE.match(part):
            path = part.removeprefix("@") if not part.startswith("-") else names.joined_path(replace(word, text=part))
            if "/" in path or path.startswith("."):
                reader.path(replace(word, text=path), index, "read")
                if not path.startswith("/"):
                    reader.path(replace(word, text=path), index, "changed")


def _listed(reader: "Reader", index: int, word: Word, access: str = "read") -> None:
    """A file, or with ``@`` in front one that holds more arguments."""
    if word.text.startswith("@") and not word.dynamic:
        reader.effect(EffectKind.UNKNOWN, word.text, (index,), "reads more arguments from a file")
        reader.path(replace(word, text=word.text[1:]), index, access)
    else:
        reader.path(word, index, access)


def read_shell(reader: "Reader") -> None:
    """A shell: the script of ``-c`` is read as a line of its own; a file is run; without either it reads its input."""
    words = reader.words
    reader.essential.extend(range(1, len(words)))
    index = 1
    while index < len(words) and not words[index].dynamic and words[index].text.startswith(("-", "+")):
        text = words[index].text
        index += 1
        if text in ("--rcfile", "--init-file") and index < len(words):
            reader.path(words[index], index, "execute")
            index += 1
        elif not text.startswith("--") and "c" in text:
            return
        elif text.endswith(("o", "O")) and not text.startswith("--"):
            index += 1
        elif text in ("--version", "--help"):
            return
        elif not text.startswith("--") and "s" in text[1:]:
            break
        if text == "--":
            break
    else:
        if index < len(words):
            reader.operands.extend(range(index, len(words)))
            reader.path(words[index], index, "execute")
            for number in range(index + 1, len(words)):
                argument(reader, number)
            return
    if not reader.command.wraps:
        reader.effect(
            EffectKind.PROGRAM_TEXT, "standard input", (0,), f"`{reader.program}` reads commands from standard input"
        )


_WRAPPER_PATHS = {
    "env": {"-C": "directory", "--chdir": "directory"},
    "time": {"-o": "write", "--output": "write"},
    "sudo": {"-D": "directory", "--chdir": "directory"},
}


def read_wrapper(reader: "Reader") -> None:
    """What a wrapper starts is a command of its own; only its own files are of interest here."""
    words = reader.words
    reader.essential.extend(range(1, len(words)))
    for index in range(1, len(words)):
        for option, role in _WRAPPER_PATHS.get(reader.program, {}).items():
            text = words[index].text
            if text == option and index + 1 < len(words):
                reader.path(words[index + 1], index + 1, role)
            elif text.startswith(option + "=" if option.startswith("--") else option) and text != option:
                reader.path(replace(words[index], text=text[len(option) :].removeprefix("=")), index, role)


def read_git_remote(reader: "Reader") -> None:
    """Listing is fine; adding and changing remotes writes git's configuration."""
    reader.all_words()
    words = [reader.words[index].text for index in reader.operands]
    named = (*reader.essential[:2], *reader.operands[:1])
    asks = words and words[0] == "show" and len(words) > 1 and not {"-n", "-nv"} & {word.text for word in reader.words}
    if asks or (words and words[0] in ("prune", "update")):
        reader.effect(EffectKind.NETWORK, words[0], named, "asks the remote")
    if words and words[0] not in ("show", "get-url", "prune", "update"):
        reader.effect(EffectKind.WRITES, words[0], named, "changes git's remotes")
    if words and words[0] in ("add", "set-url") and any("::" in word for word in words):
        reader.effect(EffectKind.EXECUTES, words[0], tuple(reader.operands), "a remote helper runs a program")


def read_npm_config(reader: "Reader") -> None:
    """Reading is fine; setting writes ``.npmrc``, which can name programs and where packages come from."""
    reader.all_words()
    words = [reader.words[index].text for index in reader.operands]
    if words and words[0] not in ("get", "list", "ls"):
        named = (*reader.essential[:2], reader.operands[0])
        reader.effect(EffectKind.WRITES, words[0], named, "changes npm's configuration")


def give_language_role(reader: "Reader", index: int, role: str, word: Word) -> bool:
    """Roles of operands and values that are more than a path. True where ``role`` is one of them."""
    if role == "node":
        text = word.text.split("::", 1)[0] if not word.dynamic else word.text
        _listed(reader, index, replace(word, text=text), access="execute")
    elif role == "arguments":
        argument(reader, index)
    elif role == "awkfile":
        if word.dynamic or not re.match(r"[A-Za-z_]\w*=", word.text):
            reader.path(word, index, "read")
    elif role == "requirement":
        _requirement(reader, index, word)
    elif role == "listed":
        _listed(reader, index, word)
    elif role == "mode":
        modes.read_mode(reader, word, (index,))
    elif role == "download":
        roles.host(reader, word, index)
        names.give_download(reader, word, index)
    elif role == "stem":
        names.give_stem(reader, word, index)
    elif role == "place":
        text = word.text
        if not word.dynamic and "://" not in text and not text.startswith("//") and re.match(r"[.~]|.*/", text):
            reader.path(word, index, "maybe")
    elif role == "remotewrite":
        if ":" in word.text.split("/", 1)[0]:
            roles.remote(reader, word, index)
        else:
            reader.path(word, index, "write")
    elif role in ("bisect", "submodule"):
        if word.text in ("run", "foreach"):
            reader.effect(
                EffectKind.EXECUTES, word.text, (*reader.essential[:2], index), f"`{word.text}` runs a command"
            )
        elif role == "submodule" and word.text in ("add", "update"):
            reader.effect(EffectKind.NETWORK, word.text, (*reader.essential[:2], index), "fetches other repositories")
    elif role == "wrapped":
        if "://" in word.text and index == reader.operands[0]:
            reader.effect(EffectKind.EXECUTES, word.text, (index,), "fetches a program and runs it")
            roles.host(reader, word, index)
    else:
        return False
    return True


def _requirement(reader: "Reader", index: int, word: Word) -> None:
    """A package name, a path, or a URL."""
    text = word.text
    if word.dynamic:
        reader.path(word, index, "maybe")
    elif "://" in text:
        url = text.split("+", 1)[1] if re.match(r"\w+\+\w+://", text) else text.split("@ ", 1)[-1].strip()
        roles.host(reader, replace(word, text=url), index)
    elif "/" in text or text.startswith(".") or word.tilde:
        reader.path(replace(word, text=re.sub(r"\[[\w,.-]*\]$", "", text)), index, "execute")
