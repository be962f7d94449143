"""Serves the skeleton of one box's root, and records tries on what the host has and the box's view has not.

What the kernel asks is answered at once, in one loop for all boxes. What was asked for below the first missing folder is
read from the memory of the caller, which it could change meanwhile: that part is a record, never the wall.
"""

import errno
import os
import stat
import struct
import time
from collections.abc import Callable, Iterable

from ringfence.sandbox.inner import fuse, kernel
from ringfence.sandbox.inner.loop import READ, Loop
from ringfence.sandbox.inner.skeleton import Entry, Skeleton
from ringfence.sandbox.inner.watch import HIDDEN_PATH, Record

KIND = HIDDEN_PATH
ROUNDS = 64
"""Requests answered per turn of the loop; other boxes have theirs in between."""
MANY_TRIES = 4096
"""Tries on one name that are told one by one; then the kernel is told to remember that it is not there."""
MANY_READS, MANY_WHOLE = 256, 64
"""How often a caller's memory is read, and how many different whole paths are kept, in one box."""
PATH_BYTES, ARGUMENTS = 1024, 5
A_READ = 0.005
"""A read that takes longer counts as several: who keeps its memory locked shall keep no other box waiting."""
LOOKS, LOOK_SECONDS = 20, 0.0001
"""A caller that has asked but does not sleep yet counts as running, and its call cannot be read until moments later."""
PAGE = 4096
NOT_TOLD = frozenset({b"/sys", b"/selinux", b"/etc/selinux", b"/run/systemd", b"/run/nscd"})
"""Where the C library, git and language runtimes look at every start."""
OUTSIDE = 0
"""The kernel's word for a process that the box cannot see: the launcher, which looks up where an attempted change leads."""
REMEMBERED = (b"/etc/", b"/run/")
"""Below these an overlay remembers what was not there, so a launcher's look-up is the only one that is told."""
FIRST_PROCESS = b"/proc/1/"
SYSTEM = frozenset({b"/usr/bin", b"/usr/sbin", b"/bin", b"/sbin"})
OF_OPEN_FILES = frozenset({b"root", b"cwd", b"exe", b"maps", b"fd", b"task"})
LISTERS = {
    **dict.fromkeys((b"ps", b"top"), frozenset({b"environ", b"task"})),
    **dict.fromkeys((b"pidof", b"killall", b"killall5"), frozenset({b"exe"})),
    **dict.fromkeys((b"fuser", b"lsof"), OF_OPEN_FILES),
    b"df": frozenset({b"root", b"cwd", b"exe"}),
    b"ss": frozenset({b"fd", b"task"}),
    b"lsns": frozenset({b"ns"}),
    b"pstree": frozenset({b"ns", b"task"}),
}
"""Programs of the system that look at every process or mount, and what of process 1 they ask for unbidden."""


def on_host(folder: bytes, name: bytes) -> int:
    """Mode and kind of what the host has under this name, 0 for nothing.

    The name is not followed, not opened, no mount is triggered for it and no server waited for: a mount point counts as
    a closed folder.
    """
    try:
        above = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return _mode(above, name)
    except OSError as fault:
        return stat.S_IFDIR if fault.errno == errno.EXDEV else 0
    finally:
        os.close(above)


def _mode(above: int, name: bytes) -> int:
    how = struct.pack("=QQQ", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, 0, kernel.RESOLVE_HERE)
    try:
        found = kernel.openat2(above, name, how, len(how))
    except OSError as fault:
        if fault.errno in {errno.ENOSYS, errno.EPERM}:  # a container's filter that does not know the call
            return os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
        raise
    try:
        return os.fstat(found).st_mode
    finally:
        os.close(found)


class Hidden:
    """The FUSE connection of one box."""

    buffer = bytearray(fuse.BUFFER)
    """Of all boxes: nothing stays in it."""

    def __init__(
        self,
        loop: Loop,
        device: int,
        made: Iterable[Entry],
        record: Record,
        *,
        host: Callable[[bytes, bytes], int] = on_host,
    ) -> None:
        self.loop, self.device, self.record, self.host = loop, device, record, host
        self.skeleton = Skeleton(
            made,
            owner=(os.geteuid(), os.getegid()),
            seconds=int(time.time()),
            missing=self._missing,
            tried=self._tried,
        )
        self.processes = -1
        self.failed = False
        """Whether it was given up before its box ended."""
        self.tries: dict[bytes, int] = {}
        self.whole: set[bytes] = set()
        self.reads = 0
        os.set_blocking(device, False)
        loop.watch(device, READ, self._ready)

    def hold(self, processes: int) -> None:
        """``processes``: the box's own /proc, through which a caller is found."""
        self.processes = processes

    def _ready(self, _events: int) -> None:
        for _round in range(ROUNDS):
            if self.device < 0:
                return
            try:
                count = os.readv(self.device, [self.buffer])
            except BlockingIOError:
                return
            except OSError as fault:
                if fault.errno in {errno.ENOENT, errno.EINTR}:
                    continue  # who asked has died meanwhile
                self.failed = fault.errno not in {errno.ENODEV, errno.ECONNABORTED}  # else the box's root is gone
                self.drop()
                return
            answer = self.skeleton.answer(bytes(self.buffer[:count]))
            if answer is not None:
                self._write(answer)

    def _write(self, answer: bytes) -> None:
        try:
            os.write(self.device, answer)
        except FileNotFoundError:
            return  # who asked has died meanwhile
        except OSError:
            self.failed = True
            self.drop()  # else who asked would wait for ever, and could not even be killed

    def _missing(self, folder: bytes, name: bytes, pid: int) -> bool:
        path = folder.rstrip(b"/") + b"/" + name
        if path in NOT_TOLD:
            return False
        mode = self.host(folder, name)
        if not mode or (folder == b"/etc" and _settings(mode)):
            return False
        if pid == OUTSIDE and not path.startswith(REMEMBERED):
            return True  # the box's own look-up follows
        return self._tried(folder, name, pid)

    def _tried(self, folder: bytes, name: bytes, pid: int) -> bool:
        """Record it; gives whether the next one is to be told too."""
        path = folder.rstrip(b"/") + b"/" + name
        if path.startswith(FIRST_PROCESS) and path.split(b"/", 4)[3] in self._unbidden(pid):
            return True
        tries = self.tries[path] = self.tries.get(path, 0) + 1
        if tries > MANY_TRIES:
            self.record.add(KIND, f"{text(path)}, and no longer counted")
            return False
        self.record.add(KIND, text(self._asked(path, pid)))
        return True

    def _asked(self, path: bytes, pid: int) -> bytes:
        """The whole path that was asked for where it can be told, else as far as it was followed."""
        if self.processes < 0 or pid == OUTSIDE or self.reads >= MANY_READS:
            return path
        begun = time.monotonic()
        whole = path + rest_of(arguments_of(self.processes, pid), path)
        self.reads += 1 + int((time.monotonic() - begun) / A_READ)
        if whole not in self.whole and len(self.whole) >= MANY_WHOLE:
            return path
        self.whole.add(whole)
        return whole

    def _unbidden(self, pid: int) -> frozenset[bytes]:
        """What the program that this process runs asks for of process 1 by itself."""
        if self.processes < 0 or pid == OUTSIDE:
            return frozenset()
        try:
            folder, name = os.path.split(os.readlink(b"%d/exe" % pid, dir_fd=self.processes))
        except OSError:
            return frozenset()
        return LISTERS.get(name, frozenset()) if folder in SYSTEM else frozenset()

    def drop(self) -> None:
        """Serve no more: every request that waits or comes is refused by the kernel."""
        if self.device >= 0:
            self.loop.forget(self.device)
            os.close(self.device)
            self.device = -1

    def close(self) -> None:
        """Let go of everything."""
        self.drop()
        self.skeleton.missing = self.skeleton.tried = _nobody
        if self.processes >= 0:
            os.close(self.processes)
            self.processes = -1


def _settings(mode: int) -> bool:
    """A file that everybody may read: half of all programs look for theirs below /etc, and nothing in it is secret."""
    return stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and bool(mode & 0o004))


def _nobody(_folder: bytes, _name: bytes, _pid: int) -> bool:
    return False


def arguments_of(processes: int, pid: int) -> list[bytes]:
    """What the arguments of the system call that this process waits in point at; empty where that cannot be read."""
    try:
        words = _call(processes, pid)
        memory = os.open(b"%d/mem" % pid, os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:
        return []
    try:
        return [_pointed(memory, int(word, 16)) for word in words[1 : 1 + ARGUMENTS] if word.startswith(b"0x")]
    except ValueError:
        return []
    finally:
        os.close(memory)


def _call(processes: int, pid: int) -> list[bytes]:
    """The number of the call that this process waits in, and its arguments."""
    for _look in range(LOOKS):
        words = _read(processes, b"%d/syscall" % pid, 256).split()
        if words != [b"running"]:
            return words
        time.sleep(LOOK_SECONDS)
    return []


def _read(processes: int, path: bytes, size: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    try:
        return os.read(file, size)
    finally:
        os.close(file)


def _pointed(memory: int, address: int) -> bytes:
    if not PAGE <= address < 1 << 62:
        return b""
    try:
        return os.pread(memory, PATH_BYTES, address)
    except OSError:
        return b""


def rest_of(places: Iterable[bytes], path: bytes) -> bytes:
    """What follows ``path`` in what one of these places holds, with its slash; empty when there is no more.

    Where it is written otherwise there, what follows its last name.

    >>> rest_of([b"../other/notes.txt" + bytes(3)], b"/home/u/other")
    b'/notes.txt'
    """
    name = os.path.basename(path)
    for place in places:
        # The address of a socket has two bytes of family before its path.
        for start in (0, 2):
            word = place[start:].partition(b"\0")[0]
            if word == path:
                return b""
            parts = word.split(b"/")
            if name in parts:
                behind = (
                    word[len(path) :].split(b"/") if word.startswith(path + b"/") else parts[parts.index(name) + 1 :]
                )
                return b"".join(b"/" + part for part in behind if part not in {b"", b"."})
    return b""


def text(path: bytes) -> str:
    """A path as it is recorded: readable, and nothing in it can be taken for more than a path."""
    word = path.decode("utf-8", "backslashreplace")
    return word if word.isprintable() and " " not in word else ascii(word)


__all__ = ["KIND", "Hidden", "on_host"]
