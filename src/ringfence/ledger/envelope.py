"""An entry to the bytes of its record, up to its place in the chain. Pure.

The rest (hash before, number, time, version) is added by the sequencer: keys are in canonical order, so the record
is canonical when its body and its parts are.
"""

import re
from collections.abc import Mapping

from ringfence.ledger import canonical, frame
from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.errors import LedgerError

_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}").fullmatch
_NAMED = "1 to 128 letters, digits and ._:/@+-"
_is_hash = re.compile(r"[0-9a-f]{64}").fullmatch
_ROOM = frame.MAX_RECORD - len(frame.complete(b"", frame.NO_HASH, 10**15, 10**15))
MIN_TIME, MAX_TIME = 10**15, 2**53
"""Instants a record can hold: 2001 to 2255, so that every time has 16 digits and is a canonical number."""
BARE = (EntryKind.CREATED, EntryKind.KEY_ROTATED, EntryKind.RETENTION)
"""Kinds that verification itself reads: they have no call, mission, parent or personal part, so that they are found fast."""
_BARE = frozenset(kind.value for kind in BARE)


def prepare(entry: Entry, *, body: bytes, personal: Mapping[str, Json]) -> bytes:
    """The record of ``entry`` up to ``"prev"``, with ``body`` (scrubbed, canonical) and the commitments ``personal``.

    Raises LedgerError ``entry-not-canonical`` or ``entry-too-large``.
    """
    kind, call, mission = entry.kind.value, entry.call, entry.mission
    if kind in _BARE and (call or mission is not None or entry.parent or personal):
        raise _refused("kind", f"{kind} without call, mission, parent and personal part")
    if call and not _is_name(call):
        raise _refused("call", _NAMED)
    members = f',"call":"{call}","kind":"{kind}"' if call else f',"kind":"{kind}"'
    if mission is not None:
        if not _is_name(mission):
            raise _refused("mission", _NAMED)
        members = f'{members},"mission":"{mission}"'
    if entry.parent:
        if not _is_hash(entry.parent):
            raise _refused("parent", "a record hash: 64 hexadecimal digits")
        members = f'{members},"parent":"{entry.parent}"'
    prepared = b'{"body":' + body + members.encode()
    if personal:
        prepared += b',"personal":%b' % canonical.encode(dict(personal))
    if len(prepared) > _ROOM:
        raise LedgerError(
            "entry-too-large",
            f"the record of {kind} takes {len(prepared)} bytes, {_ROOM} are the most",
            remedy="give less at once: a command line of fewer words, or the words in a file",
        )
    return prepared


def _refused(field: str, expected: str) -> LedgerError:
    return LedgerError(
        "entry-not-canonical", f"`{field}` of a ledger entry must be {expected}", remedy="see docs/ledger-format.md"
    )
