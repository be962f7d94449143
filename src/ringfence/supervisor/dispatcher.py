"""The dispatcher: opens every room once, and hands each verb to the one that answers it."""

import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import assert_never

from ringfence import __version__
from ringfence.egress.worker import cool
from ringfence.ledger import admin, keeping
from ringfence.ledger.log import Ledger
from ringfence.ledger.steps import SCHEDULE
from ringfence.model.call import Argv, ShellLine, ToolCall
from ringfence.model.entry import EntryKind, Json
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, MissionId, Sha256
from ringfence.policy.store import PolicyStore
from ringfence.policy.trust import TrustStore
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.probe import HostReport
from ringfence.sandbox.teardown import TORN_DOWN, teardown
from ringfence.supervisor import recovery, requests, wording
from ringfence.supervisor.caller import Caller, ancestors, environment_class
from ringfence.supervisor.door import Door
from ringfence.supervisor.gatekeeper import Gatekeeper
from ringfence.supervisor.mission_verbs import MissionVerbs
from ringfence.supervisor.missions import Missions
from ringfence.supervisor.netsettings import known_secrets, load_settings
from ringfence.supervisor.organisation import OrganisationPolicy
from ringfence.supervisor.paths import Paths, identity, make_private
from ringfence.supervisor.readiness import Readiness
from ringfence.supervisor.repository import find_root, read_repository
from ringfence.supervisor.runner import Runner
from ringfence.supervisor.scrubbing import Scrubbing

Answer = dict[str, object]
TICK_SECONDS = 60.0
"""Between two looks at what is due: the usual size of the window in which cutting the log's end goes unseen."""


class Dispatcher:
    """All rooms of one supervisor. ``answer`` is the way in."""

    def __init__(
        self,
        *,
        paths: Paths,
        launcher: Launcher | None,
        host: HostReport,
        ledger: Ledger,
        door: Door,
        missions: Missions,
        scrubbing: Scrubbing,
        new_id: Callable[[], str],
    ) -> None:
        """Use ``open``."""
        self._paths = paths
        self._launcher = launcher
        self._ledger = ledger
        self._ledger_place = identity(paths.ledger)
        self._scrubbing = scrubbing
        self._door = door
        self._started = door.now()
        self._agents: set[int] = set()
        self._readiness = Readiness(door=door, launcher=launcher, host=host, state=paths.state, now=door.now)
        self._gatekeeper = Gatekeeper(door=door, missions=missions, readiness=self._readiness, state=paths.state)
        self._runner = Runner(
            door=door,
            missions=missions,
            readiness=self._readiness,
            gatekeeper=self._gatekeeper,
            paths=paths,
            new_id=new_id,
        )
        self._organisation = OrganisationPolicy(paths, PolicyStore(paths.policies))
        self._tearing = threading.Lock()
        self._over = threading.Event()
        self._schedule = threading.Thread(target=self._tick, name="schedule", daemon=True)
        self._schedule.start()
        self._mission_verbs = MissionVerbs(
            door=door, missions=missions, gatekeeper=self._gatekeeper, state=paths.state, new_id=new_id
        )

    @classmethod
    def open(cls, paths: Paths, launcher: Launcher | None, host: HostReport) -> "Dispatcher":
        """Open the ledger, finish what a crash left, wire the rooms. Raises when any of it fails."""
        for folder in (paths.ledger, paths.policies, paths.missions, f"{paths.state}/trust"):
            make_private(folder)
        ledger = Ledger.open(paths.ledger, clock=_now)
        try:
            scrubbing = Scrubbing(ledger, lambda: _known_secrets(paths))
            door = Door(
                paths=paths,
                recorder=ledger,
                store=PolicyStore(paths.policies),
                trust=TrustStore(f"{paths.state}/trust"),
                now=_now,
                new_id=_new_id,
                on_policy=scrubbing.learn,
                on_secret=scrubbing.learn_value,
            )
            missions = Missions(paths.missions)
            recovery.recover(door=door, state=paths.state)
            recovery.forget_cut_short(missions)
            return cls(
                paths=paths,
                launcher=launcher,
                host=host,
                ledger=ledger,
                door=door,
                missions=missions,
                scrubbing=scrubbing,
                new_id=_new_id,
            )
        except BaseException:
            ledger.close()
            raise

    @property
    def failed(self) -> bool:
        """Whether nothing can be recorded where it is looked for, and so nothing run, until the ledger is opened anew."""
        return self._ledger.failure is not None or identity(self._paths.ledger) != self._ledger_place

    def end_boxes(self) -> None:
        """End every box: whoever waits for one hears so, and has still to record it."""
        if self._launcher is not None:
            self._launcher.close()

    def close(self) -> None:
        """Close the ledger with a checkpoint. For after ``end_boxes``: nothing is recorded any more."""
        self._gatekeeper.close()
        cool()
        self._over.set()
        self._schedule.join(TICK_SECONDS)
        self._ledger.close()

    def allow_control(self, caller: Caller, verb: str) -> None:
        """Refuse a control verb to any process at or below a registered agent process. Raises RingfenceError."""
        if self._agents.intersection(ancestors(caller.pid)) or environment_class(caller.pid) == "sandbox":
            raise RingfenceError(
                "control-refused",
                f"`{verb}` is for a person; this caller runs below an agent",
                remedy="run it from your own terminal",
            )

    def answer(self, request: requests.Request, caller: Caller) -> Answer:
        """Answer one request. Raises RingfenceError for a fault; a denial is an answer."""
        self._scrubbing.look()
        match request:
            case requests.Run():
                return self._runner.run(request, caller)
            case requests.Decide():
                return self._decide(request, caller)
            case requests.Status() | requests.Stop():
                return self._status()
            case requests.Trust():
                self.allow_control(caller, "policy trust")
                self._door.trust_policy(request.root, Sha256(request.digest), caller.person, withdraw=request.withdraw)
                return {"trusted": request.digest}
            case requests.Mission():
                opens = bool(request.learning_until or request.host_ports or request.inbound)
                if opens or request.action not in {"list", "show", "diff", "start"}:
                    self.allow_control(caller, f"mission {request.action}")
                return self._mission_verbs.answer(request, caller)
            case requests.LedgerVerb():
                self.allow_control(caller, f"ledger {request.action}")
                return self._ledger_verb(request, caller)
            case requests.Smoke():
                return self._smoke()
            case requests.Teardown():
                self.allow_control(caller, "teardown")
                return self._teardown(request)
            case requests.Promotion():
                return self._promotion(request)
            case _:
                assert_never(request)

    def _ledger_verb(self, request: requests.LedgerVerb, caller: Caller) -> Answer:
        arguments, organisation = dict(request.arguments), self._organisation.retention()
        return dict(admin.perform(self._ledger, request.action, arguments, by=caller.person, organisation=organisation))

    def _tick(self) -> None:
        """What is due without a person: each minute anchors and the organisation's days, each hour archive, purge, erasures."""
        rounds = 0
        while not self._over.wait(TICK_SECONDS):
            rounds += 1
            try:
                organisation = self._organisation.retention()
                keeping.note_change(self._ledger, SCHEDULE, organisation)
                if rounds % 60:
                    done: dict[str, Json] = {"anchor": admin.anchor(self._ledger, {"due": True}, SCHEDULE)}
                else:
                    done = admin.tick(self._ledger, organisation)
            except RingfenceError as error:
                done = {"schedule": {"error": error.code, "what": error.what}}
            except OSError as error:  # a full disk is over one day, and the schedule must still be there then
                done = {"schedule": {"error": "ledger-unreadable", "what": os.strerror(error.errno or 0)}}
            for name, answer in done.items():
                if isinstance(answer, dict) and "error" in answer:
                    print(f"{name}: {answer!a}", file=sys.stderr, flush=True)

    def _status(self) -> Answer:
        return {
            "version": __version__,
            "started": int(self._started),
            "entries": self._ledger.head.size,
        }

    def _decide(self, request: requests.Decide, caller: Caller) -> Answer:
        root = find_root(request.cwd)
        policy = self._door.policy_for(root)
        context = self._door.context(
            read_repository(root), agent=request.agent, interactive=False, env_class=environment_class(caller.pid)
        )
        wanted = ShellLine(line=request.line) if request.line is not None else Argv(argv=request.argv or ())
        judged = self._door.judge(policy, ToolCall(request=wanted, cwd=request.cwd, context=context), mission=None)
        return wording.decision_fields(judged.decision)

    def _smoke(self) -> Answer:
        report = self._readiness.smoke()
        probes = [
            {"name": probe.name, "passed": probe.passed, "detail": probe.detail, "duration_us": int(probe.duration)}
            for probe in report.probes
        ]
        return {"passed": report.passed, "level": self._readiness.host().level.name.lower(), "probes": probes}

    def _teardown(self, request: requests.Teardown) -> Answer:
        missions = Missions(self._paths.missions)
        for name in request.discard:
            missions.check(MissionId(name))
        with self._tearing:
            report = teardown(
                self._paths.state,
                discard=request.discard,
                dry_run=request.dry_run,
                launcher=self._launcher,
                turn=self._turn_to_tear_down,
                quiet=self._readiness.quiet(),
            )
        if not request.dry_run:
            recovery.forget_torn_down(missions)
        self._door.note(EntryKind.MISSION, {"action": "teardown", "removed": list(report.removed)})
        return {"removed": list(report.removed), "left": list(report.left), "refused": list(report.refused)}

    def _turn_to_tear_down(self, mission: str) -> AbstractContextManager[None]:
        """Whoever works on the mission is waited for; a box that it begins meanwhile is ended like those before."""
        launcher = self._launcher
        return self._gatekeeper.one_at_a_time(
            MissionId(mission), lambda: launcher.kill_all(TORN_DOWN) if launcher is not None else None
        )

    def _promotion(self, request: requests.Promotion) -> Answer:
        import msgspec

        body = {name: msgspec.json.decode(value) for name, value in request.body.items()}
        ack = self._door.note(EntryKind.PROMOTION, body)
        return {"seq": ack.seq, "record": ack.record}


def _known_secrets(paths: Paths) -> tuple[str, ...]:
    """Settings that cannot be read know none: they refuse every command that wants a network when it comes."""
    try:
        return known_secrets(load_settings(paths))
    except RingfenceError:
        return ()


def _now() -> Micros:
    return Micros(time.time_ns() // 1000)


def _new_id() -> str:
    return secrets.token_hex(8)
