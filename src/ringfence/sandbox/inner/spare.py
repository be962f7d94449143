"""A box begun before it is asked for: namespaces made, groups joined, waiting for its order. Used once.

Making namespaces and joining control groups cost more than all the rest, and need nothing of the order. What kind of box
comes next is guessed: the same as the last.
"""

import marshal
import os
import select
import signal
import socket
from dataclasses import dataclass
from typing import Any, Self

from ringfence.sandbox.inner.answerer import LONGEST, Answered, Answerer
from ringfence.sandbox.inner.groups import Hierarchies
from ringfence.sandbox.inner.skeleton import Entry
from ringfence.sandbox.inner.watch import Record
from ringfence.sandbox.inner.zygote import Zygote


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

    def __init__(
        self, zygote: Zygote, hierarchies: Hierarchies, watcher: int, kind: Kind, folders: list[Entry] | None
    ) -> None:
        """``folders``: what the root of the box before held. Raises OSError where no box can be begun."""
        self.kind = kind
        self.answered: Answered | None = None
        self.said = b""
        self.pid = self.pidfd = -1
        self.box, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.groups = hierarchies.make()
            try:
                self.pid = zygote.fork(
                    theirs,
                    watcher,
                    mapped=(os.geteuid(), os.getegid()) if kind.map_user else None,
                    groups=self.groups.doors(),
                    closed=kind.closed,
                    folders=folders,
                )
                self.pidfd = os.pidfd_open(self.pid)
            except OSError:
                self._end()
                raise

    def sound(self) -> bool:
        """Whether it is still there, and whoever answers for its root."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        try:
            return not poll.poll(0) and (self.answered is None or self.answered.alive())
        except OSError:
            return False  # nobody can tell

    def hear(self, answerer: Answerer) -> None:
        """Before its order comes it says one thing: what its root holds, with the end at which that is asked for.

        Or why it could not be begun, which is kept for whoever takes it.
        """
        try:
            data, descriptors, flags, _from = socket.recv_fds(self.box, LONGEST, 1)
        except OSError:
            return
        if flags & socket.MSG_CTRUNC:
            os.kill(self.pid, signal.SIGKILL)  # we may open no more: nobody can answer for its root
        elif not descriptors:
            self.said = data
        else:
            self.answered = answerer.begin(descriptors[0], marshal.loads(data)[1])  # noqa: S302  written by our own init

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
        if self.answered is not None:
            self.answered.end(Record())
        self._end()

    def _end(self) -> None:
        """However far it was begun. Its id stays its own until it is waited for, also when it has ended by itself."""
        if self.pid > 0:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.box.close()
        self.groups.remove()
