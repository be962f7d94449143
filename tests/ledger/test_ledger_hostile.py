"""Bent ledgers of every other kind: files that are none, bombs, forged keys and purges, replayed and foreign heads.

All three verifiers give the same right verdict; none takes long, much memory, or ends in a traceback.
"""

import contextlib
import gzip
import io
import os
import resource
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from ringfence.ledger import canonical, frame, keys, note, scan
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.standalone import VERIFIER
from ringfence.ledger.standalone import verify as standalone
from ringfence.ledger.tree import Range, fold, leaf_hash
from ringfence.ledger.verify import verify
from ringfence.model.entry import Entry, EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

NOW = Micros(1_800_000_001_000_000)
SETTINGS = Settings(segment_bytes=1500, window_bytes=512, checkpoint_every=Micros(10**12))


@dataclass
class Bench:
    """A ledger to bend, the heads it had, and the keys that a thief may have."""

    at: Path
    heads: list[note.Checkpoint]
    stolen: dict[int, bytes]

    @property
    def log(self) -> str:
        return self.heads[0].origin.removeprefix("ringfence/")

    @property
    def files(self) -> list[Path]:
        return [Path(file.path) for file in scan.segments(str(self.at))]

    def sign(self, size: int, root: bytes, epoch: int, log: str = "") -> note.Checkpoint:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        private = Ed25519PrivateKey.from_private_bytes(self.stolen[epoch])
        return keys.sign(private, log=log or self.log, epoch=epoch, size=size, root=root)

    def lines(self) -> list[bytes]:
        return [line for _, line in scan.lines(str(self.at))]

    def rebuild(self, bodies: list[bytes], *, epoch: int, first: int = 0, nodes: tuple[bytes, ...] = ()) -> None:
        """What a thief of the key does: one segment with these records (up to ``prev``), chained and signed."""
        shutil.rmtree(self.at / "segments")
        (self.at / "segments").mkdir()
        tree = Range(first, list(nodes))
        prev = "ab" * 32 if first else frame.NO_HASH
        header = frame.Header(log=self.log, first=first, prev=prev, nodes=tuple(node.hex() for node in nodes))
        out = header.line()
        for seq, body in enumerate(bodies, first):
            line = frame.complete(body, prev, seq, 1_800_000_000_000_000 + seq)
            tree.add(leaf_hash(line))
            prev = leaf_hash(line).hex()
            out += line + frame.commit_line(seq + 1, prev)
        (self.at / "segments" / frame.segment_name(first)).write_bytes(out)
        (self.at / "checkpoint").write_bytes(self.sign(tree.size, tree.root(), epoch).text())


def prepared(line: bytes) -> bytes:
    return line[: line.rindex(b',"prev"')]


def grow(at: Path) -> Bench:
    """Two keys, several segments, a head after each step."""
    heads, stolen = [], {}
    with Ledger.open(
        str(at), clock=iter(range(1_800_000_000_000_000, 10**17, 1000)).__next__, settings=SETTINGS
    ) as ledger:
        for number in range(12):
            body = {"n": number, "text": "long enough to fill segments of this size " * 2}
            ledger.append([Entry(kind=EntryKind.OBSERVED, time=Micros(NOW - 100 + number), body=body)])
            heads.append(ledger.checkpoint())
            if number == 5:
                stolen[1] = bytes.fromhex(Path(keys.key_path(ledger.directory, 1)).read_text())
                ledger.rotate_key()
        stolen[2] = bytes.fromhex(Path(keys.key_path(ledger.directory, 2)).read_text())
    return Bench(at, heads, stolen)


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Bench:
    return grow(tmp_path_factory.mktemp("grown") / "ledger")


@pytest.fixture
def bench(grown, tmp_path) -> Bench:
    shutil.copytree(grown.at, tmp_path / "ledger")
    return Bench(tmp_path / "ledger", grown.heads, grown.stolen)


class Kept:
    """An anchor that remembers one head."""

    name = "kept"

    def __init__(self, head: note.Checkpoint) -> None:
        self._head = head

    def heads(self):
        return {self._head.origin.removeprefix("ringfence/"): self._head}


def alone(directory: Path, head: note.Checkpoint | None, *, bare: bool) -> str:
    """What verify.py says; with ``bare`` in a process of its own, in little time and memory."""
    arguments = []
    if head is not None:
        (directory.parent / "kept").write_bytes(head.text())
        arguments = ["--anchor", str(directory.parent / "kept")]

    arguments = [str(directory), "--strict", "--now", str(NOW), *arguments]
    if not bare:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            standalone.main(arguments)
        return output.getvalue().split()[0]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (160 << 20, 160 << 20))

    done = subprocess.run(
        [sys.executable, "-I", "-S", VERIFIER, *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        preexec_fn=limit,
    )
    assert done.stderr == "", done.stderr
    word = done.stdout.split()[0]
    assert done.returncode == {"OK": 0, "NO_ANCHOR": 14, "STALE_ANCHOR": 14}.get(word, 12)
    return word


def verdicts(stranger: ModuleType | None, directory: Path, head: note.Checkpoint | None) -> set[str]:
    ours = verify(str(directory), anchors=[Kept(head)] if head else [], now=NOW).verdict.value
    found = {ours, alone(directory, head, bare=stranger is None)}
    return found if stranger is None else found | {stranger.verify(str(directory), [head.text()] if head else [])[0]}


# -- the bends: each changes the ledger and returns the head from outside, or None ------------------------------------

Bend = Callable[[Bench], note.Checkpoint | None]
BENDS: dict[str, tuple[str, Bend]] = {}


def bend(verdict: str) -> Callable[[Bend], Bend]:
    def take(function: Bend) -> Bend:
        BENDS[function.__name__] = (verdict, function)
        return function

    return take


@bend("OK")
def nothing(bench: Bench) -> note.Checkpoint:
    return bench.heads[-1]


@bend("NO_ANCHOR")
def replays_an_old_checkpoint(bench: Bench) -> None:
    (bench.at / "checkpoint").write_bytes(bench.heads[3].text())


@bend("TRUNCATED")
def replays_an_old_checkpoint_and_cuts(bench: Bench) -> note.Checkpoint:
    (bench.at / "checkpoint").write_bytes(bench.heads[2].text())
    for file in bench.files[1:]:
        file.unlink()
    return bench.heads[-1]


@bend("ALTERED")
def takes_the_checkpoint_of_another_log(bench: Bench) -> None:
    other = bench.sign(bench.heads[-1].size, bench.heads[-1].root, 2, log="ab" * 16)
    (bench.at / "checkpoint").write_bytes(other.text())


@bend("ALTERED")
def renames_the_origin_of_the_checkpoint(bench: Bench) -> None:
    other = bench.sign(bench.heads[-1].size, bench.heads[-1].root, 2)
    (bench.at / "checkpoint").write_bytes(other.text().replace(bench.log.encode(), b"ab" * 16, 1))


@bend("ALTERED")
def two_notes_in_one_checkpoint(bench: Bench) -> None:
    (bench.at / "checkpoint").write_bytes(bench.heads[-1].text() * 2)


@bend("ALTERED")
def a_huge_size_in_the_checkpoint(bench: Bench) -> None:
    text = bench.heads[-1].text().split(b"\n")
    (bench.at / "checkpoint").write_bytes(b"\n".join([text[0], b"9" * 5000, *text[2:]]))


@bend("TRUNCATED")
def signs_for_more_than_there_is(bench: Bench) -> None:
    (bench.at / "checkpoint").write_bytes(bench.sign(10**15, bytes(32), 2).text())


@bend("KEY_EPOCH")
def signs_with_the_stolen_old_key(bench: Bench) -> None:
    head = bench.heads[-1]
    (bench.at / "checkpoint").write_bytes(bench.sign(head.size, head.root, 1).text())


@bend("KEY_EPOCH")
def forges_a_rotation_with_the_stolen_old_key(bench: Bench) -> None:
    lines = bench.lines()
    at = next(seq for seq, line in enumerate(lines) if b'"kind":"key.rotated"' in line)
    bodies = [prepared(line) for line in lines]
    bodies.insert(at, b'{"body":{"n":0},"kind":"box.observed"')  # the true rotation, moved by one
    bench.rebuild(bodies, epoch=2)


@bend("FORKED")
def forks_before_the_rotation_with_the_stolen_old_key(bench: Bench) -> note.Checkpoint:
    bodies = [prepared(line) for line in bench.lines()[:4]]
    bodies += [b'{"body":{"n":%d},"kind":"box.observed"' % n for n in range(3)]
    bench.rebuild(bodies, epoch=1)
    return bench.heads[4]


@bend("FORKED")
def forks_with_the_present_key(bench: Bench) -> note.Checkpoint:
    bodies = [prepared(line) for line in bench.lines()]
    bodies[-2] = bodies[-2].replace(b"long", b"LONG")
    bench.rebuild(bodies, epoch=2)
    return bench.heads[-1]


@bend("GAP")
def removes_the_beginning(bench: Bench) -> None:
    bench.files[0].unlink()


@bend("GAP")
def begins_with_a_rotation_of_its_own(bench: Bench) -> None:
    bench.stolen = {**bench.stolen, 2: bytes(range(32))}
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    own = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw().hex()
    body = (
        b'{"body":{"by_new":"00","by_old":"00","epoch":2,"previous":"00","public":"%s"},"kind":"key.rotated"'
        % own.encode()
    )
    bench.rebuild([body, b'{"body":{},"kind":"box.observed"'], epoch=2, first=4, nodes=(bytes(32),))


@bend("GAP")
def forges_a_purge_of_other_records(bench: Bench) -> None:
    bench.files[0].unlink()
    first = scan.segments(str(bench.at))[0].first
    lines = bench.lines()
    head = scan.header(scan.segments(str(bench.at))[0])
    body = b'{"body":{"action":"purge","before":%d,"epochs":[{"after":0,"epoch":1,"public":"%s"}],"root":"%s"},"kind":"retention.change"'
    forged = body % (first, b"00" * 32, b"11" * 32)
    nodes = tuple(bytes.fromhex(node) for node in head.nodes)
    bench.rebuild([*(prepared(line) for line in lines), forged], epoch=2, first=first, nodes=nodes)


def all_purged(bench: Bench, public: str, signed: note.Checkpoint | None) -> None:
    """Other records in the place of all, behind an entry that says that what is missing was purged."""
    nodes = (b"\x11" * 32,)
    said = {"action": "purge", "before": 64, "epochs": [{"after": 0, "epoch": 1, "public": public}]}
    body = canonical.encode({**said, "root": fold(nodes).hex()})
    bodies = [b'{"body":{"text":"all is well"},"kind":"box.observed"', b'{"body":%b,"kind":"retention.change"' % body]
    bench.rebuild(bodies, epoch=1, first=64, nodes=nodes)
    if signed is not None:
        (bench.at / "checkpoint").write_bytes(signed.text())


@bend("GAP")
def says_that_all_was_purged_beside_a_head_of_before(bench: Bench) -> note.Checkpoint:
    head = bench.heads[4]
    all_purged(bench, public(bench, 1), head)
    return head


@bend("NO_ANCHOR")
def says_that_all_an_anchor_saw_was_purged_and_signs_it(bench: Bench) -> note.Checkpoint:
    all_purged(bench, public(bench, 1), None)
    return bench.heads[4]


@bend("GAP")
def rewrites_the_header_of_the_next_segment(bench: Bench) -> None:
    bench.files[0].unlink()
    file = bench.files[0]
    header, _, rest = file.read_bytes().partition(b"\n")
    words = header.split(b" ")
    file.write_bytes(b" ".join([*words[:3], b"0", b"0" * 64, b"-"]) + b"\n" + rest)
    file.rename(bench.at / "segments" / frame.segment_name(0))


@bend("ALTERED")
def swaps_a_segment_with_one_of_another_log(bench: Bench) -> None:
    file = bench.files[1]
    file.write_bytes(file.read_bytes().replace(bench.log.encode(), b"ab" * 16))


@bend("ALTERED")
def a_header_with_endless_digits(bench: Bench) -> None:
    file = bench.files[0]
    header, _, rest = file.read_bytes().partition(b"\n")
    words = header.split(b" ")
    file.write_bytes(b" ".join([*words[:3], b"9" * 5000, *words[4:]]) + b"\n" + rest)


@bend("ALTERED")
def a_commit_line_with_endless_digits(bench: Bench) -> None:
    file = bench.files[1]
    file.write_bytes(file.read_bytes().replace(b"\n= ", b"\n= " + b"9" * 5000, 1))


@bend("REORDERED")
def numbers_segments_anew(bench: Bench) -> None:
    for number, file in enumerate(bench.files):
        file.rename(file.with_name(frame.segment_name(number)))


@bend("ALTERED")
def a_pipe_for_a_segment(bench: Bench) -> None:
    file = bench.files[1]
    file.unlink()
    os.mkfifo(file)


@bend("ALTERED")
def a_folder_for_a_segment(bench: Bench) -> None:
    file = bench.files[1]
    file.unlink()
    file.mkdir()


@bend("ALTERED")
def a_link_for_a_segment(bench: Bench) -> None:
    file = bench.files[1]
    file.rename(bench.at / "elsewhere")
    file.symlink_to(bench.at / "elsewhere")


@bend("ALTERED")
def a_device_for_a_segment(bench: Bench) -> None:
    file = bench.files[0]
    file.unlink()
    file.symlink_to("/dev/zero")


@bend("NO_ANCHOR")
def a_hard_link_of_a_segment(bench: Bench) -> None:
    os.link(bench.files[1], bench.at / "second-name")


@bend("ALTERED")
def a_pipe_for_the_checkpoint(bench: Bench) -> None:
    (bench.at / "checkpoint").unlink()
    os.mkfifo(bench.at / "checkpoint")


@bend("ALTERED")
def a_link_for_the_checkpoint(bench: Bench) -> None:
    (bench.at / "checkpoint").rename(bench.at / "elsewhere")
    (bench.at / "checkpoint").symlink_to("elsewhere")


@bend("TRUNCATED")
def an_empty_folder_of_segments(bench: Bench) -> None:
    for file in bench.files:
        file.unlink()


@bend("TRUNCATED")
def a_removed_checkpoint(bench: Bench) -> None:
    (bench.at / "checkpoint").unlink()


@bend("ALTERED")
def an_empty_first_segment(bench: Bench) -> None:
    bench.files[0].write_bytes(b"")


@bend("ALTERED")
def an_empty_last_segment(bench: Bench) -> None:
    bench.files[-1].write_bytes(b"")


@bend("ALTERED")
def zeros_in_the_middle(bench: Bench) -> None:
    content = bytearray(bench.files[1].read_bytes())
    content[400:900] = bytes(500)
    bench.files[1].write_bytes(content)


@bend("ALTERED")
def zeros_over_a_whole_segment(bench: Bench) -> None:
    file = bench.files[1]
    file.write_bytes(bytes(file.stat().st_size))


@bend("ALTERED")
def bytes_after_the_zeros(bench: Bench) -> None:
    with open(bench.files[-1], "ab") as stream:
        stream.write(bytes(100_000) + b"x" * 15)


@bend("ALTERED")
def bytes_after_the_zeros_of_a_sealed_segment(bench: Bench) -> None:
    with open(bench.files[0], "ab") as stream:
        stream.write(bytes(1000) + b"x" * 100)


@bend("NO_ANCHOR")
def zeros_after_a_sealed_segment(bench: Bench) -> None:
    with open(bench.files[0], "ab") as stream:
        stream.write(bytes(100_000))


@bend("NO_ANCHOR")
def many_sparse_zeros(bench: Bench) -> None:
    os.truncate(bench.files[-1], 200 << 20)


@bend("ALTERED")
def more_zeros_than_a_segment_can_have(bench: Bench) -> None:
    os.truncate(bench.files[0], 1 << 40)


@bend("ALTERED")
def short_bytes_behind_many_zeros(bench: Bench) -> None:
    file = bench.files[-1]
    os.truncate(file, 200 << 20)
    with open(file, "r+b") as stream:
        stream.seek(200 << 20)
        stream.write(b"x" * 20)


@bend("ALTERED")
def one_endless_line(bench: Bench) -> None:
    with open(bench.files[-1], "r+b") as stream:
        stream.seek(len(bench.files[-1].read_bytes().rstrip(b"\0")))
        stream.write(b"{" + b"a" * (100 << 20))


@bend("ALTERED")
def records_without_end_and_no_commit_line(bench: Bench) -> None:
    with open(bench.files[-1], "r+b") as stream:
        stream.seek(len(bench.files[-1].read_bytes().rstrip(b"\0")))
        stream.write(b'{"body":{}}\n' * 2_000_000)


def packed(bench: Bench, at: int, change: Callable[[bytes], bytes], level: int = 9) -> None:
    file = bench.files[at]
    file.with_name(file.name + ".gz").write_bytes(change(gzip.compress(file.read_bytes(), level, mtime=0)))
    file.unlink()


@bend("NO_ANCHOR")
def an_archive_of_another_level(bench: Bench) -> None:
    packed(bench, 0, lambda content: content, level=1)


@bend("ALTERED")
def an_archive_cut_short(bench: Bench) -> None:
    packed(bench, 0, lambda content: content[:-9])


@bend("ALTERED")
def an_archive_with_a_second_member(bench: Bench) -> None:
    packed(bench, 0, lambda content: content + gzip.compress(bytes(100)))


@bend("ALTERED")
def an_archive_with_bytes_behind(bench: Bench) -> None:
    packed(bench, 0, lambda content: content + b"more")


@bend("ALTERED")
def an_archive_with_a_wrong_sum(bench: Bench) -> None:
    packed(bench, 0, lambda content: content[:-8] + b"\0\0\0\0" + content[-4:])


@bend("ALTERED")
def a_bomb_for_an_archive(bench: Bench) -> None:
    file = bench.files[1]
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    bomb = [engine.compress(file.read_bytes()), *(engine.compress(zeros) for _ in range(600)), engine.flush()]
    file.with_name(file.name + ".gz").write_bytes(b"".join(bomb))
    file.unlink()


@bend("ALTERED")
def a_bomb_of_one_line(bench: Bench) -> None:
    file = bench.files[1]
    engine = zlib.compressobj(9, zlib.DEFLATED, 31)
    letters = b"{" * (1 << 20)
    bomb = [engine.compress(file.read_bytes()), *(engine.compress(letters) for _ in range(200)), engine.flush()]
    file.with_name(file.name + ".gz").write_bytes(b"".join(bomb))
    file.unlink()


@bend("ALTERED")
def an_altered_plain_file_beside_a_good_archive(bench: Bench) -> None:
    file = bench.files[0]
    file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
    file.write_bytes(file.read_bytes().replace(b'"n":1', b'"n":7', 1))


@bend("GAP")
def a_missing_segment_before_a_broken_archive(bench: Bench) -> None:
    packed(bench, 3, lambda content: content[:-9])
    bench.files[1].unlink()


@pytest.mark.parametrize(
    "forged",
    [
        b'{"body":{"n":1},"kind":"box.observed","kind":"box.observed"',
        b'{"body":{"a":{"b":1,"b":1}},"kind":"box.observed"',
        b'{"body":{"a":[{"b":[{"c":1,"c":2}]}]},"kind":"box.observed"',
        b'{"body":{"a":9007199254740992},"kind":"box.observed"',
        b'{"body":{"a":-9007199254740992},"kind":"box.observed"',
        b'{"body":{"a":-0},"kind":"box.observed"',
        b'{"body":{"a":01},"kind":"box.observed"',
        b'{"body":{"a":1e3},"kind":"box.observed"',
        b'{"body":{"a":NaN},"kind":"box.observed"',
        b'{"body":{"a":%s},"kind":"box.observed"' % (b"9" * 5000),
        b'{"body":{"a":"\\ud800"},"kind":"box.observed"',
        b'{"body":{"a":"\xed\xa0\x80"},"kind":"box.observed"',
        b'{"body":{"a":"\xff"},"kind":"box.observed"',
        b'{"body":{"a":"\xc0\x80"},"kind":"box.observed"',
        b'{"body":{"a":"\\u0000\\u001F"},"kind":"box.observed"',
        b'{"body":{"a":"\\/"},"kind":"box.observed"',
        b'{"body":{"a":"\\u00e9"},"kind":"box.observed"',
        b'{"body":{"a":"\t"},"kind":"box.observed"',
        b'{"body":{"\xc3\xa9":1},"kind":"box.observed"',
        b'{"body":{"a":{"\xd0\xb0":1}},"kind":"box.observed"',
        b'{"body":{"b":1,"a":1},"kind":"box.observed"',
        b'\xef\xbb\xbf{"body":{},"kind":"box.observed"',
        b'{"kind":"box.observed","body":{}',
        b'{"body":[],"kind":"box.observed"',
        b'{"body":{},"kind":7',
        b'{"body":{},"call":7,"kind":"box.observed"',
        b'{"body":{},"kind":"box.observed","personal":"x"',
        b'{"body":{},"kind":"box.observed","zeta":1',
        b'{"body":' + b"[" * 20_000 + b"]" * 20_000 + b',"kind":"box.observed"',
        b'{"body":{"a":"' + b"x" * 65_500 + b'"},"kind":"box.observed"',
    ],
    ids=lambda forged: ascii(forged[:40])[2:-1],
)
def test_records_that_no_writer_makes_are_altered_even_when_signed(bench, stranger, forged):
    bench.rebuild([*(prepared(line) for line in bench.lines()), forged], epoch=2)
    assert verdicts(stranger, bench.at, None) == {"ALTERED"}


@pytest.mark.parametrize(
    "ending",
    [b'"time":180000000000000a,"v":1}\n', b'"time":1800000000000000,"v":2}\n', b'"time":"80000000000000","v":1}\n'],
)
def test_ends_of_records_that_are_none_are_altered_even_when_signed(bench, stranger, ending):
    lines = bench.lines()
    bench.rebuild([prepared(line) for line in lines], epoch=2)
    file = bench.files[0]
    before = frame.record_hash(bench.lines()[-1])
    line = b'{"body":{},"kind":"box.observed","prev":"%s","seq":%d,%s' % (before.encode(), len(lines), ending)
    file.write_bytes(file.read_bytes() + line + frame.commit_line(len(lines) + 1, frame.record_hash(line)))
    tree = Range()
    for one in [*bench.lines()[: len(lines)], line]:
        tree.add(leaf_hash(one))
    (bench.at / "checkpoint").write_bytes(bench.sign(tree.size, tree.root(), 2).text())
    assert verdicts(stranger, bench.at, None) == {"ALTERED"}


def cases(*, opened: bool) -> Iterator[object]:
    """The names of the bends; those with much to read are slow, but for one of each verifier's guards."""
    for name, (verdict, _) in BENDS.items():
        if opened and verdict in {"OK", "NO_ANCHOR"}:
            continue
        slow = name in {"a_bomb_of_one_line", "short_bytes_behind_many_zeros", "many_sparse_zeros", "one_endless_line"}
        slow = slow or (name == "a_bomb_for_an_archive" and opened)
        yield pytest.param(name, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize("name", [*cases(opened=False)])
def test_a_bent_ledger_gets_its_verdict_from_all(bench, stranger, name):
    expected, change = BENDS[name]
    head = change(bench)
    large = sum(file.stat().st_size for file in bench.files if file.is_file()) > 1 << 20 or "bomb" in name
    assert verdicts(None if large else stranger, bench.at, head) == {expected}


@pytest.mark.parametrize("name", [*cases(opened=True)])
def test_a_bent_ledger_is_not_opened_or_is_whole_where_it_is(bench, name):
    before = bench.lines()
    head = BENDS[name][1](bench)
    with contextlib.suppress(LedgerError):  # anything else than a refusal would be a fault of ours
        with Ledger.open(str(bench.at), anchors=[Kept(head)] if head else [], settings=SETTINGS) as ledger:
            after = [record.line for record in ledger.read()]
        assert after[: len(before)] == before or verify(str(bench.at), now=NOW).verdict.value == BENDS[name][0]


def public(bench: Bench, epoch: int) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(bench.stolen[epoch]).public_key().public_bytes_raw().hex()


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "null", "7", "[[]]", "[[1,0]]", '[[1,0,"zz"]]', '[[1,0,""]]', '[[1,0,"ONE"],[1,0,"ONE"]]', '[[2,0,"ONE"]]',
        '[[1,5,"ONE"]]', '[[1,"0","ONE"]]', '[[1.0,0,"ONE"]]', '[[true,0,"ONE"]]', '[[1,0,"ONE"],[1000000000,9,"TWO"]]',
        '[[1,0,"ONE"],[2,0,"TWO"]]', '[[1,0,"TWO"],[2,8,"ONE"]]', '[[1,0,"ONE"],[2,90,"TWO"]]', "[" * 100_000,
        '[[1,0,"ONE"],[2,3,"TWO"],[3,8,"ONE"]]',
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_an_edited_list_of_keys_keeps_the_ledger_closed_and_changes_no_verdict(bench, stranger, text):
    rows = text.replace("ONE", public(bench, 1)).replace("TWO", public(bench, 2))
    (bench.at / "keys" / "epochs.json").write_text(rows)
    now: Callable[[], Micros] = lambda: NOW  # noqa: E731 - a clock that stands still
    with contextlib.suppress(LedgerError), Ledger.open(str(bench.at), clock=now, settings=SETTINGS) as ledger:
        ledger.append([Entry(kind=EntryKind.OBSERVED, time=NOW, body={})])
        ledger.checkpoint()
    assert verdicts(stranger, bench.at, bench.heads[-1]) == {"OK"}


def test_a_stray_mark_of_a_purge_removes_nothing(bench):
    before = bench.lines()
    (bench.at / "purging").write_text(str(scan.segments(str(bench.at))[2].first))
    Ledger.open(str(bench.at), anchors=[], settings=SETTINGS).close()
    assert bench.lines()[: len(before)] == before


def test_a_folder_that_may_not_be_searched_is_no_verdict(bench, monkeypatch, capsys):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", path)

    for name in ("lstat", "listdir"):
        with monkeypatch.context() as patch:
            patch.setattr(standalone.os, name, refuse)
            with pytest.raises(SystemExit) as ended:
                standalone.main([str(bench.at)])
        assert ended.value.code == 2
        assert "Permission denied" in capsys.readouterr().err


def test_a_record_dated_in_the_future_is_not_new_for_ever(bench):
    file = bench.files[-1]
    last, size = bench.lines()[-1], bench.heads[-1].size + 1
    prev = frame.record_hash(last)
    line = frame.complete(b'{"body":{},"kind":"box.observed"', prev, len(bench.lines()), 4_000_000_000_000_000)
    file.write_bytes(file.read_bytes().rstrip(b"\0") + line + frame.commit_line(size, frame.record_hash(line)))
    assert verdicts(None, bench.at, bench.heads[-1]) == {"STALE_ANCHOR"}
