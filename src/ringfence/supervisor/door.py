"""The door: the policy in force for a root, the decision on a call, and its intent in the ledger. Everything passes here."""

import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

import ringfence
from ringfence.ledger import record
from ringfence.model.call import Context, ToolCall
from ringfence.model.decision import Decision, Place, Reason
from ringfence.model.entry import Ack, Entry, EntryKind
from ringfence.model.errors import PolicyError, RingfenceError
from ringfence.model.facts import PathFacts
from ringfence.model.ids import CallId, Micros, MissionId, RuleId, Sha256
from ringfence.model.person import Person
from ringfence.model.ports import Recorder
from ringfence.model.tier import Scope, Tier
from ringfence.policy.facts import gather, home_of_user
from ringfence.policy.in_force import policy_in_force
from ringfence.policy.load import FILE_NAME
from ringfence.policy.policy import Policy
from ringfence.policy.store import PolicyStore
from ringfence.policy.trust import TrustStore
from ringfence.supervisor.paths import Paths, file_stamp
from ringfence.supervisor.presets import Presets
from ringfence.supervisor.repository import Repository
from ringfence.supervisor.trusting import trust_body

CLOSED_CLASSES = frozenset({"prod", "production", "trusted_ci"})
"""Environment classes in which an agent is refused: their identity would have to be proved, and is not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A call with its decision, what it was decided from, and where its intent stands in the ledger."""

    call: ToolCall
    facts: PathFacts
    decision: Decision
    intent: Ack


class Door:
    """Decides and records. One per supervisor; safe to use from many threads."""

    def __init__(
        self,
        *,
        paths: Paths,
        recorder: Recorder,
        store: PolicyStore,
        trust: TrustStore,
        now: Callable[[], Micros],
        new_id: Callable[[], str],
        on_policy: Callable[[Policy], None],
        on_secret: Callable[[str], None],
    ) -> None:
        """``now`` and ``new_id`` are the only sources of time and randomness here.

        ``on_policy`` is told of each policy before it first decides, ``on_secret`` of each value of a credential before it is used.
        """
        self._on_policy, self.on_secret = on_policy, on_secret
        self._paths = paths
        self.recorder = recorder
        self._store = store
        self.trust = trust
        self.now = now
        self._new_id = new_id
        self._presets = Presets(paths)
        self._cache: dict[tuple[object, ...], Policy] = {}
        self._lock = threading.Lock()

    def policy_for(self, root: str) -> Policy:
        """The effective policy for a repository now: its file, the user's, the organisation's, and its trust.

        Raises PolicyError when any of them cannot be used; then nothing is allowed.
        """
        files = (
            os.path.join(root, FILE_NAME),
            f"{self._paths.organisation}/policy.yaml",
            f"{self._paths.config}/policy.yaml",
        )
        key = (
            root,
            *(file_stamp(file) for file in files),
            file_stamp(f"{self._paths.state}/trust"),
            file_stamp(f"{self._paths.state}/presets.lock"),
        )
        with self._lock:
            found = self._cache.get(key)
        if found is not None:
            return found
        _, organisation, user = files
        policy = policy_in_force(
            root,
            organisation=organisation,
            user=user,
            trust=f"{self._paths.state}/trust",
            network_presets=self._presets,
        )
        self._store.put(policy.effective())
        refuse_own_home_inside(policy)
        self._on_policy(policy)
        with self._lock:
            if len(self._cache) > 64:
                self._cache.clear()
            self._cache[key] = policy
        return policy

    def stored_policy(self, digest: Sha256, root: str) -> Policy:
        """The policy that a mission pinned when it started. Raises PolicyError when the store has lost it."""
        with self._lock:
            found = self._cache.get((digest, root))
        if found is None:
            found = Policy.from_effective(self._store.get(digest), root=root, home=home_of_user())
            self._on_policy(found)
            with self._lock:
                self._cache[(digest, root)] = found
        return found

    def context(self, repository: Repository, *, agent: str | None, interactive: bool, env_class: str) -> Context:
        """What ``when`` conditions may ask. Raises PolicyError for a caller whose class an agent may not have."""
        if env_class in CLOSED_CLASSES:
            raise PolicyError(
                "closed-class",
                f"the caller says it runs in class {env_class!r}; agents are refused there without proved identity",
                remedy="run agents on a developer or sandbox host",
            )
        return Context(
            agent=agent,
            env_class=env_class or None,
            interactive=interactive,
            branch=repository.branch,
            remotes=repository.remotes,
        )

    def judge(
        self, policy: Policy, call: ToolCall, *, mission: MissionId | None, extra: record.Body | None = None
    ) -> Judged:
        """Decide the call and make the intent durable. Raises LedgerError when it is not: then nothing may run."""
        call = replace(call, id=call.id or CallId("c-" + self._new_id()))
        facts, decision = self.decide(policy, call)
        body = record.intent_body(call, facts, decision, extra=extra or {})
        entry = Entry(kind=EntryKind.INTENT, time=self.now(), mission=mission, call=call.id, body=body)
        (ack,) = self.recorder.append([entry])
        return Judged(call=call, facts=facts, decision=decision, intent=ack)

    def decide(self, policy: Policy, call: ToolCall) -> tuple[PathFacts, Decision]:
        """The decision and the facts it used; a fault while deciding is a DENY that says so."""
        facts = PathFacts(cwd=call.cwd, home="", root="")
        try:
            facts = gather(policy.questions(call), call, root=policy.root)
            return facts, policy.decide_with(call, facts)
        except RingfenceError as error:
            return facts, _fault(call, policy.digest, f"{error.code}: {error.what}")
        except Exception as error:  # noqa: BLE001 - a crash in deciding is a DENY with a reason, recorded like any other
            traceback.print_exc(file=sys.stderr)
            return facts, _fault(call, policy.digest, f"deciding failed: {type(error).__name__}")

    def note(self, kind: EntryKind, body: record.Body, *, mission: MissionId | None = None, call: str = "") -> Ack:
        """Record one step that is not a call."""
        (ack,) = self.recorder.append([Entry(kind=kind, time=self.now(), mission=mission, call=call, body=body)])
        return ack

    def trust_policy(self, root: str, digest: Sha256, by: Person, *, withdraw: bool) -> None:
        """Trust the policy with this trust digest at ``root``, or withdraw the trust; recorded first."""
        self.note(EntryKind.POLICY, trust_body(root, digest, by, withdraw=withdraw))
        if withdraw:
            self.trust.withdraw(root)
        else:
            self.trust.trust(root, digest, by, self.now())
        with self._lock:
            self._cache.clear()


class Deciding:
    """The door as the gate and egress see it: a Decider bound to one policy, mission and context."""

    def __init__(self, door: Door, policy: Policy, context: Context) -> None:
        """All calls decided through this carry the given context."""
        self._door = door
        self._policy = policy
        self._context = context

    def decide(self, call: ToolCall) -> Decision:
        """Judge one call; the caller records the outcome of many at once."""
        return self._door.decide(self._policy, replace(call, context=self._context))[1]


def _fault(call: ToolCall, digest: Sha256, text: str) -> Decision:
    reason = Reason(
        rule=RuleId("fault"),
        scope=Scope.BUILTIN,
        place=Place(file="builtin"),
        tier=Tier.DENY,
        matched="",
        because=f"what cannot be decided is denied; {text}",
        kind="fault",
    )
    return Decision(call_id=call.id, policy_digest=digest, reasons=(reason,))


def refuse_own_home_inside(policy: Policy) -> None:
    """An agent that could write the fence's code would be its own judge: refuse, and name the path."""
    package = os.path.realpath(os.path.dirname(ringfence.__file__))
    imported = {
        "package": package,
        "folder of imports": os.path.dirname(package),
        "library": os.path.dirname(os.path.realpath(os.__file__)),
        "dependencies": os.path.dirname(os.path.dirname(os.path.realpath(msgspec.__file__))),
    }
    own = {**imported, "interpreter": os.path.realpath(sys.executable), "environment": os.path.realpath(sys.prefix)}
    for root in policy.roots:
        for what, path in own.items():
            if _lies_in(path, root) or (what in imported and _lies_in(root, path)):
                raise PolicyError(
                    "fence-inside-root",
                    f"ringfence's own {what} {path} and the allowed root {root} overlap",
                    where=str(policy.root),
                    remedy="install ringfence outside of every repository that agents work in",
                )


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
