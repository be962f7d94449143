"""A quick way to read ordinary lines: bare and plainly quoted words, joined by ``|``, ``&&``, ``||`` and ``;``. Pure.

Nothing in such a line can mean anything but itself. Whatever is not plain makes :func:`split` answer None, and the
grammar reads the line instead; a property test holds the two to the same answer.
"""

import re
from dataclasses import dataclass

from ringfence.shell.reader import KEYWORDS
from ringfence.shell.syntax import Access, Redirection, Word

_TOKEN = re.compile(
    r"[ \t]*(?:"
    r"([\w./,:@%+^-][\w./,:@%+=^-]*)(?=[ \t;|&]|\Z)"
    r"|'([ -&(-~]*)'(?=[ \t;|&]|\Z)"
    r"|\"([ !#%-\[\]-_a-~]*)\"(?=[ \t;|&]|\Z)"
    r"|(\|\||&&|\||;)(?![|&;])"
    r"|([012]?)(>&1|>/dev/null)(?=[ \t;|&]|\Z)"
    r")",
    re.ASCII,
)


@dataclass(slots=True)
class Part:
    """One simple command and the sign in front of it."""

    joined: str
    words: list[Word]
    redirections: list[Redirection]


def split(line: str) -> list[Part] | None:
    """The commands of a plain line with their words; None where the line is not plain."""
    part = Part("", [], [])
    parts = [part]
    words = part.words
    position, size = 0, len(line)
    match_token = _TOKEN.match
    while position < size:
        match = match_token(line, position)
        if match is None:
            break
        group = match.lastindex
        start, position = match.start(group or 0), match.end()
        if group == 1:
            text = match[1]
            if not words and (text in KEYWORDS or "=" in text or part.redirections):
                return None
            words.append(Word(text=text, raw=text, start=start, end=position))
        elif group in (2, 3):
            if not words:
                return None
            words.append(
                Word(text=match[group], raw=line[start - 1 : position], start=start - 1, end=position, quoted=True)
            )
        elif group == 4:
            if not words:
                return None
            part = Part(match[4], [], [])
            words = part.words
            parts.append(part)
        else:
            start = match.start(5)
            if not words:
                return None
            part.redirections.append(_redirection(match[6], start, position, takes_input=match[5] == "0"))
    if line[position:].strip(" \t"):
        return None
    if not words:
        if part.joined != ";" or not parts[:-1]:
            return None
        parts.pop()
    return parts


def _redirection(spelled: str, start: int, end: int, *, takes_input: bool) -> Redirection:
    if spelled == ">&1":
        return Redirection(operator=">&", access=Access.NONE, target=None, start=start, end=end, input=takes_input)
    target = Word(text="/dev/null", raw="/dev/null", start=end - 9, end=end)
    return Redirection(operator=">", access=Access.WRITE, target=target, start=start, end=end, input=takes_input)
