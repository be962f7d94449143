"""Verify a ledger: the fast path, with our own code. The independent one is standalone/verify.py.

Reads segments, checkpoint and anchors; writes nothing. Give the same folder and anchors and it says the same.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from ringfence.ledger import keys, note, scan, start, walk
from ringfence.ledger.anchors import names, status
from ringfence.ledger.checkpoint import Epoch, Epochs, signed_by
from ringfence.ledger.files import open_regular
from ringfence.ledger.replay import replay
from ringfence.ledger.verdict import AnchorStatus, Fault, Replay, Verdict, Verification
from ringfence.ledger.walk import STRICT, Walked
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros
from ringfence.model.tier import Tier

MAX_AGE = Micros(24 * 3600 * 1_000_000)
_LATER_KEYS = 1000
_PART = re.compile(r"(?:segments/|anchors/)?[0-9A-Za-z][0-9A-Za-z._-]{0,99}")
Heads = Mapping[str, Mapping[str, note.Checkpoint]]
Past = Mapping[str, Sequence[note.Checkpoint]]


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
    older than ``max_age``. ``depth`` is ``chain`` (never OK: heads sign for the tree), ``tree`` or ``strict``. ``redecide`` decides a recorded intent
    again (None: it cannot). Raises LedgerError ``ledger-missing`` where there is no ledger and none is remembered,
    ``anchor-unreadable`` where an anchor cannot be asked.
    """
    known: Heads = {anchor.name: anchor.heads() for anchor in anchors}
    past: Past = {
        anchor.name: anchor.past(log)
        for anchor in anchors
        if isinstance(anchor, start.Remembering)
        for log in known[anchor.name]
    }
    return scan.undisturbed(
        directory, lambda: _verified(directory, known, past, now=now, max_age=max_age, depth=depth, redecide=redecide)
    )


def _verified(
    directory: str,
    known: Heads,
    past: Past,
    *,
    now: Micros,
    max_age: Micros,
    depth: str,
    redecide: Callable[[Mapping[str, Json]], Tier | None] | None,
) -> Verification:
    walked: Walked | None = None
    checkpoint = 0
    try:
        own = _own(directory)
        checkpoint = own.size if own is not None else 0
        _present(directory, own, known)
        task = walk.Task(
            directory=directory, depth=depth, wanted=_sizes(own, known, past), live=start.locked(directory)
        )
        walked = walk.walk(task)
        try:
            epochs = _epochs(walked, signed=own.size if own is not None else walked.size)
        except (KeyError, TypeError, ValueError) as error:
            raise Fault(Verdict.ALTERED, "a record about keys", f"its body cannot be read: {error!r}") from error
        _judge_own(directory, walked, own, epochs, depth)
        _judge_anchors(walked, known, epochs, depth)
        _judge_past(walked, past, epochs, depth)
        _check_manifest(directory)
        if walked.torn:
            raise Fault(Verdict.TORN, walked.torn, "a group of records is cut short; none of it was acknowledged")
        try:
            again = replay(directory, redecide) if redecide is not None else None
            return _proven(directory, walked, known, checkpoint, again, now=now, max_age=max_age, depth=depth)
        except LedgerError as error:
            if error.code != "ledger-altered":
                raise
            raise Fault(Verdict.ALTERED, error.where, error.what) from error
    except Fault as fault:
        return _result(walked, fault.verdict, place=fault.place, detail=fault.detail, checkpoint=checkpoint)


def _own(directory: str) -> note.Checkpoint | None:
    path = f"{directory}/checkpoint"
    try:
        with open_regular(path) as stream:
            found = note.parse(stream.read(note.LONGEST + 1))
    except FileNotFoundError:
        return None
    except LedgerError as error:
        raise Fault(Verdict.ALTERED, path, "the checkpoint is not a regular file") from error
    if found is None:
        raise Fault(Verdict.ALTERED, path, "the checkpoint is not a signed note")
    return found


def _check_manifest(directory: str) -> None:
    """An export lists its files with their digests: one that differs was damaged or changed on the way. It is not signed."""
    path = f"{directory}/manifest.json"
    try:
        with open_regular(path) as stream:
            files = json.loads(stream.read(16 << 20))["files"].items()
    except FileNotFoundError:
        return
    except (LedgerError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Fault(Verdict.ALTERED, path, "it is no list of files") from error
    for name, digest in files:
        if not _PART.fullmatch(name):
            raise Fault(Verdict.ALTERED, path, f"it names {name!r}, which an export does not have")
        try:
            same = _digest(f"{directory}/{name}") == digest
        except FileNotFoundError:
            continue  # what of the evidence is missing, the log itself tells
        except LedgerError:
            same = False
        if not same:
            raise Fault(Verdict.ALTERED, f"{directory}/{name}", "it is not the file that was exported")


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open_regular(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


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


def _sizes(own: note.Checkpoint | None, known: Heads, past: Past) -> set[int]:
    heads = [head for logs in known.values() for head in logs.values()]
    heads += [head for told in past.values() for head in told]
    return {head.size for head in (*heads, *([own] if own else []))}


def _epochs(walked: Walked, *, signed: int) -> Epochs:
    """The keys of the log by its own entries; each rotation is signed by the key before and the key after."""
    known = list(_first_epochs(walked, signed))
    for seq, value in walked.noted:
        if value["kind"] == EntryKind.KEY_ROTATED.value and seq > known[-1].after:
            known.append(_rotation(walked, known[-1], seq, _body(value)))
    return Epochs(known=tuple(known))


def _first_epochs(walked: Walked, signed: int) -> list[Epoch]:
    """The keys that the first record tells of; where it was purged, those that the signed entry of the purge lists."""
    for seq, value in walked.noted:
        body = _body(value)
        if value["kind"] == EntryKind.CREATED.value and seq == walked.first == 0:
            if body["log"] != walked.log:
                raise Fault(Verdict.ALTERED, "record 0", "it begins another log than the segment says")
            return [_epoch({**body, "after": 0}, 1, 0)]
        if (
            value["kind"] == EntryKind.RETENTION.value
            and walked.first
            and seq < signed
            and _explains(walked, seq, body)
        ):
            rows = cast("list[dict[str, Json]]", body["epochs"])
            return [_epoch(row, place, cast("int", body["before"])) for place, row in enumerate(rows, 1)]
    what = "no signed entry tells of a purge" if walked.first else "the first record does not begin a log"
    raise Fault(Verdict.GAP if walked.first else Verdict.ALTERED, f"record {walked.first}", what)


def _body(value: Mapping[str, Json]) -> Mapping[str, Json]:
    body = value.get("body")
    if not isinstance(body, dict):
        raise TypeError("no body")
    return body


def _explains(walked: Walked, seq: int, body: Mapping[str, Json]) -> bool:
    """Whether an entry is that of a purge which explains where the log begins. A crash may have cut its removal short."""
    if body.get("action") != "purge":
        return False
    before = cast("int", body["before"])
    if before.__class__ is not int or not walked.first <= before <= seq or not body["epochs"]:
        return False
    root = walked.roots.get(before)
    return root is not None and body["root"] == root.hex()


def _epoch(row: Mapping[str, Json], number: int, before: int) -> Epoch:
    """Key ``number`` by one row of a list. Raises ValueError where it is another, or not of a time before ``before``."""
    epoch, after, public = row["epoch"], cast("int", row["after"]), row["public"]
    if epoch.__class__ is not int or epoch != number or after.__class__ is not int:
        raise ValueError("an epoch out of order")
    if (after == 0) != (number == 1) or not 0 <= after <= before:
        raise ValueError("an epoch of another time")
    return Epoch(epoch=number, after=after, public=_unhex(public, 32))


def _unhex(text: Json, length: int) -> bytes:
    """Bytes of lowercase hexadecimal digits, the one spelling. Raises ValueError."""
    found = bytes.fromhex(str(text))
    if found.hex() != text or len(found) != length:
        raise ValueError("not hexadecimal digits of the right number")
    return found


def _rotation(walked: Walked, old: Epoch, seq: int, body: Mapping[str, Json]) -> Epoch:
    epoch, public = old.epoch + 1, _unhex(body["public"], 32)
    statement = keys.rotation_statement(walked.log, epoch, seq, old.public, public)
    good = all(
        keys.verify_signature(signer, _unhex(body[name], 64), statement)
        for name, signer in (("by_old", old.public), ("by_new", public))
    )
    same = body["previous"] == old.public.hex() and body["epoch"].__class__ is int and body["epoch"] == epoch
    if not good or not same:
        raise Fault(Verdict.KEY_EPOCH, f"record {seq}", "the change of keys is not signed by the key before and after")
    return Epoch(epoch=epoch, after=seq, public=public)


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


def _judge_past(walked: Walked, past: Past, epochs: Epochs, depth: str) -> None:
    """What an anchor was told before must fit too: who has the key may have told it another head since."""
    for name, told in past.items():
        for head in told:
            fits = head.size < walked.first or walked.roots.get(head.size) == head.root
            if head.origin == note.origin(walked.log) and depth != walk.CHAIN and not fits:
                _signature(walked, head, epochs, name)
                _covered(walked, head, name, depth, Verdict.FORKED)


def _signature(walked: Walked, head: note.Checkpoint, epochs: Epochs, place: str) -> None:
    if head.origin != note.origin(walked.log):
        raise Fault(Verdict.ALTERED, place, "the checkpoint is of another log")
    due = epochs.at(head.size)
    if signed_by(head, walked.log, due):
        return
    later = {note.key_name(walked.log, epochs.present + more) for more in range(1, _LATER_KEYS)}
    if head.size > walked.size and any(signature.name in later for signature in head.signatures):
        return  # signed with a key that the missing records tell of: what is missing is the verdict
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
    if depth == walk.CHAIN or head.size < walked.first:
        return  # all that it signs for was purged: it says nothing of what is here
    if root != head.root:
        raise Fault(otherwise, f"records 0 to {head.size - 1}", f"they are not the ones that {place} signs for")


def _proven(
    directory: str,
    walked: Walked,
    known: Heads,
    checkpoint: int,
    again: Replay | None,
    *,
    now: Micros,
    max_age: Micros,
    depth: str,
) -> Verification:
    statuses = tuple(
        status(directory, name, logs[walked.log].size, size=walked.size, now=now)
        for name, logs in known.items()
        if walked.log in logs and logs[walked.log].size >= walked.first
    )
    verdict, detail = Verdict.OK, ""
    if again is not None and again.lawful + again.not_replayed < again.allowed:
        verdict, detail = (
            Verdict.POLICY_MISMATCH,
            f"record {again.first_mismatch} was allowed, its policy does not allow it",
        )
    elif statuses and (dropped := _dropped(directory, walked, known)):
        verdict, detail = (
            Verdict.NO_ANCHOR,
            f"the log names the anchor {dropped}, and anchors.json does not: it was not asked",
        )
    elif not statuses:
        verdict, detail = Verdict.NO_ANCHOR, "no anchor outside covers what is here: its end could have been cut unseen"
    elif depth == walk.CHAIN:
        verdict, detail = Verdict.NO_ANCHOR, "the chain alone was read: heads sign for the tree, so none was compared"
    elif min(found.lag_us for found in statuses) > max_age:
        verdict, detail = Verdict.STALE_ANCHOR, "the newest anchor leaves records uncovered for longer than allowed"
    place = f"record {again.first_mismatch}" if again is not None and verdict is Verdict.POLICY_MISMATCH else ""
    return _result(walked, verdict, place=place, detail=detail, checkpoint=checkpoint, anchors=statuses, again=again)


def _dropped(directory: str, walked: Walked, known: Heads) -> str:
    """An anchor that the log's own newest list names and that was not asked, because the list beside the log was edited."""
    if not os.path.lexists(f"{directory}/anchors.json"):
        return ""  # an export: whoever verifies it chose the anchors
    listed: list[Json] = []
    for _, value in walked.noted:
        body = value.get("body")
        found = body.get("anchors") if isinstance(body, dict) and body.get("action") == "configure" else None
        listed = found if value["kind"] == EntryKind.ANCHORED.value and isinstance(found, list) else listed
    asked = {*known, *names(directory)}
    return next((str(name) for name in listed if name not in asked), "")


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
