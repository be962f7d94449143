"""Missions as far as they go today: one task of one agent in one repository, its state in one file.

The moves between states are one table; a move that is not in it is an error. Pausing, approvals and incidents add
their rows when they come.
"""

import contextlib
import enum
import os
import re
import threading
from collections.abc import Callable

import msgspec

from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, MissionId

AGE_WARNING = 7 * 24 * 3600 * 1_000_000
"""Microseconds after which an open mission is reported: a box that lives longer has become a pet."""


class State(enum.Enum):
    """Where a mission stands."""

    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    TERMINATED = "terminated"


TRANSITIONS: dict[tuple[State, str], State] = {
    (State.RUNNING, "pause"): State.PAUSED,
    (State.PAUSED, "resume"): State.RUNNING,
    (State.RUNNING, "end"): State.COMPLETED,
    (State.PAUSED, "end"): State.COMPLETED,
    (State.RUNNING, "terminate"): State.TERMINATED,
    (State.PAUSED, "terminate"): State.TERMINATED,
}


class CommitAt(enum.Enum):
    """When the commit gate opens."""

    CALL = "call"
    END = "end"
    NEVER = "never"


class Mission(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One mission as it is stored."""

    id: str
    root: str
    task: str
    agent: str
    policy_digest: str
    started: int
    until: int
    state: State = State.RUNNING
    commit: CommitAt = CommitAt.CALL
    one_call: bool = False
    learning_until: int = 0
    """Until then, what only a default refuses on the network is let pass and logged; a person's choice at the start."""
    host_ports: tuple[int, ...] = ()
    inbound: tuple[int, ...] = ()
    calls: int = 0
    denied: int = 0
    ended: int = 0


class Missions:
    """The missions of one user, one folder each below ``directory``."""

    def __init__(self, directory: str) -> None:
        """Nothing is read until it is asked for."""
        self._directory = directory
        self._changing = threading.Lock()

    def folder(self, mission: MissionId) -> str:
        """The mission's own folder. Raises RingfenceError for a name that is not one of ours."""
        if not re.fullmatch(r"m-[0-9a-f]{8,32}", mission):
            raise RingfenceError(
                "no-mission", f"{mission!r} is not a mission's id", remedy="see `ringfence mission list`"
            )
        return os.path.join(self._directory, mission)

    def check(self, mission: MissionId) -> None:
        """Raise RingfenceError where there is no such mission, readable or broken."""
        folder = self.folder(mission)
        if not os.path.isdir(folder):
            raise RingfenceError(
                "no-mission", f"there is no mission {mission!r}", remedy="see `ringfence mission list`"
            )

    def store(self, mission: Mission, *, durable: bool = True) -> None:
        """Keep the mission's state; the file is replaced whole. Not ``durable``: it may be lost with the machine's power."""
        folder = self.folder(MissionId(mission.id))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "mission.json")
        with open(path + ".new", "wb") as file:
            file.write(msgspec.json.encode(mission))
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(path + ".new", path)

    def change(self, mission: MissionId, how: Callable[[Mission], Mission]) -> Mission:
        """Change what is stored now, not what somebody read some time ago; returns what is stored then."""
        with self._changing:
            changed = how(self.load(mission))
            self.store(changed)
            return changed

    def load(self, mission: MissionId) -> Mission:
        """The mission. Raises RingfenceError where there is none, or its file is broken."""
        path = os.path.join(self.folder(mission), "mission.json")
        try:
            with open(path, "rb") as file:
                return msgspec.json.decode(file.read(), type=Mission)
        except FileNotFoundError:
            raise RingfenceError(
                "no-mission", f"there is no mission {mission}", remedy="see `ringfence mission list`"
            ) from None
        except (OSError, msgspec.MsgspecError) as error:
            raise RingfenceError(
                "broken-mission",
                f"the mission's state cannot be read: {error}",
                where=path,
                remedy="copy what you need out of this folder, then start another mission",
            ) from error

    def forget(self, mission: MissionId) -> None:
        """Remove the state of a mission that left nothing; its folder stays where the gate kept a journal."""
        folder = self.folder(mission)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, "mission.json"))
        with contextlib.suppress(OSError):
            os.rmdir(folder)

    def all(self) -> tuple[Mission, ...]:
        """Every mission that can be read, oldest first."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return ()
        found = []
        for name in names:
            try:
                found.append(self.load(MissionId(name)))
            except RingfenceError:
                continue  # a folder that is no mission, or one that a crash left without state: teardown lists it
        return tuple(sorted(found, key=lambda mission: mission.started))


def pinned_elsewhere(directory: str, root: str, digest: str) -> tuple[Mission, ...]:
    """Missions that run in the repository under another policy than the one with this digest."""
    return tuple(
        one
        for one in Missions(directory).all()
        if one.root == root and one.state is State.RUNNING and not one.one_call and one.policy_digest != digest
    )


def move(mission: Mission, event: str, now: Micros) -> Mission:
    """The mission after an event. Raises RingfenceError for a move that the table does not have."""
    target = TRANSITIONS.get((mission.state, event))
    if target is None:
        raise RingfenceError(
            "bad-transition",
            f"a mission that is {mission.state.value} cannot {event}",
            where=f"mission {mission.id}",
            remedy="see what it is and what it holds: `ringfence mission show`",
        )
    ended = int(now) if target in {State.COMPLETED, State.TERMINATED} else mission.ended
    return msgspec.structs.replace(mission, state=target, ended=ended)
