"""A recorder for commands that run without a mission: through the supervisor where one runs, else straight into the ledger.

The ledger has one writer. Where a supervisor holds it, the entry goes there; where none does, it is opened here for as
long as one append takes.
"""

import time
from collections.abc import Sequence

from ringfence.model.entry import Ack, Entry, EntryKind
from ringfence.model.errors import LedgerError, RingfenceError
from ringfence.model.ids import Sha256
from ringfence.supervisor import client
from ringfence.supervisor.paths import Paths, make_private

BUSY_SECONDS = 15.0
"""How long another writer that is about to close is waited for."""


def append_directly(paths: Paths, entries: Sequence[Entry]) -> Sequence[Ack]:
    """Open the ledger, append, close. Waits for another writer that is brief; raises LedgerError ``ledger-busy`` then."""
    from ringfence.ledger.log import Ledger

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            with Ledger.open(make_private(paths.ledger)) as ledger:
                return ledger.append(entries)
        except LedgerError as error:
            if error.code != "ledger-busy" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


class Recording:
    """Appends promotion verdicts. Raises LedgerError where an entry cannot be made durable."""

    def __init__(self, paths: Paths) -> None:
        """Nothing is opened yet."""
        self._paths = paths

    def append(self, entries: Sequence[Entry]) -> Sequence[Ack]:
        """Make all entries durable, in order, and say where they stand."""
        if any(entry.kind is not EntryKind.PROMOTION for entry in entries):
            raise LedgerError("bad-request", "only promotion verdicts are recorded from outside the supervisor")
        try:
            return [self._through_supervisor(entry) for entry in entries]
        except RingfenceError as error:
            if error.code != "no-supervisor":
                raise
        return append_directly(self._paths, entries)

    def _through_supervisor(self, entry: Entry) -> Ack:
        answer = client.request(self._paths, "promotion", {"body": dict(entry.body)}, start=False)
        return Ack(seq=int(str(answer["seq"])), record=Sha256(str(answer["record"])))
