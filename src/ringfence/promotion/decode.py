"""The texts that a blob holds: itself, and what is packed or encoded inside it, within fixed caps. Pure."""

import base64
import binascii
import bz2
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import re2

CAP = 8 * 1024 * 1024
"""Bytes that all layers of one blob may come to; what lies beyond is not read, and said so by ``Unread``."""
BROKEN = (
    OSError,
    ValueError,
    EOFError,
    LookupError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    tarfile.TarError,
)
"""What Python's readers of archives raise for damaged ones, and for what they cannot read."""
_DEPTH = 4
_GZIP, _XZ, _ZIP = b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"PK\3\4"
_BZIP2 = re2.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")
_STARTS = (
    (_GZIP, "gzip"),
    (_XZ, "xz"),
    (_ZIP, "zip"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\7", "rar"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"LZIP\1", "lzip"),
    (b"\x1f\x9d\x90", "compress"),
)
_MEMBERS = 2000
# RE2, because these run over whole blobs: a backtracking engine could be stalled by a run of blanks or quotes.
_BASE64 = re2.compile(rb"[A-Za-z0-9+/_-]{20,}={0,2}")
_WRAPPED = re2.compile(rb"(?:[A-Za-z0-9+/_-]{20,}\r?\n[ \t]*)+[A-Za-z0-9+/_-]+={0,2}")
_HEX = re2.compile(rb"(?:[0-9a-fA-F]{2}){16,}")
_BETWEEN = rb"[ \t]*[+.,]?[ \t]*\\?(?:\r?\n)?[ \t]*[rbfu]?"
_JOINED = re2.compile(rb'"' + _BETWEEN + rb"\"|'" + _BETWEEN + rb"'")
_ESCAPED = re2.compile(rb"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})")


class Unread(Exception):
    """Something is packed inside that was not read: too much, too deep, damaged, encrypted, or of another kind."""


def layers(raw: bytes) -> Iterator[tuple[bytes, str]]:
    """The bytes, then each layer inside them with the word for how it was wrapped. Raises Unread where one is left out."""
    budget = [CAP]
    yield raw, ""
    yield from _inside(raw, budget, 0)


def _inside(raw: bytes, budget: list[int], depth: int) -> Iterator[tuple[bytes, str]]:
    if depth >= _DEPTH:
        if _packing(raw):
            raise Unread(f"packed more than {_DEPTH} deep")
        return
    for inner, how in _unwrapped(raw):
        budget[0] -= len(inner)
        if budget[0] < 0:
            raise Unread(f"more than {CAP} bytes are packed inside")
        yield inner, how
        yield from _inside(inner, budget, depth + 1)


def _unwrapped(raw: bytes) -> Iterator[tuple[bytes, str]]:
    how = _packing(raw)
    if how:
        yield from _unpacked(raw, how)
        if how == "zip" and not raw.startswith(_ZIP):
            yield from _encoded(raw)  # what stands before the archive
        return
    wide = _wide(raw)
    if wide is not None:
        yield wide, "UTF-16"
        return
    if b"\0" in raw[:8192]:
        return
    yield from _encoded(raw)


def _unpacked(raw: bytes, how: str) -> Iterator[tuple[bytes, str]]:
    read = _READERS.get(how)
    if read is None:
        raise Unread(f"packed as {how}, which is not read")
    try:
        for inner in read(raw):
            yield inner, how
    except BROKEN:
        raise Unread(f"packed as {how}, and damaged or encrypted") from None


def _packing(raw: bytes) -> str:
    """How the bytes are packed, by what they begin with; a zip archive also by its end, since it may have a foreword."""
    for start, how in _STARTS:
        if raw.startswith(start):
            return how
    if _BZIP2.match(raw):
        return "bzip2"
    if raw[257:262] == b"ustar":
        return "tar"
    return "zip" if b"PK\5\6" in raw[-65557:] and zipfile.is_zipfile(io.BytesIO(raw)) else ""


def _streams(begin: Callable[[], Any], start: bytes) -> Callable[[bytes], Iterator[bytes]]:
    """Reads compressed streams that follow one another, as the tools for them do."""

    def read(raw: bytes) -> Iterator[bytes]:
        room = CAP + 1
        count = 0
        while room > 0 and raw.startswith(start):
            count += 1
            if count > _MEMBERS:
                raise Unread(f"more than {_MEMBERS} compressed streams")
            stream = begin()
            inner = stream.decompress(raw, room)
            room -= len(inner)
            yield inner
            if not stream.eof and room > 0:
                raise Unread("a compressed stream without its end")
            raw = stream.unused_data
        if raw:
            yield raw  # what stands behind the last stream

    return read


def _zip_members(raw: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in _first(archive.infolist()):
            with archive.open(info) as member:
                yield member.read(CAP + 1)


def _tar_members(raw: bytes) -> Iterator[bytes]:
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for info in _first(archive):
            member = archive.extractfile(info) if info.isreg() else None
            if member is not None:
                yield member.read(CAP + 1)


def _first(members: Iterable[Any]) -> Iterator[Any]:
    for count, member in enumerate(members):
        if count == _MEMBERS:
            raise Unread(f"more than {_MEMBERS} members")
        yield member


_READERS = {
    "gzip": _streams(lambda: zlib.decompressobj(31), _GZIP),
    "bzip2": _streams(bz2.BZ2Decompressor, b"BZh"),
    "xz": _streams(lambda: lzma.LZMADecompressor(memlimit=64 * 1024 * 1024), _XZ),
    "zip": _zip_members,
    "tar": _tar_members,
}


def _wide(raw: bytes) -> bytes | None:
    """UTF-16 text, with or without a mark: every second byte of ASCII text is zero."""
    sample = raw[:512]
    if len(sample) < 8 or sample.count(b"\0") * 5 < len(sample) * 2:
        return None
    encoding = "utf-16-be" if sample[0] == 0 or sample.startswith(b"\xfe\xff") else "utf-16-le"
    return raw.decode(encoding, "replace").encode("utf-8")


def _encoded(raw: bytes) -> Iterator[tuple[bytes, str]]:
    joined = _JOINED.sub(b"", raw)
    if joined != raw:
        yield joined, "joined literals"
    plain = _ESCAPED.sub(_unescape, raw)
    if plain != raw:
        yield plain, "escapes"
    decoded = [*_base64_lines(raw)]
    texts = [inner for inner in decoded if not _packing(inner)]
    if texts:
        yield b"\n".join(texts), "base64"
    for inner in decoded:
        if _packing(inner):
            yield inner, "base64"
    hexed = [inner for match in _HEX.finditer(raw) if _is_text(inner := binascii.unhexlify(match.group()))]
    if hexed:
        yield b"\n".join(hexed), "hex"


def _unescape(match: Any) -> bytes:
    return bytes([int(match.group(1) or match.group(2) or match.group(3), 16)])


def _base64_lines(raw: bytes) -> Iterator[bytes]:
    """What stands there in base64: line by line, and put together where it is wrapped over lines."""
    wrapped = [match.span() for match in _WRAPPED.finditer(raw)]
    for begin, end in wrapped:
        inner = _base64(b"".join(raw[begin:end].split()))
        if inner is not None:
            yield inner
    for match in _BASE64.finditer(raw):
        inner = _base64(match.group())
        while wrapped and wrapped[0][1] <= match.start():
            wrapped.pop(0)
        is_part = bool(wrapped) and wrapped[0][0] <= match.start()
        if inner is not None and not (is_part and _packing(inner)):  # the whole was looked at
            yield inner


def _base64(run: bytes) -> bytes | None:
    bare = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        inner = base64.b64decode(bare + b"=" * (-len(bare) % 4))
    except ValueError:
        return None
    return inner if _is_text(inner) or _packing(inner) else None


def _is_text(raw: bytes) -> bool:
    return len(raw) >= 12 and all(32 <= byte < 127 or byte in {9, 10, 13} for byte in raw)
