"""Worker processes: started for one box, or kept ready, with everything imported, for the next one.

A process that waits has no descriptor of any box and has read nothing. What it is to serve arrives with its set-up.
"""

import contextlib
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass

from ringfence.egress import asking
from ringfence.egress.asking import Listener, Message
from ringfence.egress.link import channel

FDS_A_PACKET = 100


@dataclass(slots=True)
class Started:
    """A worker process and the supervisor's end of its channel."""

    process: "subprocess.Popen[bytes]"
    channel: socket.socket

    def hand_over(self, descriptors: dict[str, int]) -> None:
        """Pass the box's descriptors; ours stay open. Raises OSError where the process is gone."""
        items = list(descriptors.items())
        for at in range(0, len(items), FDS_A_PACKET):
            part = items[at : at + FDS_A_PACKET]
            messages: list[Message] = [Listener(name=name, fd=place) for place, (name, _fd) in enumerate(part)]
            (packet,) = asking.pack(messages)
            socket.send_fds(self.channel, [packet], [fd for _name, fd in part])

    def end(self) -> None:
        """Close the channel, which ends the process; kill it where that is not enough."""
        self.channel.close()
        try:
            self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(prefix: tuple[str, ...] = ()) -> Started:
    """A new worker process that waits for its set-up."""
    near, far = channel()
    with far:
        command = [*prefix, sys.executable, "-I", "-m", "ringfence.egress.process", str(far.fileno())]
        process = subprocess.Popen(
            command,
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
    return Started(process, near)


class Shelf:
    """Keeps one process ready. Empty until ``warm`` is called for the first time, and after ``clear``."""

    def __init__(self) -> None:
        """One for the whole supervisor."""
        self._lock = threading.Lock()
        self._ready: Started | None = None
        self._keeping = False

    def warm(self) -> None:
        """Have one process ready from now on; called again it starts another if the last was taken."""
        with self._lock:
            self._keeping = True
            if self._ready is None or self._ready.process.poll() is not None:
                self._ready = start()

    def take(self, prefix: tuple[str, ...] = ()) -> Started:
        """A process for a box: the one kept ready where it fits, else a new one."""
        with self._lock:
            ready, self._ready = (self._ready, None) if not prefix else (None, self._ready)
            keeping = self._keeping and not prefix
        if keeping:
            threading.Timer(0.2, self._refill).start()
        if ready is not None:
            if ready.process.poll() is None:
                return ready
            ready.end()
        return start(prefix)

    def clear(self) -> None:
        """End the process kept ready, and keep none any more."""
        with self._lock:
            self._keeping = False
            ready, self._ready = self._ready, None
        if ready is not None:
            ready.end()

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            with self._lock:
                keeping = self._keeping
            if keeping:
                self.warm()


SHELF = Shelf()
