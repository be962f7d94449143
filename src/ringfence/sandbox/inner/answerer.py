"""The process that answers for the roots of all boxes. The launcher only hands over, and asks what was seen when a box has ended.

Not the launcher itself: it looks up paths in a box's view, and makes boxes, and must not wait then for its own answer.
"""

import contextlib
import marshal
import os
import socket
from typing import Any

from ringfence.sandbox.inner.beside import Beside
from ringfence.sandbox.inner.hidden import Hidden
from ringfence.sandbox.inner.loop import READ, Loop
from ringfence.sandbox.inner.skeleton import Entry
from ringfence.sandbox.inner.watch import Record

LONGEST = 1 << 18
ANSWER_SECONDS = 10.0
GONE = "the process that answers for the root is gone"


class Answered:
    """One box's root, as the launcher holds it."""

    def __init__(self, answerer: "Answerer", number: int) -> None:
        self.answerer, self.number, self.by = answerer, number, answerer.pid
        self.held: list[int] = []
        self.asked = False

    def alive(self) -> bool:
        """Whether the process that answers for this root still does."""
        return self.by == self.answerer.pid and self.answerer.alive()

    def hold(self, processes: int, mounts: list[int]) -> None:
        """``processes``: the box's own /proc, through which a caller is found. All is kept until the end."""
        self.held = [processes, *mounts]
        self.answerer.tell(("hold", self.number), [processes])

    def ask(self) -> None:
        """The box has ended: have what was seen told, which ``end`` then takes."""
        self.asked = self.answerer.tell(("end", self.number), [])

    def end(self, record: Record) -> str:
        """Add what was seen to the record; the box has ended. Gives why nothing is known, empty when all is."""
        if not self.asked:
            self.ask()
        return self.answerer.end(self.number, record) if self.asked and self.by == self.answerer.pid else GONE

    def give_up(self) -> None:
        """The box does not end: whatever waits for an answer is freed, which nothing else can do."""
        if self.alive():
            self.answerer.again()

    def left(self) -> list[int]:
        """What is still to be closed, for which the kernel may take its time."""
        left, self.held = self.held, []
        return left


class Answerer:
    """The process. Raises OSError where none can be begun."""

    def __init__(self) -> None:
        self.count = 0
        self._start()

    def _start(self) -> None:
        self.process = Beside(_serve)
        self.process.socket.settimeout(ANSWER_SECONDS)

    def again(self) -> None:
        """For the boxes from now on; those of the one that is gone say that they went unseen.

        Where none can be begun, their roots are answered for by nobody, and the next one tries again.
        """
        self.close()
        with contextlib.suppress(OSError):
            self._start()

    @property
    def pid(self) -> int:
        """Its process id; another one after it was begun anew."""
        return self.process.pid

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.alive()

    def begin(self, device: int, made: list[Entry]) -> Answered:
        """Answer for this root from now on; ``device`` is handed over. Without an answerer the kernel refuses every request."""
        self.count += 1
        if not self.tell(("serve", self.count, made), [device]):
            self.again()
            self.tell(("serve", self.count, made), [device])
        os.close(device)
        return Answered(self, self.count)

    def tell(self, message: tuple[Any, ...], descriptors: list[int]) -> bool:
        """Whether it could be told."""
        try:
            socket.send_fds(self.process.socket, [marshal.dumps(message)], descriptors)
        except OSError:
            return False
        return True

    def end(self, number: int, record: Record) -> str:
        """As ``Answered.end``, of a box that was asked about."""
        while True:
            try:
                data, papers, _flags, _from = socket.recv_fds(self.process.socket, 64, 1)
            except TimeoutError:
                self.again()  # it stands still, and with it whatever asks for a root
                return GONE
            except OSError:
                return GONE
            if not data or not papers:
                return GONE
            try:
                seen = _read(papers[0])
            except (OSError, EOFError, ValueError):
                return GONE
            if int(data) == number:
                break
        for kind, detail, count in seen["counts"]:
            record.add(kind, detail, count)
        record.dropped += seen["dropped"]
        return "" if seen["served"] else GONE

    def close(self) -> None:
        """End it; returns when it is gone."""
        self.process.close()


def _read(paper: int) -> dict:  # type: ignore[type-arg]
    data = bytearray()
    try:
        while part := os.pread(paper, 1 << 20, len(data)):
            data += part
    finally:
        os.close(paper)
    return dict(marshal.loads(data))  # noqa: S302  written by our own process


class _Service:
    """What the process does."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel, self.loop = channel, Loop()
        self.roots: dict[int, Hidden] = {}
        self.loop.watch(channel.fileno(), READ, self._hear)

    def _hear(self, _events: int) -> None:
        data, descriptors, _flags, _from = socket.recv_fds(self.channel, LONGEST, 4)
        if not data:
            self.loop.running = False
            return
        word, number, *rest = marshal.loads(data)  # noqa: S302  from our own launcher over its private pair
        if word == "serve":
            self.roots[number] = Hidden(self.loop, descriptors[0], rest[0], Record())
        elif word == "hold" and number in self.roots:
            self.roots[number].hold(descriptors[0])
        elif word == "hold":
            os.close(descriptors[0])  # of a box that was another one's, which is gone
        elif word == "end":
            self._end(number)

    def _end(self, number: int) -> None:
        root = self.roots.pop(number, None)
        record = Record() if root is None else root.record
        counts = [(kind, detail, count) for (kind, detail), count in record.counts.items()]
        served = root is not None and not root.failed
        paper = os.memfd_create("seen", os.MFD_CLOEXEC)
        os.write(paper, marshal.dumps({"served": served, "counts": counts, "dropped": record.dropped}))
        socket.send_fds(self.channel, [b"%d" % number], [paper])
        os.close(paper)
        if root is not None:
            root.close()


def _serve(channel: socket.socket) -> None:
    _Service(channel).loop.run()
