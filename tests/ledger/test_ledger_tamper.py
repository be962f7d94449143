"""Every way of bending a small log is found, with the verdict that names it, by both verifiers."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.ledger import frame, keys, note, scan
from ringfence.ledger.log import Ledger, Settings
from ringfence.ledger.standalone import VERIFIER
from ringfence.ledger.tree import Range, leaf_hash
from ringfence.ledger.verdict import Verdict
from ringfence.ledger.verify import verify
from ringfence.model.entry import EntryKind
from ringfence.model.ids import Micros

NOW = Micros(1_800_000_001_000_000)


class Remembered:
    """An anchor that remembers what it was told."""

    name = "remembered"

    def __init__(self, *heads: note.Checkpoint) -> None:
        self._heads = {head.origin.removeprefix("ringfence/"): head for head in heads}

    def heads(self):
        return self._heads


@pytest.fixture
def small(tmp_path, clock, make_entry) -> Path:
    """A closed log of nine records in three segments, groups of one and of several."""
    settings = Settings(segment_bytes=900, window_bytes=256, checkpoint_every=Micros(10**12))
    with Ledger.open(str(tmp_path / "small"), clock=clock, settings=settings) as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        ledger.append([make_entry(n, EntryKind.OBSERVED) for n in (2, 3, 4)])
        ledger.append([make_entry(5, EntryKind.OBSERVED)])
        ledger.append([make_entry(n, EntryKind.OBSERVED) for n in (6, 7)])
        ledger.append([make_entry(8, EntryKind.OBSERVED)])
    assert len(scan.segments(ledger.directory)) >= 3
    return Path(ledger.directory)


def head_of(directory: Path) -> note.Checkpoint:
    found = note.parse((directory / "checkpoint").read_bytes())
    assert found is not None
    return found


def judge(directory: Path, *anchors, **options) -> Verdict:
    return verify(str(directory), anchors=anchors, now=NOW, **options).verdict


def judge_alone(directory: Path, *anchors: note.Checkpoint, strict: bool = True) -> str:
    """What the standalone verifier says."""
    arguments = ["--strict"] if strict else []
    for number, head in enumerate(anchors):
        path = directory.parent / f"anchor-{number}"
        path.write_bytes(head.text())
        arguments += ["--anchor", str(path)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", VERIFIER, str(directory), "--now", str(NOW), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout.split()[0]


def lines_of(directory: Path) -> list[tuple[str, bytes]]:
    """Every line of the log with its segment file, the zeros left out."""
    found = []
    for segment in scan.segments(str(directory)):
        content = Path(segment.path).read_bytes().rstrip(b"\x00")
        found += [(segment.path, line) for line in content.splitlines(keepends=True)]
    return found


def write_lines(lines: list[tuple[str, bytes]]) -> None:
    for path in {path for path, _ in lines}:
        Path(path).write_bytes(b"".join(line for own, line in lines if own == path))


def record_places(lines) -> list[int]:
    return [i for i, (_, line) in enumerate(lines) if line.startswith(b"{")]


def test_an_untouched_log_is_ok_with_an_anchor_and_not_proven_without(small):
    assert judge(small, Remembered(head_of(small))) is Verdict.OK
    assert judge(small) is Verdict.NO_ANCHOR
    assert judge_alone(small, head_of(small)) == "OK"
    assert judge_alone(small) == "NO_ANCHOR"
    assert not Verdict.TORN.proven
    assert Verdict.NO_ANCHOR.proven


def test_every_single_bit_flip_is_altered(small):
    anchor = Remembered(head_of(small))
    wrong = []
    for file in [*sorted((small / "segments").iterdir()), small / "checkpoint"]:
        content = bytearray(file.read_bytes())
        for offset in range(len(content)):
            for bit in range(8):
                content[offset] ^= 1 << bit
                file.write_bytes(content)
                found = judge(small, anchor)
                if found is not Verdict.ALTERED:
                    wrong.append((file.name, offset, bit, found))
                content[offset] ^= 1 << bit
        file.write_bytes(content)
    assert wrong == []
    assert judge(small, anchor) is Verdict.OK


def test_two_swapped_records_are_reordered(small):
    lines = lines_of(small)
    places = record_places(lines)
    for first, second in [(2, 3), (3, 4), (2, 4), (1, 5)]:
        changed = list(lines)
        a, b = places[first], places[second]
        changed[a], changed[b] = (lines[a][0], lines[b][1]), (lines[b][0], lines[a][1])
        write_lines(changed)
        assert judge(small) is Verdict.REORDERED, (first, second)
        assert judge_alone(small) == "REORDERED"


def test_a_dropped_record_is_a_gap(small):
    lines = lines_of(small)
    for place in record_places(lines)[1:-1]:
        write_lines([line for i, line in enumerate(lines) if i != place])
        assert judge(small) is Verdict.GAP, place
        assert judge_alone(small) == "GAP"


def test_a_doubled_record_is_reordered_and_a_foreign_one_altered(small):
    lines = lines_of(small)
    places = record_places(lines)
    for place in places[1:]:
        write_lines([*lines[: place + 1], lines[place], *lines[place + 1 :]])
        assert judge(small) is Verdict.REORDERED, place
        assert judge_alone(small) == "REORDERED"
    place = places[3]
    before = leaf_hash(lines[places[2]][1]).hex()
    forged = frame.complete(b'{"body":{"n":99},"kind":"box.observed"', before, 3, 1_800_000_000_000_000)
    write_lines([*lines[:place], (lines[place][0], forged), *lines[place:]])
    assert judge(small) is Verdict.ALTERED
    assert judge_alone(small) == "ALTERED"


def test_a_missing_segment_is_a_gap_and_a_renamed_one_is_found(small):
    files = [Path(segment.path) for segment in scan.segments(str(small))]
    kept = files[1].read_bytes()
    files[1].unlink()
    assert judge(small) is Verdict.GAP
    assert judge_alone(small) == "GAP"
    files[1].write_bytes(files[2].read_bytes())
    files[2].write_bytes(kept)
    assert judge(small) is Verdict.REORDERED
    assert judge_alone(small) == "REORDERED"


def test_cut_tails_are_truncated_down_to_the_last_head_that_anyone_remembers(small):
    lines = lines_of(small)
    anchor = head_of(small)
    commits = [i for i, (_, line) in enumerate(lines) if line.startswith(b"=")]
    for cut in commits[:-1]:
        kept = lines[: cut + 1]
        for path in {path for path, _ in lines} - {path for path, _ in kept}:
            os.unlink(path)
        write_lines(kept)
        assert judge(small, Remembered(anchor)) is Verdict.TRUNCATED
        assert judge(small) is Verdict.TRUNCATED
        assert judge_alone(small) == "TRUNCATED"
        (small / "checkpoint").unlink()
        assert judge(small, Remembered(anchor)) is Verdict.TRUNCATED
        (small / "checkpoint").write_bytes(anchor.text())
        write_lines(lines)


def test_a_removed_log_is_truncated_even_when_another_takes_its_place(small, tmp_path, clock):
    anchor = Remembered(head_of(small))
    shutil.rmtree(small)
    small.mkdir()
    assert judge(small, anchor) is Verdict.TRUNCATED
    assert judge_alone(small, anchor.heads().popitem()[1]) == "TRUNCATED"
    anchor = Remembered(note.Checkpoint(origin="ringfence/" + "a" * 32, size=3, root=bytes(32)))
    Ledger.open(str(small), clock=clock).close()
    assert judge(small, anchor) is Verdict.TRUNCATED


def rewritten(small: Path, number: int, *, sign: bool) -> None:
    """What someone with write access, and with ``sign`` the key, does: change a record and chain everything again."""
    tree, prev, seq = Range(), frame.NO_HASH, 0
    log = frame.parse_header(lines_of(small)[0][1]).log
    out = []
    for path, line in lines_of(small):
        if line.startswith(b"ringfence-ledger"):
            header = frame.Header(log=log, first=seq, prev=prev, nodes=tuple(n.hex() for n in tree.nodes))
            out.append((path, header.line()))
        elif line.startswith(b"="):
            out.append((path, frame.commit_line(seq, prev)))
        else:
            prepared = line[: line.rindex(b',"prev"')]
            if seq == number:
                prepared = prepared.replace(b'"n":', b'"n":1')
            time = int(line[-frame.SUFFIX : -frame.SUFFIX + 16])
            changed = frame.complete(prepared, prev, seq, time)
            tree.add(leaf_hash(changed))
            prev, seq = leaf_hash(changed).hex(), seq + 1
            out.append((path, changed))
    write_lines(out)
    if sign:
        head = keys.sign(keys.load_key(str(small), 1), log=log, epoch=1, size=seq, root=tree.root())
        (small / "checkpoint").write_bytes(head.text())


def test_a_rewritten_suffix_is_altered_without_the_key_and_forked_with_it(small):
    anchor = head_of(small)
    rewritten(small, 5, sign=False)
    assert judge(small) is Verdict.ALTERED
    assert judge_alone(small) == "ALTERED"
    rewritten(small, 6, sign=True)
    assert judge(small, Remembered(anchor)) is Verdict.FORKED
    assert judge_alone(small, anchor) == "FORKED"
    assert judge(small) is Verdict.NO_ANCHOR  # what a key's thief can do unseen where nothing was anchored


def test_the_chain_alone_is_never_a_pass_since_heads_sign_for_the_tree(small):
    anchor = Remembered(head_of(small))
    assert judge(small, anchor) is Verdict.OK
    assert judge(small, anchor, depth="chain") is Verdict.NO_ANCHOR
    rewritten(small, 5, sign=False)
    assert judge(small, anchor, depth="chain") is Verdict.NO_ANCHOR
    assert judge(small, anchor, depth="tree") is Verdict.ALTERED


def test_a_commit_line_without_records_is_altered(small, stranger):
    anchor = head_of(small)
    lines = lines_of(small)
    place = next(i for i, (_, line) in enumerate(lines) if line.startswith(b"="))
    write_lines([*lines[: place + 1], lines[place], *lines[place + 1 :]])
    for depth in ("chain", "tree", "strict"):
        assert judge(small, Remembered(anchor), depth=depth) is Verdict.ALTERED
    assert judge_alone(small, anchor) == "ALTERED"
    assert stranger.verify(str(small), [anchor.text()])[0] == "ALTERED"


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to(path)])
def test_segments_that_are_no_folder_are_none(small, make):
    anchor = head_of(small)
    shutil.rmtree(small / "segments")
    make(small / "segments")
    assert judge(small, Remembered(anchor)) is Verdict.TRUNCATED
    assert judge_alone(small, anchor) == "TRUNCATED"


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"body":{', b'"body":{"n":0,', 1),
        lambda line: line.replace(b'"kind":"', b'"kind": "', 1),
        lambda line: line.replace(b"box.observed", b"box\\u002eobserved", 1),
        lambda line: line.replace(b'"n":5', b'"n":5.0', 1),
        lambda line: line.replace(b'"n":5', b'"n":9007199254740993', 1),
        lambda line: line.replace(b'{"body"', b'{"also":1,"body"', 1),
    ],
    ids=["duplicate-key", "space", "escape", "float", "big-integer", "unknown-member"],
)
def test_look_alike_encodings_are_altered_even_when_signed(small, change):
    lines = lines_of(small)
    place = record_places(lines)[5]
    lines[place] = (lines[place][0], change(lines[place][1]))
    write_lines(lines)
    rewritten(small, -1, sign=True)
    assert judge(small) is Verdict.ALTERED
    assert judge_alone(small) == "ALTERED"


def test_a_checkpoint_of_another_epoch_is_named(tmp_path, clock, settings, make_entry):
    with Ledger.open(str(tmp_path / "turned"), clock=clock, settings=settings) as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        early = ledger.checkpoint()
        old = keys.load_key(ledger.directory, 1)
        assert ledger.rotate_key() == 2
        ledger.append([make_entry(2, EntryKind.OBSERVED)])
        head, log = ledger.checkpoint(), ledger.head.log
        assert not os.path.exists(keys.key_path(ledger.directory, 1))
        late = keys.sign(old, log=log, epoch=1, size=head.size, root=head.root)
        new = keys.load_key(ledger.directory, 2)
        backdated = keys.sign(new, log=log, epoch=2, size=early.size, root=early.root)
    directory = Path(ledger.directory)
    for good in (early, head):
        assert judge(directory, Remembered(good), max_age=Micros(10**12)) is Verdict.OK
        assert judge_alone(directory, good) == "OK"
    for bad in (late, backdated):
        assert judge(directory, Remembered(bad)) is Verdict.KEY_EPOCH
        assert judge_alone(directory, bad) == "KEY_EPOCH"
    (directory / "checkpoint").write_bytes(late.text())
    assert judge(directory) is Verdict.KEY_EPOCH
    assert judge_alone(directory) == "KEY_EPOCH"
    (directory / "checkpoint").write_bytes(head.text())
    with Ledger.open(str(directory), clock=clock, settings=settings) as again:
        again.append([make_entry(3, EntryKind.OBSERVED)])
    assert judge(directory, Remembered(head)) is Verdict.OK


def test_a_stale_anchor_is_told_with_its_lag(small, clock, make_entry, settings):
    early = head_of(small)
    with Ledger.open(str(small), clock=clock, settings=settings) as ledger:
        ledger.append([make_entry(9, EntryKind.OBSERVED)])
    day = 24 * 3600 * 1_000_000
    found = verify(str(small), anchors=[Remembered(early)], now=Micros(NOW + 2 * day))
    assert found.verdict is Verdict.STALE_ANCHOR
    assert found.anchors[0].lag_records == 1
    assert found.anchors[0].lag_us > 2 * day


def test_a_torn_tail_is_torn_and_a_damaged_signed_one_is_altered(small):
    last = Path(scan.segments(str(small))[-1].path)
    content = last.read_bytes()
    end = len(content.rstrip(b"\x00"))
    last.write_bytes(content[:end] + b'{"body":{"n":10},"kind":"box.obs' + bytes(50))
    assert judge(small) is Verdict.TORN
    assert judge_alone(small) == "TORN"
    last.write_bytes(content[: end - 40] + bytes(100))
    assert judge(small) is Verdict.ALTERED
    assert judge_alone(small) == "ALTERED"


def test_a_signature_line_of_a_stranger_is_ignored_and_spare_bits_are_not(small):
    head = head_of(small)
    stranger = note.Signature(name="witness.example.org", key_id=b"abcd", value=bytes(64))
    (small / "checkpoint").write_bytes(
        note.Checkpoint(
            origin=head.origin, size=head.size, root=head.root, signatures=(stranger, *head.signatures)
        ).text()
    )
    assert judge(small) is Verdict.NO_ANCHOR
    assert judge_alone(small) == "NO_ANCHOR"
    root = base64.b64encode(head.root)
    (small / "checkpoint").write_bytes(head.text().replace(root, root[:-2] + bytes([root[-2] + 1]) + b"="))
    assert judge(small) is Verdict.ALTERED


def test_while_a_writer_is_at_work_a_tail_in_flight_is_no_fault(make_ledger, make_entry):
    with make_ledger() as ledger:
        ledger.append([make_entry(1, EntryKind.OBSERVED)])
        with open(ledger._segment.path, "r+b") as stream:
            stream.seek(ledger._segment.offset)
            stream.write(b'{"body":{"in":"flight"')
        assert judge(Path(ledger.directory)) is Verdict.NO_ANCHOR
        ledger.append([make_entry(2, EntryKind.OBSERVED)])
    assert judge(Path(ledger.directory)) is Verdict.NO_ANCHOR
