"""Untrusted text as a person may see it: control, invisible and direction-changing characters are spelled out."""

_VISIBLE_SPACES = frozenset(" \n\t")


def escape(text: str, *, keep: frozenset[str] = _VISIBLE_SPACES) -> str:
    r"""The text with every character that a terminal would obey or hide written as ``\xNN`` or ``\uNNNN``.

    Newline and tab stay unless ``keep`` says otherwise; other spaces than U+0020 are spelled out.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if character in keep or character.isprintable() else _spell(character) for character in text
    )


def one_line(text: str) -> str:
    """The text as exactly one line: a name with a newline in it must not look like a line of ours."""
    return escape(text, keep=frozenset(" "))


def _spell(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
