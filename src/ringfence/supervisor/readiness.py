"""Whether this host may run a box now: its level against the policy's minimum, and a smoke test that is fresh.

A smoke test counts for one boot, policy, level and version, and for fifteen minutes at most.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ringfence import __version__
from ringfence.model.box import Level
from ringfence.model.entry import EntryKind
from ringfence.model.errors import BoxError
from ringfence.model.ids import Micros, Sha256
from ringfence.policy.policy import Policy
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.probe import HostReport
from ringfence.sandbox.smoke import SmokeReport, run_smoke
from ringfence.supervisor.door import Door

FRESH = 15 * 60 * 1_000_000
"""Microseconds for which a passed smoke test counts."""


@dataclass(frozen=True, slots=True)
class _Key:
    boot: str
    policy: Sha256
    level: Level
    version: str


class Readiness:
    """Asks the host once, smokes when it must. Safe to use from many threads."""

    def __init__(
        self, *, door: Door, launcher: Launcher | None, host: HostReport, state: str, now: Callable[[], Micros]
    ) -> None:
        """``state`` is the state directory; the smoke test's own files live below it. No launcher: nothing can run."""
        self._door = door
        self._launcher = launcher
        self._state = state
        self._now = now
        self._lock = threading.Lock()
        self._host = host
        self._passed: dict[_Key, Micros] = {}
        self._boot = _boot_id()

    def host(self) -> HostReport:
        """What the host can enforce, probed when the supervisor started."""
        return self._host

    def launcher(self) -> Launcher:
        """The launcher. Raises BoxError where this host has none."""
        if self._launcher is None:
            raise BoxError(
                "below-minimum",
                f"this host can enforce {_level(self._host)}, and no box runs below namespaces",
                remedy="; ".join(self._host.remedies) or "see `ringfence doctor`",
            )
        return self._launcher

    def require(self, policy: Policy) -> HostReport:
        """Return when a box for this policy may run. Raises BoxError naming the control that is missing."""
        report = self.host()
        if report.level < policy.minimum_level:
            raise BoxError(
                "below-minimum",
                f"this host can enforce {_level(report)}, the policy wants {policy.minimum_level.name.lower()} at least",
                where=str(policy.root),
                remedy="; ".join(report.remedies) or "see `ringfence doctor`",
            )
        key = _Key(self._boot, policy.digest, report.level, __version__)
        with self._lock:
            passed = self._passed.get(key)
            now = self._now()
            if passed is None or not 0 <= now - passed <= FRESH:
                self._smoke(report, policy.digest)
                self._passed[key] = now
        return report

    def smoke(self) -> SmokeReport:
        """Probe a box now, whatever was proved before; recorded."""
        with self._lock:
            report = run_smoke(self.launcher(), state=self._state)
            self._record(report, Sha256(""))
            if not report.passed:
                self._passed.clear()
        return report

    def quiet(self) -> threading.Lock:
        """To be held: meanwhile no smoke test and nobody else who holds it works in the state directory."""
        return self._lock

    def _smoke(self, host: HostReport, digest: Sha256) -> None:
        report = run_smoke(self.launcher(), state=self._state)
        self._record(report, digest)
        if report.passed:
            return
        self._passed.clear()  # the same hole is in the boxes of every other policy
        failed = ", ".join(f"{probe.name} ({probe.detail})" for probe in report.probes if not probe.passed)
        raise BoxError(
            "smoke-failed",
            f"the smoke test failed, so nothing runs: {failed}",
            where=f"level {host.level.name.lower()}",
            remedy="see `ringfence smoke`; a box with a known hole is not patched in place",
        )

    def _record(self, report: SmokeReport, digest: Sha256) -> None:
        probes = {probe.name: "passed" if probe.passed else f"failed: {probe.detail}" for probe in report.probes}
        self._door.note(EntryKind.SMOKE, {"passed": report.passed, "policy": digest, "probes": dict(probes)})


def _level(host: HostReport) -> str:
    """The level, and why it is no higher."""
    why = f" ({'; '.join(host.causes)})" if host.causes else ""
    return f"level {host.level.name.lower()}{why}"


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
