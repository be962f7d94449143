"""Lets go of a box's mounts beside the launcher: the last one that lets go of a file system waits for the kernel.

A process of its own with nothing but one socket. It ends with the launcher, and what is queued to it then is let go of by
the kernel.
"""

import contextlib
import os
import socket
from collections.abc import Iterable

from ringfence.sandbox.inner.beside import Beside

MANY = 16


class Closer(Beside):
    """The process. Raises OSError where none can be begun."""

    def __init__(self) -> None:
        super().__init__(_serve)
        self.socket.setblocking(False)

    def take(self, descriptors: Iterable[int]) -> None:
        """Have these closed. Ours are closed at once; where the queue is full, that is the end of them."""
        held = list(descriptors)
        if held:
            with contextlib.suppress(OSError):
                socket.send_fds(self.socket, [b"x"], held)
        for descriptor in held:
            os.close(descriptor)


def _serve(channel: socket.socket) -> None:
    while True:
        word, descriptors, _flags, _from = socket.recv_fds(channel, 1, MANY)
        if not word:
            return
        for descriptor in descriptors:
            os.close(descriptor)
