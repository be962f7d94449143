"""One lock per repository: mounts, commits and host-side file tools take turns. Held by a file lock, so a crash frees it."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator

from ringfence.model.errors import RingfenceError

_FIRST_POLL, _LAST_POLL = 0.0005, 0.02
"""Seconds between two tries: short at first, since most holders are done in a millisecond."""


class RepositoryLock:
    """Re-entrant for one thread; another thread, process or user waits until ``timeout`` seconds have passed."""

    def __init__(self, path: str, *, timeout: float = 30.0) -> None:
        self._path = path
        self._timeout = timeout
        self._thread = threading.RLock()
        self._depth = 0
        self._fd = -1

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for the block. Raises RingfenceError ``worktree-busy`` after the time-out."""
        deadline = time.monotonic() + self._timeout
        if not self._thread.acquire(timeout=self._timeout):
            raise self._busy()
        try:
            if self._depth == 0:
                self._fd = self._take(deadline)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    os.close(self._fd)  # closing is what unlocks
                    self._fd = -1
        finally:
            self._thread.release()

    def _take(self, deadline: float) -> int:
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        wait = _FIRST_POLL
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(fd)
                    raise self._busy() from None
                time.sleep(wait)
                wait = min(wait * 1.5, _LAST_POLL)

    def _busy(self) -> RingfenceError:
        return RingfenceError(
            "worktree-busy",
            f"another mission or commit has held this repository for {self._timeout:g} s",
            where=self._path,
            remedy="wait for it to end (ringfence mission list), or end it",
        )
