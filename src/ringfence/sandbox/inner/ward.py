"""One box as the launcher sees it: fork, streams, limits, what is seen, and the end."""

import contextlib
import errno
import marshal
import os
import signal
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from ringfence.sandbox.inner.answerer import Answerer
from ringfence.sandbox.inner.closer import Closer
from ringfence.sandbox.inner.disk import DiskWatch
from ringfence.sandbox.inner.loop import HANGUP, READ, Loop, Timer
from ringfence.sandbox.inner.pump import Capped, Input, Outlet, Output, is_one
from ringfence.sandbox.inner.refusals import Refusals
from ringfence.sandbox.inner.skeleton import Entry, between
from ringfence.sandbox.inner.spare import Spare
from ringfence.sandbox.inner.standstill import Standstill
from ringfence.sandbox.inner.streams import close_all, pipes
from ringfence.sandbox.inner.terminal import Terminal
from ringfence.sandbox.inner.unread import Unread
from ringfence.sandbox.inner.watch import Calls, Decoys, Record

BUILD_SECONDS = 20.0
END_SECONDS = 10.0
"""A box that was killed and is still there then may wait for an answer about its root."""
FLUSH_SECONDS = 30.0
"""So long at least may a reader take for what lies ready when the command has ended."""
POLL_SECONDS = 0.025
"""Between two looks at the disk (one statvfs): a page cache takes gigabytes a second."""
GROUPS_EVERY = 2
"""Every which look also asks the control groups, or where there are none, the tree's memory."""
REFILL_SECONDS = 0.02
"""After a command's start, or at its end if that is sooner, the next box is begun: not while the command itself starts."""
MANY_SOCKETS = 64
UNREAD = "nobody read it in time"
LENGTH = struct.Struct("=I")


class Ward:
    """A box from order to end. ``gone`` is called once, when nothing of it is left."""

    def __init__(
        self,
        loop: Loop,
        channel: int,
        order: dict[str, Any],
        streams: list[int],
        *,
        spare: Spare,
        decoys: Decoys,
        answerer: Answerer,
        closer: Closer,
        gone: Callable[["Ward"], None],
        refill: Callable[[], None],
        on_root: Callable[[list[Entry]], None],
    ) -> None:
        """Raises OSError where nothing can be begun, and has taken nothing over then: what fails later ends the box in order."""
        self.loop, self.order, self.gone = loop, order, gone
        self.channel = channel
        loop.watch(spare.pidfd, READ, lambda _events: self._died())
        try:
            self.teller = Outlet(loop, os.dup(channel), lambda: None, lambda: self.kill("the supervisor went away"))
        except OSError:
            loop.forget(spare.pidfd)
            raise
        self.inbox = bytearray()
        self.record = Record()
        self.calls: Calls | None = None
        self.decoys, self.answerer, self.closer = decoys, answerer, closer
        self.refill, self.on_root = refill, on_root
        self.refusals: Refusals | None = None
        self.hidden = spare.answered
        self.unseen = self.shared = self.unwatched = ""
        self.logged = False
        self.output: Output | None = None
        self.terminal: Terminal | None = None
        self.input: Input | None = None
        self.ended_by = ""
        self.end: tuple[int | None, int | None, str] | None = None
        self.failure: tuple[str, int] | None = None
        self.started = self.dead = self.finished = False
        self.connected = False
        self.abi = 0
        self.timers: dict[str, Timer] = {}
        self.begun = time.monotonic()
        self.groups = spare.groups
        self.standstill = Standstill(
            self.groups, to_init=self._to_init, tell=self.tell, kill=self.kill, after=self._look
        )
        self.looks = 0
        self.disk = DiskWatch(order["watched"], order["limits"]["disk"])
        self.box, self.pid, self.pidfd, self.streams = spare.box, spare.pid, spare.pidfd, streams
        try:
            self._begin(spare)
        except OSError as fault:
            why = "its first process is gone" if isinstance(fault, ConnectionError) else "its streams"
            self._fail(f"begin: {fault.filename or why}", fault.errno or 0)

    def _begin(self, spare: Spare) -> None:
        self._after("late", BUILD_SECONDS, self._late)
        os.set_blocking(self.channel, False)
        self.loop.watch(self.channel, READ, self._obey)
        self.loop.watch(self.box.fileno(), READ, self._hear)
        if spare.said:
            self._take(marshal.loads(spare.said), [])  # noqa: S302  as in _receive
        if self.failure is None:
            self._connect(spare)
            self._go_on()
        else:
            self._end_it()

    def _connect(self, spare: Spare) -> None:
        """Hand over the order, with streams that lead to the caller's."""
        pty, streams = self.order["pty"], self.streams
        # Both in one pipe where the caller has both in one place: else nobody could tell which of two lines came first.
        together = not pty and is_one(*streams[1:])
        inward, *outward = pipes(2 if together else 3)
        inside = [inward[0], *(end for _, end in outward)]
        outside = [inward[1], *(end for end, _ in outward)]
        try:
            if self.order["owner"] is not None:  # by its name, as /dev/stdout, a pipe of root's opens for root alone
                for end in inside:
                    os.fchown(end, *self.order["user"])
            spare.order(self.order, (inside[0], inside[1], inside[-1]))
            unread = None if pty else Unread.of(streams[0], inside[0])
        except OSError:
            close_all(outside)
            raise
        finally:
            close_all(inside)
        if pty:
            close_all(outside)  # the terminal comes from inside the box
            return
        self.input = Input(self.loop, streams.pop(0), outside[0], unread)
        if together:
            os.close(streams.pop())
        outlets, self.streams = streams, []
        self.output = Output(self.loop, outside[1:], outlets, Capped(self.order["limits"]["output"]), self._finish)
        self.output.begin()
        if not self.order["behind"]:
            self.input.begin()

    def _go_on(self) -> None:
        """Let init start the command: at once, or with a network when somebody answers there."""
        if self.connected or self.order["network"] != "captured":
            try:
                self.box.send(b"g")
            except ConnectionError:
                return  # it has ended, and said why
            except OSError as fault:
                self._fail("start the command", fault.errno or 0)

    def tell(self, *message: Any) -> None:
        """One frame to the supervisor."""
        self.teller.write(_frame(message))

    def _hear(self, events: int) -> None:
        try:
            more = bool(events & READ) and self._receive()
        except OSError:
            return
        if not more:
            self.loop.forget(self.box.fileno())

    def _receive(self) -> bool:
        """Take one message of init's; whether more may come. Raises OSError where none waits."""
        data, descriptors, flags, _from = socket.recv_fds(self.box, 65536, MANY_SOCKETS)
        if flags & socket.MSG_CTRUNC:
            close_all(descriptors)
            self._fail("the launcher may open no more files", errno.EMFILE)
        elif data:
            try:
                # Written by our own init, which the box's programs cannot reach.
                self._take(marshal.loads(data), descriptors)  # noqa: S302
            except OSError as fault:
                self._fail(f"begin: {fault.filename or 'what its first process handed out'}", fault.errno or 0)
        return bool(data)

    def _take(self, message: tuple[Any, ...], descriptors: list[int]) -> None:
        match message[0]:
            case "sealed":
                init = (self.pid, self._ask if message[4] else None)
                rest = 2 + message[5]
                served = len(descriptors) > rest
                # Without a skeleton an ordinary user's box may write there, into its own private place.
                closed = served or self.order["owner"] is not None
                self.order["bare"] = between(self.order["steps"]) if closed else []
                self.calls = Calls(self.loop, descriptors[:2], self.record, self.order, init)
                self.decoys.add(message[1], self._touched)
                self.abi, self.unseen, self.shared, self.unwatched = message[2], message[3], message[6], message[7]
                for segments in descriptors[2:rest]:
                    self.groups.keep(segments)
                if self.hidden is not None and served:
                    self.hidden.hold(descriptors[rest], descriptors[rest + 1 :])
            case "root":
                if self.hidden is not None:
                    self.hidden.end(Record())  # it was begun for another box than this one
                self.hidden = self.answerer.begin(descriptors[0], message[1])
                self.on_root(message[1])
            case "network":
                self._network(message[1], descriptors)
            case "terminal":
                self._use_terminal(descriptors)
            case "started":
                self.started = True
                self.tell("started", self.pid)
                if self.terminal is not None and not self.order["behind"]:
                    self.terminal.input.begin()  # a key typed earlier would be the signal of a group that has ended
                self._arm()
                self.loop.after(REFILL_SECONDS, self.refill)
            case "failed":
                self.failure = (message[1], message[2])
            case "stopped":
                if self.terminal is not None:
                    self.terminal.stop()
                elif self.input is not None:
                    self.input.hold()
                self.tell("stopped", message[1])
            case "paused":
                self.standstill.found(still=message[1])
            case "awake":
                self.standstill.found(still=False)
            case "renamed":
                if self.calls is not None:
                    self.calls.renamed(message[1], message[2])
            case "end":
                self.end = (message[1], message[2], message[3])
                if not self.started:
                    self.started = True
                    self.tell("started", self.pid)
            case _:
                self.failure = ("init spoke out of turn", 0)

    def _network(self, names: list[str], descriptors: list[int]) -> None:
        """With a network the sockets go to the supervisor; without one we listen to what was refused."""
        self.logged = "nflog" in names
        if self.order["network"] == "captured":
            self.teller.send_with(descriptors, _frame(("network", names)))
        elif self.logged:
            self.refusals, descriptors = Refusals(self.loop, descriptors, self._refused), []
        close_all(descriptors)

    def _refused(self, kind: str, detail: str, count: int) -> None:
        if self.record.add(kind, detail, count) and kind == "floor":
            self.tell("seen", kind, detail)

    def _use_terminal(self, masters: list[int]) -> None:
        streams, self.streams = self.streams, []
        self.terminal = Terminal(self.loop, masters, streams, self._finish)
        if self.order["behind"]:
            self.terminal.stop()
        self.input, self.output = self.terminal.input, self.terminal.output

    def _touched(self, kind: str, name: str) -> None:
        if self.record.add(kind, name) and kind == "decoy":
            self.tell("seen", kind, name)

    def _arm(self) -> None:
        runtime = self.order["limits"]["runtime"]
        if runtime:
            self._after("runtime", runtime / 1000, self._time_up)
        self._after("poll", POLL_SECONDS, self._poll)

    def _after(self, name: str, seconds: float, handler: Callable[[], None]) -> None:
        """A timer that ends with the box: one of hours would keep all of it in memory for hours."""
        self.timers[name] = self.loop.after(seconds, handler)

    def _look(self, seconds: float, handler: Callable[[], None]) -> None:
        if not self.dead:
            self._after("standstill", seconds, handler)

    def _time_up(self) -> None:
        """The run time is over, but for what was spent paused: a person's thinking is not the command's time."""
        paused = self.standstill.take_seconds()
        if paused > 0.0 and not self.dead:
            self._after("runtime", paused, self._time_up)
        else:
            self.kill(f"runtime, {self.order['limits']['runtime']} ms")

    def _poll(self) -> None:
        if self.dead:
            return
        self.looks += 1
        reached = self.groups.reached(self.pid) if self.looks % GROUPS_EVERY == 0 else ""
        if not reached and self.disk.reached(self.pid):
            reached = f"disk, {self.order['limits']['disk'] // 1048576} MiB"
        if reached:
            self.kill(reached)
        self._after("poll", POLL_SECONDS, self._poll)

    def _late(self) -> None:
        if not self.started and not self.dead:
            self._fail(f"not built within {BUILD_SECONDS:.0f} s", 0)

    def _fail(self, what: str, number: int) -> None:
        """The box cannot be as it was ordered, and ends. The first cause stays."""
        self.failure = self.failure or (what, number)
        self._end_it()

    def kill(self, reason: str) -> None:
        """End the whole tree now. The first reason stays."""
        if self.dead:
            if self.output is not None and not self.finished:
                self.output.abandon()
            return
        self.ended_by = self.ended_by or reason
        self._end_it()

    def _end_it(self) -> None:
        try:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return
        if self.standstill.on:
            self.groups.thaw()
        if "end" not in self.timers:
            self._after("end", END_SECONDS, self._stuck)

    def _stuck(self) -> None:
        if not self.dead and self.hidden is not None:
            self.hidden.give_up()

    def _obey(self, events: int) -> None:
        try:
            data = os.read(self.channel, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or events & HANGUP:
            self.loop.forget(self.channel)
            self.kill("the supervisor went away")
            return
        self.inbox += data
        while len(self.inbox) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self.inbox)
            if len(self.inbox) < LENGTH.size + length:
                return
            frame = bytes(self.inbox[LENGTH.size : LENGTH.size + length])
            del self.inbox[: LENGTH.size + length]
            self._carry_out(marshal.loads(frame))  # noqa: S302  from our own supervisor over its private pair

    def _carry_out(self, command: tuple[Any, ...]) -> None:
        match command[0]:
            case "kill":
                self.kill(command[1])
            case "connected":
                self.connected = True
                self._go_on()
            case "pause":
                self.standstill.begin()
            case "resume":
                self.standstill.end()
            case "signal":
                self.standstill.send(b"signal %d" % command[1])
            case "continue":
                if not command[1]:
                    self._to_the_front()
                self.standstill.send(b"continue behind" if command[1] else b"continue")
            case "size":
                if self.terminal is not None:
                    self.terminal.resize(command[1], command[2])
            case _:
                self.kill("the supervisor asked for something unknown")

    def _to_the_front(self) -> None:
        """What is typed from now on is for the command."""
        if self.terminal is not None:
            self.terminal.go_on()
        elif self.input is not None:
            self.input.begin()

    def _to_init(self, order: bytes) -> None:
        try:
            self.box.send(order)
        except OSError:
            return  # it is ending

    def _ask(self, request: bytes) -> bool:
        """Hand a request to init, without waiting for room."""
        try:
            self.box.send(request, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def _died(self) -> None:
        """Init is gone, and with it, by the kernel's word, every process of the box."""
        self.loop.forget(self.pidfd)
        self.dead = True
        self._drain_messages()
        if self.hidden is not None:
            self.hidden.ask()
        self.usage = os.wait4(self.pid, 0)[2]
        self.loop.forget(self.box.fileno())
        if self.input is not None:
            self.input.end()
        self.decoys.remove(self._touched)
        for seen in (self.calls, self.refusals):
            if seen is not None:
                seen.drain()
        if self.hidden is not None:
            self.unseen = self.hidden.end(self.record) or self.unseen
        if self.terminal is not None:
            self.terminal.close()
        self.duration = time.monotonic() - self.begun
        if "runtime" in self.timers:
            self.loop.cancel(self.timers["runtime"])  # its reader may take longer
        if self.output is not None:
            self.output.drain()
            seconds = flush_seconds(self.order["limits"]["runtime"] / 1000, self.duration)
            if seconds is not None:
                self._after("flush", seconds, self._flush_over)
        close_all(self.streams)
        self._finish()

    def _drain_messages(self) -> None:
        self.box.setblocking(False)
        with contextlib.suppress(OSError):
            while self._receive():
                pass

    def _flush_over(self) -> None:
        if not self.finished and self.output is not None:
            self.output.fault = self.output.fault or UNREAD
            self.output.abandon()

    def abandon(self) -> None:
        """The launcher itself is ending: wait for the tree's end and leave no group behind."""
        if not self.dead:
            os.waitpid(self.pid, 0)
        self.groups.remove()

    def _finish(self) -> None:
        """The box is gone and its output handed over."""
        if not self.dead or self.finished or (self.output is not None and not self.output.ended):
            return
        self.finished = True
        self._name_signal()
        for held, count in self.groups.notes().items():
            self.record.counts["limit", held] = count
            if held.startswith("memory") and (self.end is None or self.end[1] == signal.SIGKILL):
                self.ended_by = self.ended_by or held
        self._report()
        # What follows takes the kernel its time; nobody waits for it.
        for seen in (self.calls, self.refusals):
            if seen is not None:
                seen.close()
        if self.hidden is not None:
            self.closer.take(self.hidden.left())
            self.hidden = None
        self.groups.remove()
        self.disk.close()
        if self.output is not None:
            self.output.close()
        self.box.close()
        os.close(self.pidfd)
        self.loop.forget(self.channel)
        os.close(self.channel)
        for timer in self.timers.values():
            self.loop.cancel(timer)
        self.loop.after(0, self.refill)
        self.gone(self)

    def _name_signal(self) -> None:
        """The limit for which the kernel itself ended the command, before anybody looked."""
        number, limits = self.end[1] if self.end is not None else None, self.order["limits"]
        if number in {signal.SIGXCPU, signal.SIGKILL} and self._cpu_millis() >= limits["cpu"]:
            self.ended_by = self.ended_by or f"cpu, {limits['cpu']} ms"
        if number == signal.SIGXFSZ:
            self.record.counts["limit", f"file size, {self.order['rlimits']['fsize'] // 1048576} MiB"] = 1

    def _cpu_millis(self) -> int:
        """Of process 1 and of all that it has waited for."""
        return int((self.usage.ru_utime + self.usage.ru_stime) * 1000)

    def _report(self) -> None:
        if self.failure is not None or (self.end is None and not self.ended_by):
            what, number = self.failure or ("it ended without a word", 0)
            if not self.started:
                self.tell("failed", what, number)
                self.teller.close_when_written()
                return
            # The command may have brought this about, and then least of all is what it did before to be lost.
            self.ended_by = self.ended_by or f"fault of the box's first process: {what}"
        if self.output is not None and self.output.fault:
            self.ended_by = self.ended_by or f"output could not be written: {self.output.fault}"
        code, by_signal, note = self.end or (None, int(signal.SIGKILL), "")
        capped = self.output.capped if self.output is not None else None
        self.tell("done", {
            "exit": code, "signal": by_signal, "note": note, "ended_by": self.ended_by,
            "duration": int(self.duration * 1_000_000),
            "seen": capped.seen if capped else [0, 0], "dropped": sum(capped.dropped) if capped else 0,
            "observed": [(kind, detail, count) for (kind, detail), count in self.record.counts.items()],
            "unrecorded": self.record.dropped, "groups": self.groups.kind, "landlock": self.abi, "logged": self.logged,
            "unseen": self.unseen, "shared": self.shared, "unwatched": self.unwatched,
            "cpu": self._cpu_millis(),
        })  # fmt: skip
        self.teller.close_when_written()


def flush_seconds(runtime: float, spent: float) -> float | None:
    """For how long a reader of the output (a pager, say) is waited for; None without end, as ``runtime`` 0 is.

    As long as the command might have run: without us it would wait for that reader in its own write.
    """
    return max(FLUSH_SECONDS, runtime - spent) if runtime else None


def _frame(message: tuple[Any, ...]) -> bytes:
    data = marshal.dumps(message)
    return LENGTH.pack(len(data)) + data
