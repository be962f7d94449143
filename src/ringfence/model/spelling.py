"""Spellings of one name: what the most forgiving file system takes for the same. Pure."""

import re
import unicodedata

_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
"""Beside format characters, what Unicode lets a comparison ignore: a case-folding ext4 or f2fs does."""


def fold(name: str) -> str:
    """``name`` as the most forgiving file system compares it: no case, no ignorable characters, no trailing dots."""
    if name.isascii():
        return name.lower().rstrip(". ") or name
    plain = _IGNORABLE.sub("", unicodedata.normalize("NFKC", _IGNORABLE.sub("", name)))
    kept = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", kept.casefold()).rstrip(". ") or name


def is_plain(path: str) -> bool:
    """Whether folding a path changes nothing but the case of its letters."""
    return path.isascii() and "./" not in path and " /" not in path and not path.endswith((".", " "))
