"""The answer to one call, with its reasons."""

from msgspec import Struct

from ringfence.model.ids import CallId, RuleId, Sha256
from ringfence.model.tier import Scope, Tier


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """Where a rule is written. ``file`` is a path or ``builtin``; lines and columns count from 1, 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """``file:line:column``, leaving out what is not known."""
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


class Reason(Struct, frozen=True, kw_only=True, gc=False):
    """One rule's opinion. ``matched`` is the part of the call it spoke about; ``because`` is for a person."""

    rule: RuleId
    scope: Scope
    place: Place
    tier: Tier
    matched: str
    because: str
    kind: str = "rule"
    """``rule``, ``default``, ``protected``, ``hidden``, ``floor``, ``unexplained``, ``option``, ``path``, ``trust`` or ``fault``."""
    span: tuple[int, int] | None = None
    """Start and end in the line (characters), where the deciding part can be marked."""
    approvals: int = 1
    """For ASK: how many different people must agree."""
    not_owner: bool = False
    """For ASK: the mission's owner may not be the one who agrees."""


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """The answer to one ToolCall, and who said so. ``reasons`` is never empty: a default deny has one too."""

    call_id: CallId
    policy_digest: Sha256
    reasons: tuple[Reason, ...]

    def __post_init__(self) -> None:
        """An answer without a reason is a fault of ours, and must not pass for a permission."""
        if not self.reasons:  # fail closed
            raise ValueError("a decision needs at least one reason")

    @property
    def tier(self) -> Tier:
        """The strictest of the reasons' tiers."""
        return max(reason.tier for reason in self.reasons)

    @property
    def deciding(self) -> tuple[Reason, ...]:
        """The reasons whose tier is the decision's."""
        tier = self.tier
        return tuple(reason for reason in self.reasons if reason.tier is tier)
