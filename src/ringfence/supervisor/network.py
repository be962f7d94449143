"""A box's way to the network: its captured sockets, an egress worker over them, and the door behind the worker."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ringfence.egress.record import ConnectionLog
from ringfence.egress.worker import Options, Worker
from ringfence.model.box import BoxPlan
from ringfence.model.call import Context
from ringfence.model.ids import MissionId
from ringfence.policy.policy import Policy
from ringfence.sandbox.launcher import Box
from ringfence.supervisor.attribution import Address, owners
from ringfence.supervisor.door import Deciding, Door


class Network:
    """The network of one box, from its start to its end. A box without any has one too, and it does nothing."""

    def __init__(self, *, door: Door, plan: BoxPlan, policy: Policy, context: Context, ask_millis: int = 0) -> None:
        """``ask_millis``: how long an ASK waits for a person; nobody can answer yet, so it is refused at once."""
        self._door = door
        self._plan = plan
        self._decider = Deciding(door, policy, context)
        self._ask_millis = ask_millis
        self._worker: Worker | None = None
        self.box: Box | None = None

    def connect(self, sockets: Mapping[str, int]) -> None:
        """Start the worker over the box's sockets, before its command starts. Raises BoxError: then the box ends."""
        self._worker = Worker.spawn(
            sockets,
            mission=self._plan.mission or MissionId(""),
            decide=self._decider.decide,
            record=self._record,
            options=Options(ask_millis=self._ask_millis, cwd=self._plan.cwd, call=self._plan.call_id),
            attribute=self._attribute,
            clock=self._door.now,
        )

    @contextlib.contextmanager
    def running(self) -> Iterator["Network"]:
        """The worker ends with the block, whatever happened in it."""
        try:
            yield self
        finally:
            if self._worker is not None:
                self._worker.stop()

    def _record(self, line: ConnectionLog) -> None:
        self._door.recorder.append([replace(line, call=line.call or self._plan.call_id).entry_of()])

    def _attribute(self, source: Address, target: Address) -> tuple[str, ...]:
        return owners(self.box.pids, source, target) if self.box is not None else ()
