"""``ringfence ledger verify``: the verdict, what proves it, and what to do about it.

Of a folder that came from elsewhere (``--ledger DIR``) nothing is obeyed: its list of anchors would be its maker's choice.
"""

import argparse
import functools
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ringfence.cli.text import escape
from ringfence.model.entry import Json
from ringfence.model.errors import LedgerError, RingfenceError
from ringfence.model.ids import Micros
from ringfence.model.tier import Tier
from ringfence.supervisor.paths import Paths

if TYPE_CHECKING:
    from ringfence.ledger.verdict import Verification

CLEAN, ALTERED, NOT_PROVEN = 0, 12, 14
_REMEDIES = {
    "TORN": "a crash cut a write short that nobody was told of: any command that opens the ledger cuts it off, and records that",
    "POLICY_MISMATCH": "look at the record with `ringfence ledger show --json`, and at who held the key when it was written",
    "STALE_ANCHOR": "tell the anchors with `ringfence ledger anchor`, or take a newer head from where it is kept",
}


def configure(verify: argparse.ArgumentParser) -> None:
    """Arguments."""
    verify.add_argument(
        "--anchor",
        action="append",
        default=[],
        metavar="ANCHOR",
        help="ask this anchor too: copy:DIR, git:LOCATION#REF",
    )
    verify.add_argument(
        "--checkpoint", action="append", default=[], metavar="FILE", help="a checkpoint that was kept elsewhere"
    )
    verify.add_argument(
        "--max-age", type=_seconds, default=86400, metavar="SECONDS", help="how long an entry may wait for an anchor"
    )
    verify.add_argument(
        "--depth",
        choices=("chain", "tree", "strict"),
        default="strict",
        help="strict reads every record; chain alone proves nothing",
    )
    verify.add_argument("--replay", action="store_true", help="decide every recorded permission again")


def _seconds(text: str) -> float:
    """A number of seconds, at most a thousand years."""
    found = float(text)
    if not 0 <= found <= 3.2e10:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return found


def run(args: argparse.Namespace, paths: Paths, directory: str) -> int:
    """Print the verdict on ``directory``. Exit 12 where it was altered, 14 where nothing outside proves it."""
    if args.ledger and args.anchor:
        with tempfile.TemporaryDirectory() as scratch:
            found = _verify(args, paths, directory, scratch=scratch)
    else:
        found = _verify(args, paths, directory)
    remedy = _remedy(found, args, directory)
    if args.json:
        print(json.dumps({**_fields(found), "remedy": remedy}))
    else:
        _print(found, remedy)
    if found.verdict.value == "OK" and not (found.replay is not None and found.replay.undecided):
        return CLEAN
    return NOT_PROVEN if found.verdict.proven else ALTERED


def _verify(args: argparse.Namespace, paths: Paths, directory: str, *, scratch: str = "") -> "Verification":
    from ringfence.ledger import anchors, start
    from ringfence.ledger.verify import verify

    own = [] if args.ledger else anchors.configured(directory)
    asked = [*own, *(anchors.parse_anchor(text, directory, scratch=scratch) for text in args.anchor)]
    return verify(
        directory,
        anchors=[*asked, *(anchors.FileAnchor(path=os.path.abspath(path)) for path in args.checkpoint)],
        now=start.now(),
        max_age=Micros(int(args.max_age * 1_000_000)),
        depth=args.depth,
        redecide=redecider(paths, directory) if args.replay else None,
    )


def _remedy(found: "Verification", args: argparse.Namespace, directory: str) -> str:
    """What to do next; empty where the verdict is OK."""
    from ringfence.ledger.files import EVIDENCE

    word = found.verdict.value
    if word == "OK":
        return ""
    if word == "TRUNCATED" and args.ledger:
        return "a copy that is older than the head looks the same: take an older head, or a new export; " + EVIDENCE
    if word != "NO_ANCHOR":
        return _REMEDIES.get(word, EVIDENCE)
    if args.depth == "chain":
        return "leave --depth away"
    if found.anchors:
        return "put it back with `ringfence ledger anchor --add NAME`, or take it away in the open with --remove NAME"
    return _foreign(directory) if args.ledger else _no_anchor(directory)


def _no_anchor(directory: str) -> str:
    from ringfence.ledger import anchors

    if anchors.names(directory):
        return "tell the anchors with `ringfence ledger anchor`"
    return "keep heads elsewhere: `ringfence ledger anchor --add copy:/mnt/other-host/ringfence` (or git:…, rfc3161:…)"


def _foreign(directory: str) -> str:
    """Of a folder that came from elsewhere: its list is told, never asked."""
    from ringfence.ledger import anchors

    try:
        listed = ", ".join(anchors.names(directory))
    except LedgerError:
        listed = ""
    own = f"; its own list is not asked, it names {listed}" if listed else ""
    return f"name an anchor that you trust with --anchor, or a head that you took from one with --checkpoint{own}"


def _print(found: "Verification", remedy: str) -> None:
    print(f"{found.verdict.value}" + (f"  {escape(found.place)}" if found.place else ""))
    if found.detail:
        print(f"  {escape(found.detail)}")
    if remedy:
        print(f"  fix: {escape(remedy)}")
    if found.size:
        print(f"  log {found.log}: records {found.first} to {found.size - 1}, signed for {found.checkpoint}")
    for status in found.anchors:
        behind = (
            f"{status.lag_records} records behind, {status.lag_us / 1e6:.0f} s"
            if status.lag_records
            else "covers everything"
        )
        print(f"  anchor {escape(status.name)}: {behind}")
    if found.replay is not None:
        r = found.replay
        print(
            f"  decided again: {r.lawful} of {r.allowed} permissions lawful, {r.not_replayed} could not be decided again"
        )
        if r.undecided:
            print(f"  not proven: of {r.undecided} of them the policy or a part is missing here, or cannot be read")


def _fields(found: "Verification") -> dict[str, object]:
    replay = found.replay
    return {
        "verdict": found.verdict.value,
        "place": found.place,
        "detail": found.detail,
        "log": found.log,
        "first": found.first,
        "size": found.size,
        "root": found.root,
        "checkpoint": found.checkpoint,
        "anchors": [
            {"name": s.name, "size": s.size, "lag_records": s.lag_records, "lag_us": s.lag_us} for s in found.anchors
        ],
        "replay": None
        if replay is None
        else {
            "allowed": replay.allowed,
            "lawful": replay.lawful,
            "not_replayed": replay.not_replayed,
            "undecided": replay.undecided,
        },
    }


def redecider(paths: Paths, directory: str) -> Callable[[Mapping[str, Json]], Tier | None]:
    """Decides a recorded intent again with the policy that it names; None where a part was erased. Raises Undecided."""
    from ringfence.ledger import admin
    from ringfence.ledger import record as records
    from ringfence.ledger.personal import PersonalStore
    from ringfence.ledger.replay import Undecided
    from ringfence.model.ids import Sha256
    from ringfence.policy.policy import Policy
    from ringfence.policy.store import PolicyStore

    store, side, loaded = PolicyStore(paths.policies), PersonalStore(directory), dict[tuple[str, str, str], Policy]()
    erased = functools.cache(lambda: admin.erased(directory))

    def redecide(record: Mapping[str, Json]) -> Tier | None:
        def load(name: str) -> str | None:
            personal = record.get("personal")
            commit = personal.get(name) if isinstance(personal, dict) else None
            found = side.load(commit) if isinstance(commit, dict) else None
            if found is None and (not isinstance(commit, dict) or str(commit.get("subject")) not in erased()):
                raise Undecided
            return found

        body = record.get("body")
        decision = body.get("decision") if isinstance(body, dict) else None
        digest = str(decision.get("policy")) if isinstance(decision, dict) else ""
        try:
            call = records.call_from_record(record, load)
            facts = records.facts_from_record(record, load)
            key = (digest, facts.root, facts.home)
            if key not in loaded:
                loaded[key] = Policy.from_effective(store.get(Sha256(digest)), root=facts.root, home=facts.home)
            return loaded[key].decide_with(call, facts).tier
        except RingfenceError as error:
            if error.code == "policy-altered":
                return Tier.DENY
            raise Undecided from error
        except (records.Malformed, TypeError, ValueError, AttributeError) as error:
            raise Undecided from error
        except records.NotReplayable:
            return None

    return redecide
