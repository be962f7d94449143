"""A second verifier, written from docs/ledger-format.md alone: it shares no line with ours, and must agree with it.

Standard library only. It reads whole segments into memory and asks for no speed; the strict check is always on.
"""

import base64
import hashlib
import json
import os
import re
import stat
import sys
import zlib
from dataclasses import dataclass, field

SEGMENT_LIMIT = 256 << 20
GROUP_LIMIT = 8 << 20
RECORD_LIMIT = 65_535
HEADER = re.compile(
    rb"ringfence-ledger 1 ([0-9a-f]{32}) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}) (-|[0-9a-f]{64}(?:,[0-9a-f]{64})*)"
)
COMMIT = re.compile(rb"= ([1-9][0-9]{0,15}) ([0-9a-f]{64})")
ENDING = re.compile(rb',"prev":"([0-9a-f]{64})","seq":(0|[1-9][0-9]{0,15}),"time":([0-9]{16}),"v":1\}\n')
MEMBERS = {"body", "call", "kind", "mission", "parent", "personal", "prev", "seq", "time", "v"}
BARE = {"ledger.created", "key.rotated", "retention.change"}


class Fault(Exception):
    """The first thing that does not fit: a verdict and the number of the record it is about."""

    def __init__(self, verdict: str, place: int) -> None:
        super().__init__(verdict, place)
        self.verdict, self.place = verdict, place


# Ed25519, RFC 8032 section 6.

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def _add(one, other):
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c = 2 * one[3] * other[3] * D % P
    d = 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _times(number, point):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = _add(total, point)
        point = _add(point, point)
        number >>= 1
    return total


def _point(octets):
    y = int.from_bytes(octets, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = _point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature is good."""
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r = _point(public), _point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= Q:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % Q
    left, right = _times(s, BASE), _add(r, _times(h, a))
    return not ((left[0] * right[2] - right[0] * left[2]) % P or (left[1] * right[2] - right[1] * left[2]) % P)


# The tree: the roots of its perfect subtrees, largest first.


def _leaf(line: bytes) -> bytes:
    return hashlib.sha256(b"\0" + line).digest()


def _grow(nodes: list[bytes], size: int, leaf: bytes) -> None:
    nodes.append(leaf)
    while size & 1:
        right = nodes.pop()
        nodes.append(hashlib.sha256(b"\1" + nodes.pop() + right).digest())
        size >>= 1


def _root(nodes: list[bytes]) -> bytes:
    if not nodes:
        return hashlib.sha256(b"").digest()
    root = nodes[-1]
    for node in reversed(nodes[:-1]):
        root = hashlib.sha256(b"\1" + node + root).digest()
    return root


# Canonical JSON.


def _allowed(value) -> bool:
    if isinstance(value, dict):
        return all(key.isascii() and _allowed(inner) for key, inner in value.items())
    if isinstance(value, list):
        return all(map(_allowed, value))
    if isinstance(value, float):
        return False
    return not isinstance(value, int) or abs(value) < 2**53


def _deepest(value) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_deepest, inner), default=0)


def canonical(line: bytes):
    """The record as an object, or None where the line is not its canonical form."""
    try:
        value = json.loads(line[:-1].decode("utf-8"))
        if not isinstance(value, dict) or not _allowed(value) or _deepest(value) > 100:
            return None
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return value if text.encode("utf-8") + b"\n" == line else None
    except (ValueError, RecursionError):
        return None


def _sound(value: dict) -> bool:
    if not value.keys() <= MEMBERS or not isinstance(value.get("kind"), str) or not isinstance(value.get("body"), dict):
        return False
    if not all(isinstance(value[name], str) for name in ("call", "mission", "parent") if name in value):
        return False
    if value["kind"] in BARE and value.keys() & {"call", "mission", "parent", "personal"}:
        return False
    return isinstance(value.get("personal", {}), dict)


# Reading.


@dataclass
class Note:
    """A checkpoint: whose, how many records, their root, and the signature lines as name, key id and signature."""

    origin: str
    size: int
    root: bytes
    text: bytes
    lines: list[tuple[str, bytes, bytes]]


def _base64(text: str) -> bytes:
    octets = base64.b64decode(text, validate=True)
    if base64.b64encode(octets).decode() != text:
        raise ValueError("spare bits")
    return octets


def note(octets: bytes) -> Note | None:
    """Read one signed note; None where it is none."""
    try:
        if len(octets) > 65_536:
            return None
        text, empty, below = octets.decode("utf-8").rpartition("\n\n")
        origin, size, root = text.split("\n")
        lines = []
        if not empty or not below.endswith("\n"):
            return None
        for line in below[:-1].split("\n"):
            dash, name, packed = line.split(" ")
            unpacked = _base64(packed)
            if dash != "—" or not name or "+" in name or len(unpacked) < 5:
                return None
            lines.append((name, unpacked[:4], unpacked[4:]))
        if not re.fullmatch(r"0|[1-9][0-9]{0,15}", size, re.ASCII) or len(_base64(root)) != 32:
            return None
        return Note(origin, int(size), _base64(root), text.encode() + b"\n", lines)
    except ValueError:
        return None


def _contents(path: str) -> bytes:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError("not a file")
    with open(path, "rb") as stream:
        octets = stream.read(SEGMENT_LIMIT + 1)
    if path.endswith(".gz"):
        engine = zlib.decompressobj(31)
        octets = engine.decompress(octets, SEGMENT_LIMIT + 1)
        if not engine.eof or engine.unused_data:
            raise ValueError("not one gzip member")
    if len(octets) > SEGMENT_LIMIT:
        raise ValueError("too long")
    return octets


@dataclass
class Log:
    """What was read so far."""

    name: str = ""
    size: int = 0
    first: int = 0
    last: bytes = bytes(32)
    nodes: list[bytes] = field(default_factory=list)
    roots: dict[int, bytes] = field(default_factory=dict)
    keys: list[tuple[int, bytes]] = field(default_factory=list)  # number of the record that told of it, public key
    whole: bool = True
    signed: int = 0  # records that the log's own checkpoint signs for
    torn: int | None = None


class Stranger:
    """One run over a ledger's folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.log = Log()
        self.named: set[bytes] = set()
        self.numbers: set[int] = set()
        self.rotations: list[tuple[int, dict]] = []
        self.starts: dict[int, bytes] = {}  # the root over all before each segment that is here

    def segments(self) -> list[tuple[int, str]]:
        """Number and path of each segment; the plain one counts where there are two."""
        found = {}
        at = os.path.join(self.folder, "segments")
        for name in sorted(os.listdir(at) if os.path.isdir(at) else []):
            if re.fullmatch(r"[0-9]{20}\.seg(\.gz)?", name, re.ASCII):
                found.setdefault(int(name[:20]), os.path.join(at, name))
        return sorted(found.items())

    def survey(self) -> None:
        """Which hashes are named, and which numbers intact records have."""
        lines = []
        for _, path in self.segments():
            try:
                lines += _contents(path).split(b"\n")
            except (OSError, ValueError, zlib.error):
                continue
        for line in lines:
            if (match := ENDING.search(line + b"\n")) and line.startswith(b"{"):
                self.named.add(bytes.fromhex(match[1].decode()))
            elif match := COMMIT.fullmatch(line):
                self.named.add(bytes.fromhex(match[2].decode()))
        for line in lines:
            if line.startswith(b"{") and _leaf(line + b"\n") in self.named and (match := ENDING.search(line + b"\n")):
                self.numbers.add(int(match[2]))

    def misfit(self, line: bytes) -> Fault:
        """Say why a record does not fit here."""
        here = self.log.size
        match = ENDING.search(line)
        if match is None or _leaf(line) not in self.named:
            return Fault("ALTERED", here)
        number = int(match[2])
        if number == here:
            return Fault("ALTERED", max(here - 1, 0))
        if number > here and here not in self.numbers:
            return Fault("GAP", here)
        if number < here and self.log.last not in self.named:
            return Fault("ALTERED", here - 1)
        return Fault("REORDERED", here)

    def record(self, line: bytes) -> None:
        log = self.log
        match = ENDING.search(line)
        if match is None or match.end() != len(line) or len(line) > RECORD_LIMIT:
            raise self.misfit(line)
        if int(match[2]) != log.size or bytes.fromhex(match[1].decode()) != log.last:
            raise self.misfit(line)
        value = canonical(line)
        if value is None or not _sound(value):
            raise Fault("ALTERED", log.size)
        self.told(value)
        log.last = _leaf(line)
        _grow(log.nodes, log.size, log.last)
        log.size += 1
        log.roots[log.size] = _root(log.nodes)

    def told(self, value: dict) -> None:
        """What a record says about keys and purges."""
        log, body = self.log, value["body"]
        if (value["seq"] == 0) != (value["kind"] == "ledger.created"):
            raise Fault("ALTERED", value["seq"])
        try:
            if value["seq"] == 0:
                if body["log"] != log.name or body["epoch"] != 1:
                    raise Fault("ALTERED", 0)
                log.keys = [(0, _public(body["public"]))]
            elif value["kind"] == "key.rotated":
                self.rotations.append((value["seq"], body))
            elif value["kind"] == "retention.change" and log.first and body["action"] == "purge":
                root = self.starts.get(body["before"])
                told = value["seq"] < log.signed and root is not None and bytes.fromhex(body["root"]) == root
                if not log.whole and told:
                    log.whole = True
                    log.keys = [(one["after"], _public(one["public"])) for one in body["epochs"]]
        except (KeyError, TypeError, ValueError):
            raise Fault("ALTERED", value["seq"]) from None

    def commit(self, line: bytes) -> None:
        log = self.log
        match = COMMIT.fullmatch(line[:-1])
        if match is None:
            raise Fault("ALTERED", log.size)
        number, leaf = int(match[1]), bytes.fromhex(match[2].decode())
        if number == log.size and leaf == log.last:
            return
        if leaf == log.last:
            raise Fault("ALTERED", log.size)
        if number > log.size:
            raise Fault("GAP", log.size)
        if number == log.size:
            raise Fault("ALTERED", max(log.size - 1, 0))
        raise Fault("REORDERED", log.size)

    def header(self, line: bytes, number: int) -> None:
        log = self.log
        match = HEADER.fullmatch(line)
        if match is None:
            raise Fault("ALTERED", log.size)
        name, first, prev = match[1].decode(), int(match[2]), bytes.fromhex(match[3].decode())
        nodes = [] if match[4] == b"-" else [bytes.fromhex(one.decode()) for one in match[4].split(b",")]
        if len(nodes) != first.bit_count() or (not first) == any(prev):
            raise Fault("ALTERED", log.size)
        if first != number:
            raise Fault("REORDERED", log.size)
        if not log.name:
            log.name, log.size, log.first, log.last, log.nodes = name, first, first, prev, nodes
            log.whole = not first
            self.starts[first] = _root(nodes)
            log.roots[first] = _root(nodes)
            return
        if name != log.name:
            raise Fault("ALTERED", log.size)
        if first != log.size:
            raise Fault("GAP" if first > log.size else "ALTERED", log.size)
        if prev != log.last or nodes != log.nodes:
            raise Fault("ALTERED", log.size)
        self.starts[first] = _root(nodes)

    def segment(self, number: int, path: str, *, last: bool) -> None:
        try:
            octets = _contents(path)
        except (OSError, ValueError, zlib.error):
            raise Fault("ALTERED", self.log.size) from None
        # The tail begins after the last commit line, or after the header where there is none.
        head, feed, rest = octets.partition(b"\n")
        if not feed:
            raise Fault("ALTERED", self.log.size)
        self.header(head, number)
        end, pending, length = 0, [], 0
        at = 0
        while (after := rest.find(b"\n", at) + 1) > 0:
            line, at = rest[at:after], after
            if b"\0" in line or line[:1] not in (b"{", b"=") or len(line) > RECORD_LIMIT:
                break
            if line.startswith(b"{"):
                pending.append(line)
                length += len(line)
                if length > GROUP_LIMIT or len(pending) > 65_536:
                    break
                continue
            for one in pending:
                self.record(one)
            self.commit(line)
            if not pending:
                raise Fault("ALTERED", self.log.size)
            end, pending, length = at, [], 0
        self.tail(rest[end:], len(head) + 1 + end, last=last)

    def tail(self, tail: bytes, offset: int, *, last: bool) -> None:
        text = tail.rstrip(b"\0")
        if not text:
            return
        commits = [
            match for match in re.finditer(rb"(?:^|(?<=[\n\0]))= [1-9][0-9]{0,15} [0-9a-f]{64}(?=\n)", text) if match
        ]
        runs = [one for one in re.split(rb"\0+", text) if one]
        if text.startswith(b"{"):
            runs = runs[1:]
        if runs and text.endswith(b"\n") and (offset + len(text) - len(runs[-1])) % 512 == 0:
            runs = runs[:-1]
        whole = not commits or (len(commits) == 1 and commits[0].end() + 1 == len(text) and b"\0" in text)
        whole = whole and len(text) <= GROUP_LIMIT
        if not last or not whole or any(len(run) < 16 for run in runs):
            raise Fault("ALTERED", self.log.size)
        self.log.torn = self.log.size

    def read(self) -> None:
        self.survey()
        found = self.segments()
        for number, path in found:
            self.segment(number, path, last=number == found[-1][0])

    # Keys and heads.

    def rotate(self) -> None:
        """Check each rotation against the key before it."""
        log = self.log
        for at, body in self.rotations:
            known = [one for one in log.keys if one[0] < at]
            if len(known) < len(log.keys):
                continue
            try:
                public, previous = _public(body["public"]), _public(body["previous"])
                lines = [log.name, str(body["epoch"]), str(at), body["previous"], body["public"]]
                text = ("ringfence key rotation\n" + "".join(f"{line}\n" for line in lines)).encode()
                fits = body["epoch"] == len(known) + 1 and known and previous == known[-1][1]
                fits = fits and signed(previous, text, bytes.fromhex(body["by_old"]))
                fits = fits and signed(public, text, bytes.fromhex(body["by_new"]))
            except (KeyError, TypeError, ValueError):
                fits = False
            if not fits:
                raise Fault("KEY_EPOCH", at)
            log.keys.append((at, public))

    def epoch_of(self, name: str) -> int:
        """The epoch in a key's name, 0 where it is not one of this log."""
        match = re.fullmatch(rf"ringfence/{self.log.name}/([1-9][0-9]{{0,8}})", name, re.ASCII)
        return int(match[1]) if match else 0

    def signature(self, head: Note) -> str | None:
        """The verdict on a head's signatures, None where it is well signed."""
        log = self.log
        if head.origin != f"ringfence/{log.name}":
            return "ALTERED"
        force = max((epoch for epoch, (at, _) in enumerate(log.keys, 1) if epoch == 1 or head.size > at), default=0)
        good = set()
        for epoch, (_, public) in enumerate(log.keys, 1):
            name = f"ringfence/{log.name}/{epoch}"
            identity = hashlib.sha256(name.encode() + b"\n\1" + public).digest()[:4]
            if any(one[0] == name and one[1] == identity and signed(public, head.text, one[2]) for one in head.lines):
                good.add(epoch)
        if force in good:
            return None
        later = [name for name, _, _ in head.lines if self.epoch_of(name) > len(log.keys)]
        if head.size > log.size and later:
            return None  # the records that would tell of this key are missing
        return "KEY_EPOCH" if good else "ALTERED"


def _public(text: str) -> bytes:
    if not re.fullmatch(r"[0-9a-f]{64}", text, re.ASCII):
        raise ValueError("no key")
    return bytes.fromhex(text)


def verify(folder: str, anchors: list[bytes] | None = None) -> tuple[str, int | None]:
    """The verdict and its place; NO_ANCHOR without a head from outside."""
    run = Stranger(folder)
    try:
        return _verify(run, anchors or [])
    except Fault as fault:
        return fault.verdict, fault.place


def _verify(run: Stranger, anchors: list[bytes]) -> tuple[str, int | None]:
    path = os.path.join(run.folder, "checkpoint")
    there = os.path.lexists(path)
    try:
        head = note(_contents(path)) if there else None
    except (OSError, ValueError):
        head = None
    if there and head is None:
        raise Fault("ALTERED", 0)
    run.log.signed = head.size if head is not None else 10**16
    run.read()
    log = run.log
    if not log.name:
        raise Fault("TRUNCATED", 0)
    if not log.whole:
        raise Fault("GAP", 0)
    run.rotate()
    if head is None:
        raise Fault("TRUNCATED", log.size)
    if bad := run.signature(head):
        raise Fault(bad, head.size)
    if head.size > log.size:
        raise Fault("TRUNCATED" if log.torn is None else "ALTERED", log.size)
    if log.roots.get(head.size) != head.root:
        raise Fault("ALTERED", head.size)
    counted = 0
    for octets in anchors:
        other = note(octets)
        if other is None or (bad := run.signature(other)):
            raise Fault("ALTERED" if other is None else str(bad), log.size)
        if other.size > log.size:
            raise Fault("TRUNCATED", log.size)
        if other.size < log.first:
            continue
        counted += 1
        if log.roots.get(other.size) != other.root:
            raise Fault("FORKED", other.size)
    if log.torn is not None:
        raise Fault("TORN", log.torn)
    return ("OK" if counted else "NO_ANCHOR"), None


if __name__ == "__main__":
    heads = []
    for path in sys.argv[2:]:
        with open(path, "rb") as stream:
            heads.append(stream.read())
    print(*verify(sys.argv[1], heads))
