"""What verification can say of a ledger, and where. Pure."""

import enum
from dataclasses import dataclass, field


class Verdict(enum.Enum):
    """One word for the state of a ledger. Only OK is a pass."""

    OK = "OK"
    ALTERED = "ALTERED"
    REORDERED = "REORDERED"
    GAP = "GAP"
    TORN = "TORN"
    TRUNCATED = "TRUNCATED"
    FORKED = "FORKED"
    KEY_EPOCH = "KEY_EPOCH"
    POLICY_MISMATCH = "POLICY_MISMATCH"
    STALE_ANCHOR = "STALE_ANCHOR"
    NO_ANCHOR = "NO_ANCHOR"

    @property
    def proven(self) -> bool:
        """Whether nothing contradicts the log: OK, or only the outside witness is missing or old."""
        return self in {Verdict.OK, Verdict.STALE_ANCHOR, Verdict.NO_ANCHOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorStatus:
    """What one anchor says: how many records it covers, and how long the first record that it does not cover waits."""

    name: str
    size: int
    lag_records: int
    lag_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What deciding again came to. ``lawful`` of ``allowed`` recorded permissions were given again."""

    allowed: int = 0
    lawful: int = 0
    not_replayed: int = 0
    """Permissions that cannot be decided again: the policy is gone, or a part of the call was scrubbed or erased."""
    undecided: int = 0
    """Those of them of which nothing was scrubbed or erased: where there are any, nothing proves all permissions lawful."""
    first_mismatch: int | None = None
    """The first record whose permission the policy would not have given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdict, the place of the first fault, and what was covered."""

    verdict: Verdict
    place: str = ""
    detail: str = ""
    log: str = ""
    first: int = 0
    """First record that is still here; more than 0 after a purge."""
    size: int = 0
    root: str = ""
    checkpoint: int = 0
    anchors: tuple[AnchorStatus, ...] = ()
    replay: Replay | None = None
    notes: tuple[str, ...] = field(default=())


class Fault(Exception):
    """The first thing that is wrong, with its verdict and place. Stays inside verification."""

    def __init__(self, verdict: Verdict, place: str, detail: str) -> None:
        """Keep the three apart."""
        super().__init__(f"{verdict.value} {place}: {detail}")
        self.verdict, self.place, self.detail = verdict, place, detail
