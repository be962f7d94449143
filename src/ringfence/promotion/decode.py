"""The texts that a blob holds: itself, and what is packed or encoded inside it, within fixed caps. Pure."""

import base64
import binascii
import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import re2

CAP = 8 * 1024 * 1024
"""Bytes that all layers of one blob may come to; what lies beyond is not read, and said so by ``TooMuch``."""
_DEPTH = 4
# RE2, because these run over whole blobs: a backtracking engine could be stalled by a run of blanks or quotes.
_BASE64 = re2.compile(rb"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re2.compile(rb"(?:[0-9a-fA-F]{2}){16,}")
_BETWEEN = rb"[ \t]*[+.,]?[ \t]*\\?(?:\r?\n)?[ \t]*[rbfu]?"
_JOINED = re2.compile(rb'"' + _BETWEEN + rb"\"|'" + _BETWEEN + rb"'")
_ESCAPED = re2.compile(rb"\\x([0-9a-fA-F]{2})|\\u00([0-9a-fA-F]{2})|%([0-9a-fA-F]{2})")


class TooMuch(ValueError):
    """More is packed inside than is read."""


def layers(raw: bytes) -> Iterator[tuple[bytes, str]]:
    """The bytes, then each layer inside them with the word for how it was wrapped. Raises TooMuch past the cap."""
    budget = [CAP]
    yield raw, ""
    yield from _inside(raw, budget, 0)


def _inside(raw: bytes, budget: list[int], depth: int) -> Iterator[tuple[bytes, str]]:
    if depth >= _DEPTH:
        return
    for inner, how in _unwrapped(raw):
        budget[0] -= len(inner)
        if budget[0] < 0:
            raise TooMuch(f"more than {CAP} bytes are packed inside")
        yield inner, how
        yield from _inside(inner, budget, depth + 1)


def _unwrapped(raw: bytes) -> Iterator[tuple[bytes, str]]:
    packed = list(_unpacked(raw))
    if packed:
        yield from packed
        return
    wide = _wide(raw)
    if wide is not None:
        yield wide, "UTF-16"
        return
    if b"\0" in raw[:8192]:
        return
    yield from _encoded(raw)


def _unpacked(raw: bytes) -> Iterator[tuple[bytes, str]]:
    try:
        if raw.startswith(b"\x1f\x8b"):
            yield zlib.decompressobj(31).decompress(raw, CAP), "gzip"
        elif raw.startswith(b"BZh"):
            yield bz2.BZ2Decompressor().decompress(raw, CAP), "bzip2"
        elif raw.startswith(b"\xfd7zXZ\0"):
            yield lzma.LZMADecompressor(memlimit=64 * 1024 * 1024).decompress(raw, CAP), "xz"
        elif raw.startswith(b"PK\x03\x04"):
            yield from _zip_members(raw)
        elif raw[257:262] == b"ustar":
            yield from _tar_members(raw)
    except (
        OSError,
        ValueError,
        EOFError,
        lzma.LZMAError,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
        RuntimeError,
    ):
        return


def _zip_members(raw: bytes) -> Iterator[tuple[bytes, str]]:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in archive.infolist()[:2000]:
            if not info.is_dir():
                with archive.open(info) as member:
                    yield member.read(CAP + 1), "zip"


def _tar_members(raw: bytes) -> Iterator[tuple[bytes, str]]:
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        for count, info in enumerate(archive):
            member = archive.extractfile(info) if info.isreg() and count < 2000 else None
            if member is not None:
                yield member.read(CAP + 1), "tar"


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
    decoded = [inner for match in _BASE64.finditer(raw) if (inner := _base64(match.group())) is not None]
    if decoded:
        yield b"\n".join(decoded), "base64"
    hexed = [inner for match in _HEX.finditer(raw) if _is_text(inner := binascii.unhexlify(match.group()))]
    if hexed:
        yield b"\n".join(hexed), "hex"


def _unescape(match: Any) -> bytes:
    return bytes([int(match.group(1) or match.group(2) or match.group(3), 16)])


def _base64(run: bytes) -> bytes | None:
    bare = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        inner = base64.b64decode(bare + b"=" * (-len(bare) % 4))
    except ValueError:
        return None
    return inner if _is_text(inner) or inner[:3] in {b"\x1f\x8b\x08", b"PK\x03", b"BZh"} else None


def _is_text(raw: bytes) -> bool:
    return len(raw) >= 12 and all(32 <= byte < 127 or byte in {9, 10, 13} for byte in raw)
