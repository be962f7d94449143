"""Why a record does not follow from the one before: altered, out of order, or missing. Runs only after a fault was met.

A record is *intact* where another line of the log names its hash: the record after it, or its commit line. An intact
record in a wrong place was moved or follows a hole; one that nobody names was written by someone else.
"""

from dataclasses import dataclass

from ringfence.ledger import frame, scan
from ringfence.ledger.verdict import Fault, Verdict
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Every hash that some line of the log names, and every number that an intact record carries."""

    hashes: frozenset[str]
    numbers: frozenset[int]


def explain(directory: str, *, place: str, line: bytes, expected: int) -> Fault:
    """The fault of ``line``, which stands where record ``expected`` should."""
    named = _named(directory)
    seq = _number(line)
    if seq is None or frame.record_hash(line) not in named.hashes:
        return Fault(Verdict.ALTERED, f"{place}, record {expected}", "the record is not the one that was written")
    if seq == expected:
        return Fault(
            Verdict.ALTERED, f"{place}, record {expected - 1}", "the record is not the one that the next one names"
        )
    if seq > expected and expected not in named.numbers:
        return Fault(Verdict.GAP, f"{place}, record {expected}", f"records {expected} to {seq - 1} are missing")
    if seq < expected and not _before_is_intact(directory, expected, named):
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


def _named(directory: str) -> Named:
    hashes: set[str] = set()
    found: dict[str, int] = {}
    for segment in scan.segments(directory):
        with segment.open() as stream:
            for line in stream:
                commit = frame.parse_commit(line)
                if commit is not None:
                    hashes.add(commit[1])
                elif line[:1] == b"{":
                    value = _value(line)
                    hashes.add(str(value.get("prev")))
                    number = value.get("seq")
                    if isinstance(number, int):
                        found[frame.record_hash(line)] = number
    return Named(hashes=frozenset(hashes), numbers=frozenset(n for h, n in found.items() if h in hashes))


def _before_is_intact(directory: str, expected: int, named: Named) -> bool:
    position = 0
    for segment in scan.segments(directory):
        header = frame.parse_header(_first_line(segment))
        position = header.first if header else position
        with segment.open() as stream:
            for line in stream:
                if line[:1] == b"{":
                    if position == expected - 1:
                        return frame.record_hash(line) in named.hashes
                    position += 1
    return True


def _first_line(segment: scan.SegmentFile) -> bytes:
    with segment.open() as stream:
        return stream.readline(8192)


def _value(line: bytes) -> dict[str, Json]:
    try:
        return scan.value_of(line, "")
    except LedgerError:
        return {}


def _number(line: bytes) -> int | None:
    number = _value(line).get("seq")
    return number if isinstance(number, int) else None
