"""One epoll loop with timers: all that the launcher does happens in it, one short step at a time."""

import heapq
import select
import time
from collections.abc import Callable

Timer = tuple[float, int, Callable[[], None]]
READ, WRITE, HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR


class Loop:
    """Descriptors with what to do when they are ready, and timers."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
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

    def forget(self, descriptor: int) -> None:
        """Stop watching; nothing happens if it is not watched."""
        if self._handlers.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

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
        while self.running:
            wait = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else -1
            for descriptor, events in self._poll.poll(wait):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    handler(events)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()
