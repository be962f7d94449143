"""What a person asks of an open ledger: one function a verb, a mapping in and a mapping out, for the supervisor to call.

Every verb that changes something is an entry first. Nothing here decides who may ask: the supervisor did.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence

from ringfence.ledger import anchors, holds, keeping, proof, scan
from ringfence.ledger.classes import Organisation
from ringfence.ledger.log import Ledger
from ringfence.ledger.personal import subject_id
from ringfence.ledger.steps import SCHEDULE, Answer, record_step, who
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.person import Person

Arguments = Mapping[str, object]
NO_ORGANISATION = Organisation()


def perform(
    ledger: Ledger, action: str, arguments: Arguments, *, by: Person, organisation: Organisation = NO_ORGANISATION
) -> Answer:
    """Carry out one verb. Raises LedgerError ``bad-ledger-verb`` for an unknown one, and what the verb raises.

    ``organisation`` is what its policy says on retention; who leaves it out says that there is none.
    """
    if action in KEEPING:
        return KEEPING[action](ledger, arguments, by, organisation)
    verb = VERBS.get(action)
    if verb is None:
        raise LedgerError(
            "bad-ledger-verb", f"the ledger knows no verb {action!r}", remedy="one of " + ", ".join((*VERBS, *KEEPING))
        )
    return verb(ledger, arguments, by)


def tick(ledger: Ledger, organisation: Organisation = NO_ORGANISATION) -> Answer:
    """What is due without a person: anchors that are behind, erasures that a crash cut short, archive and purge; how full the disk is.

    Each step that fails is told in the answer and does not keep the others from happening.
    """
    done: Answer = {}
    steps: tuple[tuple[str, Callable[[], Answer]], ...] = (
        ("space", lambda: space(ledger)),
        ("anchor", lambda: anchor(ledger, {"due": True}, SCHEDULE)),
        ("erasures", lambda: finish_erasures(ledger)),
        ("archive", lambda: keeping.archive(ledger, {}, SCHEDULE, organisation)),
        ("purge", lambda: keeping.purge(ledger, {}, SCHEDULE, organisation)),
    )
    for name, step in steps:
        try:
            done[name] = step()
        except LedgerError as error:
            done[name] = {"error": error.code, "what": error.what, "where": error.where}
        except OSError as error:  # a full disk stops what compresses, not what makes room
            what = os.strerror(error.errno or 0)
            done[name] = {"error": "ledger-unreadable", "what": what, "where": str(error.filename or "")}
    return done


def space(ledger: Ledger) -> Answer:
    """Percent of the disk used and bytes left. Raises LedgerError ``ledger-space-low`` from 90 % on."""
    found = ledger.space
    if found.warning:
        raise LedgerError("ledger-space-low", found.warning, where=ledger.directory)
    return {"used_percent": int(found.used * 100), "available_bytes": found.available}


def checkpoint(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """Sign the head now."""
    del arguments, by
    head = ledger.checkpoint()
    return {"size": head.size, "root": head.root.hex(), "note": head.text().decode()}


def anchor(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """``add`` and ``remove`` change the list; else every anchor (with ``due``, those that are behind) gets the head."""
    names = anchors.names(ledger.directory)
    added, removed = _texts(arguments.get("add")), _texts(arguments.get("remove"))
    if added or removed:
        told = anchors.told(ledger.directory)  # one that was struck from the list by hand is taken away in the open
        unknown = sorted(set(removed) - {*names, *told})
        if unknown:
            known = (
                f"one of {', '.join({**dict.fromkeys(names), **dict.fromkeys(told)})}"
                if names or told
                else "there is none to take away"
            )
            raise LedgerError("bad-anchor", f"there is no anchor {unknown[0]!r}", remedy=known)
        found = [anchors.parse_anchor(text, ledger.directory) for text in added]
        for one in found:
            if not ledger.shows(one.name):
                raise LedgerError(
                    "bad-anchor",
                    "the address of the anchor holds a password or token, and addresses are shown and recorded",
                    remedy="keep it elsewhere: for git as an ssh key, or in ~/.netrc",
                )
            # What cannot be asked now, or remembers another log, would keep the ledger closed from its next opening on.
            anchors.refuse_shared(one.name, one.heads(), ledger.head.log)
        names = [*(name for name in names if name not in removed), *(one.name for one in found)]
        names = list(dict.fromkeys(names))
        record_step(ledger, EntryKind.ANCHORED, {"action": "configure", "anchors": list(names), "by": who(by)})
        anchors.configure(ledger.directory, names)
    behind = {s.name for s in anchors.lag(ledger.directory, size=ledger.head.size, now=ledger.now) if s.lag_records}
    chosen = [a for a in anchors.configured(ledger.directory) if not arguments.get("due") or a.name in behind]
    rows: list[Json] = []
    failures: list[LedgerError] = []
    for one in chosen:
        try:
            rows.append(_push(ledger, one))
        except LedgerError as failure:
            failures.append(failure)
    if failures:  # the others were told all the same
        raise failures[0]
    return {"anchors": rows, "configured": list(names)}


def _push(ledger: Ledger, found: anchors.PushAnchor) -> Answer:
    head = ledger.checkpoint()
    receipt = found.push(ledger.head.log, head, functools.partial(proof.root_at, ledger.directory))
    anchors.note_receipt(ledger.directory, found.name, head)
    body: Answer = {"anchor": found.name, "size": head.size, "root": head.root.hex(), "receipt": receipt}
    record_step(ledger, EntryKind.ANCHORED, body)
    return body


def rotate_key(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """Change to a new signing key; the old one is destroyed."""
    del arguments, by
    return {"epoch": ledger.rotate_key()}


def hold(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """``action`` place (with ``mission``, ``subject`` or ``since`` and ``until``, and ``because``), list, or lift.

    Placing answers how many records it covers now: none may be a name that was misspelled.

    Lifting needs two people whom we can tell apart, so it is refused until log-ins exist.
    """
    action = str(arguments.get("action", "list"))
    if action == "list":
        rows: list[Json] = [
            {
                "id": h.id,
                "mission": h.mission,
                "subject": h.subject,
                "since": h.since,
                "until": h.until,
                "because": h.because,
            }
            for h in holds.active(ledger.directory)
        ]
        return {"holds": rows}
    if action == "lift":
        raise LedgerError(
            "hold-needs-two",
            "lifting a hold needs two people, and people cannot be told apart before log-ins exist",
            remedy="the hold stays; records it covers are kept",
        )
    if action != "place":
        raise LedgerError("bad-ledger-verb", f"a hold can be placed, listed or lifted, not {action!r}")
    return _place_hold(ledger, arguments, by)


def _place_hold(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    mission, subject = str(arguments.get("mission") or ""), str(arguments.get("subject") or "")
    since, until = int(str(arguments.get("since") or 0)), int(str(arguments.get("until") or 0))
    because = str(arguments.get("because") or "")
    if not because or not (mission or subject or until) or since > until:
        raise LedgerError(
            "bad-hold",
            "a hold needs a reason, and a mission, a subject or a time range",
            remedy="ringfence ledger hold place --mission M --because 'case 17'",
        )
    body: Answer = {
        "action": "place",
        "id": f"h-{ledger.head.size}",
        "mission": mission,
        "subject": subject_id(subject) if subject else "",
        "since": since,
        "until": until,
        "because": because,
        "by": who(by),
    }
    record_step(ledger, EntryKind.HOLD, body)
    (placed,) = (hold for hold in holds.active(ledger.directory) if hold.id == body["id"])
    return {"id": body["id"], "records": sum(placed.covers(record.value) for record in ledger.read())}


def erase(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """Destroy the personal data of a ``subject`` or ``mission``, recorded first with its legal ``ground``.

    Raises LedgerError ``on-hold`` where a hold covers them, ``bad-erasure`` where the ground is missing.
    """
    named = [str(arguments[what]) for what in ("subject", "mission") if arguments.get(what)]
    ground = str(arguments.get("ground") or "")
    if len(named) != 1 or not ground:
        raise LedgerError(
            "bad-erasure",
            "an erasure needs one subject or one mission, and its legal ground",
            remedy="ringfence ledger erase --mission M --ground 'GDPR 17(1)(b)'",
        )
    subject = subject_id(named[0])
    records = [r.value for r in ledger.read() if b'"subject":"%s"' % subject.encode() in r.line]
    blocking = holds.blocking_erasure(holds.active(ledger.directory), subject, records)
    if blocking is not None:
        raise LedgerError(
            "on-hold", f"hold {blocking.id} covers this: {blocking.because!a}", remedy="nothing was erased"
        )
    body: Answer = {
        "subject": subject,
        "ground": ground,
        "records": len(records),
        "seqs": [record["seq"] for record in records[:1000]],
        "by": who(by),
    }
    record_step(ledger, EntryKind.ERASED, body)
    return {"subject": subject, "records": len(records), "erased": ledger.keeper.erase(subject)}


def finish_erasures(ledger: Ledger) -> Answer:
    """Erase what an entry says was erased: a crash may have come between the two."""
    told = erased(ledger.directory)
    left = [subject for subject in told if ledger.keeper.has(subject)]
    newer = {subject for subject in left if _named_after(ledger, subject, told[subject])}
    again: list[Json] = [subject for subject in left if subject not in newer and ledger.keeper.erase(subject)]
    return {"erased": again}


def erased(directory: str) -> dict[str, int]:
    """Every subject that an entry says was erased, with the number of the newest such entry."""
    mark = b'"kind":"%s"' % EntryKind.ERASED.value.encode()
    found: dict[str, int] = {}
    for seq, line in scan.lines(directory):
        body = scan.value_of(line, directory).get("body") if mark in line else None
        if isinstance(body, dict) and body.get("subject"):
            found[str(body["subject"])] = seq
    return found


def _named_after(ledger: Ledger, subject: str, seq: int) -> bool:
    """Whether a record after the erasure commits to new values of the same subject."""
    mark = b'"subject":"%s"' % subject.encode()
    return any(found > seq and mark in line for found, line in scan.lines(ledger.directory))


def _texts(value: object) -> Sequence[str]:
    if value is None:
        return ()
    return (
        [value] if isinstance(value, str) else [str(item) for item in value] if isinstance(value, list | tuple) else ()
    )


VERBS: dict[str, Callable[[Ledger, Arguments, Person], Answer]] = {
    "checkpoint": checkpoint,
    "anchor": anchor,
    "rotate-key": rotate_key,
    "hold": hold,
    "erase": erase,
}
KEEPING: dict[str, Callable[[Ledger, Arguments, Person, Organisation], Answer]] = {
    "archive": keeping.archive,
    "purge": keeping.purge,
    "retention": keeping.days,
}
"""Verbs for which the organisation's policy counts."""
