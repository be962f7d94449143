"""Legal holds, read from the log's own entries: what must not be purged or erased. Pure but for reading records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ringfence.ledger import scan
from ringfence.ledger.personal import subject_id
from ringfence.model.entry import EntryKind, Json

_MARK = b'"kind":"%s"' % EntryKind.HOLD.value.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What one hold covers. Empty fields cover nothing; a time range covers every record in it (microseconds)."""

    id: str
    seq: int
    mission: str = ""
    subject: str = ""
    """Id of a subject of the side store."""
    since: int = 0
    until: int = 0
    because: str = ""

    def covers(self, record: Mapping[str, Json]) -> bool:
        """Whether a record must be kept."""
        if self.mission and record.get("mission") == self.mission:
            return True
        instant = int(str(record.get("time", 0)))
        if self.until and self.since <= instant <= self.until:
            return True
        return bool(self.subject) and self.subject in subjects_of(record)


def subjects_of(record: Mapping[str, Json]) -> set[str]:
    """Ids of the subjects whose values a record commits to."""
    personal = record.get("personal")
    if not isinstance(personal, dict):
        return set()
    return {str(commit.get("subject")) for commit in personal.values() if isinstance(commit, dict)}


def active(directory: str) -> list[Hold]:
    """Every hold in force. Holds are never lifted yet: that needs two people, and so log-ins."""
    found = []
    for seq, line in scan.lines(directory):
        if _MARK in line:
            value = scan.value_of(line, directory)
            body = value.get("body")
            if value.get("kind") == EntryKind.HOLD.value and isinstance(body, dict):
                found.append(_hold(seq, body))
    return found


def _hold(seq: int, body: Mapping[str, Json]) -> Hold:
    return Hold(
        id=str(body.get("id", "")),
        seq=seq,
        mission=str(body.get("mission") or ""),
        subject=str(body.get("subject") or ""),
        since=int(str(body.get("since") or 0)),
        until=int(str(body.get("until") or 0)),
        because=str(body.get("because") or ""),
    )


def blocking_erasure(holds: Iterable[Hold], subject: str, records: Sequence[Mapping[str, Json]]) -> Hold | None:
    """The hold that forbids to erase a subject, or None: one on its name, or one that covers any of its ``records``."""
    for hold in holds:
        named = subject in {hold.subject, subject_id(hold.mission) if hold.mission else ""}
        if named or any(hold.covers(record) for record in records):
            return hold
    return None
