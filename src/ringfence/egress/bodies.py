"""What a compressed request body says once its compression is undone, as the server will read it. Pure.

A pattern over bodies must not be passed by gzip. What cannot be undone is not guessed at, and no bomb goes off.
"""

import zlib
from collections.abc import Iterable

WINDOWS = {
    "gzip": (16 + zlib.MAX_WBITS,),
    "x-gzip": (16 + zlib.MAX_WBITS,),
    "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}
"""Window sizes by coding. ``deflate`` is written both with and without its wrapper."""


MAX_MEMBERS = 64


class BadBodyError(ValueError):
    """A body whose coding is unknown, or that is not in the coding it says."""


class TooLargeError(ValueError):
    """A body that is larger than allowed once it is undone."""


def decoded(body: bytes, codings: Iterable[str], *, limit: int) -> bytes | None:
    """The body with its ``Content-Encoding`` undone, ``None`` where it has none. Raises BadBodyError or TooLargeError."""
    names = [name for value in codings for word in value.split(",") if (name := word.strip().lower()) != "identity"]
    if not names or not body:
        return None
    if len(names) > 1 or names[0] not in WINDOWS:
        raise BadBodyError("a body in a coding that cannot be undone here: send it plain, or as gzip or deflate")
    for window in WINDOWS[names[0]]:
        try:
            return _inflated(body, window, limit)
        except zlib.error:
            continue
    raise BadBodyError(f"a body that is not the {names[0]} it says it is")


def _inflated(body: bytes, window: int, limit: int) -> bytes:
    """Every member of the body, one after the other."""
    found = bytearray()
    for _ in range(MAX_MEMBERS):
        member = zlib.decompressobj(window)
        found += member.decompress(body, limit + 1 - len(found))
        if len(found) > limit:
            raise TooLargeError
        if not member.eof:
            raise zlib.error("cut short")
        body = member.unused_data
        if not body:
            return bytes(found)
    raise BadBodyError(f"a body of more than {MAX_MEMBERS} compressed parts")
