"""What the kernel's figures of a tree count twice, and what they drop, where no control group counts."""

import time

from ringfence.sandbox.inner.tree import shared_by_forks, times

COUNT_SECONDS, COUNTED_EVERY, GROWN = 0.05, 0.25, 8
"""So long may one look at what processes share take, of the launcher's own time, and so often is it taken: other boxes have
their turns in between. A box that grew since then by this part of its limit is looked at early."""


class Forks:
    """Memory that processes have in common since one was forked from the other, which each of them shows as its own."""

    def __init__(self) -> None:
        self.due = 0.0
        """When what was shared may have become a process's own."""
        self.last = 0
        """Bytes that were in it more than once, at the last look."""

    def twice(self, pids: list[int], seems: int, limit: int, most: int) -> int:
        """Bytes of ``seems`` that are in it more than once, ``most`` at most; looked for only where it is above the limit.

        Between two looks a box that has hardly grown is below it, as it was at the last one: for else it had been ended.
        """
        over, early = seems - limit, time.monotonic() < self.due
        if over > most:
            return 0  # above it whatever they have in common
        if over <= 0 or (early and over <= self.last + limit // GROWN):
            return max(0, over)
        self.last = shared_by_forks(pids, seems - limit * 3 // 4, COUNT_SECONDS)
        self.due = time.monotonic() + COUNTED_EVERY
        return self.last


class Spent:
    """CPU time of a tree, with that of children which have ended and which nobody waited for: the kernel drops it."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], tuple[int, int]] = {}
        """By id and start: milliseconds of its own and of the children it has waited for, at the last look."""
        self.missing = self.dropped = 0

    def millis(self, pids: list[int]) -> int:
        """Of these and all that were seen before; what lived between two looks alone is not known.

        What is gone at a look may have been waited for a moment later: it is missing until the next one.
        """
        now = {key: spent for key, spent in map(times, pids) if key[1]}
        gone = sum(sum(spent) for key, spent in self.seen.items() if key not in now)
        waited = sum(spent[1] - self.seen.get(key, (0, 0))[1] for key, spent in now.items())
        self.dropped += max(0, self.missing - waited)
        self.missing = max(0, gone - max(0, waited - self.missing))
        self.seen = now
        return sum(sum(spent) for spent in now.values()) + self.dropped
