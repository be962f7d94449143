"""The kernel's FUSE protocol, as much of it as a read-only skeleton of folders needs. Pure: bytes in, values out.

Requests come from the kernel, never from a box, but what is in them (names, sizes, offsets) is a box's choice.
"""

import struct
from typing import NamedTuple

(
    LOOKUP, FORGET, GETATTR, SETATTR, READLINK, SYMLINK, _, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE, STATFS,
    RELEASE,
) = range(1, 19)  # fmt: skip
INIT, OPENDIR, READDIR, RELEASEDIR, CREATE, INTERRUPT, DESTROY = 26, 27, 28, 29, 35, 36, 38
BATCH_FORGET, READDIRPLUS, RENAME2, TMPFILE = 42, 44, 45, 51

MAJOR, OUR_MINOR, OLDEST_MINOR = 7, 31, 23
BUFFER = 65536
"""Room for one request: far more than the largest that a file system without writes is sent."""
PARALLEL_DIROPS, DO_READDIRPLUS, CACHE_SYMLINKS = 1 << 18, 1 << 13, 1 << 23
WANTED = PARALLEL_DIROPS | DO_READDIRPLUS | CACHE_SYMLINKS
FOREVER = 10 * 365 * 24 * 3600
"""Seconds that an answer stays true: the skeleton of a box never changes."""

HEAD = struct.Struct("=IIQQIIIHH")
REPLY = struct.Struct("=IiQ")
_INIT_IN = struct.Struct("=IIII")
_INIT_OUT = struct.Struct("=IIIIHHIIHHI7I")
_ENTRY = struct.Struct("=QQQQII")
_ATTR = struct.Struct("=6Q10I")
_ATTR_HEAD = struct.Struct("=QII")
_READ_IN = struct.Struct("=QQIIQII")
_DIRENT = struct.Struct("=QQII")
_STATFS = struct.Struct("=5Q10I")
BLOCK = 4096


class Request(NamedTuple):
    """One request: what is asked, its number, on which node, by which process."""

    operation: int
    unique: int
    node: int
    pid: int
    body: bytes


def parse(data: bytes) -> Request | None:
    """What was read from the device; None for what is no whole request."""
    if len(data) < HEAD.size:
        return None
    length, operation, unique, node, _uid, _gid, pid, _extensions, _padding = HEAD.unpack_from(data)
    if length != len(data):
        return None
    return Request(operation, unique, node, pid, data[HEAD.size :])


def reply(unique: int, answer: bytes | int) -> bytes:
    """Bytes to write: an answer, or the errno of a refusal."""
    if isinstance(answer, int):
        return REPLY.pack(REPLY.size, -answer, unique)
    return REPLY.pack(REPLY.size + len(answer), 0, unique) + answer


def name_in(body: bytes) -> bytes | None:
    """The name of a look-up; None when it is none."""
    name, found, _rest = body.partition(b"\0")
    return name if found and name not in {b"", b".", b".."} and b"/" not in name else None


def accept(body: bytes) -> bytes | None:
    """The answer to INIT; None for a kernel that speaks another protocol."""
    if len(body) < _INIT_IN.size:
        return None
    major, minor, _ahead, offered = _INIT_IN.unpack_from(body)
    if major != MAJOR or minor < OLDEST_MINOR:
        return None
    background, congested, largest_write, grain = 12, 9, BLOCK, 1
    return _INIT_OUT.pack(
        MAJOR,
        min(minor, OUR_MINOR),
        0,
        WANTED & offered,
        background,
        congested,
        largest_write,
        grain,
        0,
        0,
        0,
        *bytes(7),
    )


def attributes(node: int, mode: int, *, size: int, links: int, owner: tuple[int, int], time: int) -> bytes:
    """``struct fuse_attr``; ``time`` in nanoseconds."""
    seconds, rest = divmod(time, 10**9)
    return _ATTR.pack(node, size, 0, *(seconds,) * 3, *(rest,) * 3, mode, links, *owner, 0, BLOCK, 0)


def entry(node: int, attr: bytes) -> bytes:
    """A name that is there, and stays."""
    return _ENTRY.pack(node, 0, FOREVER, FOREVER, 0, 0) + attr


ABSENT = _ENTRY.pack(0, 0, FOREVER, 0, 0, 0) + bytes(_ATTR.size)
"""A name that is not there; the kernel remembers and does not ask again."""
STATISTICS = _STATFS.pack(8192, 8192, 8192, 0, 0, BLOCK, 255, BLOCK, *bytes(7))


def attribute_answer(attr: bytes) -> bytes:
    """The answer to GETATTR."""
    return _ATTR_HEAD.pack(FOREVER, 0, 0) + attr


def reading(body: bytes) -> tuple[int, int] | None:
    """Offset and size of a READDIR; None when it is none."""
    if len(body) < _READ_IN.size:
        return None
    _handle, offset, size = _READ_IN.unpack_from(body)[:3]
    return offset, size


def listed(name: bytes, node: int, mode: int, offset: int, plus: bytes = b"") -> bytes:
    """One line of a folder's listing; ``plus`` is its entry, for READDIRPLUS."""
    line = plus + _DIRENT.pack(node, offset, len(name), mode >> 12) + name
    return line + bytes(-len(line) % 8)


NO_ENTRY = bytes(_ENTRY.size + _ATTR.size)
"""In a READDIRPLUS: nothing is told about this one."""
