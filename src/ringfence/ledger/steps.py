"""One administrative step on a ledger as its entry: what every verb that changes something writes first."""

from ringfence.ledger.log import Ledger
from ringfence.model.entry import Entry, EntryKind, Json
from ringfence.model.person import Person

Answer = dict[str, Json]
SCHEDULE = Person(name="schedule", uid=-1, how="schedule")
"""Who acts where nobody asked: retention and anchors that are due."""


def record_step(ledger: Ledger, kind: EntryKind, body: Answer) -> None:
    """Append one entry; durable when this returns."""
    ledger.append([Entry(kind=kind, time=ledger.now, body=body)])


def who(by: Person) -> Answer:
    """The person as entries name them."""
    return {"name": by.name, "uid": by.uid, "how": by.how}
