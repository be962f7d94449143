"""What a person asks of an open ledger: one function a verb, a mapping in and a mapping out, for the supervisor to call.

Every verb that changes something is an entry first. Nothing here decides who may ask: the supervisor did.
"""

from collections.abc import Callable, Mapping

from ringfence.ledger.log import Ledger
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError
from ringfence.model.person import Person

Arguments = Mapping[str, object]
Answer = dict[str, Json]


def perform(ledger: Ledger, action: str, arguments: Arguments, *, by: Person) -> Answer:
    """Carry out one verb. Raises LedgerError ``bad-ledger-verb`` for an unknown one, and what the verb raises."""
    verb = _VERBS.get(action)
    if verb is None:
        raise LedgerError(
            "bad-ledger-verb", f"the ledger knows no verb {action!r}", remedy="one of " + ", ".join(_VERBS)
        )
    return verb(ledger, arguments, by)


def checkpoint(ledger: Ledger, arguments: Arguments, by: Person) -> Answer:
    """Sign the head now."""
    del arguments, by
    head = ledger.checkpoint()
    return {"size": head.size, "root": head.root.hex(), "note": head.text().decode()}


_VERBS: dict[str, Callable[[Ledger, Arguments, Person], Answer]] = {"checkpoint": checkpoint}
