"""One command through the fence: decide, record the intent, box, gate, record the result, answer.

The steps are numbered in ``Runner.run``; each is one method, in that order. Nothing starts before its intent is
durable, nothing is answered before its result is.
"""

import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

import msgspec

from ringfence.ledger import record
from ringfence.model.box import BoxPlan, Execution, Layer, Observation
from ringfence.model.call import Argv, ShellLine, ToolCall
from ringfence.model.entry import Ack, EntryKind
from ringfence.model.errors import BoxError, RingfenceError
from ringfence.model.ids import Micros, MissionId, Sha256
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy
from ringfence.sandbox.facts import box_home
from ringfence.sandbox.launcher import Box
from ringfence.sandbox.plan import plan_box
from ringfence.sandbox.worktree.tree import Worktree
from ringfence.supervisor import protocol, requests, wording
from ringfence.supervisor.caller import Caller, environment_class, variables
from ringfence.supervisor.door import Door, Judged
from ringfence.supervisor.gate_answer import GateAnswer
from ringfence.supervisor.gatekeeper import Gatekeeper, layer_of
from ringfence.supervisor.missions import CommitAt, Mission, Missions, State
from ringfence.supervisor.netsettings import Opening, load_settings, opening_for
from ringfence.supervisor.network import Network
from ringfence.supervisor.paths import Paths
from ringfence.supervisor.readiness import Readiness
from ringfence.supervisor.repository import Repository, find_root, read_repository

LONG_OVER = 1
"""A time that no clock goes back to."""
LONG_ENOUGH = Micros(1_000_000)
"""A command that takes less has its tree not looked through a second time, for files that a person made meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command on its way: everything that was settled before it was judged."""

    request: requests.Run
    mission: Mission
    policy: Policy
    repository: Repository
    call: ToolCall
    environment: Mapping[str, str]
    """Of the caller's, what may pass as far as it is asked for."""


class Runner:
    """Runs commands, many at once. One per supervisor."""

    def __init__(
        self,
        *,
        door: Door,
        missions: Missions,
        readiness: Readiness,
        gatekeeper: Gatekeeper,
        paths: Paths,
        new_id: Callable[[], str],
    ) -> None:
        """``paths`` say where the user's settings and agents' homes lie."""
        self._door = door
        self._missions = missions
        self._readiness = readiness
        self._gatekeeper = gatekeeper
        self._paths = paths
        self._new_id = new_id
        self._seen = 0

    def run(self, request: requests.Run, caller: Caller) -> dict[str, object]:
        """Everything for one command; the answer is the report that ``run --json`` prints."""
        stdin, stdout, stderr = caller.take_descriptors(3)
        try:
            job = self._prepare(request, caller)  # 1. mission, policy, call
            judged = self._door.judge(job.policy, job.call, mission=_id(job.mission), extra=_extra(job))  # 2. durable
            if judged.decision.tier is not Tier.ALLOW:
                return wording.refusal(job.call, judged.decision, _shown(job, judged))
            with ExitStack() as turn:
                self._wait_for_turn(turn, job, judged, caller)
                return self._boxed(job, judged, caller, (stdin, stdout, stderr))
        finally:
            for descriptor in (stdin, stdout, stderr):
                os.close(descriptor)

    def _wait_for_turn(self, turn: ExitStack, job: Job, judged: Judged, caller: Caller) -> None:
        """Until no other command of the mission runs; its client hears so. Raises where nobody waits for it any more."""
        try:
            turn.enter_context(
                self._gatekeeper.one_at_a_time(MissionId(job.mission.id), caller.waits_for(job.mission.id))
            )
        except RingfenceError as fault:
            self._note_result(job, judged, record.fault_body(fault.code, fault.what))
            raise

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
        environment = {**variables(caller.pid, policy.environment[0]), **request.env}
        return Job(
            request=request,
            mission=mission,
            policy=policy,
            repository=repository,
            call=call,
            environment=environment,
        )

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
            raise RingfenceError(
                "mission-not-running",
                f"mission {mission.id} is {mission.state.value}",
                remedy="start another one: `ringfence mission start`",
            )
        if mission.root != root:
            raise RingfenceError(
                "other-repository",
                f"mission {mission.id} belongs to {mission.root}",
                where=root,
                remedy="run the command there, or start a mission here: `ringfence mission start`",
            )
        latest = self._latest(mission) if mission.until or mission.learning_until else 0
        if mission.until and latest > mission.until:
            raise RingfenceError(
                "mission-over",
                f"mission {mission.id} has passed the time it was given",
                remedy=f"end it with `ringfence mission end {mission.id}`",
            )
        if 0 < mission.learning_until <= latest:
            return msgspec.structs.replace(mission, learning_until=LONG_OVER)
        return mission

    def _latest(self, mission: Mission) -> int:
        """The latest time that this supervisor has seen: a mission that is over does not begin again with a clock set back."""
        now = self._door.now()
        self._seen = max(self._seen, now)
        if now < mission.started:
            raise RingfenceError(
                "clock-set-back",
                f"the clock is before the time at which mission {mission.id} began, so nobody can tell whether it is over",
                remedy=f"set the clock right, or end it with `ringfence mission end {mission.id}` and start another",
            )
        return self._seen

    def _boxed(self, job: Job, judged: Judged, caller: Caller, output: tuple[int, int, int]) -> dict[str, object]:
        """3. host and smoke, 4. layer and plan, 5. box, 6. gate, 7. result; a fault on the way is recorded as the result."""
        execution = None
        try:
            caller.must_wait()
            job = self._still(job)
            self._readiness.require(job.policy)
            tree = self._gatekeeper.worktree(job.policy)
            if job.mission.one_call:  # so that what a crash leaves of it can be found, shown and discarded
                self._missions.store(job.mission, durable=False)
            opening = self._opening(job)
            plan = self._plan(job, judged, self._gatekeeper.view(tree, job.mission, job.policy), opening)
            network = Network(door=self._door, plan=plan, policy=job.policy, context=job.call.context, opening=opening)
            execution = self._carry_out(plan, tree, caller, output, network)
            execution = self._with_late(execution, layer_of(plan), job.policy)
            gate = self._gate(job, plan, tree)
            if gate is not None and gate.files.digest:
                execution = replace(execution, changes_digest=Sha256(gate.files.digest))
        except (RingfenceError, OSError) as error:
            fault = error if isinstance(error, RingfenceError) else _host_fault(error)
            ran = {} if execution is None else record.result_body(execution)
            self._note_result(job, judged, {**ran, **record.fault_body(fault.code, fault.what)})
            raise fault from error
        shown = None if gate is None else gate.fields()
        result = self._note_result(job, judged, record.result_body(execution, gate=shown))
        self._gatekeeper.settle(job.mission, tree, layer_of(plan), gate)
        return wording.outcome(execution, gate, _shown(job, judged, result), refused=network.refusals())

    def _still(self, job: Job) -> Job:
        """The job with its mission as it is now that its turn has come: while it waited, a person may have ended it."""
        if job.mission.one_call:
            return replace(job, mission=msgspec.structs.replace(job.mission, policy_digest=str(job.policy.digest)))
        fresh = self._mission(job.request, job.repository.root)
        if fresh.policy_digest != job.mission.policy_digest:
            raise RingfenceError(
                "policy-reloaded",
                f"the policy of mission {fresh.id} was reloaded while this command waited",
                remedy="run it again, to be judged by the policy in force",
            )
        return replace(job, mission=fresh)

    def _gate(self, job: Job, plan: BoxPlan, tree: Worktree) -> GateAnswer | None:
        if job.mission.commit is not CommitAt.CALL:
            return None
        return self._gatekeeper.open(job.mission, job.policy, job.call.context, tree, plan, only=None, approved=())

    def _opening(self, job: Job) -> Opening:
        """What the user's settings and the mission open; nothing for a box without a network."""
        if not _networked(job):
            return Opening()
        home = box_home(self._gatekeeper.facts(job.policy).home)
        settings = load_settings(self._paths)
        return opening_for(settings, job.policy, job.mission, home=home, now=self._door.now(), noise=self._new_id())

    def _plan(self, job: Job, judged: Judged, layer: Layer, opening: Opening) -> BoxPlan:
        passed, _, pairs = job.policy.environment
        request = job.request
        plan = plan_box(
            call_id=judged.call.id,
            argv=("/bin/bash", "-c", request.line) if request.line is not None else tuple(request.argv or ()),
            cwd=job.call.cwd,
            facts=self._gatekeeper.facts(job.policy),
            layer=layer,
            limits=job.policy.limits,
            mission=MissionId(job.mission.id),
            caller_env=job.environment,
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
            modes=request.modes,
            stops=request.stops,
            behind=request.behind,
            decoy_seed=judged.intent.record,
            home_upper=self._home(job),
            umask=request.umask,
        )
        return replace(plan, mounts=(*plan.mounts, *opening.mounts)) if opening.mounts else plan

    def _home(self, job: Job) -> str:
        """The synthetic home that a named agent keeps between its missions; any other box gets one that ends with it."""
        if not job.mission.agent:
            return ""
        owner = os.stat(job.mission.root).st_uid
        name = hashlib.sha256(f"{owner}:{job.mission.agent}".encode()).hexdigest()[:16]
        folder = f"{self._paths.state}/homes/{name}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    def _carry_out(
        self, plan: BoxPlan, tree: Worktree, caller: Caller, output: tuple[int, int, int], network: Network
    ) -> Execution:
        stdin, stdout, stderr = output

        def tell(event: str, number: int = 0) -> None:
            with suppress(OSError):  # a client that leaves is met by who listens to it
                protocol.send(caller.connection, {"event": event, "signal": number})

        def stopped() -> None:
            """Ctrl-Z in the box: its client stops as well, and tells when the person continues it."""
            tell("stopped", box.stopped)

        on_stop = stopped if plan.pty or plan.stops else None
        with network.running():
            with tree.lock():
                box = self._readiness.launcher().start(
                    plan, stdin=stdin, stdout=stdout, stderr=stderr, on_network=network.connect, on_stop=on_stop
                )
            network.box = box
            if plan.pty:
                tell("begun")
            with _listening(caller, box):
                return box.wait()

    def _with_late(self, execution: Execution, layer: Layer, policy: Policy) -> Execution:
        """The execution, with the hidden files that somebody made while it ran: they could be seen.

        A tree that cannot be looked through any more is told to the next command, which is refused.
        """
        if execution.duration < LONG_ENOUGH:
            return execution
        late: tuple[str, ...] = ()
        with suppress(BoxError):
            late = self._gatekeeper.came_late(layer, policy)
        seen = (*(Observation(kind=wording.LATE, detail=path) for path in late), *execution.observations)
        return replace(execution, observations=tuple(sorted(seen, key=lambda one: not one.violation)))

    def _note_result(self, job: Job, judged: Judged, body: record.Body) -> Ack:
        return self._door.note(
            EntryKind.RESULT, {**body, "intent": judged.intent.seq}, mission=_id(job.mission), call=judged.call.id
        )


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
                box.go_on(behind=message.behind)
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
