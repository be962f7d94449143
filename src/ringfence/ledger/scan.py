"""Reading segment files: which there are, their headers, and their records group by group. Checks framing, not proofs."""

import errno
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import msgspec

from ringfence.ledger import canonical
from ringfence.ledger.files import open_packed, open_plain
from ringfence.ledger.frame import MAX_GROUP, MAX_LINES, MAX_RECORD, Header, parse_commit, parse_header
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError

_NAME = re.compile(r"([0-9]{20})\.seg(\.gz)?")
_TURNS = 5
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment on disk, plain or archived (gzip)."""

    path: str
    first: int

    @property
    def archived(self) -> bool:
        """Whether it is sealed and compressed."""
        return self.path.endswith(".gz")

    def open(self) -> BinaryIO:
        """Its bytes, uncompressed. Raises OSError; also while it is read LedgerError ``ledger-altered``."""
        if self.archived:
            return open_packed(self.path)
        try:
            return open_plain(self.path)
        except FileNotFoundError:  # it was archived since the folder was listed
            return open_packed(f"{self.path}.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One record as stored, decoded, with its place."""

    seq: int
    line: bytes
    value: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Records that became durable together. ``end`` is the offset after the commit line."""

    lines: tuple[bytes, ...]
    size: int
    last: str
    end: int


def segments(directory: str) -> list[SegmentFile]:
    """The ledger's segment files in order. Where a plain and an archived one exist, the plain one counts."""
    folder = f"{directory}/segments"
    found: dict[int, SegmentFile] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:  # there is no such folder
            return []
        raise
    for name in names:
        match = _NAME.fullmatch(name)
        if match and int(match[1]) not in found:
            found[int(match[1])] = SegmentFile(path=f"{folder}/{name}", first=int(match[1]))
    return [found[first] for first in sorted(found)]


def undisturbed(directory: str, read: Callable[[], _Found]) -> _Found:
    """What ``read`` finds where no purge removed the beginning of the log meanwhile: then it reads again."""
    for _ in range(_TURNS):
        begins = [file.first for file in segments(directory)[:1]]
        try:
            found = read()
        except (OSError, LedgerError):
            if begins == [file.first for file in segments(directory)[:1]]:
                raise
        else:
            if begins == [file.first for file in segments(directory)[:1]]:
                return found
    return read()


def header(segment: SegmentFile) -> Header:
    """The segment's header. Raises LedgerError ``ledger-altered`` where it is none."""
    with segment.open() as stream:
        found = parse_header(stream.readline(8192))
    if found is None:
        raise LedgerError("ledger-altered", "the first line is not a segment header", where=f"{segment.path}:1")
    return found


def bounded_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Its lines, none longer than a record can be: of a longer one, pieces."""
    return iter(functools.partial(stream.readline, MAX_RECORD), b"")


def rest_of(stream: BinaryIO) -> bytes | None:
    """All that is left, where it is not more than a group and zeros; else None. Never much in memory."""
    rest = b""
    while block := stream.read(1 << 20):
        if len(rest) < MAX_GROUP:
            rest += block
        elif block.strip(b"\x00"):
            return None
    return rest


def groups(stream: BinaryIO, *, offset: int) -> Iterator[Group]:
    """The committed groups from ``offset`` (after the header) on; ends quietly at the first line that is neither."""
    stream.seek(offset)
    lines: list[bytes] = []
    length = 0
    for line in bounded_lines(stream):
        offset += len(line)
        length += len(line)
        if (
            line[-1] != 10 or 0 in line or length > MAX_GROUP or len(lines) > MAX_LINES
        ):  # a crash can leave zeros in a record
            return
        first = line[:1]
        if first == b"{":
            lines.append(line)
        elif first == b"=":
            commit = parse_commit(line)
            if commit is None:
                return
            yield Group(lines=tuple(lines), size=commit[0], last=commit[1], end=offset)
            lines, length = [], 0
        else:
            return


def records(directory: str, start: int = 0) -> Iterator[Stored]:
    """Committed records from ``start`` on, in order. Reads only segments that can hold them."""
    files = segments(directory)
    for position, segment in enumerate(files):
        following = files[position + 1].first if position + 1 < len(files) else None
        if following is not None and following <= start:
            continue
        with segment.open() as stream:
            yield from _records(stream, start, segment.path)


def records_of(segment: SegmentFile) -> Iterator[Stored]:
    """The records of one segment."""
    with segment.open() as stream:
        yield from _records(stream, segment.first, segment.path)


def _records(stream: BinaryIO, start: int, path: str) -> Iterator[Stored]:
    head = stream.readline(8192)
    found = parse_header(head)
    if found is None:
        raise LedgerError("ledger-altered", "the first line is not a segment header", where=f"{path}:1")
    seq = found.first
    for group in groups(stream, offset=len(head)):
        for line in group.lines:
            if seq >= start:
                yield Stored(seq=seq, line=line, value=value_of(line, path))
            seq += 1


def lines(directory: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Number and stored bytes of every committed record of the segments from the one that holds ``start`` on, not decoded."""
    files = segments(directory)
    ended = {file.first for file, following in itertools.pairwise(files) if following.first <= start}
    for file in files:
        if file.first in ended:
            continue
        with file.open() as stream:
            head = stream.readline(8192)
            seq = file.first
            for group in groups(stream, offset=len(head)):
                for line in group.lines:
                    yield seq, line
                    seq += 1


def value_of(line: bytes, where: str) -> dict[str, Json]:
    """A record's fields, with kind, number and time among them. Raises LedgerError ``ledger-altered`` where it is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError("ledger-altered", "a record is not JSON", where=where) from error
    if not isinstance(value, dict) or canonical.is_deeper(value, line):
        raise LedgerError("ledger-altered", "a record is not a JSON object, or too deep", where=where)
    if (value.get("kind").__class__, value.get("seq").__class__, value.get("time").__class__) != (str, int, int):
        raise LedgerError("ledger-altered", "a record has no kind, number or time", where=where)
    return value
