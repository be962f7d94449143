"""A small scheduler: one thread, edge-triggered epoll, coroutines that wait for a socket, an answer or a moment.

The worker's hot path is short-lived connections, thousands a second, each a handful of waits; every descriptor is
registered once and never modified. Operations are tried first and waited for only when they would block.
"""

import collections
import contextlib
import heapq
import select
import socket
import sys
import time
import traceback
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

TIMERS = 4096  # kept before those that are over are dropped
IN, OUT = select.EPOLLIN, select.EPOLLOUT
ANY_IN = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
ANY_OUT = select.EPOLLOUT | select.EPOLLHUP | select.EPOLLERR


class TimedOut(Exception):
    """The moment came before what was waited for."""


class Task:
    """One running coroutine. ``serial`` tells a timer whether the wait it belongs to is still on."""

    __slots__ = ("coro", "done", "on_done", "serial")

    def __init__(self, coro: Coroutine[Any, Any, None]) -> None:
        self.coro = coro
        self.serial = 0
        self.done = False
        self.on_done: list[Callable[[], None]] = []


class Stream:
    """A non-blocking socket known to the loop. At most one task waits to read and one to write."""

    __slots__ = ("closed", "fd", "loop", "reader", "sock", "writer")

    def __init__(self, loop: "Loop", sock: socket.socket) -> None:
        self.loop, self.sock = loop, sock
        self.fd = sock.fileno()
        self.reader: Task | None = None
        self.writer: Task | None = None
        self.closed = False
        sock.setblocking(False)
        loop.register(self)

    def close(self) -> None:
        """Close the descriptor and wake whoever waits; a second call does nothing."""
        if not self.closed:
            self.closed = True
            self.loop.forget(self)
            self.sock.close()
            for task in (self.reader, self.writer):
                if task is not None:
                    self.loop.ready(task)

    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The other side's address and port, and ours; nothing where it is gone already: its try is told all the same."""
        try:
            peer, own = self.sock.getpeername(), self.sock.getsockname()
        except OSError:
            return ("", 0), ("", 0)
        return (str(peer[0]), int(peer[1])), (str(own[0]), int(own[1]))

    def end_writing(self) -> None:
        """Say that nothing more comes; reading goes on."""
        self.sock.shutdown(socket.SHUT_WR)

    async def recv(self, count: int, deadline: float | None = None) -> bytes:
        """Up to ``count`` bytes, empty at the end of the stream. Raises OSError or TimedOut."""
        while True:
            try:
                return self.sock.recv(count)
            except BlockingIOError:
                await self.readable(deadline)

    async def send_all(self, data: bytes | memoryview, deadline: float | None = None) -> None:
        """All of the bytes. Raises OSError or TimedOut."""
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view) :]
            except BlockingIOError:
                await self.writable(deadline)

    async def readable(self, deadline: float | None = None) -> None:
        """Wait until there may be something to read."""
        loop = self.loop
        self.reader = loop.current
        try:
            await loop.pause(deadline)
        finally:
            self.reader = None
        if self.closed:
            raise ConnectionAbortedError("closed while waiting")

    async def writable(self, deadline: float | None = None) -> None:
        """Wait until there may be room to write."""
        loop = self.loop
        self.writer = loop.current
        try:
            await loop.pause(deadline)
        finally:
            self.writer = None
        if self.closed:
            raise ConnectionAbortedError("closed while waiting")


async def first_to_speak(one: Stream, other: Stream, deadline: float) -> Stream:
    """The one of two streams that has bytes, or its end, to be read; ``one`` where both have. Raises OSError or TimedOut."""
    while True:
        for stream in (one, other):
            with contextlib.suppress(BlockingIOError):
                stream.sock.recv(1, socket.MSG_PEEK)
                return stream
        one.reader = other.reader = one.loop.current
        try:
            await one.loop.pause(deadline)
        finally:
            one.reader = other.reader = None
        if one.closed or other.closed:
            raise ConnectionAbortedError("closed while waiting")


class Answer:
    """A value that one task waits for and another part of the program delivers."""

    __slots__ = ("loop", "task", "value")

    def __init__(self, loop: "Loop") -> None:
        self.loop = loop
        self.task: Task | None = None
        self.value: Any = None

    def deliver(self, value: Any) -> None:
        """Hand over the value and wake the waiter."""
        self.value = value
        if self.task is not None:
            self.loop.ready(self.task)

    async def wait(self, deadline: float | None) -> Any:
        """The value. Raises TimedOut."""
        while self.value is None:
            self.task = self.loop.current
            try:
                await self.loop.pause(deadline)
            finally:
                self.task = None
        return self.value


class Loop:
    """Runs tasks until ``stop``."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.streams: dict[int, Stream] = {}
        self.timers: list[tuple[float, int, Task, int]] = []
        self.queue: collections.deque[tuple[Task, BaseException | None]] = collections.deque()
        self.running = True
        self._busy: Callable[[], bool] | None = None
        self._end_by = 0.0
        idle = _nothing()
        idle.close()
        self.current: Task = Task(idle)
        self.now = time.monotonic()
        self._count = 0
        self._crowded = TIMERS

    def register(self, stream: Stream) -> None:
        """Watch a stream for both directions, once."""
        self.streams[stream.fd] = stream
        self.epoll.register(stream.fd, IN | OUT | select.EPOLLRDHUP | select.EPOLLET)

    def forget(self, stream: Stream) -> None:
        """Stop watching; the descriptor is closed right after."""
        if self.streams.get(stream.fd) is stream:
            del self.streams[stream.fd]
            with contextlib.suppress(OSError):
                self.epoll.unregister(stream.fd)

    def spawn(self, coro: Coroutine[Any, Any, None]) -> Task:
        """Start a task; its first step runs in this round."""
        task = Task(coro)
        self.queue.append((task, None))
        return task

    def ready(self, task: Task, error: BaseException | None = None) -> None:
        """Let a paused task go on."""
        task.serial += 1
        self.queue.append((task, error))

    async def pause(self, deadline: float | None = None) -> None:
        """Give way until ``ready`` or the deadline (monotonic seconds): then TimedOut."""
        task = self.current
        task.serial += 1
        if deadline is not None:
            self._count += 1
            heapq.heappush(self.timers, (deadline, self._count, task, task.serial))
            if len(self.timers) > self._crowded:
                self._compact()
        await _give_way()

    async def breathe(self) -> None:
        """Let every other task that can go on do so first."""
        self.ready(self.current)
        await _give_way()

    async def sleep(self, seconds: float) -> None:
        """Pause for a time."""
        with contextlib.suppress(TimedOut):
            await self.pause(time.monotonic() + seconds)

    def run(self) -> None:
        """Run until ``stop``."""
        while self.running:
            self._drain()
            if not self.running:
                return
            events = self.epoll.poll(self._patience())
            self.now = time.monotonic()
            for fd, mask in events:
                stream = self.streams.get(fd)
                if stream is None:
                    continue
                if mask & ANY_IN and stream.reader is not None:
                    self._step(stream.reader, None)
                if mask & ANY_OUT and stream.writer is not None:
                    self._step(stream.writer, None)
            self._expire()
            if self._busy is not None and self._is_over(quiet=not events):
                return

    def wind_down(self, busy: Callable[[], bool], seconds: float) -> None:
        """End ``run`` once nothing waits to be served and nobody is ``busy``, so many seconds from now at the latest."""
        self._busy, self._end_by = busy, time.monotonic() + seconds

    def _is_over(self, *, quiet: bool) -> bool:
        if time.monotonic() >= self._end_by:
            return True
        return quiet and not self.queue and self._busy is not None and not self._busy()

    def stop(self) -> None:
        """End ``run`` after this round."""
        self.running = False

    def _patience(self) -> float:
        if self.queue or (self._busy is not None and not self._busy()):
            return 0
        while self.timers and self.timers[0][2].serial != self.timers[0][3]:
            heapq.heappop(self.timers)
        due = self.timers[0][0] if self.timers else time.monotonic() + 5.0
        return max(0.0, min(due, self._end_by or due) - time.monotonic())

    def _compact(self) -> None:
        """Drop timers of waits that are over: most waits end long before their deadline."""
        self.timers = [timer for timer in self.timers if timer[2].serial == timer[3]]
        heapq.heapify(self.timers)
        self._crowded = max(TIMERS, 2 * len(self.timers))

    def _expire(self) -> None:
        while self.timers and self.timers[0][0] <= self.now:
            _when, _count, task, serial = heapq.heappop(self.timers)
            if task.serial == serial and not task.done:
                self._step(task, TimedOut())

    def _drain(self) -> None:
        for _ in range(len(self.queue)):
            task, error = self.queue.popleft()
            if not task.done:
                self._step(task, error)

    def _step(self, task: Task, error: BaseException | None) -> None:
        before, self.current = self.current, task
        task.serial += 1
        try:
            if error is None:
                task.coro.send(None)
            else:
                task.coro.throw(error)
        except StopIteration:
            self._finish(task)
        except (OSError, TimedOut):
            self._finish(task)
        except Exception:  # noqa: BLE001 - one connection's fault ends that connection; the others go on
            traceback.print_exc(file=sys.stderr)
            self._finish(task)
        finally:
            self.current = before

    def _finish(self, task: Task) -> None:
        task.done = True
        for call in task.on_done:
            call()


@types.coroutine
def _give_way() -> Generator[None, None, None]:
    yield


async def _nothing() -> None:
    """The task that runs when none does."""
