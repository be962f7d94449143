"""Streams between the box and the caller: live up to three quarters of the cap, the last quarter kept, the rest counted.

The caller's descriptors never enter the box: a file given as stdin could be opened for writing again through /proc,
and a terminal could be typed into. Nothing here blocks: a slow reader only stops its own box.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.loop import HANGUP, READ, WRITE, Loop
from ringfence.sandbox.inner.screen import Screen
from ringfence.sandbox.inner.unread import Unread

CHUNK = 65536
PENDING = 262144
NO_READER = frozenset({errno.EPIPE, errno.ECONNRESET})
TERMINAL_NUMBER = 0x80045432
"""TIOCGDEV."""
KCMP_FILE = 0


class Outlet:
    """One descriptor of the caller, written without blocking it or us."""

    def __init__(self, loop: Loop, descriptor: int, on_room: Callable[[], None], on_broken: Callable[[], None]) -> None:
        self.loop, self.on_room, self.on_broken = loop, on_room, on_broken
        is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        self.end = socket.socket(fileno=descriptor) if is_socket else None
        self.descriptor = descriptor if is_socket else reopened(descriptor, os.O_WRONLY)
        self.pending: deque[memoryview] = deque()
        self.size = 0
        self.broken = self.closing = self.waits = False
        self.error = 0
        """The errno by which it broke."""
        self.heeds = False

    def heed(self) -> None:
        """Hear of a reader who leaves, also while nothing is written: what a cap drops would never meet them."""
        self.heeds = self.loop.watch(self.descriptor, 0, self._left)

    def _left(self, _events: int) -> None:
        self.loop.forget(self.descriptor)
        if not self.broken:
            self._break(errno.EPIPE)

    def _break(self, error: int) -> None:
        self.broken, self.size, self.error = True, 0, error
        self.pending.clear()
        self.loop.forget(self.descriptor)
        if self.closing:
            self._let_go()
        else:
            self.on_broken()

    def write(self, data: bytes) -> None:
        """Hand over; what does not fit now is written when there is room."""
        if self.broken or not data:
            return
        self.pending.append(memoryview(data))
        self.size += len(data)
        self._flush(0)

    def _flush(self, _events: int) -> None:
        while self.pending:
            try:
                done = self._put(self.pending[0])
            except BlockingIOError:
                if not self.loop.watch(self.descriptor, WRITE, self._flush):
                    continue
                self.waits = True
                return
            except OSError as fault:
                self._break(fault.errno or errno.EIO)
                return
            self.size -= done
            if done == len(self.pending[0]):
                self.pending.popleft()
            else:
                self.pending[0] = self.pending[0][done:]
        if self.closing:
            self.close()
            return
        if self.waits:
            self.waits = False
            if self.heeds:
                self.heed()
            else:
                self.loop.forget(self.descriptor)
        self.on_room()

    def _put(self, data: memoryview) -> int:
        if self.end is not None:
            return self.end.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return os.write(self.descriptor, data)

    def send_with(self, descriptors: list[int], data: bytes) -> None:
        """Send descriptors along, over a socket on which nothing waits yet."""
        try:
            if self.end is not None:
                socket.send_fds(self.end, [data], descriptors)
        except OSError:
            self.on_broken()

    def close_when_written(self) -> None:
        """Let go as soon as all is handed over, or nobody takes it."""
        self.closing = True
        if self.pending:
            return
        self.close()

    def close(self) -> None:
        """Let go, written or not."""
        self.loop.forget(self.descriptor)
        self._let_go()

    def _let_go(self) -> None:
        if self.end is not None:
            self.end.close()
        else:
            os.close(self.descriptor)


def reopened(descriptor: int, access: int) -> int:
    """The same pipe or terminal, opened anew without blocking, so that the caller's own descriptor keeps its flags."""
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        try:
            fresh = os.open(f"/proc/self/fd/{descriptor}", access | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return descriptor
        os.close(descriptor)
        return fresh
    return descriptor


def _terminal(descriptor: int) -> int:
    """The number of the terminal behind it, also behind ``/dev/tty``; -1 for anything else."""
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, TERMINAL_NUMBER, bytes(4)), sys.byteorder)
    except OSError:
        return os.fstat(descriptor).st_rdev if os.isatty(descriptor) else -1


def is_one(first: int, second: int) -> bool:
    """Whether both lead to one opening of a file, or to one pipe or terminal: there, what is written to either keeps its order.

    At a terminal two streams would take turns in the middle of a sequence: two harmless halves, one harmful whole.
    """
    one, other = os.fstat(first), os.fstat(second)
    if stat.S_ISREG(one.st_mode):
        pid = os.getpid()
        with contextlib.suppress(OSError):  # a host that forbids this question
            return kernel.kcmp(pid, pid, KCMP_FILE, first, second) == 0
        return False
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino) or -1 != _terminal(first) == _terminal(second)


class Capped:
    """stdout and stderr of one box under one cap."""

    def __init__(self, cap: int) -> None:
        self.head_left = cap - cap // 4
        self.tail_room = cap // 4
        self.tail: deque[tuple[int, bytes]] = deque()
        self.tail_size = 0
        self.dropped = [0, 0]
        self.seen = [0, 0]

    def take(self, which: int, data: bytes) -> bytes:
        """What of this chunk is to be passed on now; the rest is kept or counted."""
        self.seen[which] += len(data)
        live, rest = data[: self.head_left], data[self.head_left :]
        self.head_left -= len(live)
        if rest:
            self.tail.append((which, rest))
            self.tail_size += len(rest)
            while self.tail_size > self.tail_room:
                self._trim()
        return live

    def _trim(self) -> None:
        which, oldest = self.tail.popleft()
        surplus = self.tail_size - self.tail_room
        if len(oldest) > surplus:
            self.tail.appendleft((which, oldest[surplus:]))
            oldest = oldest[:surplus]
        self.tail_size -= len(oldest)
        self.dropped[which] += len(oldest)

    def finish(self) -> list[tuple[int, bytes]]:
        """The kept end, after one line per stream that lost bytes saying how many."""
        ending = [
            (which, b"\n[ringfence: %d bytes of output not shown]\n" % lost)
            for which, lost in enumerate(self.dropped)
            if lost
        ]
        return ending + list(self.tail)


class Sieve(Protocol):
    """What stands between the box's output and the caller: the cap, or a terminal's filter."""

    seen: list[int]
    dropped: list[int]

    def take(self, which: int, data: bytes) -> bytes:
        """What of this chunk is to be passed on now."""
        ...

    def finish(self) -> list[tuple[int, bytes]]:
        """What is to follow at the end, by stream."""
        ...


class Output:
    """The box's output, read to its end and handed on through a sieve."""

    def __init__(
        self, loop: Loop, pipes: list[int], outlets: list[int], sieve: Sieve, on_end: Callable[[], None]
    ) -> None:
        self.loop, self.on_end, self.capped = loop, on_end, sieve
        self.pipes: list[int | None] = list(pipes)
        self.ending = self.said = self.ended = False
        self.fault = ""
        """Why what the box said could not be handed on, where that was no reader who had enough."""
        # A stream that ends at a person's terminal is filtered even where the box has no terminal of its own.
        capped = isinstance(sieve, Capped)
        self.screens = [Screen(keyboard=False) if capped and os.isatty(fd) else None for fd in outlets]
        self.outlets = [Outlet(loop, fd, self._room, partial(self._broken, which)) for which, fd in enumerate(outlets)]
        for pipe in pipes:
            os.set_blocking(pipe, False)

    def begin(self) -> None:
        """Hand on from now on."""
        for outlet in self.outlets:
            outlet.heed()
        for which in range(len(self.pipes)):
            self._listen(which)

    def _listen(self, which: int) -> None:
        pipe = self.pipes[which]
        if pipe is not None and self.outlets[which].size <= PENDING:
            self.loop.watch(pipe, READ, lambda _events: self._read(which))

    def _read(self, which: int) -> None:
        pipe = self.pipes[which]
        if pipe is None:
            return
        try:
            data = os.read(pipe, CHUNK)
        except BlockingIOError:
            return
        except OSError as fault:
            data = b""
            if fault.errno != errno.EIO:  # as a terminal says whose other side is closed
                self.fault = self.fault or os.strerror(fault.errno or errno.EIO)
        if not data:
            self._close(which)
            return
        self._show(which, self.capped.take(which, data))
        if self.outlets[which].size > PENDING and self.pipes[which] is not None:
            self.loop.forget(pipe)

    def _show(self, which: int, data: bytes) -> None:
        screen = self.screens[which]
        if screen is not None:
            data = screen.feed(data)
            screen.answer = b""  # there is no terminal in the box that could be answered
        self.outlets[which].write(data)

    def say(self, data: bytes) -> None:
        """Show something that is not the box's."""
        self.outlets[0].write(data)

    def _room(self) -> None:
        for which in range(len(self.pipes)):
            self._listen(which)
        self._check()

    def _broken(self, which: int) -> None:
        """Nobody takes more: so the box's next write gets SIGPIPE, as without a fence where the caller reads no more.

        A full disk would have failed that write with its own errno: that must be told, for the box may have written all by now.
        """
        outlet = self.outlets[which]
        if outlet.error not in NO_READER and not os.isatty(outlet.descriptor):
            self.fault = os.strerror(outlet.error)
        self._close(which)

    def _close(self, which: int) -> None:
        pipe, self.pipes[which] = self.pipes[which], None
        if pipe is not None:
            self.loop.forget(pipe)
            os.close(pipe)
        self._check()

    def drain(self) -> None:
        """The box is gone: what still lies in the pipes is taken, and their end comes by itself."""
        for which in range(len(self.pipes)):
            self._listen(which)

    def _check(self) -> None:
        if any(pipe is not None for pipe in self.pipes):
            return
        if not self.ending:
            self.ending = True
            self._show_the_rest()
            self.said = True
        if self.said and not self.ended and not any(outlet.size for outlet in self.outlets):
            self.ended = True
            self.on_end()

    def _show_the_rest(self) -> None:
        """What was kept back. Each piece that is taken at once leads to ``_check`` again, before the next one is written."""
        for screen in self.screens:
            if screen is not None:
                screen.cut()
        for which, data in self.capped.finish():
            self._show(which, data)
        for which, screen in enumerate(self.screens):
            if screen is not None:
                self.outlets[which].write(screen.rest())

    def abandon(self) -> None:
        """Give up on a caller that does not read: what was not handed over counts as dropped."""
        for which, outlet in enumerate(self.outlets):
            self.capped.dropped[which] += outlet.size
            outlet.broken, outlet.size = True, 0
            outlet.pending.clear()
            self._close(which)
        self._check()

    def close(self) -> None:
        """Let go of everything."""
        for which in range(len(self.pipes)):
            pipe, self.pipes[which] = self.pipes[which], None
            if pipe is not None:
                self.loop.forget(pipe)
                os.close(pipe)
        for outlet in self.outlets:
            outlet.close()


class Input:
    """The caller's stdin, copied into the box's pipe as it is read there, from ``begin`` on."""

    def __init__(self, loop: Loop, source: int, pipe: int, unread: Unread | None = None) -> None:
        self.loop, self.unread = loop, unread
        self.source: int | None = reopened(source, os.O_RDONLY)
        self.pipe: int | None = pipe
        self.data = b""
        self.held = False
        os.set_blocking(pipe, False)

    def begin(self) -> None:
        """Copy from now on."""
        self.held = False
        self._want()

    def hold(self) -> None:
        """Leave to others what comes from now on, until ``begin``."""
        self.held = True
        if self.source is not None:
            self.loop.forget(self.source)

    def _want(self) -> None:
        if self.held or self.data:
            return
        if self.source is not None and not self.loop.watch(self.source, READ, self._read) and self.pipe is not None:
            self.loop.watch(self.pipe, WRITE, self._write)  # a regular file: read whenever the box takes more

    def _read(self, _events: int) -> None:
        if self.source is None:
            return
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return
        except OSError as fault:
            data = b""
            if fault.errno not in {errno.EIO, errno.EISDIR}:
                self.close()
                return
        self.loop.forget(self.source)
        if not data:
            self.close()
            return
        self.data = data
        self._write(WRITE)

    def _write(self, events: int) -> None:
        if self.pipe is None:
            return
        if events & HANGUP:
            self.close()
            return
        if not self.data:
            self._read(READ)
            return
        try:
            done = os.write(self.pipe, self.data)
        except BlockingIOError:
            self.loop.watch(self.pipe, WRITE, self._write)
            return
        except OSError:
            self.close()
            return
        self.data = self.data[done:]
        if self.data:
            self.loop.watch(self.pipe, WRITE, self._write)
        else:
            self.loop.forget(self.pipe)
            self._want()

    def end(self) -> None:
        """The box is gone: nothing more is copied, and what it left is given back."""
        self.close()
        unread, self.unread = self.unread, None
        if unread is not None:
            unread.give_back(len(self.data))

    def close(self) -> None:
        """End of input for the box."""
        for name in ("source", "pipe"):
            descriptor = getattr(self, name)
            if descriptor is not None:
                setattr(self, name, None)
                self.loop.forget(descriptor)
                os.close(descriptor)
