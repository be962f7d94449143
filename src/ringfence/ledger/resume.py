"""Where a ledger stands when it is opened again: the last segments read and checked, a torn tail told from tampering.

Reads only as many segments as the oldest head that must be compared needs. Whole-log verification is verify.py's job.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ringfence.ledger import frame, scan
from ringfence.ledger.files import EVIDENCE
from ringfence.ledger.tree import Range, leaf_hash
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError


@dataclass(slots=True, kw_only=True)
class State:
    """The head of a log, and what its writer needs to go on."""

    log: str
    size: int
    prev: str
    tree: Range
    end: int = 0
    """Offset after the last commit line in the last segment."""
    torn: bytes = b""
    """What a crash left behind it, never acknowledged."""
    last_time: int = 0
    roots: dict[int, bytes] = field(default_factory=dict)
    rotations: list[tuple[int, int, str]] = field(default_factory=list)
    """Key rotations met: epoch, number of the entry, public key."""
    open_calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Intents without a result: call id to record hash and mission."""


def altered(what: str, where: str, verdict: str = "ALTERED") -> LedgerError:
    """The fault that keeps a ledger closed."""
    return LedgerError(
        "ledger-altered",
        f"{verdict}: {what}",
        where=where,
        remedy=EVIDENCE,
    )


def resume(
    files: Sequence[scan.SegmentFile], wanted: Collection[int], carried: Mapping[str, tuple[str, str]] | None = None
) -> State:
    """Read the segments that hold the sizes ``wanted`` and all after them. Raises LedgerError ``ledger-altered``.

    ``carried`` are the calls that were open when the last segment began.
    """
    oldest = min(wanted, default=files[-1].first)
    start = max((i for i, file in enumerate(files) if file.first <= oldest), default=0)
    state: State | None = None
    for position in range(start, len(files)):
        last = position + 1 == len(files)
        try:
            state = _segment(files[position], state, wanted, carried if last else None, last=last)
        except (KeyError, TypeError, ValueError) as error:
            raise altered(f"a record cannot be read ({type(error).__name__})", files[position].path) from error
    assert state is not None
    return state


def header_of(state: State) -> frame.Header:
    """The header of a segment that begins where ``state`` ends."""
    nodes = tuple(node.hex() for node in state.tree.nodes)
    return frame.Header(log=state.log, first=state.size, prev=state.prev, nodes=nodes)


def _segment(
    file: scan.SegmentFile,
    state: State | None,
    wanted: Collection[int],
    carried: Mapping[str, tuple[str, str]] | None,
    *,
    last: bool,
) -> State:
    head = scan.header(file)
    if state is None:
        nodes = [bytes.fromhex(node) for node in head.nodes]
        state = State(log=head.log, size=head.first, prev=head.prev, tree=Range(head.first, nodes))
    if head != header_of(state) or file.first != state.size:
        raise altered("a segment does not continue the one before", f"{file.path}:1", "GAP")
    if state.size in wanted:
        state.roots[state.size] = state.tree.root()
    state.open_calls = {**(carried or {}), **state.open_calls}
    with file.open() as stream:
        state.end = len(head.line())
        for group in scan.groups(stream, offset=state.end):
            _group(group, state, wanted, file.path)
        stream.seek(state.end)
        tail = scan.rest_of(stream)
    kind = frame.Tail.FOREIGN if tail is None else frame.classify_tail(tail, state.end)
    if kind is frame.Tail.FOREIGN or (kind is frame.Tail.TORN and not last):
        raise altered("bytes that no write of ours can leave follow the last commit line", f"{file.path}@{state.end}")
    state.torn = (tail or b"").rstrip(b"\x00")
    return state


def _group(group: scan.Group, state: State, wanted: Collection[int], path: str) -> None:
    for line in group.lines:
        where = f"{path}, record {state.size}"
        if not line.endswith(frame.link(state.prev, state.size), 0, -frame.SUFFIX):
            raise altered("a record does not follow from the one before", where)
        leaf = leaf_hash(line)
        state.tree.add(leaf)
        state.prev = leaf.hex()
        state.size += 1
        if state.size in wanted:
            state.roots[state.size] = state.tree.root()
        _track(state.open_calls, line, state.prev)
        if _ROTATED in line:
            _note_rotation(state, line)
    if (group.size, group.last) != (state.size, state.prev):
        raise altered("a commit line does not fit the records before it", f"{path}@{group.end}")
    if group.lines:
        state.last_time = int(group.lines[-1][-frame.SUFFIX : -frame.SUFFIX + 16])
    state.end = group.end


_ROTATED = b'"kind":"%s"' % EntryKind.KEY_ROTATED.value.encode()
_INTENT, _APPROVAL, _RESULT, _ORPHANED = (
    kind.value for kind in (EntryKind.INTENT, EntryKind.APPROVAL, EntryKind.RESULT, EntryKind.ORPHANED)
)
"""Read once: a member's value is a call of Python's, on the way of every append."""
_BEGINNING = tuple(b'"kind":"%s"' % kind.encode() for kind in (_INTENT, _APPROVAL))
_ENDING = tuple(b'"kind":"%s"' % kind.encode() for kind in (_RESULT, _ORPHANED))

Mark = tuple[bool, str, str]
"""A record begins (True) or ends a call: that, the call's id or empty, its mission or empty."""


def mark_of(kind: str, call: str, mission: str, body: object) -> Mark | None:
    """What a record says about which calls may be running: allowed, or approved by a person, and without a result yet."""
    if kind in (_RESULT, _ORPHANED):
        return (False, call, mission)
    if kind not in (_INTENT, _APPROVAL):
        return None
    fields = body if isinstance(body, dict) else {}
    if kind == _APPROVAL:
        return (True, call, mission) if fields.get("answer") == "approved" else None
    decision = fields.get("decision")
    tier = decision.get("tier") if isinstance(decision, dict) else "allow"
    return (True, call, mission) if tier == "allow" else None


def follow(open_calls: dict[str, tuple[str, str]], mark: Mark, record: str) -> None:
    """Keep the list of open calls up to date with one record, given its hash."""
    begins, call, mission = mark
    if begins:
        open_calls[call or record] = (record, mission)
    else:
        open_calls.pop(call, None)


def _track(open_calls: dict[str, tuple[str, str]], line: bytes, record: str) -> None:
    if any(kind in line for kind in _BEGINNING) or (open_calls and any(kind in line for kind in _ENDING)):
        value = scan.value_of(line, "")
        call, mission = str(value.get("call", "")), str(value.get("mission", ""))
        mark = mark_of(str(value.get("kind")), call, mission, value.get("body"))
        if mark is not None:
            follow(open_calls, mark, record)


def _note_rotation(state: State, line: bytes) -> None:
    value = scan.value_of(line, "")
    body = value.get("body")
    if value.get("kind") == EntryKind.KEY_ROTATED.value and isinstance(body, dict):
        state.rotations.append((int(str(body.get("epoch"))), state.size - 1, str(body.get("public"))))


def clear_leftovers(directory: str) -> None:
    """Remove files that a crash left half made: they were never part of the log."""
    for folder in (directory, f"{directory}/segments", f"{directory}/keys"):
        for name in os.listdir(folder):
            if name.endswith(".new"):
                os.unlink(f"{folder}/{name}")
