"""Who writes next. A lone caller writes itself; who comes meanwhile waits for a thread that writes for all that wait.

So a single caller pays for no hand-over, and many share one flush. Somebody may also ask to be alone, with nothing being
written.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ringfence.ledger.request import Request
from ringfence.model.errors import LedgerError

MAX_GROUP = 512
MAX_GROUP_BYTES = 1024 * 1024
WAIT_SECONDS = 10.0
Commit: TypeAlias = Callable[[list[Request], Callable[[], None]], None]
"""Acknowledges or refuses each of a batch, and calls the second just before it waits for the disk."""


class Sequencer:
    """Puts requests in order. ``commit`` is never called twice at once.

    Those whom it answered go on while the disk is at the next batch: woken sooner, they would hold up its write, and wait
    for the interpreter all the same.
    ``check`` raises where nothing may be written; it is asked before a request is taken. The turn to write belongs to
    one at a time: a caller, the thread, or who asked to be alone.
    """

    def __init__(self, where: str, *, commit: Commit, check: Callable[[], None]) -> None:
        """``where`` is what an error names. The thread starts when somebody first waits."""
        self._where, self._commit, self._check = where, commit, check
        self._mutex = threading.Lock()
        self._queue: list[Request] = []
        self._taken = self._stopping = False
        self._turn = threading.Lock()
        self._turn.acquire()  # released to give the thread the turn
        self._thread: threading.Thread | None = None

    def submit(self, request: Request) -> None:
        """Return when the request was acknowledged or refused. Raises what ``check`` does, and ``ledger-slow``."""
        with self._mutex:
            self._check()
            wait = self._taken
            if wait:
                request.wake.acquire()
                self._queue.append(request)
            self._taken = True
        if not wait:
            try:
                self._commit([request], _nobody)
            finally:
                self._pass_on()
        elif not request.wake.acquire(timeout=WAIT_SECONDS):
            self._give_up(request)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the one that writes, with nothing being written. Raises ``ledger-slow``."""
        turn = Request([])
        turn.wake.acquire()
        with self._mutex:
            wait = self._taken
            self._taken = True
            if wait:
                self._queue.append(turn)
        if wait and not turn.wake.acquire(timeout=WAIT_SECONDS):
            self._give_up(turn)
        try:
            yield
        finally:
            self._pass_on()

    def stop(self) -> None:
        """End the thread, after what waits. Nothing may be submitted any more."""
        with self._mutex:
            self._stopping = True
            thread, idle = self._thread, not self._taken
            self._taken = True
        if idle:
            self._pass_on()
        if thread is not None:
            thread.join(timeout=1)  # one that hangs in the disk is left behind

    def _pass_on(self) -> None:
        """Give the turn to who waits; with nobody waiting it is free."""
        with self._mutex:
            if not self._queue and not (self._stopping and self._thread):
                self._taken = False
                return
            if self._hand_to_alone():
                return
        if self._has_thread():
            self._turn.release()
        else:
            self._write_queue()

    def _hand_to_alone(self) -> bool:
        """Whether the first that waits asked to be alone, and has the turn now."""
        if not self._queue or self._queue[0].prepared:
            return False
        self._queue.pop(0).wake.release()
        return True

    def _has_thread(self) -> bool:
        """Whether the thread runs; called by who has the turn. Where none can be started, that caller writes for all."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="ledger-sequencer", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        while not self._stopping:
            self._turn.acquire()
            self._write_queue()

    def _write_queue(self) -> None:
        """Having the turn, write for all that wait until nobody does."""
        answered: list[Request] = []

        def let_go() -> None:
            for request in answered:
                request.wake.release()
            answered.clear()

        try:
            while batch := self._next():
                try:
                    self._commit(batch, let_go)
                finally:
                    let_go()
                    answered += batch
        finally:
            let_go()

    def _next(self) -> list[Request]:
        """What to write now; empty where the turn was given away."""
        with self._mutex:
            if not self._queue:
                self._taken = False
                return []
            return [] if self._hand_to_alone() else self._take()

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


def _nobody() -> None:
    """Who writes for itself alone has nobody to let go on."""
