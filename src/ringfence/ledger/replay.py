"""Deciding again: every recorded permission must be lawful under the policy that it names. Pure but for reading records."""

from collections.abc import Callable, Mapping

from ringfence.ledger import scan
from ringfence.ledger.verdict import Replay
from ringfence.model.entry import EntryKind, Json
from ringfence.model.tier import Tier

_INTENT = b'"kind":"%s"' % EntryKind.INTENT.value.encode()


def replay(directory: str, redecide: Callable[[Mapping[str, Json]], Tier | None]) -> Replay:
    """Count the recorded permissions and those that ``redecide`` gives again; None from it means it cannot decide."""
    allowed = lawful = cannot = 0
    mismatch: int | None = None
    for record in scan.records(directory):
        if _INTENT not in record.line or not _was_allowed(record.value):
            continue
        allowed += 1
        tier = redecide(record.value)
        if tier is None or (tier is not Tier.ALLOW and b"hmac:" in record.line):
            cannot += 1
        elif tier is Tier.ALLOW:
            lawful += 1
        elif mismatch is None:
            mismatch = record.seq
    return Replay(allowed=allowed, lawful=lawful, not_replayed=cannot, first_mismatch=mismatch)


def _was_allowed(value: Mapping[str, Json]) -> bool:
    body = value.get("body")
    decision = body.get("decision") if isinstance(body, dict) else None
    return (
        value.get("kind") == EntryKind.INTENT.value
        and isinstance(decision, dict)
        and decision.get("tier") == Tier.ALLOW.word
    )
