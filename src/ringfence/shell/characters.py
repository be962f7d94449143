"""Characters that a command line may not hide behind: controls, invisible and bidirectional marks, odd blanks.

A person approves what they see; a character that shows nothing, or shows the text in another order, is never explained.
Pure: text in, findings out.
"""

import re
import unicodedata
from dataclasses import dataclass

# One search finds out that a line needs no closer look; nearly all lines end here.
_ORDINARY = re.compile(r"[\t\n\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff\u0370-\u05ff\u3041-\u9fff\uac00-\ud7a3]*\Z")

# Forms that bring their own meaning only between visible characters (emoji sequences, typographic blanks in messages).
_QUOTED_ONLY = frozenset("\u00a0\u2009\u200a\u202f\u2002\u2003\u3000\u200d\ufe0e\ufe0f\u00ad")


MOST = 20
"""Characters that are named of one line; more say nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One character that is not what it seems, and where it stands."""

    position: int
    name: str
    quoted_is_fine: bool


def suspects(text: str) -> tuple[Suspect, ...]:
    """The suspicious characters of ``text``, at most ``MOST`` of them; empty for an ordinary line."""
    if _ORDINARY.match(text):
        return ()
    found: list[Suspect] = []
    for position, character in enumerate(text):
        if character.isascii() and (character in "\t\n" or " " <= character <= "~"):
            continue
        category = unicodedata.category(character)
        if category in ("Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn") or character in _QUOTED_ONLY:
            found.append(Suspect(position=position, name=describe(character), quoted_is_fine=character in _QUOTED_ONLY))
            if len(found) == MOST:
                break
    return tuple(found)


def describe(character: str) -> str:
    """How the character is named to a person, never the character itself."""
    name = unicodedata.name(character, "").lower()
    code = f"U+{ord(character):04X}"
    if not name:
        name = "lone surrogate" if 0xD800 <= ord(character) <= 0xDFFF else "control character"
    return f"{name} ({code})"
