"""The verbs about how long records are kept: archive, purge, and the days themselves. Each is an entry first.

All of them take what the organisation's policy says, as the supervisor read it. Where that cannot be known nothing
leaves: before anything does, the log itself is asked whether an organisation ever stated days that are now missing.
"""

from collections.abc import Callable, Mapping

from ringfence.ledger import anchors, retention
from ringfence.ledger.classes import Classes, InForce, Organisation, Recorded, Stated, in_force, kept_longer, stated
from ringfence.ledger.log import Ledger
from ringfence.ledger.retention import Sealed
from ringfence.ledger.steps import Answer, record_step, who
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.person import Person

Arguments = Mapping[str, object]


def archive(ledger: Ledger, arguments: Arguments, by: Person, organisation: Organisation) -> Answer:
    """Compress sealed segments older than the operational class, verified before and after. ``dry_run`` only tells.

    Raises LedgerError ``retention-unknown`` where the organisation's policy cannot be used.
    """
    dry_run = bool(arguments.get("dry_run"))
    found, due = _due(
        ledger, organisation, None if dry_run else by, lambda c: retention.to_archive(ledger.directory, c, ledger.now)
    )
    answer: Answer = {"operational_days": found.classes.operational_days, "dry_run": dry_run}
    rows: list[Json] = [{"first": segment.file.first, "records": segment.records} for segment in due]
    if dry_run or not due:
        return {"archived": rows, **answer}
    packed = [retention.pack(segment) for segment in due]
    body: Answer = {"action": "archive", "segments": list(packed), "classes": found.now.body(), "by": who(by)}
    record_step(ledger, EntryKind.RETENTION, body)
    for segment, row in zip(due, packed, strict=True):
        retention.drop_plain(segment, str(row["sha256"]))
    return {"archived": list(packed), **answer}


def purge(ledger: Ledger, arguments: Arguments, by: Person, organisation: Organisation) -> Answer:
    """Remove segments older than the compliance class, from the beginning, up to the first that a hold keeps.

    ``dry_run`` only tells. Raises LedgerError ``retention-unknown`` where the organisation's policy cannot be used,
    ``purge-not-anchored`` where an anchor does not remember what would go, ``anchor-unreadable`` where it cannot be asked;
    a dry run does so as well.
    """
    dry_run, held = bool(arguments.get("dry_run")), ""

    def find(classes: Classes) -> list[Sealed]:
        nonlocal held
        going, held = retention.to_purge(ledger.directory, classes, ledger.now)
        return going

    found, going = _due(ledger, organisation, None if dry_run else by, find)
    records = sum(segment.records for segment in going)
    answer: Answer = {
        "segments": len(going),
        "records": records,
        "kept_by_hold": held,
        "compliance_days": found.classes.compliance_days,
        "dry_run": dry_run,
    }
    if not going:
        return answer
    before = going[-1].following.first
    for anchor in anchors.configured(
        ledger.directory
    ):  # what we noted that it was told could be wrong, or its memory lost
        head = anchor.heads().get(ledger.head.log)
        seen = 0 if head is None else head.size
        if seen < before:
            raise LedgerError(
                "purge-not-anchored",
                f"{anchor.name} has seen {seen} records, {before} would be removed",
                remedy="run `ringfence ledger anchor` first",
            )
    if dry_run:
        return answer
    epochs: list[Json] = [
        {"epoch": e.epoch, "after": e.after, "public": e.public.hex()} for e in ledger.epochs if e.after < before
    ]
    listed = anchors.told(ledger.directory)
    if listed != anchors.told(
        ledger.directory, before
    ):  # else nobody would miss one that is struck from the list by hand
        record_step(ledger, EntryKind.ANCHORED, {"action": "configure", "anchors": list(listed), "by": who(by)})
    orphans = retention.subjects_only_in(ledger.directory, going)
    body = {**retention.purge_body(going, epochs), "records": records, "classes": found.now.body(), "by": who(by)}
    record_step(ledger, EntryKind.RETENTION, body)
    ledger.checkpoint()  # an entry that nobody signed for explains no missing records
    retention.remove(ledger.directory, before, orphans, ledger.keeper.erase)
    return {**answer, "before": before}


def days(ledger: Ledger, arguments: Arguments, by: Person, organisation: Organisation) -> Answer:
    """Without days: what is in force, and who says so. With days: keep longer than the organisation asks; recorded.

    Raises LedgerError ``retention-below-organisation``, ``bad-retention``, or ``retention-unknown`` as above.
    """
    try:
        given = stated(arguments)
    except (ValueError, TypeError) as error:
        raise LedgerError("bad-retention", "days are whole numbers") from error
    local, last = _known(ledger)
    if given.days:
        _refuse_unknown(in_force(organisation, local, last), organisation)
        local = kept_longer(local, given, organisation)
        last = _note_change(ledger, organisation, local, by)
    found = in_force(organisation, local, last)
    answer = found.now.body()
    answer["local"] = dict(local.days)
    answer["organisation"] = {"file": organisation.file, "there": organisation.there, **found.now.organisation.days}
    return {**answer, "problem": found.problem, "remedy": found.remedy} if found.problem else answer


def note_change(ledger: Ledger, by: Person, organisation: Organisation) -> None:
    """Record it where the organisation's policy changed what is in force since it was recorded last. Cheap if not."""
    local, recorded = retention.load_days(ledger.directory)
    found = in_force(organisation, local, recorded)
    if not found.problem and not found.now.same_as(_before(local, recorded)):
        _note_change(ledger, organisation, _known(ledger)[0], by)


def _note_change(ledger: Ledger, organisation: Organisation, local: Stated, by: Person) -> Recorded:
    old_local, last = _known(ledger)
    found = in_force(organisation, local, last)
    _refuse_unknown(found, organisation)
    old = _before(old_local, last)
    if not found.now.same_as(old):
        body: Answer = {"action": "configure", "classes": found.now.body(), "old": old.body(), "by": who(by)}
        record_step(ledger, EntryKind.RETENTION, body)
    retention.store_days(ledger.directory, local, found.now)
    return found.now


def _known(ledger: Ledger) -> tuple[Stated, Recorded | None]:
    """The ledger's own days and what was told last, by the log itself: ``retention.json`` is a copy that can be lost."""
    local, recorded = retention.load_days(ledger.directory)
    last = retention.recorded_in_log(ledger.directory)
    if last is not None and recorded is None:
        local = Stated(**{name: days for name, days in last.classes.days.items() if last.sources[name] == "local"})
    return local, last or recorded


def _before(local: Stated, recorded: Recorded | None) -> Recorded:
    """What was in force before: as recorded, or without an organisation where nothing was."""
    return recorded or in_force(Organisation(), local, None).now


def _due(
    ledger: Ledger, organisation: Organisation, by: Person | None, find: Callable[[Classes], list[Sealed]]
) -> tuple[InForce, list[Sealed]]:
    """What is in force and the segments that it lets go. ``by`` None: nothing may be recorded."""
    if by is not None:
        note_change(ledger, by, organisation)
    quick = in_force(organisation, *retention.load_days(ledger.directory))
    _refuse_unknown(quick, organisation)
    due = find(quick.classes)
    if not due:
        return quick, due
    local, last = _known(ledger)  # before anything leaves, the log is asked and not its copy
    found = in_force(organisation, local, last)
    _refuse_unknown(found, organisation)
    if by is not None and not found.now.same_as(_before(local, last)):
        _note_change(ledger, organisation, local, by)
    return found, due if found.classes == quick.classes else find(found.classes)


def _refuse_unknown(found: InForce, organisation: Organisation) -> None:
    if found.problem:
        raise LedgerError("retention-unknown", found.problem, where=organisation.file, remedy=found.remedy)
