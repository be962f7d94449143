"""Mission verbs: start, list, show, diff, commit, discard, end. The overlay and the gate do the work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import MissionId
from ringfence.supervisor import requests
from ringfence.supervisor.caller import Caller
from ringfence.supervisor.door import Door
from ringfence.supervisor.gatekeeper import Gatekeeper
from ringfence.supervisor.missions import AGE_WARNING, CommitAt, Mission, Missions, State, move
from ringfence.supervisor.repository import find_root

Answer = dict[str, object]


class MissionVerbs:
    """Answers mission verbs for one supervisor."""

    def __init__(
        self, *, door: Door, missions: Missions, gatekeeper: Gatekeeper, state: str, new_id: Callable[[], str]
    ) -> None:
        """``state`` is the state directory."""
        self._door = door
        self._missions = missions
        self._gatekeeper = gatekeeper
        self._state = state
        self._new_id = new_id

    def answer(self, request: requests.Mission, caller: Caller) -> Answer:
        """Answer one verb. Raises RingfenceError for a mission that is not there or a move that is not possible."""
        match request.action:
            case "start":
                return self._start(request, caller)
            case "list":
                return {"missions": [self._shown(mission) for mission in self._missions.all()]}
            case "show":
                return self._shown(self._load(request))
            case "diff":
                return self._gatekeeper.diff(self._load(request))
            case "commit":
                with self._turn(request, caller) as mission:
                    return self._gatekeeper.commit(mission, request.paths, caller.person)
            case "discard":
                with self._turn(request, caller) as mission:
                    return self._gatekeeper.discard(mission, request.paths, caller.person)
            case "reload":
                return self._reload(request, caller)
            case "end" | "terminate":
                return self._end(request, caller)
            case _:
                raise RingfenceError("bad-request", f"there is no mission verb {request.action!r}")

    def _start(self, request: requests.Mission, caller: Caller) -> Answer:
        root = find_root(request.cwd)
        policy = self._door.policy_for(root)
        try:
            commit = CommitAt(request.commit)
        except ValueError:
            raise RingfenceError("bad-request", "commit is one of call, end, never") from None
        mission = Mission(
            id="m-" + self._new_id(),
            root=root,
            task=request.task[:2000],
            agent=request.agent[:200],
            policy_digest=policy.digest,
            started=int(self._door.now()),
            until=request.until,
            learning_until=request.learning_until,
            host_ports=request.host_ports,
            inbound=request.inbound,
            commit=commit,
        )
        body = {"action": "start", "root": root, "task": mission.task, "agent": mission.agent, "policy": policy.digest}
        opened: dict[str, Json] = {
            "learning_until": mission.learning_until,
            "host_ports": list(mission.host_ports),
            "inbound": list(mission.inbound),
        }
        self._door.note(EntryKind.MISSION, {**body, **opened, "by": caller.person.name}, mission=MissionId(mission.id))
        self._missions.store(mission)
        return self._shown(mission)

    def _reload(self, request: requests.Mission, caller: Caller) -> Answer:
        """Pin the policy as it is now; recorded before it counts. A person's choice, never the agent's."""
        mission = self._load(request)
        policy = self._door.policy_for(mission.root)
        if not policy.trusted:
            raise RingfenceError(
                "not-trusted",
                "the repository's policy is not trusted as it is now",
                where=mission.root,
                remedy="ringfence policy trust",
            )
        body = {"action": "reload", "before": mission.policy_digest, "after": policy.digest, "by": caller.person.name}
        self._door.note(EntryKind.POLICY, dict(body), mission=MissionId(mission.id))
        changed = self._missions.change(
            MissionId(mission.id), lambda now: msgspec.structs.replace(now, policy_digest=str(policy.digest))
        )
        return {**self._shown(changed), "before": mission.policy_digest}

    def _end(self, request: requests.Mission, caller: Caller) -> Answer:
        with self._turn(request, caller) as mission:
            move(mission, request.action, self._door.now())
            gate: Answer = {}
            if request.action == "end" and mission.commit is CommitAt.END:
                gate = self._gatekeeper.commit(mission, (), caller.person)
            self._door.note(
                EntryKind.MISSION, {"action": request.action, "by": caller.person.name}, mission=MissionId(mission.id)
            )
            self._gatekeeper.end(mission)
            ended = self._missions.change(
                MissionId(mission.id), lambda now: move(now, request.action, self._door.now())
            )
        return {**self._shown(ended), **gate}

    @contextmanager
    def _turn(self, request: requests.Mission, caller: Caller) -> Iterator[Mission]:
        """The mission as it is once no command of it runs; none begins until this is left."""
        asked = self._load(request)
        with self._gatekeeper.one_at_a_time(MissionId(asked.id), caller.waits_for(asked.id)):
            caller.must_wait()
            yield self._missions.load(MissionId(asked.id))

    def _load(self, request: requests.Mission) -> Mission:
        if request.id is not None:
            return self._missions.load(MissionId(request.id))
        root = find_root(request.cwd)
        running = [one for one in self._missions.all() if one.root == root and one.state is State.RUNNING]
        if len(running) != 1:
            raise RingfenceError(
                "which-mission",
                f"{len(running)} missions are running in this repository",
                where=root,
                remedy="name one; see `ringfence mission list`",
            )
        return running[0]

    def _shown(self, mission: Mission) -> Answer:
        fields = msgspec.to_builtins(mission)
        assert isinstance(fields, dict)
        old = mission.state is State.RUNNING and self._door.now() - mission.started > AGE_WARNING
        return {**fields, "old": old}
