"""One pass over all segments: chain, tree, and in strict depth the canonical form of every record.

Streams line by line; memory does not grow with the log. The first fault ends the pass.
"""

import contextlib
import gc
import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import msgspec

from ringfence.ledger import canonical, diagnose, envelope, frame, scan
from ringfence.ledger.shapes import Shapes, is_text, plain
from ringfence.ledger.tree import Range
from ringfence.ledger.verdict import Fault, Verdict
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError

CHAIN, TREE, STRICT = "chain", "tree", "strict"
MEMBERS = frozenset({"body", "call", "kind", "mission", "parent", "personal", "prev", "seq", "time", "v"})
REQUIRED = frozenset({"body", "kind", "prev", "seq", "time", "v"})
_KEYED = tuple(b'"kind":"%s"' % kind.value.encode() for kind in envelope.BARE)
_ANCHORED = b'"kind":"%s"' % EntryKind.ANCHORED.value.encode()
_RECEIPT = b'"receipt":'


class _FloatFound(Exception):  # or another thing that canonical records do not have
    pass


def _no_float(text: str) -> float:
    raise _FloatFound(text)


_decode_lines = msgspec.json.Decoder(float_hook=_no_float).decode_lines
_encode_lines = msgspec.json.Encoder(order="deterministic").encode_lines
_NINES = re.compile(rb"9[0-9]{15}")
_DIGITS = bytes(48 if 48 <= code <= 57 else 32 for code in range(256))
_CHUNK = 32
"""Records decoded at a time: few enough that their values stay in the processor's cache."""
_SEVENTEEN = b"0" * 17
_TEXTS = ("kind", "call", "mission", "parent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one pass is to do. ``live``: a writer is at work, so the last tail is in flight."""

    directory: str
    depth: str
    wanted: Collection[int]
    """Sizes whose roots are needed."""
    live: bool


@dataclass(slots=True, kw_only=True)
class Walked:
    """What the pass found: the head, the roots that were asked for, and the records about keys and retention."""

    log: str = ""
    first: int = 0
    size: int = 0
    prev: str = frame.NO_HASH
    before: Range = field(default_factory=Range)
    """The tree of everything before ``first``."""
    tree: Range = field(default_factory=Range)
    roots: dict[int, bytes] = field(default_factory=dict)
    noted: list[tuple[int, dict[str, Json]]] = field(default_factory=list)
    shapes: Shapes = field(default_factory=Shapes)
    any_text: Shapes = field(default_factory=lambda: Shapes(any_text=True))
    torn: str = ""
    """Where a write that was never acknowledged is cut short, or empty."""


def walk(task: Task) -> Walked:
    """Check every segment in order. Raises Fault."""
    collecting = gc.isenabled()
    gc.disable()  # decoded records hold no cycles, and looking for some would be a third of the strict pass
    try:
        return _walk(task)
    finally:
        if collecting:
            gc.enable()


def _walk(task: Task) -> Walked:
    files = scan.segments(task.directory)
    walked = Walked()
    for position, file in enumerate(files):
        try:
            with file.open() as stream:
                _header(walked, file, stream, begun=position > 0)
                walked.roots[walked.size] = walked.tree.root()
                start, tail = _records(walked, task, file, stream)
        except LedgerError as error:
            raise Fault(Verdict.ALTERED, file.path, f"the segment cannot be read: {error.what}") from error
        _tail(walked, file, frame.classify_tail(tail, start), last=position + 1 == len(files), live=task.live)
    return walked


def _header(walked: Walked, file: scan.SegmentFile, stream: BinaryIO, *, begun: bool) -> None:
    line = stream.readline(8192)
    header = frame.parse_header(line)
    place = f"{file.path}:1"
    if header is None:
        raise Fault(Verdict.ALTERED, place, "the first line is not a segment header")
    if not begun:
        before = [bytes.fromhex(node) for node in header.nodes]
        walked.log, walked.first, walked.size, walked.prev = header.log, header.first, header.first, header.prev
        walked.before, walked.tree = Range(header.first, before), Range(header.first, before)
    if header.first != file.first:
        raise Fault(Verdict.REORDERED, place, f"the file holds the segment of record {header.first}")
    if header.first > walked.size and header.log == walked.log:
        raise Fault(Verdict.GAP, place, f"records {walked.size} to {header.first - 1} are missing")
    nodes = tuple(node.hex() for node in walked.tree.nodes) if walked.tree.size == walked.size else header.nodes
    if (header.log, header.first, header.prev, header.nodes) != (walked.log, walked.size, walked.prev, nodes):
        raise Fault(Verdict.ALTERED, place, "the header does not continue the segment before")


def _records(walked: Walked, task: Task, file: scan.SegmentFile, stream: BinaryIO) -> tuple[int, bytes]:
    """Take committed groups until the lines end; returns what follows, which is the tail, and where it begins."""
    pending: list[bytes] = []
    length = 0
    for line in scan.bounded_lines(stream):
        mark = line[0]
        if line[-1] != 10 or 0 in line or mark not in (123, 61):  # neither { nor =, or cut short, or with zeros in it
            pending.append(line)
            break
        if mark == 123:
            pending.append(line)
            length += len(line)
            if length > frame.MAX_GROUP or len(pending) > frame.MAX_LINES:
                break
            continue
        _group(walked, task, file.path, pending)
        if line != b"= %d %s\n" % (walked.size, walked.prev.encode()):
            raise diagnose.explain_commit(place=file.path, line=line, size=walked.size, last=walked.prev)
        if not pending:
            place = f"{file.path}, commit line after record {walked.size - 1}"
            raise Fault(Verdict.ALTERED, place, "no records stand before it")
        pending.clear()
        length = 0
    start = stream.tell() - sum(map(len, pending))
    rest = scan.rest_of(stream)
    if rest is None:
        raise Fault(Verdict.ALTERED, f"{file.path}, after record {walked.size - 1}", "more follows than a group has")
    return start, b"".join(pending) + rest


def _group(walked: Walked, task: Task, path: str, lines: list[bytes]) -> None:
    sha256, suffix = hashlib.sha256, frame.SUFFIX
    prev, seq, add = walked.prev, walked.size, walked.tree.add
    with_tree, strict, wanted = task.depth != CHAIN, task.depth == STRICT, task.wanted
    for line in lines:
        link = b',"prev":"%s","seq":%d,"time":' % (prev.encode(), seq)
        if not line.endswith(link, 0, -suffix):
            if strict:  # a fault of the records before comes first
                _strict_all(lines[: seq - walked.size], walked, path)
            raise diagnose.explain(task.directory, place=path, line=line, expected=seq)
        if not line.endswith(b',"v":1}\n') or not line[-suffix:-8].isdigit():
            raise Fault(Verdict.ALTERED, f"{path}, record {seq}", "its time or its version is none")
        leaf = sha256(b"\x00" + line)
        prev = leaf.hexdigest()
        seq += 1
        if with_tree:
            add(leaf.digest())
            if seq in wanted:
                walked.roots[seq] = walked.tree.root()
        if line.endswith(_KEYED, 0, -suffix - len(link)):
            walked.noted.append((seq - 1, _keyed(line, path, seq - 1)))
        elif line.endswith(_ANCHORED, 0, -suffix - len(link)) and _RECEIPT not in line:
            with contextlib.suppress(LedgerError):  # one that cannot be read is a matter of the strict check
                walked.noted.append((seq - 1, scan.value_of(line, path)))
    if strict:
        _strict_all(lines, walked, path)
    walked.size, walked.prev = seq, prev


def _keyed(line: bytes, path: str, seq: int) -> dict[str, Json]:
    """A record about keys or retention. It must be canonical at any depth: a reader may take others in another way."""
    (value,) = _canonical([(seq, line)], path)
    return cast("dict[str, Json]", value)


def _strict_all(lines: list[bytes], walked: Walked, path: str) -> None:
    for start in range(0, len(lines), _CHUNK):
        _strict(lines[start : start + _CHUNK], walked, path, walked.size + start)


def _strict(lines: list[bytes], walked: Walked, path: str, first: int) -> None:
    """Refuse records that are not the canonical form of what they say: duplicate keys, spaces, floats, other members."""
    text = b"".join(lines)
    shapes = walked.shapes if plain(lines, text) else walked.any_text if is_text(text) else Shapes()
    left = shapes.unknown(list(enumerate(lines, first)))
    if left:
        shapes.learn(_canonical(left, path))


def _canonical(numbered: Sequence[tuple[int, bytes]], path: str) -> list[Json]:
    """Decode and encode again; returns the values. Raises Fault at the first that is written in another way."""
    text = b"".join(line for _, line in numbered)
    try:
        values = _decode_lines(text)
        if len(values) == len(numbered) and _encode_lines(values) == text and not _may_hold_large(text):
            if not text.isascii():
                canonical.admit_keys(values)
            for value, (_, line) in zip(values, numbered, strict=True):
                _admit_members(value)
                if canonical.is_deeper(value, line):
                    raise _FloatFound
            return values
    except (_FloatFound, LedgerError, msgspec.MsgspecError, UnicodeError, TypeError, AttributeError, RecursionError):
        pass  # one of them is at fault; the slow path below says which
    found: list[Json] = []
    for seq, line in numbered:
        try:
            found.append(canonical.decode(line[:-1]))
            _admit_members(found[-1])
        except (LedgerError, RecursionError, _FloatFound) as error:
            raise Fault(Verdict.ALTERED, f"{path}, record {seq}", "the record is not in canonical form") from error
    return found


def _may_hold_large(text: bytes) -> bool:
    """Whether there can be an integer beyond 53 bits: one of 17 digits, or of 16 that begin with a 9."""
    if any(text[match.start() - 1] in b":,[-" for match in _NINES.finditer(text)):
        return True
    digits = text.translate(_DIGITS)
    found = digits.find(_SEVENTEEN)
    while found >= 0:  # most are in hashes, where a quote or a letter stands before them
        if text[found - 1] in b":,[-":
            return True
        found = digits.find(_SEVENTEEN, digits.index(b" ", found))
    return False


def _admit_members(value: object) -> None:
    if not isinstance(value, dict) or not REQUIRED <= value.keys() <= MEMBERS:
        raise _FloatFound
    if any(name in value and value[name].__class__ is not str for name in _TEXTS):
        raise _FloatFound
    if value["body"].__class__ is not dict or value.get("personal", {}).__class__ is not dict:
        raise _FloatFound


def _tail(walked: Walked, file: scan.SegmentFile, kind: frame.Tail, *, last: bool, live: bool) -> None:
    if kind is frame.Tail.CLEAN or (last and live):
        return
    place = f"{file.path}, after record {walked.size - 1}"
    if kind is frame.Tail.FOREIGN or not last:
        raise Fault(Verdict.ALTERED, place, "bytes stand here that were never written as a group of records")
    walked.torn = place
