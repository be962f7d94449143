"""Names of files that no word is by itself: what options and operands make together. Pure."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace

from ringfence.shell.programs.reading import PathAccess, PathUse
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_VERSION = re.compile(r"v?\d[\d.]*")


def joined_path(word: Word) -> str:
    """The value joined to an option (``--out=.npmrc``, ``-o../x``), where it looks like a path; else empty."""
    text = word.text
    if word.dynamic or not text.startswith("-"):
        return ""
    if "=" in text:
        value = text.partition("=")[2]
        looks = "/" in value or "." in value or value.startswith("~")
        return value if looks and not _VERSION.fullmatch(value) else ""
    value = text[2:]
    if value.startswith((".", "~", "/")):
        return value
    return value[value.find("/") :] if "/" in value else ""


def backups(paths: Sequence[PathUse], suffix: str) -> list[PathUse]:
    """Where the backups of what is written go."""
    found = []
    for path in paths:
        if path.text is None or path.access is not PathAccess.WRITE:
            continue
        folder, slash, base = path.text.rpartition("/")
        name = suffix.replace("*", base) if "*" in suffix else base + suffix
        found.append(replace(path, text=folder + slash + name, maybe=True))
    return found


def unpacked(paths: Sequence[PathUse]) -> list[PathUse]:
    """The names without their last ending, as unpacking makes them."""
    written = [path for path in paths if path.text and path.access is PathAccess.WRITE]
    return [
        replace(path, text=(path.text or "").rpartition(".")[0], maybe=True)
        for path in written
        if "." in (path.text or "").rpartition("/")[2][1:] and not path.glob
    ]


def into_folders(reader: "Reader") -> list[PathUse]:
    """What ``cp``, ``mv``, ``ln`` and ``install`` write where their destination is a folder: each source's own name in it."""
    options = {option.name for option in reader.options}
    if options & {"-T", "--no-target-directory"}:
        return []
    places = {option.words[-1] for option in reader.options if option.name in reader.table.target}
    if len(places) > 1:
        return []  # refused by the program
    places = places or set(reader.operands[-1:])
    folders = [path for path in reader.paths if path.word in places and path.text and not (path.glob or path.tilde)]
    found = []
    for folder in folders:
        # A whole folder that becomes a hidden one brings everything that may lie below it.
        name = (folder.text or "").rstrip("/").rpartition("/")[2]
        if (reader.recursive or reader.program == "mv") and name.startswith(".") and name.strip("."):
            found.append(replace(folder, access=PathAccess.DELETE))
    seen: set[str | None] = set()
    for path in reader.paths:
        base = (path.text or "").rstrip("/").rpartition("/")[2]
        if path.word in places or path.text in seen or base in {"", ".", ".."}:
            continue
        seen.add(path.text)
        for folder in folders:
            text = path.text if path.glob else f"{(folder.text or '').rstrip('/') or '/'}/{base}"
            access = PathAccess.DELETE if base.startswith(".") and reader.recursive else PathAccess.WRITE
            found.append(replace(path, text=text, access=access, into=folder.text, tilde=False))
    return found


def read_link(reader: "Reader") -> None:
    """``ln``: what a relative symbolic link names is seen from where the link lies."""
    reader.all_words()
    options = {option.name for option in reader.options}
    places = [option.value for option in reader.options if option.name in reader.table.target]
    if not options & {"-s", "--symbolic"} or options & {"-r", "--relative"} or len(places) > 1:
        return
    sources = reader.operands
    if not places and len(sources) > 1:
        sources = sources[:-1]
        last = reader.words[reader.operands[-1]]
        places = [None if last.dynamic else last.text]
    moved = []
    for path in reader.paths:
        if path.word not in sources or path.text is None or path.text.startswith("/") or path.tilde or not places:
            moved.append(path)
            continue
        for place in places:
            if place is None:
                moved.append(replace(path, text=None))
                continue
            # The link lies at this place, or in the folder that it is.
            folder = place.rstrip("/").rpartition("/")[0]
            moved += [replace(path, text=f"{base}/{path.text}" if base else path.text) for base in (folder, place)]
    reader.paths = moved


def give_stem(reader: "Reader", word: Word, index: int) -> None:
    """The beginning of names that the program makes: of a hidden one, any that begins so may be meant."""
    base = word.text.rpartition("/")[2]
    if not word.dynamic and base.startswith("."):
        word = replace(word, dynamic=True, glob=False, values=(), prefix=word.text)
    reader.path(word, index, "write")


_NAMED_OTHERWISE = frozenset({"-O", "--output-document", "--spider", "-h", "--help", "-V", "--version"})


def give_download(reader: "Reader", word: Word, index: int) -> None:
    """The file that is made of what a URL leads to, under the URL's own last name, where no option names it."""
    if {option.name for option in reader.options} & _NAMED_OTHERWISE:
        return
    name = unquote(re.split(r"[?#]", word.text)[0].rpartition("/")[2])
    if word.dynamic:
        reader.path(replace(word, text=""), index, "write")
    elif "/" in word.text.partition("://")[2] and name not in ("", ".", ".."):
        reader.path(replace(word, text=name, tilde=False, glob=False), index, "write")
