"""How long records are kept: sealed segments are archived, then purged, never past a hold, and always with an entry first.

Nothing is removed that is younger than its class by the log's own times, corrected by every step of the clock that the
log tells of. A purge drops whole segments from the beginning; the tree's hashes of what is gone stay in the next
segment's header, so that proofs about the rest, and old checkpoints, go on to hold.
"""

import contextlib
import gzip
import hashlib
import itertools
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ringfence.ledger import frame, holds, scan
from ringfence.ledger.classes import DEFAULTS, Classes, Recorded, Stated, read_recorded, stated
from ringfence.ledger.files import open_plain, read_small
from ringfence.ledger.personal import PersonalStore
from ringfence.ledger.segment import replace, sync_directory
from ringfence.ledger.tree import fold
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

DAY = 86_400 * 1_000_000
MOST_PURGING = 256 << 20
"""Bytes of the file that tells what a purge is about to remove: seven million subjects."""
_SUBJECT = re.compile("[0-9a-f]{32}")
_CHANGED = b'"kind":"%s"' % EntryKind.RETENTION.value.encode()
_PURGE = b'{"body":{"action":"purge",'
_STEPPED = b'"kind":"%s"' % EntryKind.CLOCK_STEPPED.value.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A segment that takes no more records."""

    file: scan.SegmentFile
    following: scan.SegmentFile
    newest: int
    """Time of its newest record."""
    held_by: str
    """Id of a hold that covers one of its records, or empty."""

    @property
    def records(self) -> int:
        """How many records it has."""
        return self.following.first - self.file.first


def load_days(directory: str) -> tuple[Stated, Recorded | None]:
    """What a ledger's ``retention.json`` says: the days of its own, and what was recorded last. Raises ``bad-retention``."""
    path = f"{directory}/retention.json"
    try:
        found = json.loads(read_small(path))
        unknown = found.keys() - {*DEFAULTS, "recorded"}
        if unknown:
            raise LedgerError("bad-retention", f"the retention classes have no {min(unknown)!r}", where=path)
        return stated(found), read_recorded(found.get("recorded"))
    except FileNotFoundError:
        return Stated(), None
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise LedgerError("bad-retention", "the retention classes cannot be read", where=path) from error


def store_days(directory: str, local: Stated, recorded: Recorded) -> None:
    """Keep the days of a ledger's own, and what was recorded."""
    replace(f"{directory}/retention.json", json.dumps({**local.days, "recorded": recorded.body()}).encode())


def recorded_in_log(directory: str) -> Recorded | None:
    """What the log itself told last. A purge tells it anew, so that it never leaves with what is purged."""
    found = None
    for _, line in scan.lines(directory):
        if _CHANGED in line:
            body = scan.value_of(line, directory).get("body")
            found = (read_recorded(body.get("classes")) if isinstance(body, dict) else None) or found
    return found


def sealed(directory: str) -> list[Sealed]:
    """All segments but the last, with what decides about them."""
    files = scan.segments(directory)
    in_force = holds.active(directory)
    found = []
    for file, following in itertools.pairwise(files):
        newest, held = 0, ""
        for record in scan.records_of(file):
            newest = max(newest, int(str(record.value["time"])))
            covering = next((h.id for h in in_force if h.seq == record.seq or h.covers(record.value)), "")
            held = held or covering
        found.append(Sealed(file=file, following=following, newest=newest, held_by=held))
    return found


def believable_now(directory: str, now: Micros) -> int:
    """The present, less every step ahead that the log tells of and that was not taken back.

    A step ahead that only goes back to where a step back came from, as after a start with a clock that stood still, is none.
    """
    ahead = left = last = 0
    for _, line in scan.lines(directory):
        time = frame.time_of(line)
        if _STEPPED in line:
            body = scan.value_of(line, directory).get("body")
            fields = body if isinstance(body, dict) else {}
            on, back = (int(str(fields.get(name, 0))) for name in ("ahead_us", "back_us"))
            if back:
                left = max(left, last - ahead)
            returned = max(0, min(on, left - (time - on - ahead)))
            ahead = max(0, ahead + on - returned - back)
        last = time
    return now - ahead


def nothing_older(directory: str, limit: int, *, archived: bool) -> bool:
    """Whether no sealed segment can be older than ``limit``, by the first record of the oldest: cheap, for a schedule."""
    for file, _ in itertools.pairwise(scan.segments(directory)):
        if archived or not file.archived:
            return all(int(str(record.value["time"])) >= limit for record in itertools.islice(scan.records_of(file), 1))
    return True


def to_archive(directory: str, classes: Classes, now: Micros) -> list[Sealed]:
    """Sealed segments older than the operational class that are not archived yet."""
    if nothing_older(directory, now - classes.operational_days * DAY, archived=False):
        return []
    limit = believable_now(directory, now) - classes.operational_days * DAY
    return [segment for segment in sealed(directory) if not segment.file.archived and segment.newest < limit]


def to_purge(directory: str, classes: Classes, now: Micros) -> tuple[list[Sealed], str]:
    """The segments from the beginning that may go, and the hold that keeps the next one, or empty."""
    if nothing_older(directory, now - classes.compliance_days * DAY, archived=True):
        return [], ""
    limit = believable_now(directory, now) - classes.compliance_days * DAY
    going: list[Sealed] = []
    for segment in sealed(directory):
        if segment.newest >= limit:
            return going, ""
        if segment.held_by:
            return going, segment.held_by
        going.append(segment)
    return going, ""


def pack(segment: Sealed) -> dict[str, Json]:
    """Write the archive of a segment beside it, read it back and compare; the plain file stays. Returns what to record.

    Raises LedgerError ``archive-mismatch`` where the archive does not give back the same bytes.
    """
    path = segment.file.path
    temporary = f"{path}.gz.new"
    before = _digest_plain(path)
    try:
        _compress(path, temporary)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # on a full disk the room that it took is wanted
        raise
    if _digest_gzip(temporary) != before or _digest_plain(path) != before:
        os.unlink(temporary)
        raise LedgerError("archive-mismatch", "the archive does not give back the segment", where=path)
    os.rename(temporary, f"{path}.gz")
    sync_directory(os.path.dirname(path))
    return {"first": segment.file.first, "records": segment.records, "sha256": before}


def _compress(path: str, target: str) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open_plain(path) as plain, open(fd, "wb") as packed:
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:
            shutil.copyfileobj(plain, stream, 1 << 20)
        packed.flush()
        os.fsync(packed.fileno())


def drop_plain(segment: Sealed, digest: str) -> None:
    """Remove the plain file of an archived segment, if the archive still gives back its bytes."""
    path = segment.file.path
    if _digest_gzip(f"{path}.gz") != digest:
        raise LedgerError("archive-mismatch", "the archive was changed after it was verified", where=f"{path}.gz")
    os.unlink(path)
    sync_directory(os.path.dirname(path))


def purge_body(going: list[Sealed], epochs: list[Json]) -> dict[str, Json]:
    """What the entry of a purge says: what goes, the root over it, and the keys until then."""
    following = scan.header(going[-1].following)
    nodes = [bytes.fromhex(node) for node in following.nodes]
    return {
        "action": "purge",
        "before": following.first,
        "root": fold(nodes).hex(),
        "last": following.prev,
        "newest": max(segment.newest for segment in going),
        "epochs": epochs,
    }


def remove(directory: str, before: int, subjects: Iterable[str], erase: Callable[[str], object]) -> None:
    """Remove the segments that end before record ``before``, and the ``subjects`` that only they speak of.

    A crash on the way is made good by ``finish_removal``.
    """
    orphans = list(subjects)
    replace(f"{directory}/purging", "\n".join([str(before), *orphans]).encode())
    _remove(directory, before, orphans, erase)


def finish_removal(directory: str) -> None:
    """Go on with a removal that a crash cut short; its entry was durable before it began."""
    try:
        first, *subjects = read_small(f"{directory}/purging", MOST_PURGING).decode().split("\n")
        before = int(first)
    except (FileNotFoundError, ValueError):
        return
    mark = b'"before":%d,' % before
    if any(_PURGE in line and mark in line for _, line in scan.lines(directory)):  # a stray file removes nothing
        kept = {subject for record in scan.records(directory, before) for subject in holds.subjects_of(record.value)}
        orphans = [subject for subject in subjects if _SUBJECT.fullmatch(subject) and subject not in kept]
        _remove(directory, before, orphans, PersonalStore(directory).erase)


def _remove(directory: str, before: int, subjects: Iterable[str], erase: Callable[[str], object]) -> None:
    files = scan.segments(directory)
    for file, following in itertools.pairwise(files):
        if following.first <= before:
            for path in {file.path, file.path.removesuffix(".gz"), file.path.removesuffix(".gz") + ".gz"}:
                if os.path.exists(path):
                    os.unlink(path)
    sync_directory(f"{directory}/segments")
    for subject in subjects:
        erase(subject)
    os.unlink(f"{directory}/purging")


def subjects_only_in(directory: str, going: list[Sealed]) -> list[str]:
    """Subjects of the side store that only records in ``going`` speak of."""
    limit = going[-1].following.first
    gone: set[str] = set()
    kept: set[str] = set()
    for record in scan.records(directory):
        (gone if record.seq < limit else kept).update(holds.subjects_of(record.value))
    return sorted(gone - kept)


def _digest_plain(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_gzip(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except (OSError, EOFError, zlib.error):
        return ""
    return digest.hexdigest()
