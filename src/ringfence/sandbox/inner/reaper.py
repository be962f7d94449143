"""The life of PID 1 once the command runs: reap everything, obey the launcher, report the command's own end."""

import _signal as plain_signal  # type: ignore[import-not-found]  # ``signal`` looks up an enum for each: more pages are touched
import contextlib
import errno
import marshal
import os
import select
import signal
import socket
from collections.abc import Mapping
from typing import Any, NoReturn

from ringfence.sandbox.inner import carry, kernel
from ringfence.sandbox.inner.pausing import LOOK_MILLIS, Pause

LONGEST_ORDER = 16_384
"""Bytes: a request to rename names two paths."""
RESET = [n for n in range(1, signal.NSIG) if n not in {signal.SIGKILL, signal.SIGSTOP, 32, 33}]


def find(program: bytes, path: bytes) -> bytes:
    """Where a bare name leads on the box's PATH. Raises FileNotFoundError or PermissionError as a shell would tell."""
    if b"/" in program:
        return program
    blocked = False
    for folder in path.split(b":"):
        candidate = os.path.join(folder or b".", program)
        if os.path.isfile(candidate):
            if os.access(candidate, os.X_OK):
                return candidate
            blocked = True
    if blocked:
        raise PermissionError(errno.EACCES, "not executable")
    raise FileNotFoundError(errno.ENOENT, "not found")


def start(argv: list[bytes], environment: Mapping[bytes, bytes], *, in_front: bool) -> int:
    """Start the command in a process group of its own, ``in_front``: the terminal's. Gives the pid. Raises OSError."""
    program = find(argv[0], environment.get(b"PATH", b"/usr/bin:/bin"))
    begin = _in_the_foreground if in_front else _apart
    try:
        return begin(program, argv, environment)
    except OSError as fault:
        if fault.errno != errno.ENOEXEC:
            raise
        return begin(b"/bin/sh", [b"sh", program, *argv[1:]], environment)


def _apart(program: bytes, argv: list[bytes], environment: Mapping[bytes, bytes]) -> int:
    """With vfork and exec: no second copy of this process is made."""
    return os.posix_spawn(program, argv, environment, setsigdef=RESET, setsigmask=[], setpgroup=0)


def _in_the_foreground(program: bytes, argv: list[bytes], environment: Mapping[bytes, bytes]) -> int:
    """The child takes the terminal before it becomes the command: no key is ever meant for anybody else."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            for number in RESET:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execve(program, argv, environment)
        except OSError as fault:
            os.write(tell, b"%d" % (fault.errno or errno.EACCES))
        finally:
            os._exit(127)
    os.close(tell)
    with open(told, "rb") as pipe:
        failed = pipe.read()
    if failed:
        os.waitpid(child, 0)
        raise OSError(int(failed), os.strerror(int(failed)))
    return child


def reap(child: int, box: socket.socket, *, pty: bool, stops: bool) -> NoReturn:
    """Wait for everything; when the command itself has ended, say how, and end: the kernel then ends all the rest.

    ``stops``: it is told as well when the command stopped.
    """
    for stream in (0, 1, 2):
        os.close(stream)  # the command's pipes must end when the box does, not when this process does
    wake, poke = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    plain_signal.signal(plain_signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(box.fileno(), select.POLLIN)
    pause = Pause()
    carriers: dict[int, int] = {}
    while True:
        _collect(child, box, carriers, stops=stops and not pause.wanted)
        ready = poll.poll(LOOK_MILLIS if pause.wanted else None)
        if pause.wanted and not pause.stands():
            _tell(box, ("awake",))
        for descriptor, _event in ready:
            if descriptor == wake:
                os.read(wake, 4096)
                continue
            order = box.recv(LONGEST_ORDER)
            if order.startswith(b"rename "):
                _rename(order[7:], box, carriers)
            else:
                _obey(order, child, pause, box, pty=pty)


def _nothing(_number: int, _frame: object) -> None:
    """The signal need only wake the loop."""


def _rename(request: bytes, box: socket.socket, carriers: dict[int, int]) -> None:
    """Rename as asked; where that needs a tree to be carried over, in a process of its own. The launcher hears the errno."""
    identity, old, new, flags = marshal.loads(request)  # noqa: S302  from our own launcher
    error = carry.rename(old, new, flags)
    if error == errno.EXDEV:
        with contextlib.suppress(OSError):  # no process to be had: then it stays what it is
            carrier = os.fork()
            if carrier == 0:
                _carry(old, new, flags)
            carriers[carrier] = identity
            return
    _tell(box, ("renamed", identity, error))


def _carry(old: bytes, new: bytes, flags: int) -> NoReturn:
    """In the new process: it keeps nothing of process 1, and says by its exit status what came of it."""
    try:
        signal.set_wakeup_fd(-1)
        kernel.close_range(0, 0x7FFFFFFF, 0)
        error = carry.carry(old, new, flags)
    except BaseException:  # noqa: BLE001  nothing may unwind into what process 1 does
        error = errno.EXDEV
    os._exit(error if 0 <= error < 128 else errno.EXDEV)


def _collect(child: int, box: socket.socket, carriers: dict[int, int], *, stops: bool) -> None:
    """``stops`` as for ``reap``."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if stops else 0))
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in carriers and not os.WIFSTOPPED(status):
            error = os.WEXITSTATUS(status) if os.WIFEXITED(status) else errno.EXDEV
            _tell(box, ("renamed", carriers.pop(pid), error))
        if pid != child:
            continue
        if os.WIFSTOPPED(status):
            _tell(box, ("stopped", os.WSTOPSIG(status)))
            continue
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        _tell(box, ("end", code, number, ""))
        os._exit(0)


def _obey(order: bytes, child: int, pause: Pause, box: socket.socket, *, pty: bool) -> None:
    if not order:
        os._exit(1)  # the launcher is gone
    if order == b"pause":
        _tell(box, ("paused", pause.begin()))
    elif order == b"resume":
        pause.end()
    elif order in {b"continue", b"continue behind"}:
        if pty:
            _foreground(child if order == b"continue" else os.getpgrp())
        _signal(-child, signal.SIGCONT)
    elif order.startswith(b"signal "):
        _signal(-child, int(order[7:]))


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _foreground(group: int) -> None:
    """Give the terminal back to a command that was stopped; the shell in it may have taken it meanwhile.

    To process 1's own group where the command shall have no keys: the kernel stops it when it asks for some.
    """
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:
        pass  # the group is gone already
    finally:
        os.close(terminal)


def _tell(box: socket.socket, message: tuple[Any, ...]) -> None:
    try:
        box.send(marshal.dumps(message))
    except OSError:
        os._exit(1)
