"""A pause without a freezer: process 1 of a box stops every other task of it, and sees whether they stay so.

One signal to all reaches every process at once: none is forked past it. What wakes by itself all the same (a timer may
send SIGCONT) is found soon after.
"""

import contextlib
import os
import signal
import time

STOP_SECONDS, ROUND_SECONDS = 5.0, 0.001
"""So long it is tried: processes that keep waking each other may win."""
CALL_SECONDS = 0.2
LOOK_MILLIS = 20
"""Between two looks at a tree that is to stand still."""
STOPPED = "Tt"
WAITS = "D"
"""For a disk, or for a child that has stopped. Such a task stops before it runs code of its own; for ``CALL_SECONDS`` the call
that it is in is given time to end."""
STILL = frozenset(f"{STOPPED}{WAITS}ZX")


class Pause:
    """Whether the tree is to stand still, and what did so before."""

    def __init__(self) -> None:
        self.wanted = False
        self._before: set[int] = set()

    def begin(self) -> bool:
        """Stop everything; whether all of it stands still now."""
        if not self.wanted:
            self._before = {pid for pid in _others() if set(_states(pid)) & set(STOPPED)}
        self.wanted = True
        begun = time.monotonic()
        while True:
            with contextlib.suppress(ProcessLookupError):  # there is nothing else
                os.kill(-1, signal.SIGSTOP)
            states, passed = self.states(), time.monotonic() - begun
            if states <= STILL and (WAITS not in states or passed > CALL_SECONDS):
                return True
            if passed > STOP_SECONDS:
                return False
            time.sleep(ROUND_SECONDS)

    def stands(self) -> bool:
        """Whether no task can run."""
        return self.states() <= STILL

    @staticmethod
    def states() -> set[str]:
        """In which tasks are."""
        return {state for pid in _others() for state in _states(pid)}

    def end(self) -> None:
        """Let go on what stood still because of us alone."""
        self.wanted = False
        for pid in _others():
            if pid not in self._before:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def _others() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _states(pid: int) -> list[str]:
    """Of each thread: the first one may be gone while others run."""
    states = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                states.append(chr(file.read().rpartition(b")")[2].split()[0][0]))
    return states
