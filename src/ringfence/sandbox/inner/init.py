"""PID 1 of a box: builds the view, gives up every privilege, starts the command, reaps, reports its true status.

Runs in the forked child and never returns. What it holds from the host is two descriptors: the channel to the
launcher and nothing else. The channel closes on exec, and this process is not dumpable, so the command can neither
inherit nor steal it.
"""

import errno
import fcntl
import marshal
import os
import resource
import signal
import socket
import sys
from typing import Any, NoReturn

from ringfence.sandbox.inner import kernel, landlock, network, reaper, seccomp
from ringfence.sandbox.inner.root import Root
from ringfence.sandbox.inner.skeleton import Entry
from ringfence.sandbox.inner.view import View, ViewError

CHANNEL, WATCHER = 3, 4
EXIT_NOT_FOUND, EXIT_NOT_EXECUTABLE = 127, 126
CAPABILITIES = 64
"""More than any kernel has; the first one refused ends the loop."""
RLIMITS = {
    "core": resource.RLIMIT_CORE,
    "nofile": resource.RLIMIT_NOFILE,
    "fsize": resource.RLIMIT_FSIZE,
    "nproc": resource.RLIMIT_NPROC,
    "cpu": resource.RLIMIT_CPU,
    "data": resource.RLIMIT_DATA,
    "sigpending": resource.RLIMIT_SIGPENDING,
    "msgqueue": resource.RLIMIT_MSGQUEUE,
    "rtprio": resource.RLIMIT_RTPRIO,
    "nice": resource.RLIMIT_NICE,
}
WATCHED = 0x00000001 | 0x00000020 | 0x80000000
"""IN_ACCESS and IN_OPEN, told once."""
BLOCKED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.ELOOP, errno.EDQUOT})
"""What the agent can bring about in its own home: what it blocked there it lost, nothing else."""


class Stop(Exception):
    """The box cannot be built: what, and the errno (0 when there is none)."""

    def __init__(self, what: str, number: int = 0) -> None:
        super().__init__(what)
        self.number = number


def main(
    channel: int,
    watcher: int,
    *,
    mapped: tuple[int, int] | None,
    groups: list[str],
    closed: bool,
    folders: list[Entry] | None,
) -> NoReturn:
    """Everything from the fork to the end of the box.

    ``mapped``: uid and gid to map to themselves in the user namespace this process was made in. ``groups``: files that
    put a process into its control groups; done here, for it can take the kernel long. ``closed``: the box has no network.
    ``folders``: what its root will probably hold.
    """
    box: socket.socket | None = None
    try:
        _take_descriptors(channel, watcher)
        box = socket.socket(fileno=CHANNEL)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The launcher is not dumpable, which its forks inherit and which would close /proc/self; sealed again below.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1, 0, 0, 0)
        kernel.set_slice(0)
        os.umask(0)
        if mapped is not None:
            map_self(*mapped)
        else:
            _drop_bounding()  # again in the box's own user namespace, which begins with all of them
        for procs in groups:
            _write(procs, b"0")
        _leave_keyring()
        network.begin()
        socket.sethostname("box")
        sockets = network.closed() if closed else None
        root = _begin_root(box, folders)
        order = _wait_for_order(box)
        if sockets is None:
            sockets = network.captured(order)
        _run(order, box, root, sockets)
    except ViewError as fault:
        _say(box, ("failed", fault.step, fault.number))
    except Stop as fault:
        _say(box, ("failed", str(fault), fault.number))
    except OSError as fault:
        _say(box, ("failed", os.fsdecode(fault.filename or "system call"), fault.errno or 0))
    except BaseException as fault:  # noqa: BLE001  nothing may unwind into the launcher's code in this process
        _say(box, ("failed", f"{type(fault).__name__}: {fault}", 0))
    os._exit(1)


def _wait_for_order(box: socket.socket) -> dict[str, Any]:
    word, descriptors, flags, _from = socket.recv_fds(box, 16, 5)
    if word != b"order":
        os._exit(0)  # the launcher has ended, or does not need this one
    if flags & socket.MSG_CTRUNC:
        raise Stop("receive its order and streams")
    paper, *streams = descriptors
    data = bytearray()
    while part := os.pread(paper, 1 << 20, len(data)):
        data += part
    order: dict[str, Any] = marshal.loads(data)  # noqa: S302  written by our own launcher
    os.close(paper)
    for wanted, descriptor in enumerate(streams[:3]):
        os.dup2(descriptor, wanted)
        os.close(descriptor)
    order["idmap"] = streams[3] if len(streams) > 3 else -1
    return order


def _run(order: dict[str, Any], box: socket.socket, root: Root, sockets: dict[str, socket.socket]) -> None:
    user, mapped = order["user"], order["map_user"]
    _say_network(box, sockets)
    view = View(order, user=user, idmap=order["idmap"], base=root)
    view.build()
    if order["idmap"] >= 0:
        os.close(order["idmap"])
    # With a network, somebody answers on it when this arrives; the launcher's end gone means: end.
    if box.recv(1) != b"g":
        raise Stop("the launcher went away")
    kernel.unshare(kernel.CLONE_NEWCGROUP)
    limits = dict(order["rlimits"])
    files, processes = limits.pop("nofile"), limits.pop("nproc")
    _set_limits(limits)
    if not mapped:
        _become(*user)
    # After the user namespace is made: a limit set before would bound this uid's processes in all boxes together.
    _set_limits({"nproc": processes})
    _forbid_nesting()
    _share_watches()
    _drop_capabilities()
    watches, unwatched = _own_files(order["late"], WATCHER)
    os.close(WATCHER)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    abi = landlock.restrict(order["writable"])
    os.setsid()
    if order["pty"]:
        _terminal(box, order["size"], order["modes"])
    os.umask(order["umask"])
    _enter(order["cwd"])
    # From here on every exec is seen by the launcher; the first one is the command's own.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0, 0, 0, 0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    top, segments = os.open("/", os.O_PATH | os.O_CLOEXEC), _segments()
    listener, patient = seccomp.install(order["filter"])
    held = [listener, top, *segments, *view.held()]
    said = (", ".join(view.unseen), patient, len(segments), ", ".join(view.shared), unwatched)
    _say(box, ("sealed", watches, abi, *said), held)
    for descriptor in held:
        os.close(descriptor)
    # After the last descriptor is sent. The kernel counts those on their way for the whole user and measures them by the
    # sender's limit: what one box has under way by its own, smaller limit must not keep another from being built.
    _set_limits({"nofile": min(files, resource.getrlimit(resource.RLIMIT_NOFILE)[1] * 3 // 4)})
    _live(order, box)


def _take_descriptors(channel: int, watcher: int) -> None:
    """The channel at 3, the watcher at 4, and nothing else: no descriptor of the host or of another box."""
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, WATCHER + 1) for fd in (channel, watcher)]
    for wanted, fd in zip((CHANNEL, WATCHER), kept, strict=True):
        os.dup2(fd, wanted, inheritable=False)
    kernel.close_range(WATCHER + 1, 0x7FFFFFFF, 0)


def map_self(uid: int, gid: int) -> None:
    """In a new user namespace: map this user to itself and nothing else."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)


def _leave_keyring() -> None:
    """The session keyring of whoever started the supervisor is not the box's: a new, empty one takes its place."""
    try:
        kernel.keyctl(1, None)
    except OSError as fault:
        if fault.errno != errno.ENOSYS:
            raise  # a kernel without keys has none to leave


def _sysctl(name: str, value: bytes) -> None:
    _write(f"/proc/sys/{name}", value)


def _write(path: str, value: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, value)
    finally:
        os.close(file)


def _set_limits(limits: dict[str, int]) -> None:
    for name, wanted in limits.items():
        kind = RLIMITS[name]
        hard = resource.getrlimit(kind)[1]
        unlimited = hard == resource.RLIM_INFINITY
        value = wanted if unlimited else min(wanted, hard)
        # One second more on the hard side: SIGXCPU first, SIGKILL for a program that ignores it.
        resource.setrlimit(kind, (value, value + 1 if name == "cpu" and (unlimited or value < hard) else value))


def _become(uid: int, gid: int) -> None:
    """Root's way: a real unprivileged uid first, then a user namespace of its own, so that nothing maps to root.

    In a namespace that bubblewrap made for us the uid is right already, and the groups cannot be changed.
    """
    if os.geteuid() != uid:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1, 0, 0, 0)
    kernel.unshare(kernel.CLONE_NEWUSER)
    map_self(uid, gid)


def _forbid_nesting() -> None:
    for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        _sysctl(f"user/max_{name}_namespaces", b"0")


def _share_watches() -> None:
    """An ordinary user's box counts against the person's account: half of its inotify stays the person's."""
    for name in ("instances", "watches"):
        try:
            with open(f"/proc/sys/fs/inotify/max_user_{name}", "rb", buffering=0) as file:
                total = int(file.read(32))
            _sysctl(f"user/max_inotify_{name}", b"%d" % max(1, total // 2))
        except FileNotFoundError:
            continue  # a kernel without inotify


def _segments() -> list[int]:
    """The list of System V memory of this namespace, for the launcher, which polls it where there is no control group."""
    try:
        return [os.open("/proc/sysvipc/shm", os.O_RDONLY | os.O_CLOEXEC)]
    except FileNotFoundError:
        return []  # a kernel without it


def _drop_bounding() -> None:
    for capability in range(CAPABILITIES):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError as fault:
            if fault.errno == errno.EINVAL:
                return
            raise


def _drop_capabilities() -> None:
    _drop_bounding()
    kernel.prctl(kernel.PR_CAP_AMBIENT, 4, 0, 0, 0)
    version_3 = (0x20080522).to_bytes(4, sys.byteorder) + bytes(4)
    kernel.capset(version_3, bytes(24))


def _own_files(late: list[tuple[bytes, bytes, int, str]], watcher: int) -> tuple[list[tuple[int, str, str]], str]:
    """Write files into folders the box may have filled before; gives the watches on the decoys among them.

    And why some are not watched, as far as that is not the agent's doing; empty when all are. Done without any privilege:
    a link planted there in an earlier mission leads nowhere this user could not go anyway.
    """
    watches, lost = [], []
    for path, content, mode, kind in late:
        try:
            file = _make(path, mode)
            if file >= 0:
                os.write(file, content)
                os.close(file)
            if kind:
                watches.append((kernel.inotify_add_watch(watcher, path, WATCHED), kind, os.fsdecode(path)))
        except OSError as fault:
            if kind and fault.errno not in BLOCKED:
                lost.append(fault.strerror)
    return watches, f"{len(lost)} of {len(lost) + len(watches)} ({lost[0]})" if lost else ""


def _make(path: bytes, mode: int) -> int:
    """The new file, open, with the folders above it; -1 where something has that name already."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except FileExistsError:
        return -1
    except FileNotFoundError:
        missing = [folder := os.path.dirname(path)]
        while not os.path.isdir(folder := os.path.dirname(folder)):
            missing.append(folder)
        for folder in reversed(missing):
            os.mkdir(folder, 0o700)  # each of them: tools distrust a folder of keys that others may write to
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def _terminal(box: socket.socket, size: tuple[int, int], modes: tuple[int, ...]) -> None:
    from ringfence.sandbox.inner import terminal

    master = terminal.take_over(size, modes)
    _say(box, ("terminal",), [master] * 3)
    os.close(master)


def _enter(cwd: bytes) -> None:
    try:
        os.chdir(cwd)
    except OSError as fault:
        raise Stop(f"enter the working directory {os.fsdecode(cwd)}", fault.errno or 0) from fault


def _live(order: dict[str, Any], box: socket.socket) -> None:
    environment = dict(order["env"])
    try:
        child = reaper.start(order["argv"], environment, in_front=order["pty"] and not order["behind"])
    except FileNotFoundError:
        _complain(order["argv"][0], "not found in the box (docs/sandbox.md says what one sees)")
        _say(box, ("end", EXIT_NOT_FOUND, None, "not found in the box"))
        os._exit(0)
    except OSError as fault:
        _complain(order["argv"][0], os.strerror(fault.errno or errno.EACCES))
        _say(box, ("end", EXIT_NOT_EXECUTABLE, None, os.strerror(fault.errno or errno.EACCES)))
        os._exit(0)
    _say(box, ("started",))
    kernel.trim()  # what building the view took is 0.08 MiB of a box's memory for as long as it lives
    reaper.reap(child, box, pty=order["pty"], stops=order["stops"])


def _complain(program: bytes, why: str) -> None:
    try:
        os.write(2, f"ringfence: {os.fsdecode(program)!a}: {why}\n".encode())
    except OSError:
        return  # the caller reads no errors


def _say_network(box: socket.socket, sockets: dict[str, socket.socket]) -> None:
    """Hand the network's sockets out and keep none."""
    _say(box, ("network", list(sockets)), [end.fileno() for end in sockets.values()])
    for end in sockets.values():
        end.close()


def _begin_root(box: socket.socket, folders: list[Entry] | None) -> Root:
    """A root, answered for already where its folders can be guessed."""
    root = Root(lambda device, made: _say(box, ("root", made), [device]))
    if folders is not None and root.mount >= 0:
        try:
            root.serve(folders)
        except OSError as fault:
            root.why = f"the root: {fault.strerror}"
            root.leave()
    return root


def _say(box: socket.socket | None, message: tuple[Any, ...], descriptors: list[int] | None = None) -> None:
    if box is None:
        return
    try:
        socket.send_fds(box, [marshal.dumps(message)], descriptors or [])
    except OSError as fault:
        if descriptors:
            _say(box, ("failed", "hand out what it made", fault.errno or 0))
        os._exit(1)  # the box must not go on
