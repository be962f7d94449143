"""One command through the fence: decide, record the intent, box, gate, record the result, answer.

The steps are numbered in ``Runner.run``; each is one method, in that order. Nothing starts before its intent is
durable, nothing is answered before its result is.
"""

import functools
import hashlib
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import msgspec

from ringfence.ledger import record
from ringfence.model.box import BoxPlan, Execution, Layer
from ringfence.model.call import Argv, Context, ShellLine, ToolCall
from ringfence.model.entry import Ack, EntryKind
from ringfence.model.errors import BoxError, RingfenceError
from ringfence.model.ids import CallId, Micros, MissionId, Sha256
from ringfence.model.person import Person
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy
from ringfence.sandbox.facts import HostFacts, box_home
from ringfence.sandbox.host import gather_host_facts
from ringfence.sandbox.launcher import Box
from ringfence.sandbox.plan import STANDARD_PATH, plan_box
from ringfence.sandbox.worktree.tree import Worktree
from ringfence.supervisor import protocol, requests, wording
from ringfence.supervisor.caller import Caller, environment_class
from ringfence.supervisor.door import Deciding, Door, Judged
from ringfence.supervisor.explicit import Explicit
from ringfence.supervisor.hidden import Hidden
from ringfence.supervisor.later import Later
from ringfence.supervisor.missions import CommitAt, Mission, Missions, State
from ringfence.supervisor.netsettings import Opening, load_settings, opening_for
from ringfence.supervisor.network import Network
from ringfence.supervisor.passed import Passed
from ringfence.supervisor.paths import Paths
from ringfence.supervisor.readiness import Readiness
from ringfence.supervisor.repository import Repository, find_root, read_repository

FACTS_FRESH = 30_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command on its way: everything that was settled before it was judged."""

    request: requests.Run
    mission: Mission
    policy: Policy
    repository: Repository
    call: ToolCall


class Runner:
    """Runs commands, many at once. One per supervisor."""

    def __init__(
        self,
        *,
        door: Door,
        missions: Missions,
        readiness: Readiness,
        paths: Paths,
        new_id: Callable[[], str],
    ) -> None:
        """Layers and journals live below the state directory of ``paths``."""
        self._door = door
        self._missions = missions
        self._readiness = readiness
        self._paths = paths
        self._state = paths.state
        self._new_id = new_id
        self._hidden = Hidden()
        self._later = Later()
        self._known_facts: dict[tuple[str, tuple[str, ...]], tuple[Micros, HostFacts]] = {}
        self._busy: dict[str, threading.Lock] = {}
        self._busy_lock = threading.Lock()

    def run(self, request: requests.Run, caller: Caller) -> dict[str, object]:
        """Everything for one command; the answer is the report that ``run --json`` prints."""
        stdin, stdout, stderr = caller.take_descriptors(3)
        try:
            job = self._prepare(request, caller)  # 1. mission, policy, call
            judged = self._door.judge(job.policy, job.call, mission=_id(job.mission), extra=_extra(job))  # 2. durable
            if judged.decision.tier is not Tier.ALLOW:
                return wording.refusal(job.call, judged.decision, _shown(job, judged))
            with self._one_at_a_time(job.mission):
                return self._boxed(job, judged, caller, (stdin, stdout, stderr))
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)

    def _prepare(self, request: requests.Run, caller: Caller) -> Job:
        cwd = os.path.realpath(request.cwd)
        root = find_root(cwd)
        mission = self._mission(request, root)
        policy = (
            self._door.policy_for(root)
            if mission.one_call
            else self._door.stored_policy(Sha256(mission.policy_digest), root)
        )
        repository = read_repository(root)
        context = self._door.context(
            repository,
            agent=mission.agent or None,
            interactive=request.interactive,
            env_class=environment_class(caller.pid) or request.env.get("AGENT_ENV_CLASS", ""),
        )
        if (request.line is None) == (request.argv is None):
            raise RingfenceError("bad-request", "a command is a line or an argument vector, one of both")
        wanted = ShellLine(line=request.line) if request.line is not None else Argv(argv=request.argv or ())
        call = ToolCall(request=wanted, cwd=cwd, context=context)
        return Job(request=request, mission=mission, policy=policy, repository=repository, call=call)

    def _mission(self, request: requests.Run, root: str) -> Mission:
        if request.mission is None:
            return Mission(
                id="m-" + self._new_id(),
                root=root,
                task="",
                agent="",
                policy_digest="",
                started=int(self._door.now()),
                until=0,
                commit=CommitAt.NEVER if request.review else CommitAt.CALL,
                one_call=True,
            )
        mission = self._missions.load(MissionId(request.mission))
        if mission.state is not State.RUNNING:
            raise RingfenceError("mission-not-running", f"mission {mission.id} is {mission.state.value}")
        if mission.root != root:
            raise RingfenceError("other-repository", f"mission {mission.id} belongs to {mission.root}", where=root)
        if mission.until and self._door.now() > mission.until:
            raise RingfenceError(
                "mission-over",
                f"mission {mission.id} has passed the time it was given",
                remedy=f"end it with `ringfence mission end {mission.id}`",
            )
        return mission

    @contextmanager
    def _one_at_a_time(self, mission: Mission) -> Iterator[None]:
        """Two boxes of one mission would share one overlay, which the kernel does not define: the second waits."""
        with self._busy_lock:
            lock = self._busy.setdefault(mission.id, threading.Lock())
        try:
            with lock:
                yield
        finally:
            if mission.one_call:
                with self._busy_lock:
                    self._busy.pop(mission.id, None)

    def _boxed(self, job: Job, judged: Judged, caller: Caller, output: tuple[int, int, int]) -> dict[str, object]:
        """3. host and smoke, 4. layer and plan, 5. box, 6. gate, 7. result; a fault on the way is recorded as the result."""
        try:
            self._readiness.require(job.policy)
            tree = self._worktree(job.policy)
            if job.mission.one_call:  # so that what a crash leaves of it can be found, shown and discarded
                self._missions.store(_pinned(job), durable=False)
            opening = self._opening(job)
            plan = self._plan(job, judged, self._view(tree, job), opening)
            network = Network(door=self._door, plan=plan, policy=job.policy, context=job.call.context, opening=opening)
            execution = self._carry_out(plan, tree, caller, output, network)
        except (RingfenceError, OSError) as error:
            fault = error if isinstance(error, RingfenceError) else _host_fault(error)
            self._note_result(job, judged, record.fault_body(fault.code, fault.what))
            raise fault from error
        layer = _layer_of(plan)
        gate = self._gate(job, plan, tree) if job.mission.commit is CommitAt.CALL else None
        shown = None if gate is None else gate.fields()
        result = self._note_result(job, judged, record.result_body(execution, gate=shown))
        self._settle(job, tree, layer, gate)
        self._later.do(tree.sweep)
        return wording.outcome(execution, gate, _shown(job, judged, result))

    def _worktree(self, policy: Policy) -> Worktree:
        explicit = Explicit(policy.write_allow_patterns)
        return Worktree.open(str(policy.root), self._state, policy_hides=policy.read_denies, explicit=explicit)

    def _view(self, tree: Worktree, job: Job) -> Layer:
        """The mission's layer, with what the policy hides masked and git's configuration shown without credentials."""
        layer = tree.layer(MissionId(job.mission.id))
        masked, replaced = self._hidden.of(job.policy)
        return replace(layer, middle=f"{os.path.dirname(layer.upper)}/middle", masked=masked, replaced=replaced)

    def _opening(self, job: Job) -> Opening:
        """What the user's settings and the mission open; nothing for a box without a network."""
        if not _networked(job):
            return Opening()
        home = box_home(self._facts(job.policy).home)
        settings = load_settings(self._paths)
        return opening_for(settings, job.policy, job.mission, home=home, now=self._door.now(), noise=self._new_id())

    def _plan(self, job: Job, judged: Judged, layer: Layer, opening: Opening) -> BoxPlan:
        passed, _, pairs = job.policy.environment
        request = job.request
        plan = plan_box(
            call_id=judged.call.id,
            argv=("/bin/bash", "-c", request.line) if request.line is not None else tuple(request.argv or ()),
            cwd=job.call.cwd,
            facts=self._facts(job.policy),
            layer=layer,
            limits=job.policy.limits,
            mission=MissionId(job.mission.id),
            caller_env=request.env,
            env_pass=passed,
            env_set={**dict(pairs), **dict(opening.environment)},
            endpoints=opening.endpoints,
            host_ports=opening.host_ports,
            inbound=opening.inbound,
            run_id=job.mission.id,
            git_sha=job.repository.head or "",
            network="captured" if _networked(job) else "none",
            pty=request.interactive,
            size=(request.rows, request.columns),
            decoy_seed=judged.intent.record,
            home_upper=self._home(job),
            umask=request.umask,
        )
        return replace(plan, mounts=(*plan.mounts, *opening.mounts))

    def _home(self, job: Job) -> str:
        """The synthetic home that a named agent keeps between its missions; any other box gets one that ends with it."""
        if not job.mission.agent:
            return ""
        owner = os.stat(job.mission.root).st_uid
        name = hashlib.sha256(f"{owner}:{job.mission.agent}".encode()).hexdigest()[:16]
        folder = f"{self._state}/homes/{name}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    def _facts(self, policy: Policy) -> HostFacts:
        """Facts of the host for this policy, looked up anew every half minute: toolchains come and go with people."""
        key = (str(policy.root), policy.trusted_directories)
        at, facts = self._known_facts.get(key, (Micros(0), None))
        now = self._door.now()
        if facts is None or not 0 <= now - at < FACTS_FRESH:
            path = ":".join((*policy.trusted_directories, *STANDARD_PATH))
            facts = gather_host_facts(self._state, path=path, trees=(str(policy.root),))
            self._known_facts[key] = (now, facts)
        return facts

    def _carry_out(
        self, plan: BoxPlan, tree: Worktree, caller: Caller, output: tuple[int, int, int], network: Network
    ) -> Execution:
        stdin, stdout, stderr = output

        def stopped() -> None:
            """Ctrl-Z in the box: its client stops as well, and tells when the person continues it."""
            protocol.send(caller.connection, {"event": "stopped"})

        on_stop = stopped if plan.pty else None
        with network.running():
            with tree.lock():
                box = self._readiness.launcher().start(
                    plan, stdin=stdin, stdout=stdout, stderr=stderr, on_network=network.connect, on_stop=on_stop
                )
            network.box = box
            with _listening(caller, box):
                return box.wait()

    def _gate(self, job: Job, plan: BoxPlan, tree: Worktree) -> Passed:
        return self._commit(job.mission, job.policy, job.call.context, tree, plan, only=None, approved=())

    def _commit(
        self,
        mission: Mission,
        policy: Policy,
        context: Context,
        tree: Worktree,
        plan: BoxPlan,
        *,
        only: tuple[str, ...] | None,
        approved: tuple[str, ...],
    ) -> Passed:
        """Files first, then commits made in the box: a second box over the same layer bundles them for the gate."""
        decider, now, layer = Deciding(self._door, policy, context), self._door.now(), _layer_of(plan)
        files = tree.commit(layer, decider, only=only, now=now, approved=approved)
        history = None
        refs = only is None or any(path == "HEAD" or path.startswith("refs/") for path in only)
        wanted = tree.bundle_request(layer) if refs else None
        if wanted is not None:
            self._bundle(replace(plan, argv=wanted.argv, cwd=wanted.cwd, network="none", pty=False), tree)
            history = tree.take_history(layer, decider, now=now, approved=approved)
        passed = Passed(files=files, history=history)
        if files.committed or not passed.clean or history is not None:
            body: record.Body = {"gate": passed.fields(), "approved": list(approved)}
            self._door.note(EntryKind.GATE, body, mission=MissionId(mission.id))
        return passed

    def _bundle(self, plan: BoxPlan, tree: Worktree) -> None:
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        try:
            with tree.lock():
                box = self._readiness.launcher().start(plan, stdin=null, stdout=null, stderr=null)
            box.wait()
        finally:
            os.close(null)

    def _settle(self, job: Job, tree: Worktree, layer: Layer, gate: Passed | None) -> None:
        """A one-call mission with nothing left to look at is over; any other stays until a person ends it."""
        mission = job.mission
        if mission.one_call and gate is not None and gate.clean:
            if gate.files.ignored:
                self._end(tree, layer, mission)  # ignored paths must be there for the next call
            else:
                self._later.do(functools.partial(self._end, tree, layer, mission))
        else:
            self._missions.store(msgspec.structs.replace(_pinned(job), calls=mission.calls + 1))

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

    def _note_result(self, job: Job, judged: Judged, body: record.Body) -> Ack:
        return self._door.note(
            EntryKind.RESULT, {**body, "intent": judged.intent.seq}, mission=_id(job.mission), call=judged.call.id
        )

    def diff(self, mission: Mission) -> dict[str, object]:
        """What the mission's layer holds against the real tree."""
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
        with self._one_at_a_time(mission):
            tree, layer, policy = self._of(mission)
            context = Context(agent=mission.agent or None)
            plan = self._plain_plan(mission, policy, layer)
            report = self._commit(mission, policy, context, tree, plan, only=paths or None, approved=paths)
        self._door.note(
            EntryKind.MISSION,
            {"action": "commit", "by": by.name, "paths": list(paths), "committed": len(report.files.committed)},
            mission=MissionId(mission.id),
        )
        return {"id": mission.id, "gate": report.fields()}

    def discard(self, mission: Mission, paths: tuple[str, ...], by: Person) -> dict[str, object]:
        """Drop changes from the mission's layer: the named ones, or all. Recorded before it happens."""
        with self._one_at_a_time(mission):
            tree, layer, _ = self._of(mission)
            self._door.note(
                EntryKind.MISSION,
                {"action": "discard", "by": by.name, "paths": list(paths)},
                mission=MissionId(mission.id),
            )
            dropped = tree.discard(layer, paths or None)
        return {"id": mission.id, "discarded": list(dropped)}

    def end(self, mission: Mission) -> None:
        """Remove the layer of a mission that is over; ignored paths are carried on to the next one."""
        with self._one_at_a_time(mission):
            tree, layer, _ = self._of(mission)
            tree.end(layer)
            shutil.rmtree(f"{os.path.dirname(layer.upper)}/middle", ignore_errors=True)

    def _plain_plan(self, mission: Mission, policy: Policy, layer: Layer) -> BoxPlan:
        """A plan over the mission's layer for work of the fence's own, such as bundling its commits."""
        masked, replaced = self._hidden.of(policy)
        layer = replace(layer, middle=f"{os.path.dirname(layer.upper)}/middle", masked=masked, replaced=replaced)
        return plan_box(
            call_id=CallId(f"gate-{mission.id}"),
            argv=("true",),
            cwd=mission.root,
            facts=self._facts(policy),
            layer=layer,
            limits=policy.limits,
            mission=MissionId(mission.id),
            run_id=mission.id,
        )

    def _of(self, mission: Mission) -> tuple[Worktree, Layer, Policy]:
        policy = self._door.stored_policy(Sha256(mission.policy_digest), mission.root)
        tree = self._worktree(policy)
        return tree, tree.look(MissionId(mission.id)), policy


def _networked(job: Job) -> bool:
    mission = job.mission
    return job.policy.reaches_network or bool(mission.learning_until or mission.host_ports or mission.inbound)


def _id(mission: Mission) -> MissionId:
    return MissionId(mission.id)


def _host_fault(error: OSError) -> BoxError:
    return BoxError(
        "host-refused",
        f"the host refused something that a box needs: {error.strerror or error}",
        where=os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "",
        remedy="free space, or mend permissions, and run it again; `ringfence doctor` looks at the host",
    )


def _pinned(job: Job) -> Mission:
    return msgspec.structs.replace(job.mission, policy_digest=str(job.policy.digest))


def _layer_of(plan: BoxPlan) -> Layer:
    if plan.layer is None:
        raise BoxError("box-worktree", "a command needs a worktree")
    return plan.layer


def _extra(job: Job) -> record.Body:
    """What the intent holds beside call, facts and decision."""
    return {
        "root": job.repository.root,
        "commit": job.repository.head,
        "agent": job.mission.agent,
        "task": job.mission.task,
        "one_call": job.mission.one_call,
    }


def _shown(job: Job, judged: Judged, result: Ack | None = None) -> dict[str, object]:
    """What every answer about this command holds."""
    places: dict[str, object] = {"intent": {"seq": judged.intent.seq, "record": judged.intent.record}}
    if result is not None:
        places["result"] = {"seq": result.seq, "record": result.record}
    return {
        "mission": job.mission.id,
        "decision": wording.decision_fields(judged.decision),
        "ledger": places,
    }


@contextmanager
def _listening(caller: Caller, box: Box) -> Iterator[None]:
    """While the box runs, its client may send signals and window sizes; a client that leaves ends the box."""
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            try:
                body = caller.reader.receive_bytes()
                message = None if body is None else requests.parse_signal(body)
            except (OSError, RingfenceError):
                message = None
            if over.is_set():
                return
            if message is None:
                box.kill("the client went away")
                return
            if message.signal:
                box.signal(message.signal)
            if message.go_on:
                box.go_on()
            if message.rows and message.columns:
                box.resize(message.rows, message.columns)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        with suppress(OSError):
            caller.connection.shutdown(socket.SHUT_RD)
        thread.join()
