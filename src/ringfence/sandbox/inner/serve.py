"""The launcher process: takes orders for boxes on one socket, forks once per box, ends when the supervisor does."""

import contextlib
import ctypes
import errno
import gc
import marshal
import os
import resource
import select
import signal
import socket
import struct
import sys
from typing import Any

from ringfence.sandbox.inner import dense, idmap, init, kernel, reaper, seccomp, terminal  # noqa: F401  loaded here so that no fork pays for it
from ringfence.sandbox.inner.answerer import Answerer
from ringfence.sandbox.inner.closer import Closer
from ringfence.sandbox.inner.groups import POLLING, Hierarchies
from ringfence.sandbox.inner.loop import HANGUP, READ, Loop
from ringfence.sandbox.inner.skeleton import Entry
from ringfence.sandbox.inner.spare import Kind, Spare
from ringfence.sandbox.inner.streams import close_all
from ringfence.sandbox.inner.ward import Ward
from ringfence.sandbox.inner.watch import Decoys
from ringfence.sandbox.inner.zygote import Zygote

ORDER_SECONDS = 10.0
SLICE = 100_000
"""Nanoseconds: a box's process waits for the launcher whenever it makes a file or starts a program."""
SLACK = 256 * 1024 * 1024
SPARE_PROCESSES = 64
MOST_FILES = 65_536
LARGEST_ORDER = 64 * 1024 * 1024


class Launcher:
    """All boxes of one supervisor."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.answerer, self.closer = Answerer(), Closer()
        self.loop = Loop()
        self.wards: set[Ward] = set()
        self.ended = False
        self.maps: dict[tuple[int, int, int, int], int] = {}
        self.hierarchies = Hierarchies()
        self.hierarchies.sweep()
        self.decoys = Decoys(self.loop)
        self.spare: Spare | None = None
        self.kind = Kind(map_user=os.geteuid() != 0, closed=True)
        self.folders: list[Entry] | None = None
        self.filter = seccomp.build(kernel.MACHINE)
        self.loop.watch(control.fileno(), READ, self._hear)
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.loop.watch(self.mounts, select.EPOLLPRI, self._mounted)

    def run(self) -> None:
        """Until the supervisor goes away. What is loaded by now is what every box begins with."""
        self.zygote = Zygote()
        self.loop.run()

    def _hear(self, _events: int) -> None:
        try:
            word, descriptors, _flags, _from = socket.recv_fds(self.control, 64, 4)
        except ConnectionError:
            word, descriptors = b"", []
        except OSError:
            return  # what waits is asked for again
        if not word:
            self.loop.running = False
        elif len(descriptors) == 4:
            self._start(descriptors)
        elif word == b"box":  # we may open no more, and got some of them
            if descriptors:
                _refuse(descriptors[0], OSError(errno.EMFILE, "", "its descriptors"))
            close_all(descriptors)
        else:
            with contextlib.suppress(OSError):  # asked whether we are at work, by somebody who takes no answer
                self.control.send(b"here", socket.MSG_DONTWAIT)

    def _start(self, descriptors: list[int]) -> None:
        channel, *streams = descriptors
        spare = None
        try:
            order = _read_order(channel)
            order["filter"] = self.filter
            if self.hierarchies.kind == POLLING:
                # Between two polls a process must not take all there is. Counts what is writable, not what is reserved,
                # so that runtimes which reserve much start all the same.
                order["rlimits"]["data"] = order["limits"]["memory"] * 4 + SLACK
            else:
                # The group refuses first, and counts what it refuses; this holds where it would not.
                order["rlimits"]["nproc"] += SPARE_PROCESSES
            order["idmap"] = self._map(order)
            spare = self._take_spare(Kind.of(order))
            self.wards.add(
                Ward(
                    self.loop,
                    channel,
                    order,
                    streams,
                    spare=spare,
                    decoys=self.decoys,
                    answerer=self.answerer,
                    closer=self.closer,
                    gone=self._gone,
                    refill=self._refill,
                    on_root=self._guess,
                )
            )
        except (ValueError, EOFError):
            close_all(descriptors)
        except OSError as fault:
            if spare is not None:
                spare.drop()
            _refuse(channel, fault)
            close_all(descriptors)

    def _mounted(self, _events: int) -> None:
        """Something was mounted or unmounted on the host: the box that waits has the mounts from before, and is of no use."""
        if self.spare is not None:
            self.loop.forget(self.spare.box.fileno())
            self.spare.drop()
            self.spare = None

    def _gone(self, ward: Ward) -> None:
        self.wards.discard(ward)
        self.ended = True

    def _take_spare(self, kind: Kind) -> Spare:
        """The one that waits, if it is of the right kind and still alive; else a new one."""
        spare, self.spare = self.spare, None
        if spare is not None:
            self.loop.forget(spare.box.fileno())
        if spare is not None and spare.kind == kind and spare.sound():
            return spare
        if spare is not None:
            spare.drop()
        self.kind = kind
        return Spare(self.zygote, self.hierarchies, self.decoys.descriptor, kind, None)

    def _refill(self) -> None:
        """Begin the next box, when the last one no longer needs the processor for its start. Once is enough."""
        if self.ended:
            self.ended = False
            gc.collect()  # what a box left holds itself in cycles; what was loaded before is frozen and not looked at
        if self.spare is None:
            try:
                spare = Spare(self.zygote, self.hierarchies, self.decoys.descriptor, self.kind, self.folders)
            except OSError:
                return  # the next order tries again, and tells
            self.spare = spare
            self.loop.watch(spare.box.fileno(), READ, lambda events: self._heard(spare, events))

    def _heard(self, spare: Spare, events: int) -> None:
        if events & READ:
            spare.hear(self.answerer)
        if events & HANGUP or spare.said or spare.answered is not None:
            self.loop.forget(spare.box.fileno())

    def _guess(self, folders: list[Entry]) -> None:
        """The next box's root will probably hold the same."""
        self.folders = folders

    def close(self) -> None:
        """End every box and leave nothing."""
        for ward in self.wards:
            ward.kill("the supervisor went away")
        self.answerer.close()  # first: nothing that waits for an answer could end
        for ward in self.wards:
            ward.abandon()
        if self.spare is not None:
            self.spare.drop()
        self.hierarchies.close()
        self.zygote.close()
        self.closer.close()

    def _map(self, order: dict[str, Any]) -> int:
        if order["map_user"] or order["owner"] is None:
            return -1
        key = (*order["owner"], *order["user"])
        if key not in self.maps:
            self.maps[key] = idmap.make(order["owner"], order["user"])
        return self.maps[key]


def _read_order(channel: int) -> dict[str, Any]:
    end = socket.socket(fileno=channel)
    try:
        end.settimeout(ORDER_SECONDS)
        length = struct.unpack("=I", _exactly(end, 4))[0]
        if length > LARGEST_ORDER:
            raise ValueError("order too long")
        order = marshal.loads(_exactly(end, length))  # noqa: S302  from our own supervisor over its private pair
    finally:
        end.detach()
    if not isinstance(order, dict):
        raise ValueError("not an order")  # noqa: TRY004  the caller treats all malformed orders alike
    return order


def _exactly(end: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = end.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _refuse(channel: int, fault: OSError) -> None:
    data = marshal.dumps(("failed", f"start: {fault.filename or fault.strerror}", fault.errno or 0))
    with contextlib.suppress(OSError):  # nobody waits for it any more
        os.write(channel, struct.pack("=I", len(data)) + data)


def _hide_arguments() -> None:
    """Our command line is what a box sees as that of its process 1; it would tell paths of the host."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, b"box-init", min(8, end - start))
    kernel.prctl(15, ctypes.addressof(ctypes.create_string_buffer(b"box-init")), 0, 0, 0)


def _make_room() -> None:
    """More descriptors than a box may have: see where a box's own limit is set."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MOST_FILES), hard))


def main(arguments: list[str]) -> int:
    """``arguments``: the control socket's descriptor, and 1 when the death of the starting thread means the end."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _hide_arguments()
    _make_room()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0, 0, 0, 0)
    if arguments[1] == "1":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    kernel.set_slice(SLICE)
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    launcher = Launcher(control)
    gc.collect()
    filled = dense.fill()
    gc.freeze()
    gc.disable()
    control.send(b"ready")
    launcher.run()
    launcher.close()
    filled.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
