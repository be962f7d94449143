"""Lets go of a box's mounts beside the launcher: the last one that lets go of a file system waits for the kernel.

A process of its own with nothing but one socket. It ends with the launcher, and what is queued to it then is let go of by
the kernel.
"""

import contextlib
import os
import signal
import socket
from collections.abc import Iterable
from typing import NoReturn

from ringfence.sandbox.inner import kernel

MANY = 16
END = 3


class Closer:
    """The process. Raises OSError where none can be begun."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = kernel.clone(kernel.SIGCHLD, 0, 0, 0, 0)
            if self.pid == 0:
                _serve(theirs.fileno())
        self.socket.setblocking(False)

    def take(self, descriptors: Iterable[int]) -> None:
        """Have these closed. Ours are closed at once; where the queue is full, that is the end of them."""
        held = list(descriptors)
        if held:
            with contextlib.suppress(OSError):
                socket.send_fds(self.socket, [b"x"], held)
        for descriptor in held:
            os.close(descriptor)

    def close(self) -> None:
        """End it; returns when it is gone."""
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _serve(end: int) -> NoReturn:
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.dup2(end, END)
        kernel.close_range(END + 1, 0x7FFFFFFF, 0)
        channel = socket.socket(fileno=END)
        while True:
            word, descriptors, _flags, _from = socket.recv_fds(channel, 1, MANY)
            if not word:
                break
            for descriptor in descriptors:
                os.close(descriptor)
    finally:
        os._exit(0)
