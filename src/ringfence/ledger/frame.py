"""How records stand in a segment file: header, record lines, commit lines, and the zeros kept ahead. Pure.

A segment is text lines and then NUL bytes. A group of records is durable together: it ends with a commit line that
names the size of the log and the hash of the group's last record. What follows the last commit line was never
acknowledged.
"""

import enum
import hashlib
import re
from dataclasses import dataclass

MAX_RECORD = 65_535
"""Bytes of one stored record with its line feed: what a C2SP entry bundle can hold."""
MAX_GROUP = 8 << 20
"""Bytes of one group, and so of what a crash can leave torn."""
MAX_LINES = 65_536
"""Records of one group."""
NO_HASH = "0" * 64
VERSION = 1

_HEADER = re.compile(
    rb"ringfence-ledger 1 ([0-9a-f]{32}) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}) (-|[0-9a-f]{64}(?:,[0-9a-f]{64})*)\n"
)
_COMMIT = re.compile(rb"= ([1-9][0-9]{0,15}) ([0-9a-f]{64})\n")
_ENDING = re.compile(rb',"prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,15}),"time":[0-9]{16},"v":1\}\n')
_RUN = re.compile(rb"[^\x00]+")
SUFFIX = len(b'1234567890123456,"v":1}\n')
"""Bytes after ``"time":`` in every record: 16 digits, the version, the line feed."""
TORN_RUN, SECTOR = 16, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a segment: which log, its first record, the hash before it, and the tree of all before."""

    log: str
    first: int
    prev: str
    nodes: tuple[str, ...]

    def line(self) -> bytes:
        """The stored line."""
        nodes = ",".join(self.nodes) or "-"
        return f"ringfence-ledger 1 {self.log} {self.first} {self.prev} {nodes}\n".encode()


def parse_header(line: bytes) -> Header | None:
    """The header a line holds, or None where it is none or does not fit itself."""
    match = _HEADER.fullmatch(line)
    if match is None:
        return None
    log, first, prev, nodes = (part.decode() for part in match.groups())
    found = () if nodes == "-" else tuple(nodes.split(","))
    if int(first).bit_count() != len(found) or (first == "0") != (prev == NO_HASH):
        return None
    return Header(log=log, first=int(first), prev=prev, nodes=found)


def commit_line(size: int, last: str) -> bytes:
    """The line that ends a group: records in the log so far, hash of the last one."""
    return b"= %d %s\n" % (size, last.encode())


def parse_commit(line: bytes) -> tuple[int, str] | None:
    """Size and hash of a commit line, or None."""
    match = _COMMIT.fullmatch(line)
    return None if match is None else (int(match[1]), match[2].decode())


def ends(line: bytes) -> tuple[str, int] | None:
    """The hash that a record names and its number, by the bytes at its end; None where they are not those of a record."""
    start = line.rfind(b',"prev":"', -160)
    match = _ENDING.fullmatch(line, start) if start >= 0 else None
    return None if match is None else (match[1].decode(), int(match[2]))


def link(prev: str, seq: int) -> bytes:
    """The bytes of a record that bind it to its place, up to its time."""
    return b',"prev":"%s","seq":%d,"time":' % (prev.encode(), seq)


def time_of(line: bytes) -> int:
    """The time of a stored record, by its place in the line."""
    return int(line[-SUFFIX : 16 - SUFFIX])


def complete(prepared: bytes, prev: str, seq: int, time: int) -> bytes:
    """The stored record: what was prepared, its place in the chain, its time, the version, a line feed."""
    return b'%s,"prev":"%s","seq":%d,"time":%d,"v":1}\n' % (prepared, prev.encode(), seq, time)


def record_hash(line: bytes) -> str:
    """The hash of a stored record: its RFC 6962 leaf hash, in hexadecimal."""
    return hashlib.sha256(b"\x00" + line).hexdigest()


def sha256(data: bytes) -> str:
    """Plain SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def segment_name(first: int) -> str:
    """File name of the segment that starts with record ``first``."""
    return f"{first:020d}.seg"


class Tail(enum.Enum):
    """What follows the last commit line."""

    CLEAN = "clean"
    TORN = "torn"
    FOREIGN = "foreign"


def classify_tail(tail: bytes, start: int = 0) -> Tail:
    """Tell a write that a crash cut short from bytes that no write of ours can leave.

    A torn group starts right after the last commit line, or in whole sectors behind zeros where a power loss kept
    later sectors only: its runs of text are long. A second commit line proves that the first group had been
    acknowledged, and a commit line with no zeros before it proves that nothing was torn: both are FOREIGN.
    ``start`` is the tail's offset in the file: the end of a group may fill only the first bytes of a sector.
    """
    text = tail.rstrip(b"\x00")
    if not text:
        return Tail.CLEAN
    commits = [match for match in _COMMIT.finditer(text) if match.start() == 0 or text[match.start() - 1] in b"\n\x00"]
    if (
        len(text) > MAX_GROUP
        or len(commits) > 1
        or (commits and (commits[0].end() != len(text) or 0 not in text[: commits[0].start()]))
    ):
        return Tail.FOREIGN
    for run in _RUN.finditer(text):
        began = run.start() == 0 and text[:1] == b"{"
        ended = run.end() == len(text) and text[-1:] == b"\n" and (start + run.start()) % SECTOR == 0
        if run.end() - run.start() < TORN_RUN and not began and not ended:
            return Tail.FOREIGN
    return Tail.TORN
