"""The options of one command: long ones, clusters, abbreviations, attached and following values, and what each means. Pure."""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs import names, roles, values
from ringfence.shell.programs.reading import ACCESS, EffectKind, OptionUse
from ringfence.shell.programs.table import Option
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_NUMBER = re.compile(r"-\d+\Z")
_EFFECTS = {
    "executes": (EffectKind.EXECUTES, "names a program or command that is run"),
    "execute": (EffectKind.EXECUTES, "names a file that is run or loaded as code"),
    "runs": (EffectKind.EXECUTES, "runs another program"),
    "code": (EffectKind.PROGRAM_TEXT, "takes program text"),
    "writes": (EffectKind.WRITES, "changes or removes files"),
    "network": (EffectKind.NETWORK, "opens a connection"),
    "refuse": (EffectKind.UNKNOWN_OPTION, "is not safe to allow by the program's name alone"),
    "indirect": (EffectKind.UNKNOWN, "names files that do not stand on the line"),
}
_STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})


def read_option(reader: "Reader", index: int, word: Word) -> None:
    """One word that is an option."""
    text = word.prefix if word.dynamic else word.text
    if text.startswith("+"):
        started = reader.table.options.get("+")
        if started is not None and started.role == "flags" and "/" in text:
            unknown_option(reader, index, word, text)  # a toolchain by its name, not one at some place
            reader.path(replace(word, text=text[1:]), index, "execute")
        elif started is not None:
            apply(reader, started, (index,), None)
    elif reader.table.style == "single" or text.startswith("--"):
        _long(reader, index, word, text)
    elif reader.table.numbers and _NUMBER.match(text) and not word.dynamic:
        reader.options.append(OptionUse(name="-number", words=(index,), value=text[1:], top=reader.table.subcommands))
    else:
        _cluster(reader, index, word, text)


def _long(reader: "Reader", index: int, word: Word, text: str) -> None:
    """A long option, its value attached or in the next word."""
    name, equals, attached = text.partition("=")
    option = reader.table.options.get(name) or _abbreviated(reader, name)
    if option is None or (word.dynamic and not equals):
        unknown_option(reader, index, word, name)
        return
    if equals:
        value = replace(word, text=attached, prefix=word.prefix[len(name) + 1 :] if word.dynamic else "")
        apply(reader, option, (index,), value if option.takes else None)
        if not option.takes and option.role == "flags":
            unknown_option(reader, index, word, text)
    elif option.takes and not option.optional:
        with_next(reader, option, index)
    else:
        apply(reader, option, (index,), None)


def _abbreviated(reader: "Reader", name: str) -> Option | None:
    """GNU takes any prefix that means one option only; of several the most harmful is assumed."""
    if not reader.table.abbreviate or len(name) < 3 or reader.table.style == "single":
        return None
    found = [reader.table.options[long] for long in reader.table.longs if long.startswith(name)]
    if not found:
        return None
    harmful = [option for option in found if option.role not in ("flags", "text")]
    return harmful[0] if harmful else found[0] if len(found) == 1 else None


def _cluster(reader: "Reader", index: int, word: Word, text: str) -> None:
    """Short options in one word."""
    whole = reader.table.options.get(text)
    if whole is not None and len(text) > 2:
        if whole.takes and not whole.optional:
            with_next(reader, whole, index)
        else:
            apply(reader, whole, (index,), None)
        return
    for position in range(1, len(text)):
        name = text[0] + text[position]
        option = reader.table.options.get(name)
        if option is None:
            unknown_option(reader, index, word, name if name.isprintable() else text)
            return
        if not option.takes:
            apply(reader, option, (index,), None)
            if reader.table.style == "apart" and len(text) > position + 1:
                unknown_option(reader, index, word, text)
                return
            continue
        attached = text[position + 1 :]
        if attached or (word.dynamic and word.prefix):
            if attached.startswith("=") and reader.table.equals:
                attached = attached[1:]
            rest = replace(word, text=attached, prefix=attached if word.dynamic else "")
            apply(reader, option, (index,), rest)
        elif option.optional:
            apply(reader, option, (index,), None)
        else:
            with_next(reader, option, index)
        return
    if word.dynamic:
        unknown_option(reader, index, word, text)


def with_next(reader: "Reader", option: Option, index: int) -> None:
    """An option whose value is the next word."""
    for _ in range(option.skip):
        reader.essential.extend([] if reader.table.subcommands else [reader.index])
        reader.index += 1
    if reader.index >= len(reader.words):
        added = replace(
            reader.words[index], text="", raw="added arguments", dynamic=True, prefix="", values=(), glob=False
        )
        apply(reader, option, (index,), added if reader.command.extra_arguments else None)
        return
    if not reader.table.subcommands:
        reader.essential.append(reader.index)
    value = reader.words[reader.index]
    reader.index += 1
    apply(reader, option, (index, reader.index - 1), value)


def unknown_option(reader: "Reader", index: int, word: Word, name: str) -> None:
    """An option that the table does not know."""
    reader.options.append(OptionUse(name=name, words=(index,), top=reader.table.subcommands, harmless=False))
    why = f"`{name}` is not in the table of `{reader.table.name}`"
    reader.effect(EffectKind.UNKNOWN_OPTION, word.raw if word.dynamic else name, (index,), why)
    value = names.joined_path(word)
    if value:
        reader.path(replace(word, text=value, tilde=False), index, "read")
        reader.path(replace(word, text=value, tilde=False), index, "changed")


def apply(reader: "Reader", option: Option, words: tuple[int, ...], value: Word | None) -> None:
    """What an option with its value means."""
    table, role = reader.table, option.role
    top = table.subcommands
    harmless = option.harmless or (role in ("flags", "text") and not top)
    reader.options.append(
        OptionUse(
            name=option.name, words=words, value=None if value is None else value.text, top=top, harmless=harmless
        )
    )
    if option.name in table.fulfils or role in ("pattern", "script"):
        reader.fulfilled = True
    if option.name in table.target:
        reader.targeted = True
    if role == "flags" and value is None:
        return
    reader.edits = reader.edits or (role == "writes" and table.edits)
    reader.recursive = reader.recursive or role == "recursive"
    reader.exits = reader.exits or role == "exits"
    if value is not None and len(words) == 2 and value.dynamic and value.may_split and not reader.table.plain:
        reader.effect(
            EffectKind.UNKNOWN, value.raw, (words[-1],), "may become several words, of which some are options"
        )
    if role in _EFFECTS:
        kind, why = _EFFECTS[role]
        reader.effect(kind, option.name, words, table.why.get(option.name, f"`{option.name}` {why}"))
    if value is None:
        return
    if role == "writes" and option.optional and (value.dynamic or "/" in value.text):
        # A backup's name with a slash lies in another folder, which the option and the operand name together.
        reader.path(replace(value, dynamic=True, glob=False, values=(), prefix=""), words[-1], "write")
    elif role == "writes" and option.optional:
        reader.suffix = value.text
    elif role == "script":
        reader.scan(table.scan, value, words)
    elif role == "host":
        roles.host(reader, value, words[-1])
    elif role == "suffix":
        reader.suffix = value.text
    elif role in ("plugin", "coverage", "upload", "stem", "setting", "mode"):
        values.value_role(reader, role, value, words, option.name)
    elif role in ACCESS:
        reader.path(value, words[-1], role)
        if role == "directory":
            _move(reader, value, option, words)
        if role == "execute" and value.text in _STDIN and not value.dynamic:
            why = f"`{option.name}` runs what stands on standard input"
            reader.effect(EffectKind.PROGRAM_TEXT, option.name, words, why)
        if "://" in value.text:
            roles.host(reader, value, words[-1])


def _move(reader: "Reader", value: Word, option: Option, words: tuple[int, ...]) -> None:
    """Paths of the reading are seen from the folder that an option names."""
    if value.dynamic or value.tilde or reader.directory is None:
        reader.directory = None
    else:
        joined = value.text if value.text.startswith("/") else f"{reader.directory}/{value.text}"
        reader.directory = joined.removeprefix("./") or "."
    reader.effect(EffectKind.CHANGES_DIRECTORY, option.name, words, f"`{option.name}` changes the directory")
