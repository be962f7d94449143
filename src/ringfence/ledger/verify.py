"""Verify a ledger: the fast path, with our own code. The independent one is standalone/verify.py.

Reads segments, checkpoint and anchors; writes nothing. Give the same folder and anchors and it says the same.
"""

from collections.abc import Callable, Mapping, Sequence

from ringfence.ledger import keys, note, scan, start, walk
from ringfence.ledger.anchors import status
from ringfence.ledger.checkpoint import Epoch, Epochs, signed_by
from ringfence.ledger.replay import replay
from ringfence.ledger.verdict import AnchorStatus, Fault, Replay, Verdict, Verification
from ringfence.ledger.walk import STRICT, Walked
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.tier import Tier

MAX_AGE = Micros(24 * 3600 * 1_000_000)
Heads = Mapping[str, Mapping[str, note.Checkpoint]]


def verify(
    directory: str,
    *,
    anchors: Sequence[start.Anchor] = (),
    now: Micros,
    max_age: Micros = MAX_AGE,
    depth: str = STRICT,
    redecide: Callable[[Mapping[str, Json]], Tier | None] | None = None,
) -> Verification:
    """The verdict on the ledger in ``directory``.

    ``anchors`` are asked for the heads they remember; the verdict is OK only where at least one covers every record
    older than ``max_age``. ``depth`` is ``chain``, ``tree`` or ``strict``. ``redecide`` decides a recorded intent
    again (None: it cannot). Raises LedgerError ``ledger-missing`` where there is no ledger and none is remembered,
    ``anchor-unreadable`` where an anchor cannot be asked.
    """
    known: Heads = {anchor.name: anchor.heads() for anchor in anchors}
    walked: Walked | None = None
    checkpoint = 0
    try:
        own = _own(directory)
        checkpoint = own.size if own is not None else 0
        _present(directory, own, known)
        task = walk.Task(directory=directory, depth=depth, wanted=_sizes(own, known), live=start.locked(directory))
        walked = walk.walk(task)
        try:
            epochs = _epochs(walked)
        except (KeyError, TypeError, ValueError) as error:
            raise Fault(Verdict.ALTERED, "a record about keys", f"its body cannot be read: {error!r}") from error
        _judge_own(directory, walked, own, epochs, depth)
        _judge_anchors(walked, known, epochs, depth)
        if walked.torn:
            raise Fault(Verdict.TORN, walked.torn, "a group of records is cut short; none of it was acknowledged")
        again = replay(directory, redecide) if redecide is not None else None
    except Fault as fault:
        return _result(walked, fault.verdict, place=fault.place, detail=fault.detail, checkpoint=checkpoint)
    return _proven(directory, walked, known, checkpoint, again, now=now, max_age=max_age)


def _own(directory: str) -> note.Checkpoint | None:
    path = f"{directory}/checkpoint"
    try:
        with open(path, "rb") as stream:
            found = note.parse(stream.read(65_536))
    except FileNotFoundError:
        return None
    if found is None:
        raise Fault(Verdict.ALTERED, path, "the checkpoint is not a signed note")
    return found


def _present(directory: str, own: note.Checkpoint | None, known: Heads) -> None:
    if scan.segments(directory):
        return
    if own is not None:
        raise Fault(Verdict.TRUNCATED, directory, f"all records are gone, {own.size} were signed for")
    for name, logs in known.items():
        if logs:
            raise Fault(Verdict.TRUNCATED, name, f"the log {min(logs)} that this anchor remembers is gone")
    raise LedgerError(
        "ledger-missing",
        "there is no ledger here",
        where=directory,
        remedy="run something first: `ringfence run -- true`",
    )


def _sizes(own: note.Checkpoint | None, known: Heads) -> set[int]:
    heads = [head for logs in known.values() for head in logs.values()]
    return {head.size for head in (*heads, *([own] if own else []))}


def _epochs(walked: Walked) -> Epochs:
    """The keys of the log by its own entries; each rotation is signed by the key before and the key after."""
    known: list[Epoch] = []
    for seq, value in walked.noted:
        body = value.get("body")
        if not isinstance(body, dict):
            raise TypeError("no body")
        if value["kind"] == EntryKind.CREATED.value and seq == 0:
            known.append(_epoch(body, after=0))
            if body.get("log") != walked.log:
                raise Fault(Verdict.ALTERED, "record 0", "it begins another log than the segment says")
        elif value["kind"] == EntryKind.RETENTION.value and body.get("before") == walked.first and not known:
            known.extend(_purged_epochs(walked, seq, body))
        elif value["kind"] == EntryKind.KEY_ROTATED.value and (not known or seq > known[-1].after):
            known.append(_rotation(walked, known, seq, body))
    if not known:
        what = "no entry tells of a purge" if walked.first else "the first record does not begin a log"
        raise Fault(Verdict.GAP if walked.first else Verdict.ALTERED, f"record {walked.first}", what)
    return Epochs(known=tuple(known))


def _epoch(body: Mapping[str, Json], *, after: int) -> Epoch:
    try:
        return Epoch(epoch=int(str(body["epoch"])), after=after, public=bytes.fromhex(str(body["public"])))
    except (KeyError, ValueError) as error:
        raise Fault(Verdict.ALTERED, f"record {after}", "it holds no public key") from error


def _purged_epochs(walked: Walked, seq: int, body: Mapping[str, Json]) -> list[Epoch]:
    rows = body.get("epochs")
    if body.get("root") != walked.before.root().hex() or not isinstance(rows, list):
        raise Fault(Verdict.GAP, f"record {walked.first}", f"the purge in record {seq} was of other records")
    return [_epoch(row, after=int(str(row.get("after")))) for row in rows if isinstance(row, dict)]


def _rotation(walked: Walked, known: Sequence[Epoch], seq: int, body: Mapping[str, Json]) -> Epoch:
    epoch = _epoch(body, after=seq)
    if not known:  # a purge entry that stands later lists it
        return epoch
    old = known[-1]
    statement = keys.rotation_statement(walked.log, epoch.epoch, seq, old.public, epoch.public)
    good = all(
        keys.verify_signature(public, bytes.fromhex(str(body.get(name, ""))), statement)
        for name, public in (("by_old", old.public), ("by_new", epoch.public))
    )
    if epoch.epoch != old.epoch + 1 or not good:
        raise Fault(Verdict.KEY_EPOCH, f"record {seq}", "the change of keys is not signed by the key before and after")
    return epoch


def _judge_own(directory: str, walked: Walked, own: note.Checkpoint | None, epochs: Epochs, depth: str) -> None:
    path = f"{directory}/checkpoint"
    if own is None:
        raise Fault(Verdict.TRUNCATED, path, "the signed checkpoint is missing")
    _signature(walked, own, epochs, path)
    _covered(walked, own, path, depth, Verdict.ALTERED)


def _judge_anchors(walked: Walked, known: Heads, epochs: Epochs, depth: str) -> None:
    for name, logs in known.items():
        for log, head in logs.items():
            if log != walked.log:
                raise Fault(Verdict.TRUNCATED, name, f"the log {log} that this anchor remembers is not here")
            _signature(walked, head, epochs, name)
            _covered(walked, head, name, depth, Verdict.FORKED)


def _signature(walked: Walked, head: note.Checkpoint, epochs: Epochs, place: str) -> None:
    if head.origin != note.origin(walked.log):
        raise Fault(Verdict.ALTERED, place, "the checkpoint is of another log")
    due = epochs.at(head.size)
    if signed_by(head, walked.log, due):
        return
    for epoch in epochs.known:
        if signed_by(head, walked.log, epoch):
            raise Fault(
                Verdict.KEY_EPOCH,
                place,
                f"{head.size} records are signed with the key of epoch {epoch.epoch}; epoch {due.epoch} was in force",
            )
    raise Fault(Verdict.ALTERED, place, "the checkpoint carries no good signature of this log's keys")


def _covered(walked: Walked, head: note.Checkpoint, place: str, depth: str, otherwise: Verdict) -> None:
    if head.size > walked.size:
        if walked.torn:
            raise Fault(Verdict.ALTERED, walked.torn, f"records that were signed for ({head.size}) are damaged")
        raise Fault(
            Verdict.TRUNCATED, f"record {walked.size}", f"{walked.size} records are here, {place} covers {head.size}"
        )
    root = walked.roots.get(head.size)
    if depth == walk.CHAIN or (root is None and head.size <= walked.first):
        return
    if root != head.root:
        raise Fault(otherwise, f"records 0 to {head.size - 1}", f"they are not the ones that {place} signs for")


def _proven(
    directory: str, walked: Walked, known: Heads, checkpoint: int, again: Replay | None, *, now: Micros, max_age: Micros
) -> Verification:
    statuses = tuple(
        status(directory, name, logs[walked.log].size, size=walked.size, now=now)
        for name, logs in known.items()
        if walked.log in logs
    )
    verdict, detail = Verdict.OK, ""
    if again is not None and again.lawful + again.not_replayed < again.allowed:
        verdict, detail = (
            Verdict.POLICY_MISMATCH,
            f"record {again.first_mismatch} was allowed, its policy does not allow it",
        )
    elif not statuses:
        verdict, detail = Verdict.NO_ANCHOR, "no anchor outside covers this log: its end could have been cut unseen"
    elif min(found.lag_us for found in statuses) > max_age:
        verdict, detail = Verdict.STALE_ANCHOR, "the newest anchor leaves records uncovered for longer than allowed"
    place = f"record {again.first_mismatch}" if again is not None and verdict is Verdict.POLICY_MISMATCH else ""
    return _result(walked, verdict, place=place, detail=detail, checkpoint=checkpoint, anchors=statuses, again=again)


def _result(
    walked: Walked | None,
    verdict: Verdict,
    *,
    place: str,
    detail: str,
    checkpoint: int,
    anchors: tuple[AnchorStatus, ...] = (),
    again: Replay | None = None,
) -> Verification:
    found = walked or Walked()
    return Verification(
        verdict=verdict,
        place=place,
        detail=detail,
        log=found.log,
        first=found.first,
        size=found.size,
        root=found.tree.root().hex() if found.tree.size == found.size and found.size else "",
        checkpoint=checkpoint,
        anchors=anchors,
        replay=again,
    )
