"""Values of options that are neither a path nor text: plugins, uploads, settings, modes, stems. Pure."""

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringfence.shell.programs import modes, names, settings
from ringfence.shell.programs.reading import EffectKind, PathAccess, PathUse
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader


def value_role(reader: "Reader", role: str, value: Word, words: tuple[int, ...], name: str) -> None:
    """Values of options that are neither a path nor text."""
    if role == "plugin" and not (not value.dynamic and value.text.startswith("no:")):
        reader.effect(EffectKind.EXECUTES, name, words, f"`{name}` loads a plugin")
    elif role == "coverage":
        kind, colon, path = value.text.partition(":")
        if value.dynamic:
            reader.paths.append(PathUse(word=words[-1], text=None, access=PathAccess.WRITE))
        elif colon and not kind.startswith("term"):
            reader.path(replace(value, text=path), words[-1], "write")
    elif role == "stem":
        names.give_stem(reader, value, words[-1])
    elif role == "setting":
        settings.read_setting(reader, value, words, name)
    elif role == "mode":
        modes.read_mode(reader, value, words)
    elif role == "upload":
        _upload(reader, value, words[-1], name)


_UPLOADS = {
    **dict.fromkeys(("-F", "--form"), re.compile(r"[^=]*=[@<]")),
    **dict.fromkeys(("--url-query", "--variable", "--data-urlencode"), re.compile(r"[^=@]*@")),
    **dict.fromkeys(("-b", "--cookie"), re.compile(r"(?!.*=)", re.DOTALL)),
}
_UPLOAD = re.compile("@")


def _upload(reader: "Reader", value: Word, index: int, name: str) -> None:
    """The files that a value names for curl to send: ``@FILE``, ``name=@FILE``, a file of cookies."""
    if name in ("-w", "--write-out"):
        for output in re.findall(r"%output\{(?:>>)?([^}]*)", value.text):
            reader.path(replace(value, text=output, tilde=False), index, "write")
    starts = _UPLOADS.get(name, _UPLOAD)
    if value.dynamic:
        if not value.prefix or starts.match(value.prefix):
            reader.path(value, index, "read")
        return
    match = starts.match(value.text)
    if match is None:
        return
    rest = value.text[match.end() :]
    for path in re.split("[,;]", rest) if name in ("-F", "--form") else [rest]:
        reader.path(replace(value, text=path.strip('"'), tilde=False, prefix=""), index, "read")
