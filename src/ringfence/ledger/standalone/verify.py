"""Verify a ringfence ledger with nothing but Python's standard library (3.11 or newer). Written from docs/ledger-format.md.

    python3 -I verify.py LEDGER [--anchor CHECKPOINT]... [--strict] [--max-age SECONDS] [--now MICROSECONDS]

LEDGER is a ledger folder or an unpacked export. Each --anchor is a file with a checkpoint that was kept elsewhere:
without one, the end of the log could have been cut off unseen, and the verdict is NO_ANCHOR. Prints one line: the
verdict, then the place and what is wrong, or what was covered. Exit status: 0 OK, 12 altered in any way, 14 not proven
(NO_ANCHOR, STALE_ANCHOR), 2 usage.

It shares no code with ringfence, changes nothing, and asks nobody.
"""

import argparse
import base64
import binascii
import errno
import functools
import hashlib
import io
import itertools
import json
import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple, cast

HEADER = re.compile(
    rb"ringfence-ledger 1 ([0-9a-f]{32}) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}) (-|[0-9a-f]{64}(?:,[0-9a-f]{64})*)\n"
)
COMMIT = re.compile(rb"= ([1-9][0-9]{0,15}) ([0-9a-f]{64})\n")
NAME = re.compile(r"([0-9]{20})\.seg(\.gz)?")
ENDING = re.compile(rb',"prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,15}),"time":[0-9]{16},"v":1\}\n')
HEX = re.compile(r"(?:[0-9a-f]{2})*")
LINE, GROUP, LINES, SEGMENT, NOTE, DEPTH = 65_535, 8 << 20, 65_536, 256 << 20, 65_536, 100
LATER = 10_000
PART = re.compile(r"(?:segments/|anchors/)?[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
END = len(b'1234567890123456,"v":1}\n')
KEYED = (b'"kind":"ledger.created"', b'"kind":"key.rotated"', b'"kind":"retention.change"')
MEMBERS = {"body", "call", "kind", "mission", "parent", "personal", "prev", "seq", "time", "v"}
NEEDED = {"body", "kind", "prev", "seq", "time", "v"}
NOT_PROVEN = {"STALE_ANCHOR", "NO_ANCHOR"}
sha256 = hashlib.sha256


class Wrong(Exception):
    """The first fault: verdict, place, what."""

    def __init__(self, verdict: str, place: str, text: str) -> None:
        super().__init__(verdict, place, text)
        self.found = verdict, place, text


class Head(NamedTuple):
    """One checkpoint: log (empty where its first line names none), records, root, the signed text, signatures (name, key id, value), the file."""

    log: str
    size: int
    root: bytes
    text: bytes
    by: list[tuple[str, bytes, bytes]]
    place: str


class Epoch(NamedTuple):
    """One key: its number, the number of the record after which it signs, the public key."""

    number: int
    after: int
    public: bytes


Point = tuple[int, int, int, int]


# ---- the tree ---------------------------------------------------------------------------------------------------


def root_of(nodes: list[bytes]) -> bytes:
    """The root over subtree roots."""
    if not nodes:
        return sha256(b"").digest()
    root = nodes[-1]
    for node in reversed(nodes[:-1]):
        root = sha256(b"\x01" + node + root).digest()
    return root


def record_hash(line: bytes) -> str:
    """A record's hash, in hexadecimal."""
    return sha256(b"\x00" + line).hexdigest()


# ---- Ed25519 (RFC 8032), verification only ----------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_MINUS_1 = pow(2, (P - 1) // 4, P)


def point_add(a: Point, b: Point) -> Point:
    """Sum of two points in extended coordinates."""
    t = (a[1] - a[0]) * (b[1] - b[0]) % P
    u = (a[1] + a[0]) * (b[1] + b[0]) % P
    v = 2 * a[3] * b[3] * D % P
    w = 2 * a[2] * b[2] % P
    e, f, g, h = u - t, w - v, w + v, u + t
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_times(scalar: int, point: Point) -> Point:
    """Scalar times point."""
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = point_add(result, point)
        point = point_add(point, point)
        scalar >>= 1
    return result


def point_of(data: bytes) -> Point | None:
    """The point that 32 bytes encode, or None."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT_MINUS_1 % P
    if (x * x - x2) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = cast("Point", point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is a good Ed25519 signature of `message`."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, r, s = point_of(public), point_of(signature[:32]), int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    left, right = point_times(s, BASE), point_add(r, point_times(h, key))
    same_x = (left[0] * right[2] - right[0] * left[2]) % P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % P == 0


# ---- checkpoints ------------------------------------------------------------------------------------------------


def unbase64(text: str) -> bytes:
    """Bytes of base64 in its one spelling; raises ValueError for any other."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError(text)
    return data


def own_checkpoint(path: str) -> Head | None:
    """The log's own checkpoint, or None; raises Wrong where it is none."""
    if not is_there(path):
        return None
    with open_file(path) as stream:
        return read_checkpoint(path, stream)


def read_checkpoint(path: str, stream: BinaryIO) -> Head:
    """The checkpoint in a file; raises Wrong where it is none."""
    data = stream.read(NOTE + 1)
    try:
        if len(data) > NOTE:
            raise ValueError(path)
        text, gap, rest = data.decode().partition("\n\n")
        origin, size, root = text.split("\n")
        if not gap or not rest.endswith("\n") or not re.fullmatch("0|[1-9][0-9]{0,15}", size):
            raise ValueError(path)
        signatures = []
        for line in rest[:-1].split("\n"):
            dash, name, value = line.split(" ")
            raw = unbase64(value)
            if dash != "—" or not name or "+" in name or len(raw) < 5:
                raise ValueError(path)
            signatures.append((name, raw[:4], raw[4:]))
        digest = unbase64(root)
        if len(digest) != 32 or not origin:
            raise ValueError(path)
    except (ValueError, binascii.Error):
        raise Wrong("ALTERED", path, "it is not a signed checkpoint") from None
    log = origin.removeprefix("ringfence/")
    return Head(log if origin != log else "", int(size), digest, (text + "\n").encode(), signatures, path)


def signed_by(head: Head, log: str, epoch: Epoch) -> bool:
    """Whether the key of an epoch signed the checkpoint."""
    name = f"ringfence/{log}/{epoch.number}"
    hint = sha256(name.encode() + b"\n\x01" + epoch.public).digest()[:4]
    return any(who == name and key == hint and signed(epoch.public, head.text, value) for who, key, value in head.by)


# ---- the log ----------------------------------------------------------------------------------------------------


def is_there(path: str) -> bool:
    """Whether something has this name. Raises OSError where that cannot be known, which is no verdict."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def segment_files(folder: str) -> list[tuple[int, str]]:
    """Paths of the segments by number of their first record; a plain file counts before a gzip one."""
    found: dict[int, str] = {}
    folder = os.path.join(folder, "segments")
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            raise
        names = []  # there is no such folder
    for name in names:
        match = NAME.fullmatch(name)
        if match:
            found.setdefault(int(match[1]), os.path.join(folder, name))
    return sorted(found.items())


def open_file(path: str) -> BinaryIO:
    """A regular file, never through a link, and never waiting for a pipe's other end. Raises Wrong, and OSError."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise Wrong("ALTERED", path, "it is not a regular file")
    return open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", buffering=1 << 18)


class Unpacked(io.RawIOBase):
    """The bytes of a gzip file of one member; raises Wrong where it is none, or has more than a segment can have."""

    def __init__(self, source: BinaryIO, path: str) -> None:
        super().__init__()
        self.source, self.path, self.engine, self.count = source, path, zlib.decompressobj(31), 0

    def readable(self) -> bool:
        """It can be read, from the beginning to the end."""
        return True

    def tell(self) -> int:
        """How many bytes were read."""
        return self.count

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one step goes; 0 at the end."""
        data = b""
        while not data and not self.engine.eof:
            packed = self.engine.unconsumed_tail or self.source.read(1 << 16)
            try:
                data = self.engine.decompress(packed, len(buffer))
            except zlib.error:
                raise Wrong("ALTERED", self.path, "the archive is damaged") from None
            if not packed and not data and not self.engine.eof:
                raise Wrong("ALTERED", self.path, "the archive is cut short")
        if not data and (self.engine.unused_data or self.source.read(1)):
            raise Wrong("ALTERED", self.path, "bytes follow the archive")
        self.count += len(data)
        if self.count > SEGMENT:
            raise Wrong("ALTERED", self.path, "it is longer than a segment can be")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Let go of the file."""
        self.source.close()
        super().close()


def open_segment(path: str) -> BinaryIO:
    """The segment's bytes. Raises Wrong, also while they are read, and OSError."""
    stream = open_file(path)
    if path.endswith(".gz"):
        return cast("BinaryIO", io.BufferedReader(Unpacked(stream, path), 1 << 18))
    if os.fstat(stream.fileno()).st_size > SEGMENT:
        stream.close()
        raise Wrong("ALTERED", path, "it is longer than a segment can be")
    return stream


def lines_of(stream: BinaryIO) -> Iterator[bytes]:
    """Lines, none longer than a record can be: of a longer one, pieces."""
    return iter(functools.partial(stream.readline, LINE), b"")


class Log:
    """One pass over a log: chain, tree, and what the keys' records say."""

    def __init__(self, folder: str, wanted: set[int], *, strict: bool) -> None:
        self.folder, self.strict, self.wanted = folder, strict, wanted
        self.name, self.first, self.size, self.prev = "", 0, 0, "0" * 64
        self.nodes: list[bytes] = []
        self.before: list[bytes] = []
        self.roots: dict[int, bytes] = {}
        self.keyed: list[tuple[int, dict[str, Any]]] = []
        self.torn = ""

    def read(self) -> None:
        """Read every segment; raises Wrong at the first fault."""
        files = segment_files(self.folder)
        for position, (number, path) in enumerate(files):
            with open_segment(path) as stream:
                self.header(stream.readline(8192), number, path, first=position == 0)
                self.roots[self.size] = root_of(self.nodes)
                start, tail = self.groups(stream, path)
            self.tail(tail, start, path, last=position + 1 == len(files))

    def header(self, line: bytes, number: int, path: str, *, first: bool) -> None:
        """Check a segment's first line."""
        match = HEADER.fullmatch(line)
        if match is None:
            raise Wrong("ALTERED", path, "the first line is no header")
        log, number_text, prev, node_text = (part.decode() for part in match.groups())
        start = int(number_text)
        nodes = [] if node_text == "-" else [bytes.fromhex(node) for node in node_text.split(",")]
        if len(nodes) != start.bit_count() or (start == 0) != (prev == "0" * 64):
            raise Wrong("ALTERED", path, "the header does not fit itself")
        if first:
            self.name, self.first, self.size, self.prev = log, start, start, prev
            self.nodes, self.before = nodes, list(nodes)
        if start != number:
            raise Wrong("REORDERED", path, f"the file holds the segment of record {start}")
        if start > self.size and log == self.name:
            raise Wrong("GAP", f"record {self.size}", f"records {self.size} to {start - 1} are missing")
        if (log, start, prev, nodes) != (self.name, self.size, self.prev, self.nodes):
            raise Wrong("ALTERED", path, "the header does not continue the log")

    def groups(self, stream: BinaryIO, path: str) -> tuple[int, bytes]:
        """Take committed groups; returns the tail, and where it begins."""
        pending: list[bytes] = []
        length = 0
        for line in lines_of(stream):
            if line[-1] != 10 or 0 in line or line[0] not in (123, 61):
                pending.append(line)
                break
            if line[0] == 123:
                pending.append(line)
                length += len(line)
                if length > GROUP or len(pending) > LINES:
                    break
            else:
                self.records(pending, path)
                if line != b"= %d %s\n" % (self.size, self.prev.encode()):
                    raise self.wrong_commit(line, path)
                if not pending:
                    raise Wrong("ALTERED", path, f"a commit line without records stands after record {self.size - 1}")
                pending, length = [], 0
        start = stream.tell() - sum(map(len, pending))
        return start, self.rest(pending, stream, path)

    def rest(self, pending: list[bytes], stream: BinaryIO, path: str) -> bytes:
        """All from the end of the last group on, where that is not more than a group and zeros."""
        tail = b"".join(pending)
        while block := stream.read(1 << 20):
            if len(tail) < GROUP:
                tail += block
            elif block.strip(b"\x00"):
                raise Wrong("ALTERED", f"{path}, after record {self.size - 1}", "more bytes follow than a group has")
        return tail

    def records(self, lines: list[bytes], path: str) -> None:
        """Take the records of one group."""
        prev, size, nodes, wanted, strict = self.prev, self.size, self.nodes, self.wanted, self.strict
        for line in lines:
            link = b',"prev":"%s","seq":%d,"time":' % (prev.encode(), size)
            if not line.endswith(link, 0, -END):
                raise self.wrong_record(line, size, path)
            if not line.endswith(b',"v":1}\n') or not line[-END:-8].isdigit():
                raise Wrong("ALTERED", f"record {size}", "its time or its version is none")
            leaf = sha256(b"\x00" + line)
            prev, node, bits = leaf.hexdigest(), leaf.digest(), size
            while bits & 1:
                node = sha256(b"\x01" + nodes.pop() + node).digest()
                bits >>= 1
            nodes.append(node)
            if strict and not canonical(line):
                raise Wrong("ALTERED", f"record {size}", "the record is not in canonical form")
            if line.endswith(KEYED, 0, -END - len(link)):
                if not canonical(line):
                    raise Wrong("ALTERED", f"record {size}", "the record tells of keys and is not in canonical form")
                self.keyed.append((size, fields(line)))
            size += 1
            if size in wanted:
                self.roots[size] = root_of(nodes)
        self.prev, self.size = prev, size

    def tail(self, tail: bytes, start: int, path: str, *, last: bool) -> None:
        """Judge what follows the last commit line."""
        text = tail.rstrip(b"\x00")
        if not text:
            return
        commits = [m for m in COMMIT.finditer(text) if m.start() == 0 or text[m.start() - 1] in b"\n\x00"]
        torn = last and (not commits or (len(commits) == 1 and commits[0].end() == len(text)))
        torn = torn and all(b"\x00" in text[: commit.start()] for commit in commits)
        runs = re.finditer(rb"(?<![^\x00])[^\x00]{1,15}(?![^\x00])", text)
        short = [(run.start(), run.end()) for run in itertools.islice(runs, 3)]
        began = [run for run in short if run[0] == 0 and text[:1] == b"{"]
        ended = [run for run in short if run[1] == len(text) and text[-1:] == b"\n" and (start + run[0]) % 512 == 0]
        if not torn or len(text) > GROUP or len({*began, *ended}) < len(short):
            raise Wrong("ALTERED", f"{path}, after record {self.size - 1}", "foreign bytes follow the last commit line")
        self.torn = path

    # -- why something does not fit

    def wrong_record(self, line: bytes, expected: int, path: str) -> Wrong:
        """The fault of a record that does not fit."""
        own, (same, before) = record_hash(line), self.hashes(expected)
        named = self.named({own, before, *same})
        ending = ending_of(line)
        if ending is None or own not in named:
            return Wrong("ALTERED", f"{path}, record {expected}", "it is not the record that was written")
        number = int(ending[2])
        if number == expected:
            return Wrong("ALTERED", f"{path}, record {expected - 1}", "it is not the record that the next one names")
        if number > expected and not named & same:
            return Wrong("GAP", f"record {expected}", f"records {expected} to {number - 1} are missing")
        if number < expected and before and before not in named:
            return Wrong("ALTERED", f"{path}, record {expected - 1}", "a record was put in that nobody names")
        return Wrong("REORDERED", f"{path}, record {expected}", f"record {number} stands in its place")

    def every_line(self) -> Iterator[bytes]:
        """Every line of every segment that can be read."""
        for _, path in segment_files(self.folder):
            try:
                with open_segment(path) as stream:
                    yield from lines_of(stream)
            except (OSError, Wrong):
                continue

    def hashes(self, number: int) -> tuple[set[str], str]:
        """Hashes of the records that say to be record ``number``, and that of the one at the place before."""
        mark, place, before = b'","seq":%d,"time":' % number, self.first, ""
        same: set[str] = set()
        for line in self.every_line():
            if line[:1] == b"{":
                if line.endswith(mark, 0, -END) and ending_of(line) and len(same) < LATER:
                    same.add(record_hash(line))
                before = record_hash(line) if place == number - 1 else before
                place += 1
        return same, before

    def named(self, asked: set[str]) -> set[str]:
        """Those of the hashes that some line names."""
        found: set[str] = set()
        for line in self.every_line():
            match = COMMIT.fullmatch(line) or (ending_of(line) if line[:1] == b"{" else None)
            if match:
                found |= {match[2 if match.re is COMMIT else 1].decode()} & asked
        return found

    def wrong_commit(self, line: bytes, path: str) -> Wrong:
        """The fault of a commit line that does not fit."""
        match = COMMIT.fullmatch(line)
        if match and match[2].decode() != self.prev:
            size = int(match[1])
            if size > self.size:
                return Wrong("GAP", f"record {self.size}", f"records {self.size} to {size - 1} are missing")
            if size == self.size:
                return Wrong("ALTERED", f"{path}, record {size - 1}", "it is not the record that was committed")
            return Wrong("REORDERED", path, f"the commit line of {size} stands after record {self.size - 1}")
        return Wrong("ALTERED", path, f"the commit line after record {self.size - 1} was changed")


def ending_of(line: bytes) -> "re.Match[bytes] | None":
    """A record's end: the hash it names, and its number."""
    start = line.rfind(b',"prev":"', -160)
    return ENDING.fullmatch(line, start) if start >= 0 else None


def fields(line: bytes) -> dict[str, Any]:
    """A record's members, or nothing where it is no JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and not is_deeper(found, line) else {}


def refuse(text: str) -> Any:
    """A number that canonical JSON does not have."""
    raise ValueError(text)


def small_integer(text: str) -> int:
    """An integer of at most 53 bits."""
    number = int(text)
    if abs(number) >= 2**53:
        raise ValueError(text)
    return number


def canonical(line: bytes) -> bool:
    """Whether a record is exactly the canonical form of what it says, with the members it may have."""
    try:
        value = json.loads(line, parse_float=refuse, parse_constant=refuse, parse_int=small_integer)
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return text.encode() + b"\n" == line and members_fit(value) and ascii_keys(value) and not is_deeper(value, line)
    except (ValueError, AttributeError, RecursionError):
        return False


def members_fit(value: dict[str, Any]) -> bool:
    """Whether a record has the members it may have, each of its type."""
    texts = [value[name] for name in ("kind", "call", "mission", "parent") if name in value]
    objects = [value[name] for name in ("body", "personal") if name in value]
    known = NEEDED <= value.keys() <= MEMBERS and all(isinstance(text, str) for text in texts)
    return known and all(isinstance(inner, dict) for inner in objects)


def is_deeper(value: object, line: bytes) -> bool:
    """Whether more objects and arrays stand inside each other than a record may have."""
    if line.count(b"{") + line.count(b"[") <= DEPTH:
        return False
    level: list[Any] = [value]
    for _ in range(DEPTH + 1):
        level = [outer for outer in level if isinstance(outer, dict | list)]
        level = [inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)]
    return bool(level)


def ascii_keys(value: object) -> bool:
    """Whether every key at any depth is ASCII."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            if not all(key.isascii() for key in inner):
                return False
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return True


# ---- keys and heads ---------------------------------------------------------------------------------------------


def epochs_of(log: Log, signed_for: int) -> list[Epoch]:
    """All keys of the log: (epoch, number of the record after which it signs, public key)."""
    known = first_epochs(log, signed_for)
    for number, record in log.keyed:
        if record["kind"] == "key.rotated" and number > known[-1].after:
            try:
                known.append(rotated(log, known[-1], number, record["body"]))
            except (KeyError, TypeError, ValueError):
                raise Wrong("ALTERED", f"record {number}", "its body says nothing of a key") from None
    return known


def first_epochs(log: Log, signed_for: int) -> list[Epoch]:
    """The keys that the log's first record tells of, or where that was purged, the entry of the purge, if it is signed for."""
    for number, record in log.keyed:
        body, kind = record["body"], record["kind"]
        purge = log.first and kind == "retention.change" and body.get("action") == "purge" and number < signed_for
        try:
            if log.first == 0 == number and kind == "ledger.created" and body["log"] == log.name:
                return [epoch_of({**body, "after": 0}, 1, 0)]
            if purge and purged(log, number, body):
                return [epoch_of(row, place, body["before"]) for place, row in enumerate(body["epochs"], 1)]
        except (KeyError, TypeError, ValueError):
            raise Wrong("ALTERED", f"record {number}", "its body says nothing of a key") from None
    if log.first:
        raise Wrong(
            "GAP", f"record {log.first}", "the records before are missing, and no signed entry tells of a purge"
        )
    raise Wrong("ALTERED", "record 0", "it does not begin this log")


def purged(log: Log, number: int, body: dict[str, Any]) -> bool:
    """Whether a purge, perhaps not finished, explains where the log begins; the list of keys must begin with the first."""
    before = body["before"]
    if type(before) is not int or not log.first <= before <= number or not body["epochs"]:
        return False
    return before in log.roots and body["root"] == log.roots[before].hex()


def epoch_of(row: dict[str, Any], number: int, before: int) -> Epoch:
    """One row of a list of keys; raises ValueError where it is not key ``number``, or not of that time."""
    if type(row["epoch"]) is not int or row["epoch"] != number or type(row["after"]) is not int:
        raise ValueError(row)
    if (row["after"] == 0) != (number == 1) or not 0 <= row["after"] <= before:
        raise ValueError(row)
    return Epoch(number, row["after"], unhex(row["public"], 32))


def unhex(text: str, length: int) -> bytes:
    """Bytes of lowercase hexadecimal digits; raises ValueError."""
    if not HEX.fullmatch(text) or len(text) != 2 * length:
        raise ValueError(text)
    return bytes.fromhex(text)


def rotated(log: Log, old: Epoch, number: int, body: dict[str, Any]) -> Epoch:
    """The key that a rotation brings."""
    epoch, public = old.number + 1, unhex(body["public"], 32)
    text = f"ringfence key rotation\n{log.name}\n{epoch}\n{number}\n{old.public.hex()}\n{public.hex()}\n".encode()
    good = signed(old.public, text, unhex(body["by_old"], 64)) and signed(public, text, unhex(body["by_new"], 64))
    same = body["previous"] == old.public.hex() and type(body["epoch"]) is int and body["epoch"] == epoch
    if not good or not same:
        raise Wrong("KEY_EPOCH", f"record {number}", "the change of keys is not signed by both keys")
    return Epoch(epoch, number, public)


def judge(log: Log, head: Head, epochs: list[Epoch], otherwise: str) -> None:
    """Check one checkpoint against the log."""
    place, size = head.place, head.size
    if head.log != log.name:
        raise Wrong(
            "TRUNCATED" if otherwise == "FORKED" else "ALTERED", place, "it is of another log, which is not here"
        )
    due = next((epoch for epoch in reversed(epochs) if size > epoch.after), epochs[0])
    later = {f"ringfence/{log.name}/{epochs[-1].number + more}" for more in range(1, 1000)}
    if size > log.size and any(name in later for name, _, _ in head.by):
        pass  # signed with a key that the missing records tell of: what is missing is the verdict
    elif not signed_by(head, log.name, due):
        if any(signed_by(head, log.name, epoch) for epoch in epochs):
            raise Wrong("KEY_EPOCH", place, f"the key of epoch {due.number} was in force for {size} records")
        raise Wrong("ALTERED", place, "it carries no good signature of this log's keys")
    if size > log.size:
        if log.torn:
            raise Wrong("ALTERED", log.torn, f"records that were signed for ({size}) are damaged")
        older = "; a copy that is older than that head looks the same" if otherwise == "FORKED" else ""
        raise Wrong("TRUNCATED", f"record {log.size}", f"{log.size} records are here, {place} signs for {size}{older}")
    if size >= log.first and log.roots[size] != head.root:  # what an older head signs for was purged
        raise Wrong(otherwise, f"records 0 to {size - 1}", f"they are not the ones that {place} signs for")


def uncovered_since(log: Log, size: int) -> int | None:
    """Time of the first record from number `size` on that is not itself about an anchor, or None."""
    for number, path in segment_files(log.folder):
        with open_segment(path) as stream:
            for line in lines_of(stream):
                if line[:1] == b"{":
                    if size <= number < log.size and fields(line).get("kind") != "ledger.anchored":
                        return int(line[-END:-8])
                    number += 1
    return None


def check_manifest(folder: str) -> None:
    """An export lists its files with their digests: one that differs was damaged or changed on the way. It is not signed."""
    path = os.path.join(folder, "manifest.json")
    if not is_there(path):
        return
    with open_file(path) as stream:
        try:
            files = json.loads(stream.read(16 << 20))["files"].items()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Wrong("ALTERED", path, "it is no list of files") from None
    for name, digest in files:
        if not PART.fullmatch(name):
            raise Wrong("ALTERED", path, f"it names {name!r}, which an export does not have")
        digest_of = sha256()
        try:
            with open_file(os.path.join(folder, name)) as stream:
                while block := stream.read(1 << 20):
                    digest_of.update(block)
        except FileNotFoundError:
            continue  # what of the evidence is missing, the log itself tells
        if digest_of.hexdigest() != digest:
            raise Wrong("ALTERED", os.path.join(folder, name), "it is not the file that was exported")


def verify(folder: str, anchors: list[str], *, strict: bool, now: int, max_age: float) -> tuple[str, str, str]:
    """The verdict as (word, place, text)."""
    own_path = os.path.join(folder, "checkpoint")
    try:
        heads = []
        for path in anchors:
            with open(path, "rb") as stream:
                heads.append(read_checkpoint(path, stream))
        own = own_checkpoint(own_path)
        if not segment_files(folder):
            raise Wrong("TRUNCATED", folder, "there are no records here")
        log = Log(folder, {head.size for head in [*heads, *([own] if own else [])]}, strict=strict)
        log.read()
        epochs = epochs_of(log, own.size if own else log.size)
        if own is None:
            raise Wrong("TRUNCATED", own_path, "the signed checkpoint is missing")
        judge(log, own, epochs, "ALTERED")
        for head in heads:
            judge(log, head, epochs, "FORKED")
        check_manifest(folder)
        if log.torn:
            raise Wrong(
                "TORN", log.torn, "a group is cut short after the last commit line; none of it was acknowledged"
            )
    except Wrong as wrong:
        return wrong.found
    covered = f"records {log.first} to {log.size - 1} of log {log.name}, root {root_of(log.nodes).hex()}"
    newest = max((head.size for head in heads), default=-1)
    if newest < log.first:
        return "NO_ANCHOR", covered, "no anchor signs for anything that is here: the end could have been cut off unseen"
    since = uncovered_since(log, newest)
    lag = (
        0 if since is None else abs(now - since) / 1e6
    )  # a time to come proves nothing, and is no way to be new for ever
    text = f"anchored up to record {newest - 1}, lag {lag:.0f} s"
    return ("STALE_ANCHOR" if lag > max_age else "OK"), covered, text


def main(argv: list[str] | None = None) -> int:
    """Parse, verify, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="Verify a ringfence ledger with the standard library alone.")
    parser.add_argument("ledger", help="a ledger folder or an unpacked export")
    parser.add_argument("--anchor", action="append", default=[], help="file with a checkpoint that was kept elsewhere")
    parser.add_argument("--strict", action="store_true", help="also check that every record is in canonical form")
    parser.add_argument("--max-age", type=float, default=86400.0, help="seconds that records may wait for an anchor")
    parser.add_argument("--now", type=int, default=None, help="the present, in microseconds since 1970")
    args = parser.parse_args(argv)
    now = time.time_ns() // 1000 if args.now is None else args.now
    try:
        word, place, text = verify(args.ledger, args.anchor, strict=args.strict, now=now, max_age=args.max_age)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    print(word, ascii(place)[1:-1], "|", ascii(text)[1:-1])
    return 0 if word == "OK" else 14 if word in NOT_PROVEN else 12


if __name__ == "__main__":
    sys.exit(main())
