"""What the ledger keeps: one entry per step, intent before and result after."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from ringfence.model.ids import Micros, MissionId, Sha256

Json: TypeAlias = None | bool | int | str | list["Json"] | dict[str, "Json"]
"""JSON without floats: what a record may hold. Durations are integer microseconds, ratios are strings."""


class EntryKind(enum.Enum):
    """What an entry tells. The value is what is stored."""

    CREATED = "ledger.created"
    INTENT = "tool.intent"
    RESULT = "tool.result"
    ORPHANED = "tool.orphaned"
    OBSERVED = "box.observed"
    EGRESS = "egress.try"
    GATE = "gate.commit"
    MISSION = "mission.state"
    POLICY = "policy.change"
    SMOKE = "box.smoke"
    APPROVAL = "approval.answer"
    INCIDENT = "incident.change"
    PROMOTION = "promotion.verdict"
    RECOVERED = "ledger.recovered"
    KEY_ROTATED = "key.rotated"
    CLOCK_STEPPED = "clock.stepped"
    RETENTION = "retention.change"
    ERASED = "privacy.erased"
    HOLD = "hold.change"
    ANCHORED = "ledger.anchored"
    TELEMETRY = "agent.telemetry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step to be remembered."""

    kind: EntryKind
    time: Micros
    mission: MissionId | None = None
    call: str = ""
    parent: str = ""
    """Record hash of the step it follows from (a result names its intent), or empty."""
    subject: str = ""
    """Whom ``personal`` is about: erased together. Empty: the mission."""
    body: Mapping[str, Json] = field(default_factory=dict)
    personal: Mapping[str, str] = field(default_factory=dict)
    """Bodies and personal data: only a salted commitment of each enters the record."""


class Ack(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The entry is durable: it survives a crash of the machine from here on."""

    # A struct, since one is made for each entry while callers wait: a fifth of the time of a frozen dataclass.

    seq: int
    record: Sha256
