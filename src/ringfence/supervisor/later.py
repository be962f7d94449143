"""Work that nobody waits for, done in order by one thread: removing what a finished call left on disk."""

import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable

BREATH = 0.005
"""Seconds before the first piece: whoever gave it has an answer to send first, in the same interpreter."""
END_SECONDS = 20.0
"""For so long the end waits: whoever comes next waits for the end."""


class Later:
    """One thread and its queue. ``close`` returns when all that was given is done, or its time is over."""

    def __init__(self) -> None:
        """The thread starts with the first piece of work."""
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def do(self, work: Callable[[], None]) -> None:
        """Have it done soon. A fault in it goes to the log; what it would have removed is found by teardown."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._live, name="later", daemon=True)
                self._thread.start()
        self._queue.put(work)

    def close(self) -> None:
        """Finish what is queued; what takes too long is left, as by a crash, to the next sweep or teardown."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(END_SECONDS)
            if thread.is_alive():
                print("what finished calls left is not all removed; the next ones go on", file=sys.stderr, flush=True)

    def _live(self) -> None:
        while (work := self._next()) is not None:
            try:
                work()
            except Exception:  # noqa: BLE001 - told in the log; nothing here decides anything
                traceback.print_exc(file=sys.stderr)

    def _next(self) -> Callable[[], None] | None:
        if not self._queue.empty():
            return self._queue.get()
        work = self._queue.get()
        if work is not None:
            time.sleep(BREATH)
        return work
