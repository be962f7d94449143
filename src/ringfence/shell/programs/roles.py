"""Words that name a revision, a remote or a host: partly a path, partly a place on the network. Pure."""

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec.structs import replace

from ringfence.shell.programs.reading import HostUse
from ringfence.shell.syntax import Word

if TYPE_CHECKING:
    from ringfence.shell.programs.read import Reader

_URL = re.compile(r"(?:([a-z][a-z0-9+.-]*)://)?(?:[^@/?#]*@)?(\[[0-9a-fA-F:.]+\]|[^:/?#]+)?(?::(\d+))?", re.IGNORECASE)
_FILE_URL = re.compile(r"file:(?://(?:localhost(?=/)|127\.0\.0\.1(?=/))?)?", re.IGNORECASE)
_PORTS = {"https": 443, "http": 80, "ftp": 21, "ssh": 22, "git": 9418, "ws": 80, "wss": 443, "ftps": 990, "sftp": 22, "scp": 22}  # fmt: skip
_MAGIC = re.compile(r":(?:[0-3]:|\([^)]*\)|[/!^]+)?")


def revision(reader: "Reader", word: Word, index: int) -> None:
    """A git revision, ``revision:path``, or a path."""
    reader.path(word, index, "maybe")
    if word.dynamic or ":" not in word.text:
        return
    # `:path` and `:2:path` are of the index; `:!path` and `:(exclude)path` are left out.
    magic = _MAGIC.match(word.text)
    rest = word.text[magic.end() :] if magic else word.text.split(":", 1)[1]
    if not magic or not re.search("[!^]|exclude", magic[0]):
        reader.path(replace(word, text=rest or "."), index, "maybe")


def remote(reader: "Reader", word: Word, index: int) -> None:
    """A remote of git or a ``host:path``."""
    match = re.match(r"(?:[\w+.-]+://)?(?:[^@/\s]*@)?([\w.-]+)(?::(\d+))?[:/]", word.text)
    if word.dynamic:
        reader.hosts.append(HostUse(word=index, host=None, port=None))
    elif match and (":" in word.text):
        reader.hosts.append(HostUse(word=index, host=match[1], port=int(match[2]) if match[2] else None, url=word.text))
    else:
        reader.path(word, index, "maybe")


def host(reader: "Reader", word: Word, index: int) -> None:
    """A host that is connected to."""
    if (local := local_file(word)) is not None:
        # Where something is sent, it is written.
        reader.path(local, index, "read")
        reader.path(local, index, "changed")
        return
    use = host_of(word)
    reader.hosts.append(HostUse(word=index, host=use[0], port=use[1], url=None if word.dynamic else word.text))


def host_of(word: Word) -> tuple[str | None, int | None]:
    """Host and port of a URL or ``host[:port]`` word; None where it is not known before it runs."""
    text = word.prefix if word.dynamic else word.text
    match = _URL.match(text)
    if not match or (word.dynamic and text[match.end() :][:1] not in ("/", "?", "#")):
        return None, None
    host = (match[2] or "").strip("[]").lower().rstrip(".") or None
    if host and re.search(r"[{}\[\]*,\\%]", host):
        return None, None
    scheme = (match[1] or "http").lower()
    return host, int(match[3]) if match[3] else _PORTS.get(scheme)


def local_file(word: Word) -> Word | None:
    """The path that a ``file:`` URL means; None for any other word."""
    match = _FILE_URL.match(word.prefix if word.dynamic else word.text)
    if match is None:
        return None
    path = unquote(word.text[match.end() :])
    unknown = word.dynamic or re.search(r"[{}\[\]]", path)
    return replace(word, text=path, dynamic=bool(unknown), glob=False, tilde=False, values=(), prefix="")
