"""Programs whose arguments are a language of their own: find's expressions, sed and awk text, dd, tar, test, make, jq. Pure."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs import languages, names, options
from ringfence.shell.programs.awk import scan_awk
from ringfence.shell.programs.reading import EffectKind, OptionUse, PathAccess, PathUse
from ringfence.shell.programs.sed import scan_sed
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_PLAIN_VALUE = re.compile(r"(?!\.{1,2}\Z)[\w.,:+@%-]*\Z")
_MAKE_PROGRAMS = re.compile(
    r"(?:SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS|MFLAGS|GNUMAKEFLAGS|MAKEFILES|VPATH|CC|CXX|CPP|LD|AR|AS|FC|PC|CO|GET|LEX|YACC|LINT|"
    r"RANLIB|STRIP|RM|INSTALL|PYTHON\w*|NODE|NPM|PERL|RUBY|GO|CARGO|BASH|\w*(?:CMD|COMMAND|EXEC|PROG|BIN|TOOL|RUNNER|WRAPPER|PREFIX|FLAGS|OPTS|ARGS))\Z"
)
_MAKE_ENVIRONMENT = re.compile(
    r"(?:\w*PATH|(?:BASH_)?ENV|IFS|PS4|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|(?:\w+_)?HOME|TMPDIR|\w*PAGER|\w*EDITOR|BROWSER|\w+OPT|\w*OPTIONS|"
    r"(?:LD|DYLD|GIT|SSH|PIP|UV|NPM|YARN|GEM|BUNDLE|JAVA|LESS|XDG|DOCKER|AWS|NODE(?!_ENV\Z))_\w*|(?:PYTEST|RUST|PERL|RUBY|LUA)\w*|"
    r"\w*_(?:URL|INDEX)|\w*PROXY)\Z",
    re.IGNORECASE,
)
"""Make exports what is set on its line: names that programs of its recipes take code, commands or places from."""
_COMPILER_FLAGS = re.compile(
    r"(?:[ ]*(?:-O\w*|-g\w*|-W[a-z0-9-]+(?:=[\w-]+)?|-w|-v|-s|-std=[\w+]+|-pedantic(?:-errors)?|-pthread|-[DU]\w+(?:=[\w.]*)?|-m[a-z0-9-]+(?:=[\w.+-]+)?|"
    r"-f(?!plugin|use-ld)[a-z0-9-]+|-fsanitize=[\w,-]+|-fPI[CE])(?=[ ]|\Z))*[ ]*\Z"
)
_COMPILER = re.compile(r"cc|c\+\+|(?:gcc|g\+\+|clang|clang\+\+)(?:-\d{1,2})?")


# find.

_FIND_STARTS = ("-", "(", ")", "!", ",")


def read_find(reader: "Reader") -> None:
    """Global options, starting points, then the expression."""
    words = reader.words
    while reader.index < len(words):
        word, text = words[reader.index], words[reader.index].text
        if word.dynamic or (text not in ("-H", "-L", "-P", "-D") and not re.match(r"-O\d?\Z", text)):
            break
        reader.essential.append(reader.index)
        reader.index += 2 if text == "-D" else 1
    first = reader.index
    while reader.index < len(words):
        word = words[reader.index]
        if not word.dynamic and word.text.startswith(_FIND_STARTS) and word.text != "-":
            break
        if word.dynamic and word.may_split and not word.prefix:
            reader.index += 1
            reader.doubtful(word)
            reader.index -= 1
        reader.operands.append(reader.index)
        reader.essential.append(reader.index)
        reader.path(word, reader.index, "tree")
        reader.index += 1
    if reader.index == first:
        reader.paths.append(PathUse(word=0, text=".", access=PathAccess.READ, recursive=True))
    _find_expression(reader)


def _find_expression(reader: "Reader") -> None:
    words = reader.words
    while reader.index < len(words):
        index, word = reader.index, words[reader.index]
        reader.index += 1
        reader.essential.append(index)
        text = word.text
        if word.dynamic:
            reader.doubtful(word)
        elif text in ("(", ")", "!", ","):
            continue
        elif text in ("-exec", "-execdir", "-ok", "-okdir"):
            _skip_exec(reader)
        elif (option := reader.table.options.get(text)) is not None:
            _find_option(reader, option, index)
        elif re.fullmatch(r"-newer[aBcmt][aBcmt]", text):
            reference = reader.table.options["-newer" if not text.endswith("t") else "-name"]
            _find_option(reader, reference, index)
        else:
            options.unknown_option(reader, index, word, text)


def _find_option(reader: "Reader", option: "object", index: int) -> None:
    from ringfence.shell.programs.table import Option

    assert isinstance(option, Option)
    if not option.takes:
        options.apply(reader, option, (index,), None)
        return
    options.with_next(reader, option, index)
    if option.name == "-fprintf":
        reader.essential.append(reader.index)
        reader.index += 1


def _skip_exec(reader: "Reader") -> None:
    """The words of an -exec are a command of their own, judged as such."""
    start = reader.index
    while reader.index < len(reader.words):
        text = reader.words[reader.index].text
        reader.essential.append(reader.index)
        reader.index += 1
        if text == ";" or (text == "+" and reader.index - 2 >= start and reader.words[reader.index - 2].text == "{}"):
            return


# dd, test, tar.


def read_dd(reader: "Reader") -> None:
    """``if=`` is read, ``of=`` is written, the other names are numbers and flags."""
    for index in range(1, len(reader.words)):
        word = reader.words[index]
        reader.essential.append(index)
        reader.operands.append(index)
        text = word.prefix if word.dynamic else word.text
        name, equals, rest = text.partition("=")
        value = replace(word, text=rest, prefix=rest if word.dynamic else "", values=())
        if name in ("if", "of") and equals:
            reader.path(value, index, "read" if name == "if" else "write")
        elif not equals and text not in ("--help", "--version"):
            options.unknown_option(reader, index, word, text)


_TEST_UNARY = frozenset(
    [
        "-a",
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-p",
        "-r",
        "-s",
        "-u",
        "-w",
        "-x",
        "-L",
        "-O",
        "-G",
        "-S",
        "-N",
    ]
)


def read_test(reader: "Reader") -> None:
    """File tests read their operand."""
    words = reader.words
    reader.essential.extend(range(1, len(words)))
    for index in range(1, len(words)):
        previous = words[index - 1]
        if (
            not previous.dynamic
            and previous.text in _TEST_UNARY
            and words[index].text not in ("]", "=", "==", "!=", "-a", "-o")
        ):
            reader.path(words[index], index, "read")
        elif words[index].text in ("-nt", "-ot", "-ef"):
            for number in (index - 1, index + 1):
                if 0 < number < len(words):
                    reader.path(words[number], number, "read")


def read_tar(reader: "Reader") -> None:
    """Old clusters without a dash, and what each mode does to the archive and the tree."""
    words = reader.words
    if len(words) > 1 and not words[1].dynamic and not words[1].text.startswith("-"):
        _old_cluster(reader)
    reader.all_words()
    names = {option.name for option in reader.options}
    mode = next((mode for mode, spelled in _TAR_MODES.items() if names & spelled), "")
    access = PathAccess.READ if mode in ("x", "t", "d") else PathAccess.WRITE
    for option in reader.options:
        if option.name in ("-f", "--file") and option.value is not None and option.value != "-":
            _archive(reader, option, access)
    if mode == "x" and not names & {"-O", "--to-stdout"}:
        reader.paths.append(reader.placed(PathUse(word=0, text=".", access=PathAccess.WRITE, recursive=True)))
    elif mode in ("c", "r", "u", "d"):
        for index in reader.operands:
            reader.path(words[index], index, "tree")
        if reader.command.extra_arguments:
            reader.paths.append(PathUse(word=-1, text=None, access=PathAccess.READ))


_TAR_MODES = {
    "x": {"-x", "--extract", "--get"}, "t": {"-t", "--list"}, "c": {"-c", "--create"}, "r": {"-r", "--append"},
    "u": {"-u", "--update"}, "A": {"-A", "--catenate", "--concatenate"}, "d": {"-d", "--diff", "--compare"},
}  # fmt: skip


def _archive(reader: "Reader", option: OptionUse, access: PathAccess) -> None:
    word = reader.words[option.words[-1]]
    text = option.value or ""
    if word.dynamic or not text:
        prefix = word.prefix if word.dynamic else ""
        reader.paths.append(PathUse(word=option.words[-1], text=None, access=access, prefix=prefix))
        return
    if ":" in text.split("/", 1)[0]:
        reader.effect(
            EffectKind.EXECUTES, option.name, option.words, "an archive on another machine is fetched by a remote shell"
        )
    if text not in ("/dev/null", "/dev/stdout", "/dev/stdin"):
        reader.paths.append(
            PathUse(word=option.words[-1], text=text, access=access, tilde=word.tilde and text.startswith("~"))
        )


def _old_cluster(reader: "Reader") -> None:
    """``tar xzf FILE``: the letters first, their values in order behind."""
    reader.index = 2
    reader.essential.append(1)
    word = reader.words[1]
    for letter in word.text:
        option = reader.table.options.get("-" + letter)
        if option is None:
            options.unknown_option(reader, 1, word, letter)
        elif option.takes and not option.optional:
            options.with_next(reader, option, 1)
        else:
            options.apply(reader, option, (1,), None)


# make.


def make_target(reader: "Reader", word: Word, index: int) -> None:
    """A target, or ``NAME=value``, which makefiles may run."""
    text = word.prefix if word.dynamic else word.text
    match = re.match(r"([\w.-]+)\s*(?:[:?+!]|::)?=", text)
    if not match:
        if word.dynamic:
            reader.effect(EffectKind.PROGRAM_TEXT, word.raw, (index,), "may become a variable that the makefile runs")
        elif "=" in text:
            reader.effect(EffectKind.PROGRAM_TEXT, text, (index,), "sets a variable of the makefile")
        return
    value = text[match.end() :]
    if match[1] in ("CFLAGS", "CXXFLAGS", "CPPFLAGS") and not word.dynamic and _COMPILER_FLAGS.match(value):
        return
    if match[1] in ("CC", "CXX") and not word.dynamic and _COMPILER.fullmatch(value):
        return
    runs = _MAKE_PROGRAMS.match(match[1]) or _MAKE_ENVIRONMENT.match(match[1]) or "!=" in text[: match.end()]
    if word.dynamic or runs or not _PLAIN_VALUE.match(value):
        reader.effect(EffectKind.PROGRAM_TEXT, text, (index,), f"sets `{match[1]}`, which the makefile may run")


# git config, jq.


def read_git_config(reader: "Reader") -> None:
    """Reading is fine; setting is writing the repository's configuration, which can name programs."""
    reader.all_words()
    names = {option.name for option in reader.options}
    words = [reader.words[index].text for index in reader.operands]
    reads = names & {"--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch", "--get-color", "--get-colorbool", "--show-origin"}  # fmt: skip
    verb = (
        words[0]
        if words and words[0] in ("list", "get", "set", "unset", "rename-section", "remove-section", "edit")
        else ""
    )
    setting = verb in ("set", "unset", "rename-section", "remove-section", "edit") or (
        not verb and not reads and len(words) > 1
    )
    if setting or names & {
        "--unset",
        "--unset-all",
        "--add",
        "--replace-all",
        "--rename-section",
        "--remove-section",
        "-e",
        "--edit",
    }:
        reader.effect(EffectKind.WRITES, "config", tuple(reader.operands[:1]), "changes git's configuration, which can name programs to run")  # fmt: skip
    elif any(reader.words[index].dynamic and reader.words[index].may_split for index in reader.operands):
        reader.effect(EffectKind.WRITES, "config", tuple(reader.operands[:1]), "may set git's configuration")


def scan_jq(reader: "Reader", word: Word, words: tuple[int, ...]) -> None:
    """Jq runs nothing; modules are read from where ``import`` and ``include`` say."""
    if re.search(r"\b(?:import|include)\b|\bload\w*\s*\(", word.text):
        reader.effect(EffectKind.UNKNOWN, word.raw, words, "reads modules that do not stand on the line")


def read_yq(reader: "Reader") -> None:
    """``yq eval SCRIPT``: the script is not always the first operand, so each is looked into."""
    reader.all_words()
    for index in reader.operands[1:]:
        scan_jq(reader, reader.words[index], (index,))


READERS: dict[str, Callable[["Reader"], None]] = {
    "find": read_find,
    "dd": read_dd,
    "test": read_test,
    "tar": read_tar,
    "git-config": read_git_config,
    "link": names.read_link,
    "yq": read_yq,
    "git-remote": languages.read_git_remote,
    "npm-config": languages.read_npm_config,
    "python": languages.read_python,
    "compiler": languages.read_compiler,
    "shell": languages.read_shell,
    "wrapper": languages.read_wrapper,
}
SCANNERS: dict[str, Callable[["Reader", Word, tuple[int, ...]], None]] = {
    "sed": scan_sed,
    "awk": scan_awk,
    "jq": scan_jq,
}
