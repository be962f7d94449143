"""The socket side of the supervisor: who may speak, one thread a connection, one answer a request.

The outer edge of the door: the one place that catches everything. What goes wrong here is answered as a fault and
written to the log; it never becomes a permission.
"""

import errno
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

import msgspec

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.probe import HostReport
from ringfence.supervisor import jsontext, protocol, requests
from ringfence.supervisor.caller import Caller
from ringfence.supervisor.dispatcher import Dispatcher
from ringfence.supervisor.paths import Paths, identity

MAX_CONNECTIONS = 512
"""Clients served at once; one more is told to come back, and its command does not run."""
FULL_SECONDS = 0.1
"""Between two looks where the host has no descriptor or memory left for a client."""
DOOR_SECONDS = 5.0
"""Between two looks whether clients can still find this supervisor."""
REQUEST_SECONDS = 10.0
"""Within which a client must have said what it wants."""
FINISH_SECONDS = 10.0
"""For so long what was taken is waited for at the end, its boxes being gone: it has its results to record and to tell."""

_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Server:
    """Accepts connections and hands each request to the dispatcher."""

    def __init__(self, dispatcher: Dispatcher, launcher: Launcher | None) -> None:
        """Use ``open``."""
        self._dispatcher = dispatcher
        self._look: Callable[[], None] = launcher.look if launcher is not None else lambda: None
        self._launcher = [] if launcher is None else [os.pidfd_open(launcher.pid)]
        self._ended = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._stopping = threading.Event()
        self._active = 0
        self._taken = 0
        self._lock = threading.Lock()
        self._finished = threading.Condition(self._lock)
        self._last = time.monotonic()

    @classmethod
    def open(cls, paths: Paths, launcher: Launcher | None, host: HostReport) -> "Server":
        """Open the ledger, finish what a crash left, be ready. Raises when any of it fails: then nothing is served."""
        return cls(Dispatcher.open(paths, launcher, host), launcher)

    def stop(self) -> None:
        """End the serving loop soon. Safe in a signal handler."""
        self._stopping.set()
        os.write(self._wake_write, b"x")

    def serve(
        self,
        listener: socket.socket,
        door: tuple[int, int] | None,
        *,
        idle_seconds: float,
        look_at: Callable[[], str],
    ) -> None:
        """Serve until stopped, or until nothing was asked for ``idle_seconds`` and nothing runs.

        Ends as well when the launcher is gone: nothing could run any more, and the next client starts both anew. And when
        its socket (``door``) is not where clients look (``look_at``; the folder goes with a log-out and comes with a log-in), or its
        ledger takes no more entries: with what runs finished, the ledger is free for the one that clients find.
        """
        try:
            self._serve(listener, door, idle_seconds, look_at)
        finally:
            with self._lock:
                self._ended = True

    def _serve(
        self,
        listener: socket.socket,
        door: tuple[int, int] | None,
        idle_seconds: float,
        look_at: Callable[[], str],
    ) -> None:
        listener.setblocking(False)
        while not self._stopping.is_set():
            readable, _, _ = select.select([listener.fileno(), self._wake_read, *self._launcher], [], [], DOOR_SECONDS)
            if any(descriptor in readable for descriptor in self._launcher):
                print("the launcher ended; so does the supervisor", file=sys.stderr, flush=True)
                return
            self._look()
            if listener.fileno() in readable:
                self._accept(listener)
            elif self._idle_for() > (
                idle_seconds if door == identity(look_at()) and not self._dispatcher.failed else 0.0
            ):
                return

    def close(self) -> None:
        """End every box, let what waits for one record and tell that, close the ledger."""
        self._dispatcher.end_boxes()
        with self._finished:
            if not self._finished.wait_for(lambda: self._taken == 0, FINISH_SECONDS):
                print(f"{self._taken} requests were cut short", file=sys.stderr, flush=True)
        self._dispatcher.close()

    def _idle_for(self) -> float:
        with self._lock:
            return 0.0 if self._active else time.monotonic() - self._last

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:
            if error.errno in _FULL:
                self._stopping.wait(FULL_SECONDS)
            return  # the client left between knocking and opening, or waits until there is room
        _, uid, _ = protocol.peer(connection)
        if uid != os.getuid():
            connection.close()  # another user's process: not even an answer
            return
        with self._lock:
            busy = self._active >= MAX_CONNECTIONS
            self._active += not busy
        if busy:
            _turn_away(connection, f"{MAX_CONNECTIONS} clients are served already; nothing ran")
            return
        try:
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()
        except RuntimeError:
            _turn_away(connection, "the host has no room for another thread; nothing ran")
            self._left()

    def _left(self, *, taken: bool = False) -> None:
        with self._finished:
            self._active -= 1
            self._taken -= taken
            self._last = time.monotonic()
            self._finished.notify_all()

    def _converse(self, connection: socket.socket) -> None:
        reader = protocol.Reader(connection)
        taken = False
        try:
            reader.until = time.monotonic() + REQUEST_SECONDS
            body = reader.receive_bytes()
            if body is None:
                return
            reader.until = None
            connection.settimeout(None)
            caller = Caller.of(connection, reader)
            request = requests.parse(body)
            taken = self._take(request)
            if taken:
                protocol.send_bytes(connection, _encoded(self._answer(request, caller)))
        except RingfenceError as error:
            _say(connection, error)
        except OSError:
            return  # the client is gone; what it started was ended by the dispatcher
        except Exception as error:  # noqa: BLE001 - the outer edge of the door: answered as a fault, never a permission
            traceback.print_exc(file=sys.stderr)
            _say(
                connection,
                RingfenceError(
                    "internal",
                    f"a fault in ringfence itself: {type(error).__name__}",
                    remedy="the supervisor's log has the details; nothing was allowed by it",
                ),
            )
        finally:
            reader.close_descriptors()
            connection.close()
            self._left(taken=taken)

    def _take(self, request: requests.Request) -> bool:
        """Whether it is answered here; not where this supervisor ends, so that the client asks the next one."""
        failed = self._dispatcher.failed
        with self._lock:
            if not isinstance(request, requests.Stop):  # which any answers, also one that ends
                if failed and self._active == 1:
                    self.stop()
                if self._is_ending():
                    return False
            self._taken += 1
            return True

    def _answer(self, request: requests.Request, caller: Caller) -> dict[str, object]:
        if isinstance(request, requests.Stop):  # of any version: it is how one of another version is ended
            self._dispatcher.allow_control(caller, "stop")
            self.stop()
            return {"stopped": True}
        protocol.send_bytes(caller.connection, protocol.TAKEN)
        return self._dispatcher.answer(request, caller)

    def _is_ending(self) -> bool:
        """Whether nothing may begin any more: it was told to stop, or its launcher is gone."""
        if self._ended or self._stopping.is_set():
            return True
        return bool(self._launcher and select.select(self._launcher, [], [], 0)[0])


def _encoded(reply: dict[str, object]) -> bytes:
    """As JSON; what the fast encoder does not take (a name that is not UTF-8, a number beyond 64 bits) the other one does."""
    try:
        return msgspec.json.encode(reply)
    except (msgspec.MsgspecError, UnicodeError, OverflowError, TypeError):
        return jsontext.encode(reply).encode("ascii")


def _turn_away(connection: socket.socket, why: str) -> None:
    connection.settimeout(FULL_SECONDS)  # nobody else is served meanwhile
    _say(connection, RingfenceError("supervisor-busy", why, remedy="try again"))
    connection.close()


def _say(connection: socket.socket, error: RingfenceError) -> None:
    try:
        protocol.send(connection, protocol.fault(error))
    except OSError:
        return  # nobody is left to hear it
