"""Deciding again: every recorded permission must be lawful under the policy that it names, and that must be its mission's.

Pure but for reading records.
"""

import json
from collections.abc import Callable, Mapping

from ringfence.ledger import scan
from ringfence.ledger.record import SCRUBBED
from ringfence.ledger.verdict import Replay
from ringfence.model.entry import EntryKind, Json
from ringfence.model.tier import Tier

_KINDS = tuple(b'"kind":"%s"' % kind.value.encode() for kind in (EntryKind.INTENT, EntryKind.MISSION, EntryKind.POLICY))
_JUDGED = ("request", "cwd", "context", "facts")
"""Parts of an intent that deciding reads: where a secret was replaced in one of them, it may come out otherwise."""


class Undecided(Exception):
    """A permission cannot be decided again here, although nothing of it was scrubbed or erased."""


def replay(directory: str, redecide: Callable[[Mapping[str, Json]], Tier | None]) -> Replay:
    """Count the recorded permissions and those that ``redecide`` gives again.

    None from it means that a part was scrubbed or erased; it raises Undecided where anything else is missing or bent.
    """
    allowed = lawful = cannot = undecided = 0
    mismatch: int | None = None
    pinned: dict[str, set[str]] = {}
    for record in scan.records(directory):
        if not any(kind in record.line for kind in _KINDS):
            continue
        _pin(pinned, record.value)
        if not _was_allowed(record.value):
            continue
        allowed += 1
        try:
            tier = redecide(record.value) if _is_pinned(pinned, record.value) else Tier.DENY
        except Undecided:
            cannot, undecided = cannot + 1, undecided + 1
            continue
        if tier is None or (tier is not Tier.ALLOW and _is_scrubbed(record.value)):
            cannot += 1
        elif tier is Tier.ALLOW:
            lawful += 1
        elif mismatch is None:
            mismatch = record.seq
    return Replay(allowed=allowed, lawful=lawful, not_replayed=cannot, undecided=undecided, first_mismatch=mismatch)


def _body(value: Mapping[str, Json]) -> Mapping[str, Json]:
    body = value.get("body")
    return body if isinstance(body, dict) else {}


def _pin(pinned: dict[str, set[str]], value: Mapping[str, Json]) -> None:
    """Take note of the policies that a mission was given, at its start and later."""
    body, kind, mission = _body(value), value.get("kind"), str(value.get("mission") or "")
    if not mission:
        return
    if kind == EntryKind.MISSION.value and body.get("action") == "start" and body.get("policy"):
        pinned.setdefault(mission, set()).add(str(body["policy"]))
    elif kind == EntryKind.POLICY.value and body.get("action") == "reload" and mission in pinned:
        pinned[mission].add(str(body.get("after")))


def _is_pinned(pinned: Mapping[str, set[str]], value: Mapping[str, Json]) -> bool:
    """Whether a decision names a policy that its mission had. Of a mission whose start is not here, nothing is known."""
    decision = _body(value).get("decision")
    known = pinned.get(str(value.get("mission") or ""))
    return known is None or (isinstance(decision, dict) and decision.get("policy") in known)


def _is_scrubbed(value: Mapping[str, Json]) -> bool:
    body = _body(value)
    return any(SCRUBBED.search(json.dumps(body.get(part))) is not None for part in _JUDGED)


def _was_allowed(value: Mapping[str, Json]) -> bool:
    decision = _body(value).get("decision")
    return (
        value.get("kind") == EntryKind.INTENT.value
        and isinstance(decision, dict)
        and decision.get("tier") == Tier.ALLOW.word
    )
