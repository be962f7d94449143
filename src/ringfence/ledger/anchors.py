"""Anchors: places outside that remember heads. Which there are is kept in the ledger's folder, ``anchors.json``.

An anchor is asked when the ledger is opened and when it is verified; it is told the head by ``push``. What it
remembers is the set of logs: every log it ever saw must still be there.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ringfence.ledger import note, scan
from ringfence.ledger.files import open_regular, read_small
from ringfence.ledger.segment import replace
from ringfence.ledger.start import Anchor
from ringfence.ledger.verdict import AnchorStatus
from ringfence.model.entry import EntryKind
from ringfence.model.errors import LedgerError
from ringfence.model.ids import Micros

RootAt = Callable[[int], bytes | None]
"""The root over so many records of the log, or None where they were purged."""
_LOG = re.compile(r"[0-9a-f]{32}")
_ANCHORED, _CONFIGURE = b'"kind":"%s"' % EntryKind.ANCHORED.value.encode(), b'"action":"configure"'


_BACK = "bring it back, or take it away with `ringfence ledger anchor --remove NAME` (which is recorded)"


def unreadable(name: str, why: str, remedy: str = _BACK) -> LedgerError:
    """The fault of an anchor that cannot be asked."""
    return LedgerError("anchor-unreadable", f"the anchor cannot be read: {why}", where=name, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyAnchor:
    """A folder on another disk, host mount or object store mount: one file a log, replaced whole."""

    folder: str

    @property
    def name(self) -> str:
        """How it is written in configuration."""
        return f"copy:{self.folder}"

    def heads(self) -> Mapping[str, note.Checkpoint]:
        """The checkpoints that lie there. Raises LedgerError ``anchor-unreadable``, also where one is damaged."""
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(".checkpoint")]
            found = {}
            for name in names:
                with open_regular(f"{self.folder}/{name}") as stream:
                    head = note.parse(stream.read(note.LONGEST + 1))
                if head is None or head.origin != note.origin(name.removesuffix(".checkpoint")):
                    raise unreadable(f"{self.folder}/{name}", "it is not a checkpoint")
                found[name.removesuffix(".checkpoint")] = head
        except OSError as error:
            raise unreadable(self.name, os.strerror(error.errno or 0)) from error
        return found

    def push(self, log: str, head: note.Checkpoint, root_at: RootAt) -> str:
        """Remember the head; refuses to go back. Returns a receipt."""
        refuse_rewind(self.name, self.heads(), log, head, root_at)
        try:
            replace(f"{self.folder}/{log}.checkpoint", head.text(), 0o644)
        except OSError as error:
            raise unreadable(self.name, os.strerror(error.errno or 0)) from error
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnchor:
    """One checkpoint that somebody kept in a file."""

    path: str

    @property
    def name(self) -> str:
        """How it is shown."""
        return f"file:{self.path}"

    def heads(self) -> Mapping[str, note.Checkpoint]:
        """The checkpoint in the file. Raises LedgerError ``anchor-unreadable``."""
        remedy = "name a file with a checkpoint: three lines, an empty one, and who signed"
        try:
            with open(self.path, "rb") as stream:
                head = note.parse(stream.read(note.LONGEST + 1))
        except OSError as error:
            raise unreadable(self.name, os.strerror(error.errno or 0), remedy) from error
        if head is None:
            raise unreadable(self.name, "it is not a checkpoint", remedy)
        log = note.log_of(head.origin)
        return {log if log is not None else ascii(head.origin): head}


def refuse_shared(name: str, heads: Mapping[str, note.Checkpoint], log: str) -> None:
    """An anchor of another ledger takes no head of this one: each would miss the other's log from then on."""
    other = min(heads.keys() - {log}, default="")
    if other:
        raise LedgerError(
            "bad-anchor",
            f"the anchor remembers another log, {other}",
            where=name,
            remedy="give each ledger a ref or folder of its own",
        )


def refuse_rewind(
    name: str, heads: Mapping[str, note.Checkpoint], log: str, head: note.Checkpoint, root_at: RootAt
) -> None:
    """An anchor that remembers more, or another beginning, is evidence, not a target: a fork would make it forget."""
    refuse_shared(name, heads, log)
    known = heads.get(log)
    if known is None:
        return
    what = f"TRUNCATED: the anchor remembers {known.size} records, the log has {head.size}"
    if known.size <= head.size:
        own = head.root if known.size == head.size else root_at(known.size)
        if own is None or own == known.root:  # None: what it remembers was purged, and says nothing of what is here
            return
        what = f"FORKED: the anchor remembers other records than the first {known.size} of this log"
    raise LedgerError(
        "ledger-altered",
        what,
        where=name,
        remedy="keep both as evidence and run `ringfence ledger verify`",
    )


_PLACE = re.compile(r"/|[\w.@+][\w.@+-]*:")
"""An absolute folder, ``scheme://…`` or ``host:…``."""
_REF = re.compile(r"refs/[^\s:?*\[\\^~]+")
"""One ref in full: a short name or a pattern could mean another."""


def parse_anchor(text: str, directory: str, *, scratch: str = "") -> "PushAnchor":
    """The anchor that ``copy:FOLDER``, ``git:LOCATION[#REF]`` or ``rfc3161:URL#ROOTS.pem`` names. Raises ``bad-anchor``.

    git works in the folder ``scratch``; not given, in one of the ledger's own.
    """
    kind, _, rest = text.partition(":") if _can_be_a_name(text) else ("", "", "")
    if kind == "copy" and rest.startswith("/"):
        return CopyAnchor(folder=os.path.realpath(rest))
    if kind == "git" and _PLACE.match(rest):  # a relative folder would be another one for the supervisor
        from ringfence.ledger.anchor_git import GitAnchor

        location, _, ref = rest.partition("#")
        if not ref or _REF.fullmatch(ref):
            return GitAnchor(
                location=location, ref=ref or "refs/ringfence/ledger", scratch=scratch or f"{directory}/anchors"
            )
    if kind == "rfc3161" and rest.startswith(("http://", "https://")):
        from ringfence.ledger.anchor_timestamp import TimestampAnchor

        url, _, roots = rest.partition("#")
        return TimestampAnchor(url=url, roots=roots, folder=f"{directory}/anchors/timestamps/{_digest(text)}")
    raise LedgerError(
        "bad-anchor",
        f"{text!r} names no anchor",
        remedy="write copy:/absolute/folder, git:/path/or/url#refs/ringfence/NAME, or rfc3161:URL#/path/to/roots.pem",
    )


class PushAnchor(Anchor, Protocol):
    """An anchor that can also be told a head."""

    def push(self, log: str, head: note.Checkpoint, root_at: RootAt) -> str:
        """Remember the head, where ``root_at`` agrees with what is remembered. Returns a receipt; raises LedgerError."""
        ...


def _digest(text: str) -> str:
    """A folder's name for an anchor: another authority's tokens do not verify."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _can_be_a_name(text: str) -> bool:
    try:
        return b"\x00" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def configured(directory: str) -> list["PushAnchor"]:
    """The anchors of a ledger. Raises LedgerError ``bad-anchor``."""
    return [parse_anchor(text, directory) for text in names(directory)]


def names(directory: str) -> list[str]:
    """The anchors of a ledger as they are written."""
    path = f"{directory}/anchors.json"
    try:
        return [str(text) for text in json.loads(read_small(path))["anchors"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerError(
            "bad-anchor",
            "the list of anchors cannot be read",
            where=path,
            remedy="write it anew as the log tells it: `ringfence ledger show --kind ledger.anchored --text configure --json`",
        ) from error


def told(directory: str, start: int = 0) -> list[str]:
    """The anchors by the newest list that the log itself tells of, in records from ``start`` on."""
    found: list[str] = []
    for seq, line in scan.lines(directory):
        listing = seq >= start and _ANCHORED in line and _CONFIGURE in line
        body = scan.value_of(line, directory).get("body") if listing else None
        listed = body.get("anchors") if isinstance(body, dict) and body.get("action") == "configure" else None
        found = [str(name) for name in listed] if isinstance(listed, list) else found
    return found


def configure(directory: str, anchors: Sequence[str]) -> None:
    """Keep the list of anchors; each must name one. Raises LedgerError ``bad-anchor``."""
    for text in anchors:
        parse_anchor(text, directory)
    replace(f"{directory}/anchors.json", json.dumps({"anchors": list(anchors)}).encode())


def note_receipt(directory: str, name: str, head: note.Checkpoint) -> None:
    """Remember which head an anchor was told last, for showing the lag without asking it."""
    found = dict(_receipts(directory))
    found[name] = head.size
    replace(f"{directory}/anchor-receipts.json", json.dumps(found).encode())


def _receipts(directory: str) -> Mapping[str, int]:
    try:
        told = json.loads(read_small(f"{directory}/anchor-receipts.json"))
        return {str(name): int(size) for name, size in told.items() if 0 <= size < 10**16}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def lag(directory: str, *, size: int, now: Micros) -> list[AnchorStatus]:
    """How far each configured anchor is behind, by what it was told; nothing outside is asked."""
    told = {name: found for name, found in _receipts(directory).items() if found <= size}  # more was never told
    return [status(directory, name, told.get(name, 0), size=size, now=now) for name in names(directory)]


def status(directory: str, name: str, covered: int, *, size: int, now: Micros) -> AnchorStatus:
    """How far behind an anchor is that covers ``covered`` of ``size`` records. A time to come counts as one as long ago.

    Records about anchors do not count: each anchoring writes one after it.
    """
    waiting = 0
    for record in scan.records(directory, covered):
        if record.seq >= size:
            break
        if record.value.get("kind") != EntryKind.ANCHORED.value:
            waiting = max(1, abs(now - int(str(record.value["time"]))))
            break
    return AnchorStatus(name=name, size=covered, lag_records=size - covered if waiting else 0, lag_us=waiting)


def is_log(text: str) -> bool:
    """Whether a text is a log's name."""
    return _LOG.fullmatch(text) is not None
