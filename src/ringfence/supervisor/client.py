"""The thin client: reaches the supervisor, starts it where it is missing, asks one thing. Never runs a command itself.

A handful of standard modules, nothing of the environment. Hooks start it as ``/abs/python -I -S /abs/.../cli/client.py``.
Where the supervisor cannot be reached or is not ours, the answer is a fault; there is no way from here to an
unfenced run.
"""

import _socket
import os
import sys
from collections.abc import Callable

from ringfence.model.errors import BoxError, LedgerError, PolicyError, PromotionError, RingfenceError
from ringfence.supervisor import protocol
from ringfence.supervisor.paths import Paths, by_short_address, check_trusted, make_private, unusable

START_SECONDS = 60.0
"""A cold disk or a slow processor may take most of it."""
CONNECT_SECONDS = 5.0
MOST_STARTS = 5
"""So many supervisors may end, one after the other, before one takes a request: each was stopped, or cannot serve."""
TAKEN_SECONDS = 30.0
"""Within which a supervisor that is at work says that it has read a request, however long the command then takes."""
LOOK_SECONDS = 60.0
"""How often a client that waits for its command's end asks whether the supervisor is still at work."""
_KINDS = {kind.__name__: kind for kind in (BoxError, LedgerError, PolicyError, PromotionError)}
FIXED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def connect(paths: Paths, *, start: bool = True) -> _socket.socket:
    """A connection to this user's own supervisor. Raises RingfenceError when there is none to be had."""
    if inside_box():
        raise RingfenceError(
            "already-fenced",
            "this process already runs in a ringfence box",
            remedy="run the command itself; its box is the fence",
        )
    found = _try(paths)
    if found is not None:
        return found
    if not start:
        raise RingfenceError(
            "no-supervisor", "no supervisor is running", where=paths.socket, remedy="any `ringfence run` starts one"
        )
    import time

    deadline = time.monotonic() + START_SECONDS
    for _ in range(MOST_STARTS):  # one that was stopped before this client reached it is started again
        _start(paths)
        found = _try_while_held(paths, deadline)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            break
    raise RingfenceError(
        "no-supervisor",
        "the supervisor was started and cannot be reached",
        where=paths.socket,
        remedy=f"read {paths.state}/supervisor.log, then try `ringfence doctor`",
    )


def request(
    paths: Paths,
    verb: str,
    payload: dict[str, object] | None = None,
    *,
    start: bool = True,
    seconds: float | None = 60.0,
    say: Callable[[str], None] | None = None,
) -> dict[str, object]:
    """Ask one thing and return the answer. A fault that the supervisor reports is raised here as RingfenceError.

    With ``say`` (as for ``answer``) it may last as long as it does.
    """
    message = {"verb": verb, "version": protocol.VERSION, **(payload or {})}
    connection, reader = ask(paths, message, start=start, seconds=seconds)
    try:
        return answer(reader, paths, say)
    finally:
        connection.close()


def ask(
    paths: Paths,
    message: dict[str, object],
    descriptors: tuple[int, ...] = (),
    *,
    start: bool = True,
    seconds: float | None = None,
) -> tuple[_socket.socket, protocol.Reader]:
    """Have a supervisor take the request; returns the connection on which its answer comes.

    A supervisor that ends without having taken it (its launcher died, it was stopped, nothing ran for an hour) has not
    judged it, and the next one is asked, MOST_STARTS in all. What was taken is never sent again: it may have been carried out.
    """
    import time

    _check_text(message)
    ended: list[int] = []
    deadline = 0.0
    while True:
        connection = connect(paths, start=start)
        try:
            pid = protocol.peer(connection)[0]
            if ended[-1:] != [pid]:
                connection.settimeout(TAKEN_SECONDS if seconds is None else seconds)
                reader = protocol.Reader(connection)
                if _is_taken(connection, reader, message, descriptors, paths):
                    connection.settimeout(seconds)
                    return connection, reader
                ended.append(pid)
                if len(ended) == MOST_STARTS:
                    what = f"{MOST_STARTS} supervisors ended before they took the request, so nothing of it ran"
                    raise _gone(paths, what)
                deadline = time.monotonic() + CONNECT_SECONDS
            elif time.monotonic() > deadline:
                raise _gone(paths, "the supervisor takes no requests and does not end; nothing ran")
        except BaseException:
            connection.close()
            raise
        connection.close()
        time.sleep(0.02)


def _check_text(value: object) -> None:
    """Words of the system that are not UTF-8 arrive as lone surrogates, which no policy can be written for."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RingfenceError(
                "not-text",
                f"{value!a} is not UTF-8, so it can be neither judged nor recorded; nothing ran",
                remedy="rename the file or folder, or let a pattern name it (`ls *.txt`)",
            ) from None
    elif isinstance(value, dict):
        for inner in value.values():
            _check_text(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check_text(inner)


def _is_taken(
    connection: _socket.socket,
    reader: protocol.Reader,
    message: dict[str, object],
    descriptors: tuple[int, ...],
    paths: Paths,
) -> bool:
    try:
        try:  # noqa: SIM105 - contextlib is not loaded on the way to a command
            protocol.send(connection, message, descriptors)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what it said before it closed is still there to be read
        first = reader.receive_bytes()
    except TimeoutError as error:
        raise _slow(connection, paths) from error
    except OSError:
        return False
    if first is not None and first != protocol.TAKEN:
        reader.put_back(first)  # a fault, told instead of taking it
    return first is not None


def answer(reader: protocol.Reader, paths: Paths, say: Callable[[str], None] | None = None) -> dict[str, object]:
    """The next answer on a connection; an answer that is a fault is raised.

    ``say`` hears why it takes long where that is not the command's own doing: it waits for its turn, or the supervisor
    stands still.
    """
    message: dict[str, object] | None
    try:
        while True:
            if say is not None:
                _watch(reader, paths, say)
            message = reader.receive()
            if message is None or message.get("event") != "waiting":
                break
            if say is not None:
                say(str(message.get("why")))
    except TimeoutError as error:
        raise _slow(reader.connection, paths) from error
    except OSError:
        message = None
    if message is None:
        text = "the supervisor ended before it answered; nothing ran outside a box, and its boxes ended with it"
        raise _gone(paths, text)
    raise_fault(message)
    return message


def _watch(reader: protocol.Reader, paths: Paths, say: Callable[[str], None]) -> None:
    """Return when there is something to be read, or once it was said that the supervisor answers to nobody."""
    seconds = reader.connection.gettimeout()
    reader.connection.settimeout(LOOK_SECONDS)
    try:
        while not reader.buffered:
            try:
                reader.connection.recv(1, _socket.MSG_PEEK)
                return
            except TimeoutError:
                fault = _fault_of_looking(paths)
            if fault is not None:
                say(f"{fault.what}; the command waits for it. {fault.remedy}")
                return
    finally:
        reader.connection.settimeout(seconds)


def _fault_of_looking(paths: Paths) -> RingfenceError | None:
    try:
        request(paths, "status", start=False, seconds=TAKEN_SECONDS)
    except RingfenceError as fault:
        return fault if fault.code == "supervisor-slow" else None
    return None


def raise_fault(message: dict[str, object]) -> None:
    """Raise the supervisor's fault as an error of this process, of the same kind; return where there is none."""
    fault = message.get("error")
    if isinstance(fault, dict):
        text = {name: str(fault.get(name, "")) for name in ("code", "what", "where", "remedy")}
        kind = _KINDS.get(str(fault.get("kind", "")), RingfenceError)
        raise kind(text["code"], text["what"], where=text["where"], remedy=text["remedy"])


def _slow(connection: _socket.socket, paths: Paths) -> RingfenceError:
    pid = protocol.peer(connection)[0]
    return RingfenceError(
        "supervisor-slow",
        f"the supervisor (process {pid}) did not answer in time",
        where=paths.socket,
        remedy=f"try again; if it is stuck, end it with `kill -9 {pid}`: its boxes end too, the next command starts it anew",
    )


def _gone(paths: Paths, what: str) -> RingfenceError:
    remedy = f"read {paths.state}/supervisor.log; the next command starts it again"
    return RingfenceError("supervisor-gone", what, where=paths.socket, remedy=remedy)


def inside_box() -> bool:
    """Whether this process runs in a box of ours. Only ever leads to a refusal, so a forged value gains nothing."""
    return os.environ.get("AGENT_ENV_CLASS") == "sandbox" and bool(os.environ.get("AGENT_RUN_ID"))


def _try_while_held(paths: Paths, deadline: float) -> _socket.socket | None:
    """A connection to the supervisor that has the lock, which may still be starting, or be another client's.

    None once nobody has the lock, or after ``deadline`` (monotonic seconds).
    """
    import time

    while True:
        held = is_held(paths)  # looked at first: one that begins to serve in between is found by the try
        found = _try(paths)
        if found is not None or not held or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def is_held(paths: Paths) -> bool:
    """Whether a supervisor has the lock: it starts, serves or ends."""
    import fcntl

    try:
        lock = os.open(f"{paths.runtime}/supervisor.lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def _try(paths: Paths) -> _socket.socket | None:
    if not os.path.exists(paths.socket):
        return None
    check_trusted(paths.runtime)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _knock(connection, paths)
        uid = protocol.peer(connection)[1]
        if uid != os.getuid():
            raise RingfenceError(
                "fake-supervisor",
                f"uid {uid} answers on the socket of uid {os.getuid()}",
                where=paths.socket,
                remedy="find out who made that socket; remove it only then",
            )
    except (ConnectionRefusedError, FileNotFoundError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    connection.settimeout(None)
    return connection


def _knock(connection: _socket.socket, paths: Paths) -> None:
    """Connect; where the queue in front of the supervisor is full, wait for a place.

    Raises ConnectionRefusedError or FileNotFoundError where nobody listens, RingfenceError for anything else.
    """
    import time

    connection.setblocking(False)
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            by_short_address(paths.socket, connection.connect)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                what = "more clients wait for the supervisor than it takes in; nothing ran"
                raise RingfenceError("supervisor-busy", what, where=paths.socket, remedy="try again") from None
        except (ConnectionRefusedError, FileNotFoundError):
            raise
        except OSError as error:
            what = f"cannot connect: {error.strerror or error}"
            raise RingfenceError("no-supervisor", what, where=paths.socket) from error
        time.sleep(0.02)


def _start(paths: Paths) -> None:
    """Start the supervisor as a build tool starts its daemon: nothing of this client stays in it.

    Clean environment, cwd /, own session, no descriptors, no signal blocked or ignored, no limits but the hard ones.
    Raises the fault for which it did not start.
    """
    import contextlib
    import fcntl  # noqa: F401 - loaded before the fork, used after it
    import resource  # noqa: F401 - as above
    import signal  # noqa: F401 - as above

    for folder in (paths.state, paths.runtime):
        make_private(folder)
    daemon = os.path.join(os.path.dirname(os.path.abspath(__file__)), "daemon.py")
    ready, report = os.pipe()
    log = _open_log(f"{paths.state}/supervisor.log")
    arguments = [sys.executable, "-I", daemon, "--ready", "3"]
    if paths.test_root is not None:
        arguments += ["--test-root", paths.test_root]
    child = _fork()
    if child == 0:
        _become_daemon(arguments, report, log)
    os.close(report)
    os.close(log)
    try:
        said = _read_with_limit(ready, START_SECONDS)
    finally:
        os.close(ready)
        with contextlib.suppress(ChildProcessError):  # a caller that ignores its children has it reaped by the kernel
            os.waitpid(child, 0)
    if said.startswith(b"{"):
        raise_fault(protocol.decode(said))
    if not said.startswith(b"ready"):
        raise RingfenceError(
            "no-supervisor",
            said.decode("utf-8", "backslashreplace") or "the supervisor ended while it started",
            where=daemon,
            remedy=f"read {paths.state}/supervisor.log, then try `ringfence doctor`",
        )


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise RingfenceError(
            "no-supervisor",
            f"no process can be started: {error.strerror}; nothing ran",
            remedy="end what is not needed, or raise the limit: see `ulimit -u`",
        ) from error


def _open_log(path: str) -> int:
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe there is not waited for
    try:
        return os.open(path, how, 0o600)
    except OSError as error:
        raise unusable(error, path) from error


def _become_daemon(arguments: list[str], report: int, log: int) -> None:
    import fcntl

    try:
        os.setsid()
        if os.fork():
            os._exit(0)  # the grandchild belongs to init: it outlives its caller and is nobody's zombie
        os.chdir("/")
        os.umask(0o077)
        null = os.open("/dev/null", os.O_RDWR)
        beyond = [fcntl.fcntl(each, fcntl.F_DUPFD, 4) for each in (null, log, log, report)]  # none covers another
        for target, source in enumerate(beyond):
            os.dup2(source, target)
        _leave_behind()
        os.execve(arguments[0], arguments, {"PATH": FIXED_PATH})
    finally:
        os._exit(127)


def _leave_behind() -> None:
    """Close all but the first four descriptors, however high; put signals and soft limits back to what a session begins with."""
    import resource
    import signal

    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
        if descriptor > 3:
            os.closerange(descriptor, descriptor + 1)  # the listing's own is closed already
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (hard, hard))


def _read_with_limit(descriptor: int, seconds: float) -> bytes:
    import select

    said = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    while len(said) < 65536:
        if not poll.poll(seconds * 1000):
            return b"the supervisor did not get ready in time"
        data = os.read(descriptor, 4096)
        if not data:
            return said
        said += data
        if said.startswith(b"ready"):
            return said
    return said
