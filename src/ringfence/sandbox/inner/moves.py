"""Renames of folders in a box's overlay, handed to its process 1 one after the other; the callers wait meanwhile."""

import marshal
from collections import deque
from collections.abc import Callable

WAITING = 64
"""More callers than that are not kept waiting: the kernel answers them itself."""


class Moves:
    """``ask`` hands a request to the box's process 1, False when it cannot be; ``answer`` gives a caller its errno."""

    def __init__(self, ask: Callable[[bytes], bool], answer: Callable[[int, int], object]) -> None:
        self.ask, self.answer = ask, answer
        self.current = -1
        self.waiting: deque[tuple[int, bytes]] = deque()

    def take(self, identity: int, old: bytes, new: bytes, flags: int) -> bool:
        """Have it done, and the caller answered then. False: the kernel shall do it."""
        if len(self.waiting) >= WAITING:
            return False
        request = b"rename " + marshal.dumps((identity, old, new, flags))
        if self.current >= 0:
            self.waiting.append((identity, request))
            return True
        if not self.ask(request):
            return False
        self.current = identity
        return True

    def done(self, identity: int, error: int) -> None:
        """Process 1 has carried out what it was asked."""
        self.answer(identity, error)
        self.current = -1
        while self.waiting and self.current < 0:
            waiting, request = self.waiting.popleft()
            if self.ask(request):
                self.current = waiting
            else:
                self.answer(waiting, -1)
