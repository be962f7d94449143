"""One caller's entries on their way to the disk."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from ringfence.model.entry import Ack, EntryKind
from ringfence.model.errors import LedgerError


@dataclass(slots=True)
class Request:
    """Prepared records with their times and kinds; one without records waits to be alone. ``wake`` is released once."""

    prepared: list[tuple[bytes, int, EntryKind]]
    wake: threading.Lock = field(default_factory=threading.Lock)
    acks: list[Ack] | None = None
    error: LedgerError | None = None

    @property
    def done(self) -> bool:
        """Whether it was acknowledged or refused."""
        return self.acks is not None or self.error is not None


def bytes_of(batch: Sequence[Request]) -> int:
    """At most how many bytes a batch takes as a group."""
    return sum(len(prepared) + 160 for request in batch for prepared, _, _ in request.prepared) + 100
