"""Who writes next. The caller that finds nobody writing writes for all that wait; many callers share one flush.

A single caller pays for no hand-over. Somebody may also ask to be alone, with nothing being written.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator

from ringfence.ledger.request import Request
from ringfence.model.errors import LedgerError

MAX_GROUP = 512
MAX_GROUP_BYTES = 1024 * 1024
WAIT_SECONDS = 10.0


class Sequencer:
    """Puts requests in order. ``commit`` acknowledges or refuses each of a batch, and is never called twice at once.

    ``check`` raises where nothing may be written; it is asked before a request is taken.
    """

    def __init__(self, where: str, *, commit: Callable[[list[Request]], None], check: Callable[[], None]) -> None:
        """``where`` is what an error names."""
        self._where, self._commit, self._check = where, commit, check
        self._mutex = threading.Lock()
        self._queue: list[Request] = []
        self._leading = False

    def submit(self, request: Request) -> None:
        """Return when the request was acknowledged or refused. Raises what ``check`` does, and ``ledger-slow``."""
        with self._mutex:
            self._check()
            lead = not self._leading  # then nobody waits either
            if lead:
                self._leading = True
            else:
                request.wake.acquire()
                self._queue.append(request)
        if lead:
            self._lead([request], request)
        elif not request.wake.acquire(timeout=WAIT_SECONDS):
            self._give_up(request)
        if not request.done:
            with self._mutex:
                batch = self._take()
            self._lead(batch, request)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the one that writes, with nothing being written. Raises ``ledger-slow``."""
        turn = Request([])
        turn.wake.acquire()
        with self._mutex:
            wait = self._leading
            self._leading = True
            if wait:
                self._queue.append(turn)
        if wait and not turn.wake.acquire(timeout=WAIT_SECONDS):
            self._give_up(turn)
        with self._mutex:
            self._queue = [request for request in self._queue if request is not turn]
        try:
            yield
        finally:
            self._pass_on()

    def _lead(self, batch: list[Request], own: Request) -> None:
        """Write a batch, pass the part on, wake the callers."""
        try:
            self._commit(batch)
        finally:
            self._pass_on()
            for request in batch:
                if request is not own:
                    request.wake.release()

    def _pass_on(self) -> None:
        """Wake the next that waits, to be the one that writes; with nobody waiting there is none."""
        with self._mutex:
            if self._queue:
                self._queue[0].wake.release()
            else:
                self._leading = False

    def _take(self) -> list[Request]:
        count = entries = total = 0
        for request in self._queue:
            if not request.prepared:  # somebody waits to be alone: what came later comes after
                break
            entries += len(request.prepared)
            total += request.size
            if count and (entries > MAX_GROUP or total > MAX_GROUP_BYTES):
                break
            count += 1
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    def _give_up(self, request: Request) -> None:
        """Leave the queue after waiting too long, unless the turn came meanwhile. Raises ``ledger-slow``.

        A request that is being written may yet become durable: nothing runs on its account either way.
        """
        with self._mutex:
            if request.done or request.wake.acquire(blocking=False):
                return
            if request in self._queue:
                self._queue.remove(request)
        raise LedgerError(
            "ledger-slow",
            f"no entry became durable within {WAIT_SECONDS:.0f} s",
            where=self._where,
            remedy="look at the disk; nothing was run",
        )
