"""Why a record does not follow from the one before: altered, out of order, or missing. Runs only after a fault was met.

A record is *intact* where another line of the log names its hash: the record after it, or its commit line. An intact
record in a wrong place was moved or follows a hole; one that nobody names was written by someone else. The log is read
twice, so that memory does not grow with it.
"""

from collections.abc import Collection, Iterator

from ringfence.ledger import frame, scan
from ringfence.ledger.verdict import Fault, Verdict
from ringfence.model.errors import LedgerError

_MOST = 10_000
"""Records that say to have the same number, at most; a log with more is bent beyond telling how."""


def explain(directory: str, *, place: str, line: bytes, expected: int) -> Fault:
    """The fault of ``line``, which stands where record ``expected`` should."""
    own, ends = frame.record_hash(line), frame.ends(line)
    same, before = _hashes(directory, expected)
    named = _named(directory, {own, before, *same})
    if ends is None or own not in named:
        return Fault(Verdict.ALTERED, f"{place}, record {expected}", "the record is not the one that was written")
    seq = ends[1]
    if seq == expected:
        return Fault(
            Verdict.ALTERED, f"{place}, record {expected - 1}", "the record is not the one that the next one names"
        )
    if seq > expected and not named & same:
        return Fault(Verdict.GAP, f"{place}, record {expected}", f"records {expected} to {seq - 1} are missing")
    if seq < expected and before and before not in named:
        return Fault(Verdict.ALTERED, f"{place}, record {expected - 1}", "a record was put in that nobody names")
    return Fault(Verdict.REORDERED, f"{place}, record {expected}", f"record {seq} stands in its place")


def explain_commit(*, place: str, line: bytes, size: int, last: str) -> Fault:
    """The fault of a commit line after ``size`` records that end with hash ``last``."""
    commit = frame.parse_commit(line)
    if commit is not None and commit[1] != last and commit[0] > size:
        return Fault(Verdict.GAP, f"{place}, record {size}", f"records {size} to {commit[0] - 1} are missing")
    if commit is not None and commit[1] != last and commit[0] == size:
        return Fault(Verdict.ALTERED, f"{place}, record {size - 1}", "the record is not the one that was committed")
    if commit is not None and commit[0] < size and commit[1] != last:
        return Fault(Verdict.REORDERED, f"{place}, commit line of {commit[0]}", "a commit line stands in a wrong place")
    return Fault(Verdict.ALTERED, f"{place}, commit line after record {size - 1}", "the commit line was changed")


def _lines(directory: str) -> Iterator[tuple[scan.SegmentFile, bytes]]:
    """Every line of every segment that can be read."""
    for segment in scan.segments(directory):
        try:
            with segment.open() as stream:
                for line in scan.bounded_lines(stream):
                    yield segment, line
        except (OSError, LedgerError):
            continue


def _hashes(directory: str, number: int) -> tuple[set[str], str]:
    """Hashes of the records that say to be record ``number``, and that of the one at the place before."""
    same: set[str] = set()
    before, position = "", -1
    for segment, line in _lines(directory):
        if line[:1] != b"{":
            continue
        position = segment.first if position < 0 else position
        ends = frame.ends(line)
        if ends is not None and ends[1] == number and len(same) < _MOST:
            same.add(frame.record_hash(line))
        if position == number - 1:
            before = frame.record_hash(line)
        position += 1
    return same, before


def _named(directory: str, asked: Collection[str]) -> set[str]:
    """Those of the hashes that some line names."""
    found: set[str] = set()
    for _, line in _lines(directory):
        commit = frame.parse_commit(line)
        ends = frame.ends(line) if line[:1] == b"{" else None
        name = commit[1] if commit is not None else ends[0] if ends is not None else ""
        if name in asked:
            found.add(name)
    return found
