"""A box's way to the network: its captured sockets, an egress worker over them, and the door behind the worker."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ringfence.egress.record import OUTWARD, ConnectionLog
from ringfence.egress.worker import Worker, warm
from ringfence.model.box import BoxPlan
from ringfence.model.call import Context
from ringfence.model.ids import MissionId
from ringfence.model.tier import Tier
from ringfence.policy.policy import Policy
from ringfence.sandbox.launcher import Box
from ringfence.supervisor.attribution import Address, owners
from ringfence.supervisor.door import Deciding, Door
from ringfence.supervisor.netsettings import Opening

SAID = 5
"""Refused destinations that are named one by one."""


class Network:
    """The network of one box, from its start to its end. A box without any has one too, and it does nothing."""

    def __init__(self, *, door: Door, plan: BoxPlan, policy: Policy, context: Context, opening: Opening) -> None:
        """``opening`` is what the user's settings and the mission open beside the policy."""
        self._door = door
        self._plan = plan
        self._policy = policy
        self._opening = opening
        self._decider = Deciding(door, policy, context)
        self._worker: Worker | None = None
        self._refused: dict[tuple[str, int], str] = {}
        self.box: Box | None = None

    def connect(self, sockets: Mapping[str, int]) -> None:
        """Start the worker over the box's sockets, before its command starts. Raises BoxError: then the box ends."""
        if self._plan.network != "captured":
            return
        opening = self._opening
        self._worker = Worker.spawn(
            sockets,
            mission=self._plan.mission or MissionId(""),
            decide=self._decider.decide,
            record=self._record,
            credentials=opening.credentials,
            on_secret=self._door.on_secret,
            options=replace(opening.options, cwd=self._plan.cwd, call=self._plan.call_id),
            attribute=self._attribute,
            inspects=self._policy.inspects,
            clock=self._door.now,
            placeholders=dict(opening.placeholders),
            authority=opening.authority,
        )
        warm()  # the next box's worker gets ready while this one is at work

    @contextlib.contextmanager
    def running(self) -> Iterator["Network"]:
        """The worker ends with the block, whatever happened in it."""
        try:
            yield self
        finally:
            if self._worker is not None:
                self._worker.stop()

    def refusals(self) -> list[str]:
        """What was refused, for the person at the command: many programs show no more than a broken connection."""
        said = list(self._refused.values())
        lines = said[:SAID]
        if len(said) > SAID:
            lines.append(f"ringfence refused {len(said) - SAID} more destinations")
        if self._worker is not None and self._worker.stood_still:
            lines.append(
                "ringfence's egress worker stood still, so it was ended, with its connections, and begun again"
            )
        if said:
            lines.append(
                "  fix: a person can allow hosts in the policy (docs/network.md); ringfence egress log --refused shows all"
            )
        return lines

    def _record(self, line: ConnectionLog) -> None:
        if line.tier is not Tier.ALLOW and line.outcome == "refused" and line.entry in OUTWARD and line.port:
            named = f"ringfence refused {line.host}:{line.port}: {line.because} [{line.rule}]"
            self._refused.setdefault((line.host, line.port), named)
        self._door.recorder.append([replace(line, call=line.call or self._plan.call_id).entry_of()])

    def _attribute(self, source: Address, target: Address) -> tuple[str, ...]:
        return owners(self.box.pids, source, target) if self.box is not None else ()
