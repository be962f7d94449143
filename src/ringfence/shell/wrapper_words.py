"""Wrappers that make the words of the command they start: ``env``, ``xargs``, ``find``. Pure."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ringfence.shell.syntax import Word
from ringfence.shell.wrapper_options import Options, Wrapped, abbreviates, assigns, inserted

_ENV_LONG = (
    "--unset", "--chdir", "--split-string", "--ignore-environment", "--null", "--debug", "--block-signal",
    "--default-signal", "--ignore-signal", "--list-signal-handling", "--argv0",
)  # fmt: skip
_ENV_VALUED = frozenset({"--unset", "--chdir", "--split-string", "--argv0"})
_ENV_SHORT = re.compile(r"-([i0v]*)(?:([uCSPa])(.*))?", re.DOTALL)
_XARGS_SHORT = re.compile(r"-([0rtpxo]*)(?:([adEILnPsJRS])(.*)|([iel])(.*))?", re.DOTALL)
_XARGS_VALUED = frozenset({"arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"})
_XARGS_FLAGS = frozenset(
    {"null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "show-limits", "eof", "max-lines"}
)


class _EnvOptions(Options):
    __slots__ = ()
    dash = True


def env(words: Sequence[Word]) -> list[Wrapped]:
    """``env``: options, assignments, then the command; ``-S`` splits a text of its own."""
    options, directory = _EnvOptions(words, 1, "env"), "."
    split: tuple[Word, ...] = ()
    unknown_directory = False
    while (word := options.take()) is not None:
        name, value = _env_option(options, word)
        if name in ("-C", "--chdir"):
            if value is None or value.dynamic:
                unknown_directory = True
            else:
                directory = value.text
        elif name in ("-S", "--split-string") and value is not None:
            split, options.why = _split_string(value, options.why)
            break
    rest = (*split, *words[options.index :])
    assigned: list[Word] = []
    while rest and (assigns(rest[0]) or (not rest[0].dynamic and "=" in rest[0].text)):
        assigned.append(rest[0])
        rest = rest[1:]
    where, why = None if unknown_directory else directory, options.why
    if not rest:
        return [Wrapped(assigned=tuple(assigned), directory=where, why=why)] if assigned or why else []
    return [Wrapped(words=rest, assigned=tuple(assigned), directory=where, why=why)]


def _env_option(options: Options, word: Word) -> tuple[str, Word | None]:
    """The name of one option of ``env``, in full where it was shortened, and its value."""
    text = word.text
    if text.startswith("--"):
        name, equals, attached = text.partition("=")
        full = [known for known in _ENV_LONG if known.startswith(name)]
        name = name if name in full else full[0] if len(full) == 1 else name
        if name in _ENV_VALUED:
            return name, options.value(word, attached if equals else None)
        if not full:
            options.unknown(text)
        return name, None
    match = _ENV_SHORT.fullmatch(text)
    if not match:
        options.unknown(text)
    elif match[2]:
        return "-" + match[2], options.value(word, match[3] or None)
    return text, None


def _split_string(value: Word, why: str) -> tuple[tuple[Word, ...], str]:
    """``env -S``: its own splitting rules; only plain words are surely read."""
    text = value.text
    if value.dynamic:
        return (), why or "the text that env splits is not known before it runs"
    if re.search(r"[\\$#]", text):
        why = why or "`env -S` expands this text in its own way"
    parts = re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+", text)
    words = tuple(replace(value, text=re.sub(r"[\"']", "", part), raw=part, dynamic=False) for part in parts)
    return words, why


def xargs(words: Sequence[Word]) -> list[Wrapped]:
    """``xargs``: the command gets words of unknown value, at the end or in place of a mark."""
    options, mark = Options(words, 1, "xargs"), ""
    while (word := options.take()) is not None:
        found = _xargs_option(options, word)
        mark = mark if found is None else found
    named = words[options.index :]
    rest = list(named) or [replace(words[0], text="echo", raw="xargs")]
    if mark:
        rest = [inserted(word, mark) for word in rest]
    return [Wrapped(words=tuple(rest), extra=not mark, unnamed=not named, why=options.why)]


def _xargs_option(options: Options, word: Word) -> str | None:
    """What one option of ``xargs`` makes the mark; None where it says nothing of it."""
    text = word.text
    if text.startswith("--"):
        name, equals, attached = text[2:].partition("=")
        if name == "replace":
            return attached or "{}"
        if name in _XARGS_VALUED or (len(name) > 2 and abbreviates(name, _XARGS_VALUED)):
            options.index += not equals
        elif name not in _XARGS_FLAGS:
            options.unknown(text)
        return None
    match = _XARGS_SHORT.fullmatch(text)
    if not match:
        options.unknown(text)
    elif match[2]:
        value = options.value(word, match[3] or None)
        if match[2] in "IJ":
            return value.text if value is not None else ""
    elif match[4] == "i":
        return match[5] or "{}"
    return None


def find(words: Sequence[Word]) -> list[Wrapped] | None:
    """``-exec``, ``-execdir``, ``-ok`` and ``-okdir``, with the found path in place of ``{}``."""
    found: list[Wrapped] = []
    index = 1
    while index < len(words):
        text = words[index].text
        index += 1
        if text not in ("-exec", "-execdir", "-ok", "-okdir") or words[index - 1].dynamic:
            continue
        start = index
        while index < len(words):
            word = words[index]
            if word.text == ";" or (word.text == "+" and index > start and words[index - 1].text == "{}"):
                break
            index += 1
        ended = index < len(words)
        plus = ended and words[index].text == "+"
        inside = [word for word in words[start:index] if not (plus and word.text == "{}")]
        directory = None if text.endswith("dir") else "."
        inside = [inserted(word, "{}", "./" if directory is None else None) for word in inside]
        if inside:
            why = "" if ended else "an -exec that is never closed"
            found.append(Wrapped(words=tuple(inside), directory=directory, extra=bool(plus), why=why))
        index += 1
    return found
