"""What only who holds the key can write: forged headers, purges, rotations, keys and heads, all signed.

Both verifiers give the same verdict, whatever they were asked to check.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ringfence.ledger import anchors, frame, keys, note
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.tree import Range, leaf_hash
from ringfence.ledger.verify import verify
from ringfence.model.ids import Micros

LOG = "ab" * 16
NOW = Micros(1_800_000_001_000_000)
OLD, NEW = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
PRIME = 2**255 - 19


def public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


class Forger:
    """Writes any log, chained and committed."""

    def __init__(self, first: int = 0, nodes: tuple[str, ...] = (), prev: str = frame.NO_HASH) -> None:
        self.tree, self.prev = Range(first, [bytes.fromhex(node) for node in nodes]), prev
        self.segments: list[tuple[int, bytes]] = []
        self.begin()

    def begin(self) -> None:
        nodes = tuple(node.hex() for node in self.tree.nodes)
        header = frame.Header(log=LOG, first=self.tree.size, prev=self.prev, nodes=nodes)
        self.segments.append((self.tree.size, header.line()))

    def add(self, body: object, kind: str = "box.observed") -> "Forger":
        raw = body if isinstance(body, bytes) else json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
        size = self.tree.size
        line = frame.complete(b'{"body":%b,"kind":"%b"' % (raw, kind.encode()), self.prev, size, NOW - 1000)
        self.tree.add(leaf_hash(line))
        self.prev = leaf_hash(line).hex()
        first, before = self.segments[-1]
        self.segments[-1] = (first, before + line + frame.commit_line(size + 1, self.prev))
        return self

    def head(self, key: Ed25519PrivateKey = OLD, epoch: int = 1, **fields: str) -> note.Checkpoint:
        signed = keys.sign(key, log=LOG, epoch=epoch, size=self.tree.size, root=self.tree.root())
        if not fields:
            return signed
        bare = note.Checkpoint(origin=fields["origin"], size=signed.size, root=signed.root)
        (line,) = signed.signatures
        again = note.Signature(name=line.name, key_id=line.key_id, value=key.sign(bare.body()))
        return note.Checkpoint(origin=bare.origin, size=bare.size, root=bare.root, signatures=(again,))


def begun(records: int = 4) -> Forger:
    forger = Forger().add({"log": LOG, "epoch": 1, "public": public(OLD), "format": 1}, "ledger.created")
    for number in range(1, records):
        forger.add({"n": number})
    return forger


def judge(at: Path, forger: Forger, own: note.Checkpoint, kept: note.Checkpoint | None = None) -> set[str]:
    """What both say, at both depths."""
    shutil.rmtree(at, ignore_errors=True)
    (at / "segments").mkdir(parents=True)
    for first, content in forger.segments:
        (at / "segments" / frame.segment_name(first)).write_bytes(content)
    (at / "checkpoint").write_bytes(own.text())
    (at / "kept").write_bytes((kept or own).text())
    found = set()
    for strict in (True, False):
        asked = [anchors.FileAnchor(path=str(at / "kept"))]
        ours = verify(str(at), anchors=asked, now=NOW, depth="strict" if strict else "tree")
        alone = standalone.verify(str(at), [str(at / "kept")], strict=strict, now=NOW, max_age=86400.0)
        found |= {ours.verdict.value, alone[0]}
    return found


def purge(**changed: object) -> Callable[[int], Forger]:
    def make(first: int) -> Forger:
        gone = begun(first)
        nodes = tuple(node.hex() for node in gone.tree.nodes)
        body: dict[str, object] = {
            "action": "purge",
            "before": first,
            "root": gone.tree.root().hex(),
            "epochs": [{"epoch": 1, "after": 0, "public": public(OLD)}],
            **changed,
        }
        kept = {name: value for name, value in body.items() if value != "left out"}
        return Forger(first, nodes, gone.prev).add({}).add(kept, "retention.change").add({})

    return make


SECOND = {"epoch": 2, "after": True, "public": public(NEW)}
FIRST = {"epoch": 1, "after": 0, "public": public(OLD)}


@pytest.mark.parametrize(
    ("make", "first", "verdict"),
    [
        (purge(), 4, "OK"),
        (purge(action="other"), 4, "GAP"),
        (purge(before="left out"), 4, "ALTERED"),
        (purge(root="left out"), 4, "ALTERED"),
        (purge(epochs="left out"), 4, "ALTERED"),
        (purge(epochs=[]), 4, "GAP"),
        (purge(before=True), 1, "GAP"),
        (purge(epochs=[{**FIRST, "after": False}]), 4, "ALTERED"),
        (purge(epochs=[{**FIRST, "epoch": True}]), 4, "ALTERED"),
        (purge(epochs=[FIRST, SECOND]), 4, "ALTERED"),
    ],
)
def test_a_purge_is_explained_by_whole_entries_alone(tmp_path, make, first, verdict):
    forger = make(first)
    assert judge(tmp_path / "log", forger, forger.head()) == {verdict}


@pytest.mark.parametrize(
    ("place", "first", "prev", "name"),
    [(1, b"0", b"ab" * 32, 4), (1, b"8", b"0" * 64, 4), (1, b"8", b"0" * 64, 8), (0, b"0", b"ab" * 32, 0)],
)
def test_a_header_that_does_not_fit_itself_is_altered_under_any_name(tmp_path, place, first, prev, name):
    forger = begun()
    forger.begin()
    forger.add({"n": 4})
    _, content = forger.segments[place]
    head, rest = content.split(b"\n", 1)
    words = head.split(b" ")
    nodes = b",".join([b"cd" * 32] * int(first).bit_count()) or b"-"
    forger.segments[place] = (name, b" ".join([*words[:3], first, prev, nodes]) + b"\n" + rest)
    assert judge(tmp_path / "log", forger, forger.head()) == {"ALTERED"}


@pytest.mark.parametrize(
    ("origin", "own", "kept"),
    [
        (LOG, "ALTERED", "TRUNCATED"),
        (f"ringfence/ringfence/{LOG}", "ALTERED", "TRUNCATED"),
        ("ringfence/", "ALTERED", "TRUNCATED"),
        ("elsewhere/log", "ALTERED", "TRUNCATED"),
    ],
)
def test_a_head_names_its_log_in_one_way(tmp_path, origin, own, kept):
    forger = begun()
    bent = forger.head(origin=origin)
    assert judge(tmp_path / "log", forger, bent, forger.head()) == {own}
    assert judge(tmp_path / "log", forger, forger.head(), bent) == {kept}


@pytest.mark.parametrize("kind", ["retention.change", "key.rotated", "ledger.created"])
@pytest.mark.parametrize(
    "body", [b'{"a":"\\ud800"}', b'{"a":NaN}', b'{"a":1e999}', b'{"a": 1}', b'{"a":1,"a":2}', b"null"]
)
def test_records_that_tell_of_keys_are_canonical_or_altered_at_any_depth(tmp_path, kind, body):
    forger = begun().add(body, kind)
    assert judge(tmp_path / "log", forger, forger.head()) == {"ALTERED"}


@pytest.mark.parametrize("body", [b'{"a":"\\ud800"}', b'{"a":NaN}', b"5", b'{"action":"configure","anchors":5}'])
def test_a_record_about_anchors_that_is_none_matters_to_the_strict_check_alone(tmp_path, body):
    forger = begun().add(body, "ledger.anchored")
    good = body.endswith(b"5}")
    assert judge(tmp_path / "log", forger, forger.head()) == {"OK"} if good else {"OK", "ALTERED"}


@pytest.mark.parametrize(
    "changed", [{"previous": None}, {"previous": "ab" * 32}, {"epoch": True}, {"epoch": 3}, {"by_new": "ab" * 64}]
)
def test_a_rotation_names_the_key_before(tmp_path, changed):
    forger = begun()
    size = forger.tree.size
    statement = keys.rotation_statement(LOG, 2, size, bytes.fromhex(public(OLD)), bytes.fromhex(public(NEW)))
    body = {
        "epoch": 2,
        "public": public(NEW),
        "previous": public(OLD),
        "by_old": OLD.sign(statement).hex(),
        "by_new": NEW.sign(statement).hex(),
    }
    good = begun().add(body, "key.rotated").add({})
    assert judge(tmp_path / "log", good, good.head(NEW, 2)) == {"OK"}
    forger.add({**body, **changed}, "key.rotated").add({})
    assert judge(tmp_path / "log", forger, forger.head(NEW, 2)) == {"KEY_EPOCH"}


@pytest.mark.parametrize("spelled", [1 | 1 << 255, PRIME - 1 | 1 << 255, PRIME + 1, PRIME, 2**255 - 1])
def test_a_key_in_another_spelling_signs_nothing(tmp_path, spelled):
    """The identity as a key: without a look at its spelling, anything that begins with S times the base point is signed."""
    point = standalone.point_times(5, standalone.BASE)
    inverse = pow(point[2], PRIME - 2, PRIME)
    x, y = point[0] * inverse % PRIME, point[1] * inverse % PRIME
    signature = (y | (x & 1) << 255).to_bytes(32, "little") + (5).to_bytes(32, "little")
    key = spelled.to_bytes(32, "little")
    forger = Forger().add({"log": LOG, "epoch": 1, "public": key.hex(), "format": 1}, "ledger.created").add({})
    name = note.key_name(LOG, 1)
    line = note.Signature(name=name, key_id=note.key_id(name, key), value=signature)
    head = note.Checkpoint(origin=note.origin(LOG), size=forger.tree.size, root=forger.tree.root(), signatures=(line,))
    assert judge(tmp_path / "log", forger, head) == {"ALTERED"}


def test_the_first_fault_counts_also_inside_a_group(tmp_path):
    forger = begun().add(b'{"a": 1}')  # not canonical; then, in the same group, a record that does not follow
    lines = forger.segments[0][1].splitlines(keepends=True)
    group = [*lines[:-1], lines[5], frame.commit_line(6, frame.record_hash(lines[5]))]
    at = tmp_path / "log"
    forger.segments = [(0, b"".join(group))]
    judge(at, forger, begun().head())
    ours = verify(str(at), now=NOW)
    alone = standalone.verify(str(at), [], strict=True, now=NOW, max_age=86400.0)
    assert (ours.verdict.value, alone[0]) == ("ALTERED", "ALTERED")
    assert ours.detail == alone[2] == "the record is not in canonical form"
