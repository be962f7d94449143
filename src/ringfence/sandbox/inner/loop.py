"""One epoll loop with timers: all that the launcher does happens in it, one short step at a time."""

import heapq
import select
import time
from collections.abc import Callable

Timer = tuple[float, int, Callable[[], None]]
READ, WRITE, HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR
"""The same bits for epoll and for poll."""
NEAR = 8
"""So many descriptors are waited for by poll: it asks each of them in each turn."""


class Loop:
    """Descriptors with what to do when they are ready, and timers."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._callers: set[int] = set()
        self._near = select.poll()
        self._near.register(self._poll.fileno(), READ)
        self._latest: list[int] = []
        self._timers: list[Timer] = []
        self._count = 0
        self.running = True

    def watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> bool:
        """Call ``handler(events)`` when ready. False for a regular file, which is always ready and never watched."""
        try:
            if descriptor in self._handlers:
                self._poll.modify(descriptor, events)
            else:
                self._poll.register(descriptor, events)
        except PermissionError:
            return False
        self._handlers[descriptor] = handler
        return True

    def watch_calls(self, descriptor: int, handler: Callable[[int], None]) -> None:
        """A listener of calls whose callers wait for our answer: wake us on the caller's own processor.

        The kernel does so (``SYNC_WAKE_UP``) where poll waits; epoll loses the word, and another processor that must first
        be woken takes 70 to 100 µs. At most ``NEAR`` are waited for in this way, those that were ready last.
        """
        self.watch(descriptor, READ, handler)
        self._callers.add(descriptor)
        self._draw_near(descriptor)

    def forget(self, descriptor: int) -> None:
        """Stop watching; nothing happens if it is not watched."""
        if self._handlers.pop(descriptor, None) is None:
            return
        self._callers.discard(descriptor)
        if descriptor in self._latest:
            self._latest.remove(descriptor)
            self._near.unregister(descriptor)
        else:
            self._poll.unregister(descriptor)

    def _draw_near(self, descriptor: int) -> None:
        if len(self._latest) == NEAR:
            far = self._latest.pop(0)
            self._near.unregister(far)
            self._poll.register(far, READ)
        self._poll.unregister(descriptor)
        self._near.register(descriptor, READ)
        self._latest.append(descriptor)

    def after(self, seconds: float, handler: Callable[[], None]) -> Timer:
        """Call once, that much later, unless it is given to ``cancel`` before."""
        self._count += 1
        timer = (time.monotonic() + seconds, self._count, handler)
        heapq.heappush(self._timers, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Call it no more, and keep nothing of it; nothing happens if it was called already."""
        if timer in self._timers:
            self._timers.remove(timer)
            heapq.heapify(self._timers)

    def run(self) -> None:
        """Until ``running`` is false."""
        timers = self._timers
        while self.running:
            wait = max(0.0, timers[0][0] - time.monotonic()) if timers else None
            if not self._latest:
                self._turn(wait)
            elif self._near_turn(None if wait is None else wait * 1000):
                self._turn(0)
            if timers:
                now = time.monotonic()
                while timers and timers[0][0] <= now:
                    heapq.heappop(timers)[2]()

    def _near_turn(self, milliseconds: float | None) -> bool:
        """Whether another descriptor than those near is ready; its turn comes last, for it may close one of these."""
        others = False
        for descriptor, events, handler in self._found(self._near.poll(milliseconds)):
            if handler is None:
                others = True
            elif self._handlers.get(descriptor) is handler:
                handler(events)
        return others

    def _turn(self, wait: float | None) -> None:
        for descriptor, events, handler in self._found(self._poll.poll(wait)):
            if handler is not None and self._handlers.get(descriptor) is handler:
                if descriptor in self._callers and descriptor not in self._latest:
                    self._draw_near(descriptor)
                handler(events)

    def _found(self, ready: list[tuple[int, int]]) -> list[tuple[int, int, Callable[[int], None] | None]]:
        """With whom each was ready for: by its turn it may be closed, and its number be that of another box's descriptor."""
        return [(descriptor, events, self._handlers.get(descriptor)) for descriptor, events in ready]
