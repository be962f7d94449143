"""Verify a ringfence ledger with nothing but Python's standard library (3.11 or newer). Written from docs/ledger-format.md.

    python3 verify.py LEDGER [--anchor CHECKPOINT]... [--strict] [--max-age SECONDS] [--now MICROSECONDS]

LEDGER is a ledger folder or an unpacked export. Each --anchor is a file with a checkpoint that was kept elsewhere:
without one, the end of the log could have been cut off unseen, and the verdict is NO_ANCHOR. Prints one line: the
verdict, then the place and what is wrong, or what was covered. Exit status: 0 OK, 12 altered in any way, 14 not proven
(NO_ANCHOR, STALE_ANCHOR), 2 usage.

It shares no code with ringfence, changes nothing, and asks nobody.
"""

import argparse
import base64
import binascii
import gzip
import hashlib
import json
import os
import re
import sys
import time
import zlib
from typing import Any, BinaryIO, NamedTuple, cast

HEADER = re.compile(
    rb"ringfence-ledger 1 ([0-9a-f]{32}) (0|[1-9][0-9]*) ([0-9a-f]{64}) (-|[0-9a-f]{64}(?:,[0-9a-f]{64})*)\n"
)
COMMIT = re.compile(rb"= ([1-9][0-9]*) ([0-9a-f]{64})\n")
NAME = re.compile(r"([0-9]{20})\.seg(\.gz)?")
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
    """One checkpoint: log, records, root, the signed text, signatures (name, key id, value), the file."""

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


def read_checkpoint(path: str) -> Head:
    """The checkpoint in a file as a mapping; raises Wrong where it is none."""
    with open(path, "rb") as stream:
        data = stream.read(65536)
    try:
        text, gap, rest = data.decode().partition("\n\n")
        origin, size, root = text.split("\n")
        if not gap or not rest.endswith("\n") or not re.fullmatch("0|[1-9][0-9]{0,15}", size):
            raise ValueError(path)
        signatures = []
        for line in rest[:-1].split("\n"):
            dash, name, value = line.split(" ")
            raw = unbase64(value)
            if dash != "—" or len(raw) < 5:
                raise ValueError(path)
            signatures.append((name, raw[:4], raw[4:]))
        digest = unbase64(root)
        if len(digest) != 32 or not origin.startswith("ringfence/"):
            raise ValueError(path)
    except (ValueError, binascii.Error):
        raise Wrong("ALTERED", path, "it is not a signed checkpoint") from None
    return Head(origin[10:], int(size), digest, (text + "\n").encode(), signatures, path)


def signed_by(head: Head, log: str, epoch: Epoch) -> bool:
    """Whether the key of an epoch signed the checkpoint."""
    name = f"ringfence/{log}/{epoch.number}"
    hint = sha256(name.encode() + b"\n\x01" + epoch.public).digest()[:4]
    return any(who == name and key == hint and signed(epoch.public, head.text, value) for who, key, value in head.by)


# ---- the log ----------------------------------------------------------------------------------------------------


def segment_files(folder: str) -> list[tuple[int, str]]:
    """Paths of the segments by number of their first record; a plain file counts before a gzip one."""
    found: dict[int, str] = {}
    folder = os.path.join(folder, "segments")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        match = NAME.fullmatch(name)
        if match:
            found.setdefault(int(match[1]), os.path.join(folder, name))
    return sorted(found.items())


def open_segment(path: str) -> BinaryIO:
    """The segment's bytes."""
    return cast("BinaryIO", gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb", buffering=1 << 18))


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
            try:
                with open_segment(path) as stream:
                    self.header(stream.readline(8192), number, path, first=position == 0)
                    if self.size in self.wanted:
                        self.roots[self.size] = root_of(self.nodes)
                    tail = self.groups(stream, path)
            except (OSError, EOFError, zlib.error):
                raise Wrong("ALTERED", path, "the segment cannot be read") from None
            self.tail(tail, path, last=position + 1 == len(files))

    def header(self, line: bytes, number: int, path: str, *, first: bool) -> None:
        """Check a segment's first line."""
        match = HEADER.fullmatch(line)
        if match is None:
            raise Wrong("ALTERED", path, "the first line is no header")
        log, number_text, prev, node_text = (part.decode() for part in match.groups())
        start = int(number_text)
        nodes = [] if node_text == "-" else [bytes.fromhex(node) for node in node_text.split(",")]
        if len(nodes) != start.bit_count() or (start == 0 and prev != "0" * 64):
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

    def groups(self, stream: BinaryIO, path: str) -> bytes:
        """Take committed groups; returns the tail."""
        pending: list[bytes] = []
        for line in stream:
            if line[0] == 123:
                pending.append(line)
            elif line[0] == 61 and line[-1] == 10:
                self.records(pending, path)
                if line != b"= %d %s\n" % (self.size, self.prev.encode()):
                    raise self.wrong_commit(line, path)
                pending = []
            else:
                pending.append(line)
                break
        return b"".join(pending) + stream.read() if pending else b""

    def records(self, lines: list[bytes], path: str) -> None:
        """Take the records of one group."""
        prev, size, nodes, wanted, strict = self.prev, self.size, self.nodes, self.wanted, self.strict
        for line in lines:
            link = b',"prev":"%s","seq":%d,"time":' % (prev.encode(), size)
            if not line.endswith(link, 0, -END):
                raise self.wrong_record(line, size, path)
            leaf = sha256(b"\x00" + line)
            prev, node, bits = leaf.hexdigest(), leaf.digest(), size
            while bits & 1:
                node = sha256(b"\x01" + nodes.pop() + node).digest()
                bits >>= 1
            nodes.append(node)
            if strict and not canonical(line):
                raise Wrong("ALTERED", f"record {size}", "the record is not in canonical form")
            if line.endswith(KEYED, 0, -END - len(link)):
                found = fields(line)
                if not isinstance(found.get("body"), dict):
                    raise Wrong("ALTERED", f"record {size}", "the record has no body that can be read")
                self.keyed.append((size, found))
            size += 1
            if size in wanted:
                self.roots[size] = root_of(nodes)
        self.prev, self.size = prev, size

    def tail(self, tail: bytes, path: str, *, last: bool) -> None:
        """Judge what follows the last commit line."""
        text = tail.rstrip(b"\x00")
        if not text:
            return
        commits = [m for m in COMMIT.finditer(text) if m.start() == 0 or text[m.start() - 1] in b"\n\x00"]
        torn = last and (not commits or (len(commits) == 1 and commits[0].end() == len(text)))
        torn = torn and all(b"\x00" in text[: commit.start()] for commit in commits)
        runs = [run for run in text.split(b"\x00") if run]
        if not torn or any(len(run) < 16 for run in runs[text[:1] == b"{" :]):
            raise Wrong("ALTERED", f"{path}, after record {self.size - 1}", "foreign bytes follow the last commit line")
        self.torn = path

    # -- why something does not fit

    def wrong_record(self, line: bytes, expected: int, path: str) -> Wrong:
        """The fault of a record that does not fit."""
        named, numbers, placed = self.named()
        number = fields(line).get("seq")
        if not isinstance(number, int) or record_hash(line) not in named:
            return Wrong("ALTERED", f"{path}, record {expected}", "it is not the record that was written")
        if number == expected:
            return Wrong("ALTERED", f"{path}, record {expected - 1}", "it is not the record that the next one names")
        if number > expected and expected not in numbers:
            return Wrong("GAP", f"record {expected}", f"records {expected} to {number - 1} are missing")
        if number < expected and placed.get(expected - 1) not in named:
            return Wrong("ALTERED", f"{path}, record {expected - 1}", "a record was put in that nobody names")
        return Wrong("REORDERED", f"{path}, record {expected}", f"record {number} stands in its place")

    def named(self) -> tuple[set[str], set[int], dict[int, str]]:
        """All hashes that some line names, the numbers of intact records, and the hash that stands at each place."""
        named: set[str] = set()
        numbers: dict[str, Any] = {}
        placed: dict[int, str] = {}
        place = self.first
        for _, path in segment_files(self.folder):
            with open_segment(path) as stream:
                for line in stream:
                    commit = COMMIT.fullmatch(line)
                    if commit:
                        named.add(commit[2].decode())
                    elif line[:1] == b"{":
                        found = fields(line)
                        named.add(str(found.get("prev")))
                        placed[place] = record_hash(line)
                        numbers[placed[place]] = found.get("seq")
                        place += 1
        return named, {number for own, number in numbers.items() if own in named}, placed

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


def fields(line: bytes) -> dict[str, Any]:
    """A record's members, or nothing where it is no JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
        return text.encode() + b"\n" == line and NEEDED <= value.keys() <= MEMBERS and ascii_keys(value)
    except (ValueError, AttributeError, RecursionError):
        return False


def ascii_keys(value: object) -> bool:
    """Whether every key at any depth is ASCII."""
    if isinstance(value, dict):
        return all(key.isascii() and ascii_keys(inner) for key, inner in value.items())
    return all(ascii_keys(inner) for inner in value) if isinstance(value, list) else True


# ---- keys and heads ---------------------------------------------------------------------------------------------


def epochs_of(log: Log) -> list[Epoch]:
    """All keys of the log: (epoch, number of the record after which it signs, public key)."""
    known: list[Epoch] = []
    for number, record in log.keyed:
        body, kind = record["body"], record["kind"]
        try:
            if kind == "ledger.created" and number == 0 and body["log"] == log.name:
                known.append(Epoch(body["epoch"], 0, bytes.fromhex(body["public"])))
            elif kind == "retention.change" and not known_first(known, log) and body.get("before") == log.first:
                if body["root"] == root_of(log.before).hex():
                    known = [Epoch(row["epoch"], row["after"], bytes.fromhex(row["public"])) for row in body["epochs"]]
            elif kind == "key.rotated" and (not known or number > known[-1].after):
                known.append(rotated(log, known, number, body))
        except (KeyError, TypeError, ValueError):
            raise Wrong("ALTERED", f"record {number}", "its body says nothing of a key") from None
    if not known_first(known, log):
        if log.first:
            raise Wrong("GAP", f"record {log.first}", "the records before are missing, and no purge is recorded")
        raise Wrong("ALTERED", "record 0", "it does not begin this log")
    return known


def known_first(known: list[Epoch], log: Log) -> bool:
    """Whether the list begins with the log's first key; after a purge the purge's record must have given it."""
    return bool(known) and known[0].number == 1 and (log.first > 0 or known[0].after == 0)


def rotated(log: Log, known: list[Epoch], number: int, body: dict[str, Any]) -> Epoch:
    """The key that a rotation brings."""
    public = bytes.fromhex(body["public"])
    if known:
        epoch, _, old = known[-1]
        text = f"ringfence key rotation\n{log.name}\n{epoch + 1}\n{number}\n{old.hex()}\n{public.hex()}\n".encode()
        good = signed(old, text, bytes.fromhex(body["by_old"])) and signed(public, text, bytes.fromhex(body["by_new"]))
        if body["epoch"] != epoch + 1 or not good:
            raise Wrong("KEY_EPOCH", f"record {number}", "the change of keys is not signed by both keys")
    return Epoch(body["epoch"], number, public)


def judge(log: Log, head: Head, epochs: list[Epoch], otherwise: str) -> None:
    """Check one checkpoint against the log."""
    place, size = head.place, head.size
    if head.log != log.name:
        raise Wrong(
            "TRUNCATED" if otherwise == "FORKED" else "ALTERED", place, "it is of another log, which is not here"
        )
    due = next((epoch for epoch in reversed(epochs) if size > epoch.after), epochs[0])
    if not signed_by(head, log.name, due):
        if any(signed_by(head, log.name, epoch) for epoch in epochs):
            raise Wrong("KEY_EPOCH", place, f"the key of epoch {due.number} was in force for {size} records")
        raise Wrong("ALTERED", place, "it carries no good signature of this log's keys")
    if size > log.size:
        if log.torn:
            raise Wrong("ALTERED", log.torn, f"records that were signed for ({size}) are damaged")
        raise Wrong("TRUNCATED", f"record {log.size}", f"{log.size} records are here, {place} signs for {size}")
    if size in log.roots and log.roots[size] != head.root:
        raise Wrong(otherwise, f"records 0 to {size - 1}", f"they are not the ones that {place} signs for")


def uncovered_since(log: Log, size: int) -> int | None:
    """Time of the first record from number `size` on that is not itself about an anchor, or None."""
    for number, path in segment_files(log.folder):
        with open_segment(path) as stream:
            for line in stream:
                if line[:1] == b"{":
                    if number >= size and number < log.size and fields(line).get("kind") != "ledger.anchored":
                        return int(fields(line)["time"])
                    number += 1
    return None


def verify(folder: str, anchors: list[str], *, strict: bool, now: int, max_age: float) -> tuple[str, str, str]:
    """The verdict as (word, place, text)."""
    own_path = os.path.join(folder, "checkpoint")
    try:
        heads = [read_checkpoint(path) for path in anchors]
        own = read_checkpoint(own_path) if os.path.exists(own_path) else None
        if not segment_files(folder):
            raise Wrong("TRUNCATED", folder, "there are no records here")
        log = Log(folder, {head.size for head in [*heads, *([own] if own else [])]}, strict=strict)
        log.read()
        epochs = epochs_of(log)
        if own is None:
            raise Wrong("TRUNCATED", own_path, "the signed checkpoint is missing")
        judge(log, own, epochs, "ALTERED")
        for head in heads:
            judge(log, head, epochs, "FORKED")
        if log.torn:
            raise Wrong(
                "TORN", log.torn, "a group is cut short after the last commit line; none of it was acknowledged"
            )
    except Wrong as wrong:
        return wrong.found
    covered = f"records {log.first} to {log.size - 1} of log {log.name}, root {root_of(log.nodes).hex()}"
    if not heads:
        return "NO_ANCHOR", covered, "no anchor: the end could have been cut off unseen"
    newest = max(head.size for head in heads)
    since = uncovered_since(log, newest)
    lag = 0 if since is None else max(0, now - since) / 1e6
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
