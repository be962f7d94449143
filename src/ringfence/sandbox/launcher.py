"""Boxes from the supervisor's side: start the launcher process once, then boxes through it; wait, kill, pause, resume.

The launcher and every box end when this process ends, however it ends: each of them watches a socket whose other end
is only here, and the kernel sends the rest.
"""

import array
import contextlib
import marshal
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Self

from ringfence.model.box import BoxPlan, Control, Execution, Observation
from ringfence.model.errors import BoxError
from ringfence.model.ids import CallId, Micros
from ringfence.sandbox.controls import controls_in, controls_of, decoys_in, explain, granted_in, lost
from ringfence.sandbox.middle import prepare_middle
from ringfence.sandbox.orders import compile_order
from ringfence.sandbox.probe import AS_MAKER, BUBBLEWRAP
from ringfence.sandbox.processes import Owner, owners, tree

READY_SECONDS = 20.0
START_SECONDS = 30.0
LOOK_SECONDS, LOOKS = 10.0, 4
"""A launcher that left so many looks unanswered, one every so many seconds, stands still and is ended."""
ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inner", "entry.py")
LENGTH = struct.Struct("=I")

OnSeen = Callable[[Observation], None]
OnNetwork = Callable[[dict[str, int]], None]


class Box:
    """One running box. All methods may be called from any thread."""

    def __init__(
        self,
        plan: BoxPlan,
        channel: socket.socket,
        controls: tuple[Control, ...],
        *,
        on_seen: OnSeen | None,
        on_stop: Callable[[], None] | None,
        on_network: OnNetwork | None,
    ) -> None:
        self.plan = plan
        self._channel = channel
        self._controls = controls
        self._on_seen = on_seen
        self._on_stop = on_stop
        self._on_network = on_network
        self._sockets: list[int] = []
        self._started_at = Micros(time.time_ns() // 1000)
        self._state = threading.Condition()
        self._reading = False
        self._pid = 0
        self._words: set[str] = set()
        self._ended: dict[str, Any] | None = None
        self._fault: BoxError | None = None
        self.sending = threading.Lock()
        """Held by whoever sends on the channel."""
        self.stopped = 0
        """The signal by which the command in the box stopped (Ctrl-Z), and waits for ``go_on``."""

    def wait(self, timeout: float | None = None) -> Execution:
        """What came of it, once nothing of the box is left. Raises TimeoutError, or BoxError when it was never built."""
        self._until(lambda: self._ended is not None, timeout)
        if self._ended is None:
            raise TimeoutError("the box is still running")
        return self._execution(self._ended)

    def kill(self, reason: str) -> None:
        """End the whole tree now; ``reason`` becomes ``ended_by`` unless something else came first."""
        self._send("kill", reason)

    def pause(self) -> None:
        """Stop the whole tree where it stands; returns when it stands still."""
        self._words.discard("paused")
        self._send("pause")
        self._until(lambda: "paused" in self._words or self._ended is not None, START_SECONDS)

    def resume(self) -> None:
        """Let a paused tree go on."""
        self._words.discard("resumed")
        self._send("resume")
        self._until(lambda: "resumed" in self._words or self._ended is not None, START_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group, as the keyboard or a caller would."""
        self._send("signal", number)

    def go_on(self, *, behind: bool = False) -> None:
        """Continue the command, and give it its terminal's keys unless it goes on ``behind`` another job of its caller's."""
        self.stopped = 0
        self._send("continue", behind)

    def resize(self, rows: int, columns: int) -> None:
        """The caller's terminal has a new size."""
        self._send("size", rows, columns)

    def pids(self) -> tuple[int, ...]:
        """Process ids on the host of everything now in the box, its init first; empty when it has ended."""
        with self._state:
            alive = self._ended is None
        return tree(self._pid) if self._pid and alive else ()

    def owners(self, source: tuple[str, int], target: tuple[str, int]) -> tuple[Owner, ...]:
        """The box's processes that hold the TCP connection between these two, as the box sees the addresses."""
        return owners(self._pid, source, target) if self.pids() else ()

    @property
    def pid(self) -> int:
        """Process id on the host of the box's init."""
        return self._pid

    def let_go(self) -> None:
        """Close the channel to the box: if it still runs, that ends it."""
        with self._state:
            if not self._reading:
                self._channel.close()

    def started(self) -> None:
        """Return when the command has been started. Raises BoxError when it never was."""
        self._until(lambda: self._pid > 0 or self._ended is not None, START_SECONDS)
        if not self._pid and self._ended is not None:
            raise BoxError(
                "box-start",
                f"the box was ended before its command began: {self._ended['ended_by']}",
                where=self.plan.call_id,
                remedy="run it again",
            )
        if not self._pid and self._fault is None:
            self.kill("not started in time")
            raise BoxError("box-start", f"the box did not start within {START_SECONDS:.0f} s", where=self.plan.call_id)

    def _send(self, *command: Any) -> None:
        data = marshal.dumps(command)
        with self.sending:
            try:
                self._channel.sendall(LENGTH.pack(len(data)) + data)
            except OSError:
                return  # it has ended: there is nothing to command

    def _until(self, reached: Callable[[], bool], timeout: float | None) -> None:
        """Read frames until a state is reached; one thread reads at a time, the others wait for what it finds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with self._state:
                while self._reading and not reached() and self._fault is None:
                    if not self._state.wait(_left(deadline)) and deadline is not None:
                        return
                if self._fault is not None:
                    raise self._fault.with_traceback(None)  # raised to each that waits: else it would keep their stacks
                if reached():
                    return
                self._reading = True
            try:
                frame = self._receive(_left(deadline))
            finally:
                with self._state:
                    self._reading = False
                    self._state.notify_all()
            if frame is None:
                return
            self._take(frame)

    def _receive(self, timeout: float | None) -> tuple[Any, ...] | None:
        self._channel.settimeout(timeout if timeout is None else max(timeout, 0.001))
        try:
            first = self._channel.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return None
        except OSError:
            first = b""
        if not first:
            return ("failed", "the launcher went away", 0)
        self._channel.settimeout(START_SECONDS)
        try:
            header, self._sockets, _flags, _from = socket.recv_fds(self._channel, LENGTH.size, 64)
            header += _exactly(self._channel, LENGTH.size - len(header))
            data = _exactly(self._channel, LENGTH.unpack(header)[0])
        except OSError:
            return ("failed", "the launcher went away in the middle of a word", 0)
        return tuple(marshal.loads(data))  # noqa: S302  written by our own launcher

    def _take(self, frame: tuple[Any, ...]) -> None:
        with self._state:
            match frame[0]:
                case "started":
                    self._pid = frame[1]
                case "done":
                    self._ended = frame[1]
                    self._channel.close()
                case "failed":
                    self._fault = lost(self.plan, frame[1]) if self._pid else explain(self.plan, frame[1], frame[2])
                    self._channel.close()
                case "stopped":
                    self.stopped = frame[1] if self._on_stop is not None else 0
                case word:
                    self._words.add(word)
            self._state.notify_all()
        if frame[0] == "seen" and self._on_seen is not None:
            self._on_seen(Observation(kind=frame[1], detail=frame[2], violation=True))
        if frame[0] == "network":
            self._connect(frame[1])
        if frame[0] == "stopped":
            (self._on_stop or self.go_on)()

    def _connect(self, names: list[str]) -> None:
        sockets, self._sockets = dict(zip(names, self._sockets, strict=True)), []
        try:
            if self._on_network is not None:
                self._on_network(sockets)
        except BaseException:
            self.kill("its network was not answered")
            raise
        finally:
            for descriptor in sockets.values():
                os.close(descriptor)
        self._send("connected")

    def _execution(self, end: dict[str, Any]) -> Execution:
        return Execution(
            call_id=self.plan.call_id,
            level=self.plan.required,
            controls=(
                *self._controls,
                *controls_in(self.plan, end["groups"], end["landlock"], logged=end["logged"], unseen=end["unseen"]),
                *granted_in(self.plan, end["shared"]),
                *decoys_in(self.plan, end["unwatched"]),
            ),
            exit=end["exit"],
            signal=end["signal"],
            ended_by=end["ended_by"],
            started=self._started_at,
            duration=Micros(end["duration"]),
            stdout_bytes=end["seen"][0],
            stderr_bytes=end["seen"][1],
            dropped_bytes=end["dropped"],
            observations=_observations(end),
            observations_dropped=end["unrecorded"],
        )


class Launcher:
    """The launcher process. Many boxes at once; ``start`` may be called from any thread."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", control: socket.socket, state_dir: str, backend: str
    ) -> None:
        self._process = process
        self._control = control
        self._lock = threading.Lock()
        self._boxes: weakref.WeakSet[Box] = weakref.WeakSet()
        self._look_at, self._unanswered = time.monotonic() + LOOK_SECONDS, 0
        self.state_dir = state_dir
        self.backend = backend

    @classmethod
    def spawn(cls, state_dir: str, *, backend: str = "native") -> "Launcher":
        """Start the process, early and once. Raises BoxError when it does not come up.

        ``state_dir`` is the supervisor's private folder; boxes keep nothing there but what their plans name.
        ``backend`` is what the probe found: ``native``, or ``bubblewrap`` where only that may make a user namespace.
        """
        prefix = [BUBBLEWRAP, *AS_MAKER] if backend == "bubblewrap" else []
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with_parent = "1" if threading.current_thread() is threading.main_thread() else "0"
        command = [*prefix, sys.executable, "-I", "-S", "-B", ENTRY, str(theirs.fileno()), with_parent]
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env={}, cwd="/", start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        ours.settimeout(READY_SECONDS)
        try:
            ready = ours.recv(16)
        except OSError:
            ready = b""
        if ready != b"ready":
            process.kill()
            process.wait()
            raise BoxError("box-launcher", "the launcher process did not start", where=ENTRY, remedy="ringfence doctor")
        ours.settimeout(None)
        return cls(process, ours, state_dir, backend)

    @property
    def pid(self) -> int:
        """Process id of the launcher."""
        return self._process.pid

    def start(
        self,
        plan: BoxPlan,
        *,
        stdin: int,
        stdout: int,
        stderr: int,
        controls: tuple[Control, ...] = (),
        on_seen: OnSeen | None = None,
        on_stop: Callable[[], None] | None = None,
        on_network: OnNetwork | None = None,
    ) -> Box:
        """Build a box and start the plan's command in it. The caller keeps its three descriptors.

        Returns when the command has been started. Raises BoxError when the box could not be built as planned; nothing
        ran then. ``on_seen`` is called at once for what may not wait for the end (a touched decoy), from a thread that
        is waiting, and so is ``on_stop`` when an interactive command stops itself (Ctrl-Z): it goes on at ``go_on``.
        Without ``on_stop`` it goes on at once. A plan with a captured network needs ``on_network``: it gets the sockets
        made in the box's network, by name, before the command starts, and must duplicate what it keeps; when it raises,
        the box is ended and the fault passed on.
        """
        if plan.network == "captured" and on_network is None:
            raise BoxError("box-network", "a box with a network needs somebody who answers on it", where=plan.call_id)
        if plan.layer is not None and not plan.layer.direct:
            prepare_middle(plan.layer)
        if plan.home_upper:
            _prepare_home(plan)
        order = marshal.dumps(compile_order(plan, root=os.geteuid() == 0, mapped=self.backend == "bubblewrap"))
        ours, theirs = socket.socketpair()
        box = Box(plan, ours, controls or controls_of(plan), on_seen=on_seen, on_stop=on_stop, on_network=on_network)
        with self._lock:
            self._boxes.add(box)
        try:
            with box.sending:  # whoever ends it meanwhile is heard after the order, and not instead of it
                with theirs, self._lock:
                    rights = array.array("i", [theirs.fileno(), stdin, stdout, stderr])
                    self._control.sendmsg([b"box"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                ours.settimeout(START_SECONDS)
                with contextlib.suppress(ConnectionError):  # it was refused meanwhile: why is there to be read
                    ours.sendall(LENGTH.pack(len(order)) + order)
        except OSError as fault:
            ours.close()
            raise BoxError(
                "box-launcher",
                f"the launcher is not there: {fault.strerror}",
                where=plan.call_id,
                remedy="ringfence stop, then try again",
            ) from fault
        try:
            box.started()
        except BaseException:
            box.let_go()
            raise
        return box

    def look(self) -> None:
        """To be called often: end a launcher that answers nothing any more, for no limit of its boxes is kept then.

        Looks are counted, not seconds: a host that slept, or a supervisor that did, misses a single one.
        """
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        with contextlib.suppress(OSError):
            while self._control.recv(16, socket.MSG_DONTWAIT):
                self._unanswered = 0
        if self._unanswered == LOOKS:
            print("the launcher stands still; it is ended, and its boxes with it", file=sys.stderr, flush=True)
            self._kill()
            return
        self._unanswered += 1
        with contextlib.suppress(OSError):  # it has ended, or reads nothing: no answer either way
            self._control.send(b"look", socket.MSG_DONTWAIT)

    def kill_all(self, reason: str) -> None:
        """End every running box and return when they are gone, or after some seconds; ``wait`` tells of each."""
        with self._lock:
            boxes = list(self._boxes)
        for box in boxes:
            box.kill(reason)
        for box in boxes:
            with contextlib.suppress(TimeoutError, BoxError):
                box.wait(START_SECONDS)

    def close(self) -> None:
        """End every box and the launcher; returns when the process is gone."""
        with self._lock:
            self._control.close()
        try:
            self._process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        for box in list(self._boxes):
            box.let_go()

    def _kill(self) -> None:
        """With the processes beside it, in its group: one that waits for their answer cannot be killed before they are gone."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        """The launcher itself."""
        return self

    def __exit__(self, *_unused: object) -> None:
        """As ``close``."""
        self.close()


def _prepare_home(plan: BoxPlan) -> None:
    """The folder of a home that is kept belongs to whom the box's user stands for, as the worktree does.

    It is theirs to open, whatever mode a box left it with: else no later mission of that agent had a home.
    """
    os.makedirs(plan.home_upper, mode=0o700, exist_ok=True)
    os.chmod(plan.home_upper, 0o700)
    if os.geteuid() == 0 and plan.layer is not None:
        info = os.lstat(plan.home_upper)
        if (info.st_uid, info.st_gid) != plan.layer.owner:
            os.chown(plan.home_upper, *plan.layer.owner, follow_symlinks=False)


def _observations(end: dict[str, Any]) -> tuple[Observation, ...]:
    seen = tuple(
        Observation(kind=kind, detail=detail, count=count, violation=kind in {"decoy", "floor"})
        for kind, detail, count in end["observed"]
    )
    if end["ended_by"].partition(",")[0] in {"runtime", "memory", "cpu", "disk", "processes"}:
        seen += (Observation(kind="limit", detail=end["ended_by"], violation=True),)
    # A record that is too long keeps its front.
    return tuple(sorted(seen, key=lambda one: (not one.violation, one.kind == "exec")))


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _exactly(channel: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = channel.recv(count - len(data))
        if not part:
            raise ConnectionError("the launcher went away")
        data += part
    return bytes(data)


__all__ = ["Box", "CallId", "Launcher"]
