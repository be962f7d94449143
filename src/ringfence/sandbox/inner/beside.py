"""A small process beside the launcher that keeps one socket to it and nothing else, and ends with it."""

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from ringfence.sandbox.inner import kernel

END = 3


def wait(channel: socket.socket) -> None:
    """Be there, and do nothing, until whoever began it lets go or is gone."""
    channel.recv(1)


class Beside:
    """The process, as the launcher holds it: its id, and our end of the socket. Raises OSError where none can be begun."""

    def __init__(self, serve: Callable[[socket.socket], None], namespaces: int = 0) -> None:
        """``serve`` is all that it does; when that returns or raises, it is over. ``namespaces``: those made for it, by flags."""
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.pid = kernel.clone(namespaces | kernel.SIGCHLD, 0, 0, 0, 0)
            except OSError:
                self.socket.close()
                raise
            if self.pid == 0:
                try:
                    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                    os.dup2(theirs.fileno(), END)
                    kernel.close_range(END + 1, 0x7FFFFFFF, 0)
                    serve(socket.socket(fileno=END))
                finally:
                    os._exit(0)

    def alive(self) -> bool:
        """Whether it runs."""
        return self.pid > 0 and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def close(self) -> None:
        """End it; returns when it is gone. Once: its id may be another process's after that."""
        self.socket.close()
        pid, self.pid = self.pid, 0
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
