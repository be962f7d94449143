"""The pause of one box from the launcher's side: by the freezer, else by the box's process 1. Nothing here waits.

Whoever asks for a pause relies on it, so a tree that does not stand still is ended.
"""

import time
from collections.abc import Callable
from typing import Protocol

SECONDS, LOOK_SECONDS = 10.0, 0.002
"""A tree that does not stand still by then is ended; and between two looks at it."""


class Freezer(Protocol):
    """The control groups of a box, as far as they freeze."""

    def freeze(self) -> bool:
        """Have every task stopped; False where that cannot be."""
        ...

    def settled(self) -> bool:
        """Whether every task stands still."""
        ...

    def thaw(self) -> bool:
        """Let every task go on; False where none was frozen."""
        ...


class Standstill:
    """Whether a box is paused, for how long it was, and what waits for its end."""

    def __init__(
        self,
        freezer: Freezer,
        *,
        to_init: Callable[[bytes], None],
        tell: Callable[[str], None],
        kill: Callable[[str], None],
        after: Callable[[float, Callable[[], None]], None],
    ) -> None:
        """``tell`` says ``paused`` once all stands still, and ``resumed``."""
        self.freezer = freezer
        self.to_init, self.tell, self.kill, self.after = to_init, tell, kill, after
        self.on = False
        self._since = self._sum = self._until = 0.0
        self._later: list[bytes] = []

    def begin(self) -> None:
        """Stop the whole tree."""
        now = time.monotonic()
        if not self.on:
            self.on, self._since = True, now
        self._until = now + SECONDS
        if self.freezer.freeze():
            self._settle()
        else:
            self.to_init(b"pause")  # it answers

    def _settle(self) -> None:
        if not self.on:
            return
        still = self.freezer.settled()
        if still or time.monotonic() > self._until:
            self.found(still=still)
        else:
            self.after(LOOK_SECONDS, self._settle)

    def found(self, *, still: bool) -> None:
        """What came of it, now or later."""
        if still:
            self.tell("paused")
        elif self.on:
            self.kill("it did not stand still while it was paused")

    def end(self) -> None:
        """Let the tree go on, and hear what it was sent meanwhile."""
        self._sum += time.monotonic() - self._since if self.on else 0.0
        self.on = False
        if not self.freezer.thaw():
            self.to_init(b"resume")
        for order in self._later:
            self.to_init(order)
        self._later.clear()
        self.tell("resumed")

    def send(self, order: bytes) -> None:
        """Something for the command, which hears of it when it goes on."""
        if self.on:
            self._later.append(order)
        else:
            self.to_init(order)

    def take_seconds(self) -> float:
        """How long it stood still since this was asked last."""
        now = time.monotonic()
        taken = self._sum + (now - self._since if self.on else 0.0)
        self._sum, self._since = 0.0, now
        return taken
