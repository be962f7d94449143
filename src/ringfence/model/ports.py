"""Interfaces between the rooms. Capability rooms never import each other: they ask through these."""

from collections.abc import Sequence
from typing import Protocol

from ringfence.model.call import ToolCall
from ringfence.model.decision import Decision
from ringfence.model.entry import Ack, Entry


class Decider(Protocol):
    """Answers a call with the policy in force. The supervisor gives one to the sandbox's gate and to egress."""

    def decide(self, call: ToolCall) -> Decision:
        """The decision; a fault while deciding comes back as a DENY with a reason, never as an exception."""
        ...


class Recorder(Protocol):
    """Appends to the ledger. Returns only when the entries are durable; raises LedgerError otherwise."""

    def append(self, entries: Sequence[Entry]) -> Sequence[Ack]:
        """Make all entries durable, in order, and say where they stand."""
        ...
