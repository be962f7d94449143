"""The supervisor's process: cleans itself, takes the lock, forks the launcher, opens the ledger, serves the socket.

Order matters. The launcher is forked before anything is loaded or threaded; the ledger is opened and what a crash
left is finished before the first client is heard; the socket appears last.
"""

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
from ringfence.supervisor.paths import Paths, make_private, user_paths

IDLE_SECONDS = 3600
"""With nothing running and nothing asked for this long, the supervisor ends; the next client starts it again."""
BACKLOG = 128
ENDING_SECONDS = 15.0
"""For this long a supervisor that holds the lock and does not serve is waited for."""


def main(arguments: list[str]) -> int:
    """Serve until stopped. ``--ready FD`` gets ``ready`` or the fault, once."""
    ready = int(_option(arguments, "--ready") or -1)
    paths = user_paths(_option(arguments, "--test-root"))
    try:
        listener, lock = prepare(paths)
    except (RingfenceError, OSError) as error:
        _tell(ready, str(error).encode())
        return 1
    if listener is None:
        _tell(ready, b"ready\n")  # another one won the race and serves already
        return 0
    try:
        return _serve(paths, listener, lock, ready)
    except (RingfenceError, OSError) as error:
        _tell(ready, str(error).encode())
        raise


def prepare(paths: Paths) -> tuple[socket.socket | None, int]:
    """Harden this process, make the folders, take the lock and bind the socket (not yet listening).

    Returns no socket when another supervisor of this user serves already. One that is ending is waited for.
    """
    import fcntl
    import time

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _undumpable()
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
        listener.bind(paths.socket)
    finally:
        os.umask(old)
    return listener, lock


def _serves(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(path) == 0


def _serve(paths: Paths, listener: socket.socket, lock: int, ready: int) -> int:
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
    from ringfence.supervisor.server import identity

    door = identity(paths.socket)
    server = _open(paths, launcher, host)
    stopping = (signal.SIGTERM, signal.SIGINT)
    for number in stopping:
        signal.signal(number, lambda *_: server.stop())
    try:
        listener.listen(BACKLOG)
        _tell(ready, b"ready\n")
        gc.freeze()  # what is loaded by now stays: a full collection would hold up a command for 30 ms to look through it
        server.serve(listener, idle_seconds=IDLE_SECONDS)
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


def _undumpable() -> None:
    """No core dump, no ptrace and no /proc/PID/environ or mem for other processes of this user."""
    import ctypes

    pr_set_dumpable = 4  # prctl(2)
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0) != 0:
        raise RingfenceError("cannot-harden", "the kernel did not take PR_SET_DUMPABLE")


def _option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


def _tell(descriptor: int, text: bytes) -> None:
    if descriptor < 0:
        return
    try:
        os.write(descriptor, text[:4096])
        os.close(descriptor)
    except OSError:
        return  # told already, or the client that started us is gone; we serve all the same


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
