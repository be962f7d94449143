"""What happens in a box, seen from outside: programs started, calls refused, decoys touched. Bounded, counted exactly.

The record of an exec or of a change is read from the memory of the caller, which it could change meanwhile: it is a
record, never the wall. Refused calls are judged by register values that the kernel copied, so those are exact.
"""

import contextlib
import errno
import fcntl
import os
import re
import signal
import struct
from collections.abc import Callable
from typing import Any

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.attempts import KINDS as CHANGE_KINDS
from ringfence.sandbox.inner.attempts import Attempts, Taken
from ringfence.sandbox.inner.callers import Callers
from ringfence.sandbox.inner.carry import AS_ASKED
from ringfence.sandbox.inner.changes import SETTING, Change
from ringfence.sandbox.inner.loop import HANGUP, READ, Loop
from ringfence.sandbox.inner.moves import Moves
from ringfence.sandbox.inner.ordinary import CHANGES_BY_NUMBER
from ringfence.sandbox.inner.parents import Parents
from ringfence.sandbox.inner.refused import CAPABILITIES, TURNS, answer_to, asks_for, describe
from ringfence.sandbox.inner.seccomp import (
    ARCHES,
    ASKING,
    BECOMING,
    CHANGING,
    CLONE3,
    JUDGED,
    NEW_NAMESPACES,
    NEW_TIME,
    PROCESS_ONE,
    REFUSED,
    SETTING_REQUESTS,
)
from ringfence.sandbox.inner.turns import Turns

RECEIVE, SEND, SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
SYNC_WAKE_UP = 1
CONTINUE = 1
NOTICE = struct.Struct("=QIIiIQ6Q")
EMPTY = bytes(NOTICE.size)
ANSWER = struct.Struct("=QqiI")
TOUCHED = 0x1 | 0x20
"""IN_ACCESS and IN_OPEN."""
IGNORED = 0x8000
MANY_PROGRAMS, MANY_CHANGES, MANY_SPELLINGS, MANY_OTHERS = 1000, 250, 50, 500
"""So many different records of a sort are kept. Each sort has room of its own: no flood of one takes another's place."""
BEYOND, MANY_BEYOND = "beyond", 100
HIDDEN_PATH = "hidden-path"
PATHS = re.compile(r"(?:^| )'?(/[^ ']*)")
ARGUMENTS_SHOWN, ARGUMENT_BYTES = 12, 200

ARCHITECTURE = ARCHES.get(kernel.MACHINE)
NAMES = (
    {number: name for table in (REFUSED, JUDGED, PROCESS_ONE, ASKING) for name, number in table[kernel.MACHINE].items()}
    | {number: name for name, (number, _ids) in BECOMING[kernel.MACHINE].items()}
    | {CLONE3: "clone3"}
    if kernel.NUMBERS
    else {}
)
RENAMEAT2 = CHANGING[kernel.MACHINE]["renameat2"] if kernel.NUMBERS else -1
NOREPLACE, ALL_FLAGS = 1, 0xFFFFFFFF


class Record:
    """Observations of one box: (kind, detail) with a count.

    Beyond the bound of its sort a path is told by its folder, and anything else only counted.
    """

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.kept: dict[str, int] = {}
        self.dropped = 0

    def add(self, kind: str, detail: str, count: int = 1) -> bool:
        """Count one or more; True when it is the first of its kind."""
        key = (kind, detail)
        first = key not in self.counts
        if first and not self._has_room(*sort_of(kind, detail)):
            first, key = False, (kind, beyond(kind, detail))
            if key not in self.counts and not (key[1] and self._has_room(BEYOND, MANY_BEYOND)):
                self.dropped += count
                return False
        self.counts[key] = self.counts.get(key, 0) + count
        return first

    def _has_room(self, sort: str, room: int) -> bool:
        """Whether one more of this sort is kept."""
        kept = self.kept.get(sort, 0)
        self.kept[sort] = min(kept + 1, room)
        return kept < room


def beyond(kind: str, detail: str) -> str:
    """What is still said of a path beyond the bound of its sort, so that no flood hides where else was tried; empty for all else.

    >>> beyond("refused-write", "remove /home/u/.ssh/a"), beyond("hidden-path", "/opt/x"), beyond("exec", "/usr/bin/x")
    ('more below /home/u/.ssh', 'more below /opt', '')
    """
    paths = PATHS.findall(detail)[: 2 if " to " in detail else 1]
    if kind not in CHANGE_KINDS | {HIDDEN_PATH} or not paths:
        return ""
    return f"more below {' and '.join(path.rpartition('/')[0] or '/' for path in paths)}"


def sort_of(kind: str, detail: str) -> tuple[str, int]:
    """The sort of an observation, and how many different ones of it are kept.

    >>> sort_of("refused-syscall", "unshare 0x10000000")
    ('unshare', 50)
    """
    if kind == "exec":
        return kind, MANY_PROGRAMS
    if kind in CHANGE_KINDS:
        return "change", MANY_CHANGES
    if kind == "refused-syscall":
        return detail.partition(" ")[0], MANY_SPELLINGS  # a caller chooses the values, but not the names
    return kind, MANY_OTHERS


class Calls:
    """The listener of one box's filter: answers every notice at once, and records it."""

    def __init__(
        self,
        loop: Loop,
        descriptors: list[int],
        record: Record,
        order: dict[str, Any],
        init: tuple[int, Callable[[bytes], bool] | None],
    ) -> None:
        """``descriptors``: the listener's, and one that stands for the box's root. ``init``: its id, and how to ask it."""
        self.loop, self.record = loop, record
        self.listener, root = descriptors
        self.first = list(order["argv"])
        self.callers, self.parents = Callers(), Parents()
        self.attempts = Attempts(order, root, self.callers)
        self.init, ask = init
        self.moves = Moves(ask, self._moved) if ask is not None else None
        self.buffer = bytearray(NOTICE.size)
        self.turns = Turns()
        with contextlib.suppress(OSError):  # older kernels only wake the caller a little later
            fcntl.ioctl(self.listener, SET_FLAGS, SYNC_WAKE_UP)
        loop.watch_calls(self.listener, self._ready)

    def _ready(self, events: int) -> None:
        if events & READ:
            seconds = self.turns.take(self._one)
            if seconds:
                self.loop.forget(self.listener)
                self.loop.after(seconds, self._go_on)
        elif events & HANGUP:
            self.close()

    def _go_on(self) -> None:
        if self.listener >= 0:
            self.loop.watch_calls(self.listener, self._ready)

    def _one(self) -> None:
        buffer = self.buffer
        buffer[:] = EMPTY
        try:
            fcntl.ioctl(self.listener, RECEIVE, buffer)
        except OSError:
            return  # the caller died meanwhile
        notice = NOTICE.unpack(buffer)
        identity, pid, number, arguments = notice[0], notice[1], notice[3], notice[6:]
        if notice[4] != ARCHITECTURE:
            # Numbers mean something else there: nothing is looked up, nothing let through, and the caller ends.
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            self._answer(identity, -errno.EPERM, 0)
            self.record.add("refused-syscall", f"call {number} of architecture {notice[4]:#x}")
            return
        change = CHANGES_BY_NUMBER.get(number)
        if change is not None:
            self._change(identity, pid, change, number, arguments)
            return
        name = NAMES.get(number, "")
        if not name:
            self._answer(identity, -errno.ENOSYS, 0)
            self.record.add("refused-syscall", f"call {number & 0xFFFFFFFF:#x}")
            return
        if name == "ioctl" and arguments[1] & 0xFFFFFFFF in SETTING_REQUESTS:
            self._change(identity, pid, SETTING, number, arguments)
            return
        if name == "clone3":
            self._clone3(identity, pid, arguments)
            return
        if name in ASKING[kernel.MACHINE] and not (name == "sched_setattr" and arguments[0] & 0xFFFFFFFF == 1):
            self._asking(identity, pid, name, arguments)
            return
        if name in {"execve", "execveat"}:
            detail = self._exec(pid, *(arguments[:3] if name == "execveat" else (0, *arguments[:2])))
            self.callers.forget()
            self._answer(identity, 0, CONTINUE)
            parent = self.parents.name(pid)
            self.record.add("exec", f"{detail} (parent {'gone' if parent is None else _join([_text(parent)])})")
            return
        if name == "setrlimit" or (name == "prlimit64" and arguments[0] & 0xFFFFFFFF != 1 and not arguments[3]):
            self._answer(identity, 0, 0)  # no core is written, whatever the limit
            return
        self._answer(identity, -answer_to(name, arguments), 0)
        self.record.add("refused-syscall", describe(name, arguments))

    def _change(self, identity: int, pid: int, change: Change, number: int, arguments: tuple[int, ...]) -> None:
        # What init was asked to do has been judged.
        if pid == self.init or self.attempts.ordinary.is_one(number, pid, arguments):
            self._answer(identity, 0, CONTINUE)
            return
        taken = self.attempts.take(change, number, pid, arguments)
        found = None if taken is None else self.attempts.judge(taken)
        handed = taken is not None and change.words == "rename" and self._move(identity, number, arguments, taken)
        # An answer that found its caller also says that what was read was the caller's, not that of a later process.
        if (handed or self._answer(identity, 0, CONTINUE)) and found is not None:
            self.record.add(*found)

    def _move(self, identity: int, number: int, arguments: tuple[int, ...], taken: Taken) -> bool:
        """Whether this rename is init's to carry out: that of a folder which the overlay might refuse."""
        flags = arguments[4] if number == RENAMEAT2 else 0
        if self.moves is None or flags & AS_ASKED or flags & ALL_FLAGS not in {0, NOREPLACE}:
            return False
        folder = self.attempts.folder(taken)
        return folder is not None and self.moves.take(identity, *folder, flags & ALL_FLAGS)

    def renamed(self, identity: int, error: int) -> None:
        """Init has done what ``_move`` handed over."""
        self.attempts.ordinary.links_may_appear()
        if self.moves is not None:
            self.moves.done(identity, error)

    def _moved(self, identity: int, error: int) -> None:
        self._answer(identity, -max(error, 0), CONTINUE if error < 0 else 0)

    def _clone3(self, identity: int, pid: int, arguments: tuple[int, ...]) -> None:
        """Its flags stand behind a pointer, where no filter sees them: "no such call" makes C libraries fall back to clone."""
        flags = self.callers.word(pid, arguments[0])
        if self._answer(identity, -errno.ENOSYS, 0) and flags & (NEW_NAMESPACES | NEW_TIME):
            self.record.add("refused-syscall", f"clone3 {flags:#x}")

    def _asking(self, identity: int, pid: int, name: str, arguments: tuple[int, ...]) -> None:
        """Told where it asks for what the kernel refuses to every program of a box."""
        length = CAPABILITIES.size if name == "capset" else TURNS.size
        told = asks_for(name, self.callers.some(pid, arguments[1], length))
        if self._answer(identity, 0, CONTINUE) and told:
            self.record.add("refused-syscall", f"{name} {told}")

    def _answer(self, identity: int, error: int, flags: int) -> bool:
        try:
            fcntl.ioctl(self.listener, SEND, ANSWER.pack(identity, 0, error, flags))
        except OSError:
            return False  # interrupted or dead: nothing waits for the answer
        return True

    def _exec(self, pid: int, folder: int, program: int, vector: int) -> str:
        first, self.first = self.first, []
        name = self._string(pid, program)
        if name is None:
            return _join([_text(word) for word in first]) if first else "not readable"
        words = [name or self._behind(pid, folder & 0xFFFFFFFF)]
        pointers = self.callers.some(pid, vector, 8 * (ARGUMENTS_SHOWN + 2))
        for (pointer,) in struct.iter_unpack("=Q", pointers[: len(pointers) // 8 * 8]):
            if pointer == 0:
                break
            words.append("…" if len(words) > ARGUMENTS_SHOWN else self._string(pid, pointer) or "")
        return _join([words[0], *words[2:]])

    def _behind(self, pid: int, descriptor: int) -> str:
        """A program without a path, started by its descriptor alone."""
        return _text(self.callers.base(pid, descriptor)) or f"descriptor {descriptor}"

    def _string(self, pid: int, address: int) -> str | None:
        data = self.callers.some(pid, address, ARGUMENT_BYTES)
        whole, found, _rest = data.partition(b"\0")
        return _text(whole) + ("" if found else "…") if data else None

    def drain(self) -> None:
        """Nothing is left that could make a call, and every call has been answered: there is nothing to read."""
        self.callers.forget()

    def close(self) -> None:
        """Let go."""
        if self.listener >= 0:
            self.loop.forget(self.listener)
            os.close(self.listener)
            self.attempts.close()
            self.callers.forget()
            self.parents.close()
            self.listener = -1


class Decoys:
    """One inotify descriptor for the decoys of all boxes: to close one takes the kernel long, so none is ever closed.

    Each decoy tells its first opening and then no more, so that no box can crowd out what another one did.
    """

    def __init__(self, loop: Loop) -> None:
        self.descriptor = kernel.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self.watched: dict[int, tuple[str, str, Callable[[str, str], None]]] = {}
        loop.watch(self.descriptor, READ, lambda _events: self.read())

    def add(self, watches: list[tuple[int, str, str]], touched: Callable[[str, str], None]) -> None:
        """These watches, which a box's init made on our descriptor, are about these decoys."""
        for which, kind, name in watches:
            self.watched[which] = (kind, name, touched)
        self.read()

    def read(self) -> None:
        """Tell every touched decoy that waits in the queue."""
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:
            return  # nothing is in it, or it stays there until the next look
        position = 0
        while position + 16 <= len(data):
            which, mask, _cookie, length = struct.unpack_from("=iIII", data, position)
            position += 16 + length
            # The end of the file system the decoys lie in is told too, and is nobody's doing.
            if mask & TOUCHED and which in self.watched:
                kind, name, touched = self.watched.pop(which)
                touched(kind, name)
            elif mask & IGNORED:
                self.watched.pop(which, None)  # gone with its file system: nothing is left to let go of

    def remove(self, touched: Callable[[str, str], None]) -> None:
        """A box has ended: read what it did, then let go of its decoys."""
        self.read()
        for which in [w for w, (_kind, _name, whose) in self.watched.items() if whose == touched]:
            del self.watched[which]
            with contextlib.suppress(OSError):  # gone with its file system
                kernel.inotify_rm_watch(self.descriptor, which)


def _text(word: bytes) -> str:
    return word.decode("utf-8", "backslashreplace")


def _join(words: list[str]) -> str:
    return " ".join(word if word and word.isprintable() and " " not in word else ascii(word) for word in words)
