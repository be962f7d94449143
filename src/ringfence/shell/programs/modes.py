"""Modes of files (``chmod``, ``mkdir -m``, ``install -m``): which of them give away more than ordinary work needs. Pure."""

import re
from typing import TYPE_CHECKING

from ringfence.shell.programs.reading import EffectKind
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_OCTAL = re.compile(r"[-+=]?([0-7]{1,12})")
_WIDE = 0o6002
"""Set-user-ID, set-group-ID, and writing by every user of the host."""
_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]))+)")


def read_mode(reader: "Reader", word: Word, words: tuple[int, ...]) -> None:
    """An effect where a mode sets other rights on running, or opens to everybody for writing; or is not known."""
    if word.dynamic:
        reader.effect(EffectKind.UNKNOWN, word.raw, words, "the mode is not known before it runs")
    elif is_wide(word.text):
        why = f"the mode `{word.text}` lets every user write, or lends rights to whoever runs the file"
        reader.effect(EffectKind.UNKNOWN_OPTION, word.text, words, why)


def is_wide(mode: str) -> bool:
    """Whether a mode is more than ordinary, or is none that can be read."""
    if octal := _OCTAL.fullmatch(mode):
        return bool(int(octal[1], 8) & _WIDE) and not mode.startswith("-")
    for part in mode.split(","):
        clause = _CLAUSE.fullmatch(part)
        if clause is None:
            return True
        everybody = bool({"o", "a"} & set(clause[1]))
        for added in re.findall(r"[+=]([a-zA-Z]*)", clause[2]):
            if "s" in added or (everybody and {"w", "u", "g"} & set(added)):
                return True
    return False
