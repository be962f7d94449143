"""Looks at an attack's processes from outside while it runs: how many, how large, as whom, in which namespaces.

Every process of an attack carries the run's tag as its last argument, so that it is found in the host's ``/proc`` whatever
namespaces it is in.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, field

from ringfence.sandbox.inner.tree import below

INTERVAL = 0.012
"""Seconds between two looks."""
EDGE = 4


@dataclass(slots=True)
class Seen:
    """What was seen over the whole run."""

    most: int = 0
    """Most processes alive at one time."""
    resident: int = 0
    """Largest sum of resident memory at one time, bytes."""
    shared: int = 0
    """Largest growth of the host's shared memory and page tables, bytes: what no process has to have mapped."""
    effective_uids: set[int] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=set)
    """User namespaces of the attack's processes."""
    descriptors: set[str] = field(default_factory=set)
    """Link names of the descriptors held, as ``anon_inode:[io_uring]``."""
    mounts: set[str] = field(default_factory=set)
    """Lines of the mount tables that hold the tag."""
    may_gain: bool = False
    """A process ran without the no-new-privileges bit."""
    answered: bool = False
    """A server that the attack opened answered from outside."""
    last: float = 0.0
    """When the last look began that saw a process alive (monotonic)."""


class Watch(threading.Thread):
    """Looks until told to stop; ``seen`` may be read afterwards. ``port`` is asked from outside with the tag."""

    def __init__(self, tag: str, port: int) -> None:
        """Prepare; nothing is looked at before ``start``."""
        super().__init__(daemon=True)
        self.seen = Seen()
        self._tag = tag.encode()
        self._port = port
        self._over = threading.Event()
        self._looked = self._done = 0
        self._unmapped = _unmapped()

    def run(self) -> None:
        """Look again and again."""
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                self._look()
            self._done += 1
            self._over.wait(INTERVAL)

    def alive_from_now(self, *, looks: int, seconds: float) -> bool:
        """Whether a process of the attack is seen alive from now on, by so many whole looks and for so many seconds."""
        begin, enough = time.monotonic(), self._done + 1 + looks  # one is under way
        while self.is_alive() and (self._done < enough or time.monotonic() < begin + seconds):
            if self.seen.last > begin:
                return True
            time.sleep(INTERVAL)
        return self.seen.last > begin

    def stop(self) -> Seen:
        """End the looking."""
        self._over.set()
        self.join(5)
        return self.seen

    def _look(self) -> None:
        begin = time.monotonic()
        alive = processes(self._tag)
        if not alive:
            return
        self._looked += 1
        seen = self.seen
        seen.last = begin
        seen.most = max(seen.most, len(alive))
        seen.resident = max(seen.resident, sum(_resident(pid) for pid in alive[:64]))
        seen.shared = max(seen.shared, _unmapped() - self._unmapped)
        for pid in alive[:EDGE]:
            with contextlib.suppress(OSError):
                self._inspect(pid)
        if self._looked % 8 == 0 and not seen.answered:
            seen.answered = self._ask()

    def _inspect(self, pid: int) -> None:
        for line in _lines(f"/proc/{pid}/status"):
            if line.startswith(b"Uid:"):
                self.seen.effective_uids.add(int(line.split()[2]))
            if line.startswith(b"NoNewPrivs:") and line.split()[1] == b"0":
                self.seen.may_gain = True
        with contextlib.suppress(OSError):
            self.seen.namespaces.add(os.readlink(f"/proc/{pid}/ns/user"))
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    self.seen.descriptors.add(os.readlink(f"/proc/{pid}/fd/{number}"))
        for line in _lines(f"/proc/{pid}/mountinfo"):
            if self._tag in line:
                self.seen.mounts.add(line.decode(errors="replace"))

    def _ask(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.settimeout(0.2)
            sock.connect(("127.0.0.1", self._port))
            return self._tag in sock.recv(64)
        return False


def processes(tag: bytes) -> list[int]:
    """The living processes that carry the tag in their arguments; zombies do not count.

    The youngest are looked at first: one that forks and ends all the time is gone a moment after it was listed.
    """
    pids = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)
    return sorted(pid for pid in pids if tag in _arguments(str(pid)))


def kill(tag: bytes, *, spare: set[int]) -> int:
    """End every process that carries the tag, again and again until none is left; how many there were."""
    ended = 0
    for _ in range(50):
        pids = [pid for pid in processes(tag) if pid not in spare]
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                ended += 1
        reap(spare)
        if not pids:
            return ended
        time.sleep(0.01)
    return ended


def end_all_below() -> None:
    """End every process that this one or an orphan that fell to it has started, until none is left."""
    for _ in range(50):
        pids = [pid for pid in below(os.getpid()) if pid != os.getpid()]
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        reap({os.getpid()})
        if not pids:
            return
        time.sleep(0.02)


def reap(spare: set[int]) -> None:
    """Collect dead orphans that fell to this process, but none of those that others wait for."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in spare and _is_dead_child(name):
            with contextlib.suppress(OSError):
                os.waitpid(int(name), os.WNOHANG)


def _is_dead_child(name: str) -> bool:
    for line in _lines(f"/proc/{name}/stat"):
        fields = line.rpartition(b")")[2].split()
        return fields[0] == b"Z" and int(fields[1]) == os.getpid()
    return False


def _arguments(name: str) -> bytes:
    try:
        with open(f"/proc/{name}/cmdline", "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _resident(pid: int) -> int:
    for line in _lines(f"/proc/{pid}/statm"):
        return int(line.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _unmapped() -> int:
    found = (line.split() for line in _lines("/proc/meminfo") if line.startswith((b"Shmem:", b"PageTables:")))
    return sum(int(fields[1]) * 1024 for fields in found)


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read().splitlines()
    except OSError:
        return []
