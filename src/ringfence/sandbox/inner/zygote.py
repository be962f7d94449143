"""A process that does nothing but fork process 1 of each box. It holds one socket, and ends with the launcher.

A fork shares every page with its parent until one of the two writes to it, and a page that the parent writes to is the
child's alone from then on. The launcher writes all the time, this process next to never.
"""

import marshal
import os
import socket
from typing import NoReturn

from ringfence.sandbox.inner import init, kernel
from ringfence.sandbox.inner.beside import Beside
from ringfence.sandbox.inner.skeleton import Entry

LONGEST = 1 << 18
ANSWER_SECONDS = 10.0
NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
FLAGS = NAMESPACES | kernel.CLONE_PARENT | kernel.SIGCHLD


class Zygote:
    """The process, as the launcher holds it. Raises OSError where none can be begun."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.process = Beside(_serve)
        self.process.socket.settimeout(ANSWER_SECONDS)

    def _again(self) -> None:
        self.close()
        self._start()

    def fork(
        self,
        channel: socket.socket,
        watcher: int,
        *,
        mapped: tuple[int, int] | None,
        groups: list[str],
        closed: bool,
        folders: list[Entry] | None,
    ) -> int:
        """The process id of a new box's process 1, a child of the launcher; the arguments are those of ``init.main``.

        Raises OSError where no box can be begun.
        """
        order, descriptors = marshal.dumps((mapped, groups, closed, folders)), [channel.fileno(), watcher]
        try:
            socket.send_fds(self.process.socket, [order], descriptors)
        except OSError:
            self._again()
            socket.send_fds(self.process.socket, [order], descriptors)
        try:
            answer = self.process.socket.recv(64)
        except OSError:
            self._again()  # a late answer must not be taken for that to the next order
            raise
        pid, fault = marshal.loads(answer or marshal.dumps((0, 0)))  # noqa: S302  from our own process
        if not pid:
            raise OSError(fault, os.strerror(fault) if fault else "the process that begins boxes is gone", "clone")
        return int(pid)

    def close(self) -> None:
        """End it; returns when it is gone. The boxes it has begun live on."""
        self.process.close()


def _serve(channel: socket.socket) -> None:
    while True:
        data, descriptors, _flags, _from = socket.recv_fds(channel, LONGEST, 2)
        if not data:
            return
        mapped, groups, closed, folders = marshal.loads(data)  # noqa: S302  from our own launcher over its private pair
        fault = 0
        try:
            pid = kernel.clone(FLAGS | (kernel.CLONE_NEWUSER if mapped else 0), 0, 0, 0, 0)
        except OSError as refused:
            pid, fault = 0, refused.errno or 0
        else:
            if pid == 0:
                _become(descriptors, mapped, groups, closed=closed, folders=folders)
        channel.send(marshal.dumps((pid, fault)))
        for descriptor in descriptors:
            os.close(descriptor)


def _become(
    descriptors: list[int],
    mapped: tuple[int, int] | None,
    groups: list[str],
    *,
    closed: bool,
    folders: list[Entry] | None,
) -> NoReturn:
    channel, watcher = descriptors
    init.main(channel, watcher, mapped=mapped, groups=groups, closed=closed, folders=folders)
