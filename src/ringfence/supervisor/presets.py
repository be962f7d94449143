"""Network presets for policies: the egress room's catalogue as rules, with the hosts this machine's clients are set up for."""

import functools
import time

from ringfence.egress.presets import expand
from ringfence.egress.presets.clients import Index, read_indexes
from ringfence.egress.presets.lock import read_lock
from ringfence.policy.document import NetworkRule
from ringfence.supervisor.paths import Paths

KNOWN_SECONDS = 600
"""For this long the clients are not asked again: each question starts a program."""


class Presets:
    """Answers a policy's ``preset: NAME``. The clients' configuration is read only when a preset wants it."""

    def __init__(self, paths: Paths) -> None:
        """``paths.state`` holds the file hosts that were pinned."""
        self._lock_file = f"{paths.state}/presets.lock"

    def __call__(self, name: str, *, inspect: bool) -> tuple[NetworkRule, ...]:
        """The rules of one preset. Raises PolicyError for an unknown name, or a lock that cannot be read."""
        pinned = read_lock(self._lock_file).pinned
        expansion = expand(name, _indexes(int(time.monotonic() // KNOWN_SECONDS)), inspection=inspect, pinned=pinned)
        return tuple(
            NetworkRule(
                tier=rule.tier,
                id=f"preset/{name}",
                host=rule.host,
                at=(f"preset {name}", 0, 0),
                ports=rule.ports,
                methods=rule.methods,
                paths=rule.paths,
                preset=name,
                inspect=inspect,
                because=rule.because,
            )
            for rule in expansion.rules
        )


@functools.lru_cache(maxsize=2)
def _indexes(slot: int) -> tuple[Index, ...]:
    del slot
    return read_indexes()
