"""The commit gate as the supervisor opens it: layers made and hidden things masked, files first, then commits made in a box.

Used by a command's end, and by a person who commits, discards or ends a mission.
"""

import functools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import msgspec

from ringfence.ledger import record
from ringfence.model.box import BoxPlan, Layer
from ringfence.model.call import Context
from ringfence.model.entry import EntryKind
from ringfence.model.errors import BoxError, RingfenceError
from ringfence.model.ids import CallId, Micros, MissionId, Sha256
from ringfence.model.person import Person
from ringfence.policy.policy import Policy
from ringfence.sandbox.facts import HostFacts
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.plan import STANDARD_PATH, plan_box
from ringfence.sandbox.teardown import remove_layer
from ringfence.sandbox.worktree.change import GateReport
from ringfence.sandbox.worktree.concluded import NOTED
from ringfence.sandbox.worktree.tree import Worktree
from ringfence.supervisor.door import Deciding, Door
from ringfence.supervisor.explicit import Explicit
from ringfence.supervisor.gate_answer import GateAnswer
from ringfence.supervisor.hidden import Hidden
from ringfence.supervisor.later import Later
from ringfence.supervisor.missions import Mission, Missions
from ringfence.supervisor.readiness import Readiness

TURN_SECONDS = 1.0
"""Between two looks whether somebody still waits for a command whose turn has not come."""
FACTS_FRESH = 30_000_000
"""Microseconds."""


@dataclass(slots=True)
class _Turn:
    """Who works on a mission now, and how many want to."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    users: int = 0


class Gatekeeper:
    """Layers and the gate of every mission. One per supervisor; safe to use from many threads."""

    def __init__(self, *, door: Door, missions: Missions, readiness: Readiness, state: str) -> None:
        """Layers and journals live below ``state``, the state directory."""
        self._door = door
        self._missions = missions
        self._readiness = readiness
        self._state = state
        self._hidden = Hidden()
        self._later = Later()
        self._known_facts: dict[tuple[str, tuple[str, ...]], tuple[Micros, HostFacts]] = {}
        self._busy: dict[str, _Turn] = {}
        self._busy_lock = threading.Lock()

    @contextmanager
    def one_at_a_time(self, mission: MissionId, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Two boxes of one mission would share one overlay, which the kernel does not define: the second waits.

        Whoever has the turn may take it again. What was read of the mission before may be over by now. ``waits`` is
        called now and then meanwhile; what it raises ends the wait.
        """
        with self._busy_lock:
            turn = self._busy.setdefault(mission, _Turn())
            turn.users += 1
        try:
            while not turn.lock.acquire(timeout=TURN_SECONDS):
                waits()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._busy_lock:
                turn.users -= 1
                if not turn.users:
                    self._busy.pop(mission, None)

    def worktree(self, policy: Policy) -> Worktree:
        """The worktree of a policy's repository. Raises RingfenceError for one that cannot be fenced."""
        explicit = Explicit(policy.write_allow_patterns)
        return Worktree.open(str(policy.root), self._state, policy_hides=policy.read_denies, explicit=explicit)

    def view(self, tree: Worktree, mission: Mission, policy: Policy) -> Layer:
        """The mission's layer, ready to be mounted: what the policy hides is masked, git's configuration has no credentials."""
        return self._masked(tree.layer(MissionId(mission.id)), policy)

    def _masked(self, layer: Layer, policy: Policy) -> Layer:
        masked, replaced = self._hidden.of(policy)
        return replace(layer, middle=f"{os.path.dirname(layer.upper)}/middle", masked=masked, replaced=replaced)

    def came_late(self, layer: Layer, policy: Policy) -> tuple[str, ...]:
        """Paths that the policy hides and that came into the tree while a box ran: what hides was laid over it at the start."""
        masked, _ = self._hidden.of(policy)
        return tuple(sorted(set(masked) - set(layer.masked)))

    def facts(self, policy: Policy) -> HostFacts:
        """Facts of the host for this policy, looked up anew every half minute: toolchains come and go with people."""
        key = (str(policy.root), policy.trusted_directories)
        at, facts = self._known_facts.get(key, (Micros(0), None))
        now = self._door.now()
        if facts is None or not 0 <= now - at < FACTS_FRESH or not os.path.isdir(facts.etc):  # as after a teardown
            path = ":".join((*policy.trusted_directories, *STANDARD_PATH))
            with self._readiness.quiet():
                facts = gather_host_facts(self._state, path=path, trees=(str(policy.root),))
            self._known_facts[key] = (now, facts)
        return facts

    def open(
        self,
        mission: Mission,
        policy: Policy,
        context: Context,
        tree: Worktree,
        plan: BoxPlan,
        *,
        only: tuple[str, ...] | None,
        approved: tuple[str, ...],
    ) -> GateAnswer:
        """Files first, then commits made in the box: a second box over the same layer bundles them for the gate."""
        decider, now, layer = Deciding(self._door, policy, context), self._door.now(), layer_of(plan)
        files = tree.commit(layer, decider, only=only, now=now, approved=approved, last=mission.one_call)
        history = None
        refs = only is None or any(path in {"HEAD", *NOTED} or path.startswith("refs/") for path in only)
        wanted = tree.bundle_request(layer) if refs else None
        if wanted is not None:
            self._bundle(replace(plan, argv=wanted.argv, cwd=wanted.cwd, network="none", pty=False), tree)
            history = tree.take_history(layer, decider, now=now, approved=approved)
        answer = GateAnswer(files=files, history=history)
        if files.committed or not answer.clean or history is not None:
            body: record.Body = {"gate": answer.fields(), "approved": list(approved), "root": record.text(mission.root)}
            self._door.note(EntryKind.GATE, body, mission=MissionId(mission.id))
        return answer

    def _bundle(self, plan: BoxPlan, tree: Worktree) -> None:
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        try:
            with tree.lock():
                box = self._readiness.launcher().start(plan, stdin=null, stdout=null, stderr=null)
            box.wait()
        finally:
            os.close(null)

    def settle(self, mission: Mission, tree: Worktree, layer: Layer, gate: GateAnswer | None) -> None:
        """Count the call. A one-call mission with nothing left to look at is over; any other stays until a person ends it."""
        if mission.one_call and gate is not None and gate.clean:
            if gate.files.ignored or gate.files.internal:
                self._end(tree, layer, mission)  # ignored paths and the stash must be there for the next call
            else:
                self._later.do(functools.partial(self._end, tree, layer, mission))
        elif mission.one_call:
            self._missions.store(_counted(mission))
        else:
            with suppress(RingfenceError):  # its state was torn down meanwhile; the command's result stands
                self._missions.change(MissionId(mission.id), _counted)
        self._later.do(tree.sweep)

    def _end(self, tree: Worktree, layer: Layer, mission: Mission) -> None:
        tree.end(layer)
        folder = os.path.dirname(layer.upper)
        shutil.rmtree(f"{folder}/middle", ignore_errors=True)
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/middle.digest")
        self._missions.forget(MissionId(mission.id))

    def close(self) -> None:
        """Finish what is left to remove."""
        self._later.close()

    def diff(self, mission: Mission) -> dict[str, object]:
        """What the mission's layer holds against the real tree."""
        if self._untouched(mission):
            return {"id": mission.id, "text": "", "changes": []}
        tree, layer, _ = self._of(mission)
        changes = tree.changes(layer)
        return {
            "id": mission.id,
            "text": tree.diff(layer),
            "changes": [
                {"path": change.path, "kind": change.kind.value, "size": int(change.size), "ignored": change.ignored}
                for change in changes
                if not change.internal
            ],
        }

    def commit(self, mission: Mission, paths: tuple[str, ...], by: Person) -> dict[str, object]:
        """Open the gate now. Paths that a person names count as approved where the policy asks; a DENY stays one."""
        if self._untouched(mission):
            return {"id": mission.id, "gate": GateAnswer(files=GateReport(), history=None).fields()}
        with self.one_at_a_time(MissionId(mission.id)):
            tree, layer, policy = self._of(mission)
            context = Context(agent=mission.agent or None)
            plan = self._plain_plan(mission, policy, layer)
            report = self.open(mission, policy, context, tree, plan, only=paths or None, approved=paths)
        self._later.do(tree.sweep)
        self._door.note(
            EntryKind.MISSION,
            {"action": "commit", "by": by.name, "paths": list(paths), "committed": len(report.files.committed)},
            mission=MissionId(mission.id),
        )
        return {"id": mission.id, "gate": report.fields()}

    def discard(self, mission: Mission, paths: tuple[str, ...], by: Person) -> dict[str, object]:
        """Drop changes from the mission's layer: the named ones, or all. Recorded before it happens."""
        if self._untouched(mission):
            return {"id": mission.id, "discarded": []}
        with self.one_at_a_time(MissionId(mission.id)):
            found = self._of(mission) if paths else self._of_what_is_left(mission)
            self._door.note(
                EntryKind.MISSION,
                {"action": "discard", "by": by.name, "paths": list(paths)},
                mission=MissionId(mission.id),
            )
            if found is None:
                remove_layer(self._missions.folder(MissionId(mission.id)))
                return {"id": mission.id, "discarded": ["."]}
            tree, layer, _ = found
            dropped = tree.discard(layer, paths or None)
        self._later.do(tree.sweep)
        return {"id": mission.id, "discarded": list(dropped)}

    def end(self, mission: Mission) -> None:
        """Remove the layer of a mission that is over; ignored paths are carried on to the next one of the repository, if it is there."""
        if self._untouched(mission):
            return
        with self.one_at_a_time(MissionId(mission.id)):
            found = self._of_what_is_left(mission)
            if found is None:
                remove_layer(self._missions.folder(MissionId(mission.id)))
                return
            tree, layer, _ = found
            tree.end(layer)
            shutil.rmtree(f"{os.path.dirname(layer.upper)}/middle", ignore_errors=True)
        self._later.do(tree.sweep)

    def _untouched(self, mission: Mission) -> bool:
        """Whether there is no layer: nothing ran in the mission, or it has ended."""
        folder = self._missions.folder(MissionId(mission.id))
        return not any(os.path.lexists(f"{folder}/{name}") for name in ("upper", "layer.state"))

    def _plain_plan(self, mission: Mission, policy: Policy, layer: Layer) -> BoxPlan:
        """A plan over the mission's layer for work of the fence's own, such as bundling its commits."""
        return plan_box(
            call_id=CallId(f"gate-{mission.id}"),
            argv=("true",),
            cwd=mission.root,
            facts=self.facts(policy),
            layer=self._masked(layer, policy),
            limits=policy.limits,
            mission=MissionId(mission.id),
            run_id=mission.id,
        )

    def _of_what_is_left(self, mission: Mission) -> tuple[Worktree, Layer, Policy] | None:
        """The same, or None where the repository is gone, or another one at its path: then only the layer is left."""
        try:
            return self._of(mission)
        except RingfenceError as error:
            if error.code not in {"not-a-directory", "worktree-replaced"}:
                raise
            return None

    def _of(self, mission: Mission) -> tuple[Worktree, Layer, Policy]:
        policy = self._door.stored_policy(Sha256(mission.policy_digest), mission.root)
        tree = self.worktree(policy)
        return tree, tree.look(MissionId(mission.id)), policy


def _counted(mission: Mission) -> Mission:
    return msgspec.structs.replace(mission, calls=mission.calls + 1)


def layer_of(plan: BoxPlan) -> Layer:
    """The plan's worktree. Raises BoxError for a plan without one: no command runs without a worktree."""
    if plan.layer is None:
        raise BoxError("box-worktree", "a command needs a worktree")
    return plan.layer
