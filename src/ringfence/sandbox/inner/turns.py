"""Fairness between boxes: whoever makes us wait for long waits itself before it is served again."""

import resource
import time
from collections.abc import Callable

SLOW, PATIENCE = 0.005, 4
"""What takes so many seconds makes the same box's next turn wait so many times as long."""


class Turns:
    """The turns of one box. Nothing is measured that costs anything until one of them has been slow."""

    def __init__(self) -> None:
        self.suspect = False

    def take(self, work: Callable[[], None]) -> float:
        """Do the work; gives the seconds that this box has to wait now, mostly none.

        A caller can keep its memory locked while we read it. Who merely found no processor free has not waited by itself.
        """
        begun, waits = time.monotonic(), self._waits()
        work()
        spent = time.monotonic() - begun
        if spent <= SLOW:
            return 0.0
        if not self.suspect:
            self.suspect = True
            return 0.0
        return spent * PATIENCE if self._waits() > waits else 0.0

    def _waits(self) -> int:
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if self.suspect else 0
