"""A box begun before it is asked for: namespaces made, groups joined, waiting for its order. Used once.

Making namespaces and joining control groups cost more than all the rest, and need nothing of the order. What kind of box
comes next is guessed: the same as the last.
"""

import contextlib
import marshal
import os
import signal
import socket
from dataclasses import dataclass
from typing import Any, Self

from ringfence.sandbox.inner import init, kernel
from ringfence.sandbox.inner.groups import Hierarchies

NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS


@dataclass(frozen=True, slots=True)
class Kind:
    """What must be known of an order to begin its box."""

    map_user: bool
    closed: bool
    """Without a network."""

    @classmethod
    def of(cls, order: dict[str, Any]) -> Self:
        """That of an order."""
        return cls(map_user=order["map_user"], closed=order["network"] != "captured")


class Spare:
    """Process 1 of a box to be. Whoever takes it owns everything in it."""

    def __init__(self, hierarchies: Hierarchies, watcher: int, kind: Kind) -> None:
        """Raises OSError where no box can be begun."""
        self.kind = kind
        self.box, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.groups = hierarchies.make()
            mapped = (os.geteuid(), os.getegid()) if kind.map_user else None
            flags = NAMESPACES | kernel.SIGCHLD | (kernel.CLONE_NEWUSER if kind.map_user else 0)
            try:
                self.pid = kernel.clone(flags, 0, 0, 0, 0)
            except OSError:
                self.box.close()
                self.groups.remove()
                raise
            if self.pid == 0:
                init.main(theirs.fileno(), watcher, mapped=mapped, groups=self.groups.doors(), closed=kind.closed)
        self.pidfd = os.pidfd_open(self.pid)

    def order(self, order: dict[str, Any], streams: tuple[int, int, int]) -> None:
        """Hand over the order and the command's streams. Raises OSError when the spare is no more."""
        self.groups.limit(order["limits"])
        paper = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            os.write(paper, marshal.dumps(order))
            maps = [order["idmap"]] if order["idmap"] >= 0 else []
            socket.send_fds(self.box, [b"order"], [paper, *streams, *maps])
        finally:
            os.close(paper)

    def drop(self) -> None:
        """End it unused."""
        with contextlib.suppress(ProcessLookupError):  # ended by itself: it is still ours to wait for
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pidfd)
        self.box.close()
        self.groups.remove()
