"""The supervisor's process: cleans itself, takes the lock, forks the launcher, opens the ledger, serves the socket.

Order matters. The launcher is forked before anything is loaded or threaded; the ledger is opened and what a crash
left is finished before the first client is heard; the socket appears last.
"""

import contextlib
import errno
import gc
import os
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringfence.sandbox.launcher import Launcher
    from ringfence.sandbox.probe import HostReport
    from ringfence.supervisor.server import Server

if __package__ in {None, ""}:  # started as a script: this file's own place says where we are
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from ringfence.model.errors import RingfenceError
from ringfence.supervisor import jsontext, protocol
from ringfence.supervisor.paths import Paths, by_short_address, identity, make_private, unusable, user_paths

IDLE_SECONDS = 3600
"""With nothing running and nothing asked for this long, the supervisor ends; the next client starts it again."""
BACKLOG = 128
MOST_FILES = 65_536
"""Descriptors: more than a box may have, by which the kernel measures what this user may have on its way over sockets."""
FEWEST_FILES = 256
LEAST = (
    (resource.RLIMIT_AS, 1024 << 20, "address space"),
    (resource.RLIMIT_DATA, 512 << 20, "memory of its own"),
    (resource.RLIMIT_FSIZE, 256 << 20, "one file"),
)
"""Limit and bytes: each thread reserves some sixty megabytes of address space, and the ledger's files grow."""
FEWEST_PROCESSES = 64
SWITCH_SECONDS = 0.001
"""Threads that wait for the interpreter get it after this long, a fifth of the usual: a long line that is being read holds
up each step of every other call by it."""
ENDING_SECONDS = 15.0
"""For this long a supervisor that holds the lock and does not serve is waited for."""


class Starter:
    """Whoever started this process: hears once, by a descriptor, how that went. None where a person looks on."""

    def __init__(self, descriptor: int | None) -> None:
        self.watches = descriptor is None
        self._descriptor = descriptor

    def tell(self, text: bytes) -> None:
        """``ready``, or the fault; what comes after the first is not said any more."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):  # it is gone; we serve all the same
            os.write(descriptor, text)
        os.close(descriptor)


def main(arguments: list[str]) -> int:
    """Serve until stopped. ``--ready FD`` is told of it; without, faults are raised."""
    descriptor = _option(arguments, "--ready")
    starter = Starter(None if descriptor is None else int(descriptor))
    paths = user_paths(_option(arguments, "--test-root"))
    try:
        return _main(paths, starter)
    except (RingfenceError, OSError) as error:
        if starter.watches:
            raise
        fault = error if isinstance(error, RingfenceError) else unusable(error, paths.state)
        starter.tell(jsontext.encode(protocol.fault(fault)).encode())
        with contextlib.suppress(OSError):  # the log may be what cannot be written
            print(fault, file=sys.stderr, flush=True)
        return 1


def _main(paths: Paths, starter: Starter) -> int:
    listener, lock = prepare(paths)
    if listener is not None:
        return _serve(paths, listener, lock, starter)
    if starter.watches:
        raise RingfenceError(
            "already-serving",
            "a supervisor of this user serves already",
            where=paths.socket,
            remedy="use that one, or end it with `ringfence stop`",
        )
    starter.tell(b"ready\n")
    return 0


def prepare(paths: Paths) -> tuple[socket.socket | None, int]:
    """Harden this process, make the folders, take the lock and bind the socket (not yet listening).

    Returns no socket when another supervisor of this user serves already. One that is ending is waited for.
    """
    import fcntl
    import time

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _undumpable()
    _make_room()
    for folder in (paths.state, paths.runtime):
        make_private(folder)
    lock = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if _serves(paths.socket) or time.monotonic() > deadline:
                os.close(lock)
                return None, -1
            time.sleep(0.02)  # it starts, or it ends: then its place is ours
    if os.path.lexists(paths.socket):
        os.unlink(paths.socket)  # left by one that was killed: the lock is ours
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old = os.umask(0o177)
    try:
        by_short_address(paths.socket, listener.bind)
    finally:
        os.umask(old)
    return listener, lock


def _serves(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return by_short_address(path, probe.connect_ex) in {0, errno.EAGAIN}  # its queue is full: it serves


def _serve(paths: Paths, listener: socket.socket, lock: int, starter: Starter) -> int:
    from ringfence.sandbox.launcher import Launcher
    from ringfence.sandbox.probe import probe_host

    host = probe_host(paths.state)
    if not host.backend:
        host = probe_host(
            paths.state
        )  # a probe that was killed or starved is no finding; a host that cannot, cannot twice
    # Before threads, the ledger and its keys: it must not inherit them. A host that cannot fence gets none, and each
    # command is refused with what is missing.
    launcher = Launcher.spawn(paths.state, backend=host.backend) if host.backend else None
    door = identity(paths.socket)
    server = _open(paths, launcher, host)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, lambda *_: server.stop())
    try:
        listener.listen(BACKLOG)
        if starter.watches:
            print(f"serving on {paths.socket}; stop with Ctrl-C", flush=True)
        starter.tell(b"ready\n")
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # what is loaded by now stays: a full collection would hold up a command for 30 ms to look through it
        # What kept a host from making a box may be over by the next command (a full disk, a probe that was killed): it
        # finds another supervisor, which looks anew.
        idle = IDLE_SECONDS if launcher is not None or starter.watches else 0
        server.serve(listener, door, idle_seconds=idle, look_at=lambda: user_paths(paths.test_root).socket)
    finally:
        # The door first: clients that come now find no socket and wait for the lock, not for an answer.
        if door is not None and identity(paths.socket) == door:
            os.unlink(paths.socket)
        listener.close()
        server.close()
        os.close(lock)
    return 0


def _open(paths: Paths, launcher: "Launcher | None", host: "HostReport") -> "Server":
    """The rooms, once the ledger is free: one that writes a single entry, or a supervisor that lost its door, is waited for."""
    import time

    from ringfence.model.errors import LedgerError
    from ringfence.supervisor.server import Server

    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            return Server.open(paths, launcher, host)
        except LedgerError as error:
            if error.code != "ledger-busy" or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _make_room() -> None:
    """As many descriptors as this user may have, up to what is of use. Raises RingfenceError where a limit is too low."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    low = []
    if files < FEWEST_FILES:
        low.append(f"{files} open files, of {FEWEST_FILES}")
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if 0 <= processes < FEWEST_PROCESSES:
        low.append(f"{processes} processes, of {FEWEST_PROCESSES}")
    for limit, least, what in LEAST:
        allowed = resource.getrlimit(limit)[1]
        if 0 <= allowed < least:  # no limit is a negative number
            low.append(f"{allowed >> 20} MiB of {what}, of {least >> 20}")
    if low:
        raise RingfenceError(
            "limits-too-low",
            f"the session that starts the supervisor allows it less than it needs: {'; '.join(low)}",
            remedy="start it from a session with higher hard limits: see `ulimit -Ha`",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def _undumpable() -> None:
    """No core dump, no ptrace and no /proc/PID/environ or mem for other processes of this user."""
    import ctypes

    pr_set_dumpable = 4  # prctl(2)
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0) != 0:
        raise RingfenceError("cannot-harden", "the kernel did not take PR_SET_DUMPABLE")


def _option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
