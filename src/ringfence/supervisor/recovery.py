"""What a crash left, finished before the first client is heard: commits of the gate, and commands, that were cut short.

Intents without a result are closed by the ledger itself when it opens.
"""

import contextlib
import os
import sys

from ringfence.model.entry import EntryKind
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import MissionId
from ringfence.sandbox.teardown import PARTS, remove_unused
from ringfence.sandbox.worktree import state as layer_state
from ringfence.sandbox.worktree.tree import Worktree
from ringfence.supervisor.door import Door
from ringfence.supervisor.missions import Missions


def recover(*, door: Door, state: str) -> None:
    """Finish or take back every commit that was cut short, and record what was done.

    A worktree that is gone or cannot be opened keeps its journal and is told in the log; it does not keep the
    supervisor from serving the others.
    """
    for root in sorted(_roots(f"{state}/missions")):
        try:
            told = Worktree.open(root, state).recover()
        except (RingfenceError, OSError) as error:
            print(f"recovery of {root!a} failed: {error}", file=sys.stderr, flush=True)
            continue
        if told:
            door.note(
                EntryKind.GATE, {"action": "recovered", "root": ascii(root), "steps": [ascii(step) for step in told]}
            )


def forget_cut_short(missions: Missions) -> None:
    """Forget the missions of single commands that were cut short and left no change. Only before anything runs.

    A change that one left waits for a person to commit or discard it, as before.
    """
    for mission in missions.all():
        if mission.one_call and not mission.calls:
            with contextlib.suppress(OSError):  # what resists now is there for teardown
                if remove_unused(missions.folder(MissionId(mission.id))):
                    missions.forget(MissionId(mission.id))


def forget_torn_down(missions: Missions) -> None:
    """Forget the missions of single commands that have no layer any more."""
    for mission in missions.all():
        folder = missions.folder(MissionId(mission.id))
        if mission.one_call and not any(os.path.lexists(f"{folder}/{part}") for part in PARTS):
            missions.forget(MissionId(mission.id))


def _roots(missions: str) -> set[str]:
    found = set()
    for name in os.listdir(missions):
        try:
            record = layer_state.load(os.path.join(missions, name))
        except (RingfenceError, OSError):
            continue  # told when somebody asks for that mission
        if record is not None:
            found.add(os.fsdecode(record.root))
    return found
