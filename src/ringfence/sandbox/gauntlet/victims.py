"""The living victims of one world: a process, sockets, shared memory, a terminal, a key; and what became of them."""

import contextlib
import ctypes
import os
import pty
import resource
import shutil
import subprocess
import sys
import tty
from dataclasses import dataclass, field

from ringfence.sandbox.gauntlet.plant import World, new_secret
from ringfence.sandbox.gauntlet.servers import Servers

VICTIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "victim.py")
KEY_CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}
SYS_ADD_KEY, SYS_KEYCTL = KEY_CALLS.get(os.uname().machine, (-1, -1))
KEY_SPEC_SESSION_KEYRING = -3
KEYCTL_JOIN_SESSION_KEYRING, KEYCTL_SETPERM, KEYCTL_UNLINK = 1, 5, 9
IPC_PRIVATE, IPC_RMID = 0, 0
SHARED = ("/dev/shm", "/tmp", "/var/tmp", "/run/lock", "/var/lock")  # noqa: S108  # names of files there are of one world
UNIX = {"docker": "run/docker.sock", "ssh-agent": "run/agent.sock", "bus": "run/bus.sock", "display": "run/wayland-0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the kernel says of the victim process."""

    alive: bool
    stopped: bool
    signals: str
    nice: int
    affinity: frozenset[int]
    files: tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Victims:
    """What stands beside one world while an attack runs. ``close`` leaves nothing."""

    world: World
    servers: Servers
    process: subprocess.Popen[bytes]
    master: int
    slave: int
    shm: int
    key: int
    before: Standing
    names: list[str] = field(default_factory=list)

    def standing(self) -> Standing:
        """How the victim process stands now."""
        return _standing(self.process.pid, f"{self.world.base}/run/signals")

    def typed_on(self) -> bytes:
        """What was written to the person's other terminal."""
        os.set_blocking(self.master, False)
        with contextlib.suppress(OSError):
            return os.read(self.master, 65536)
        return b""

    def close(self) -> None:
        """End the process, close the sockets and remove what the kernel keeps by name."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        os.close(self.master)
        os.close(self.slave)
        _libc().shmctl(self.shm, IPC_RMID, None)
        if self.key > 0:
            _libc().syscall(SYS_KEYCTL, KEYCTL_UNLINK, self.key, KEY_SPEC_SESSION_KEYRING)
        self.servers.close(*self.names)
        _realtime().mq_unlink(_queue_name(self.world))
        for folder in SHARED:
            with contextlib.suppress(OSError):
                os.unlink(f"{folder}/{self.world.nonce}")


def raise_victims(world: World, servers: Servers) -> Victims:
    """Start the victims of a world and write their numbers and addresses into its values."""
    names = _sockets(world, servers)
    process = _start_process(world)
    master, slave = pty.openpty()
    tty.setraw(slave)
    shm = _shared_memory(world)
    key = _session_key(world)
    _message_queue(world)
    with open(f"/dev/shm/{world.nonce}", "w", encoding="ascii") as file:  # noqa: S108  # shared on purpose: the victim
        file.write(new_secret(world, "posix-shm"))
    line = process.stdout.readline().split() if process.stdout else []
    world.values |= {
        "victim_pid": str(process.pid),
        "victim_address": line[0].decode(),
        "victim_fd": line[1].decode(),
        "shm": str(shm),
        "shm_file": f"/dev/shm/{world.nonce}",  # noqa: S108  # the same
        "tmp_file": f"/tmp/{world.nonce}",  # noqa: S108  # only its absence or presence is looked at
        "shared_file": f"/var/tmp/{world.nonce}",  # noqa: S108  # the same
        "queue": _queue_name(world).decode(),
        "terminal": os.ttyname(slave),
        **{name.replace("-", "_") + "_port": str(port) for name, port in servers.ports.items()},
    }
    before = _standing(process.pid, f"{world.base}/run/signals")
    return Victims(
        world=world,
        servers=servers,
        process=process,
        master=master,
        slave=slave,
        shm=shm,
        key=key,
        before=before,
        names=names,
    )


def environment(world: World) -> dict[str, str]:
    """The environment of the person's shell from which the sandbox is started; it holds a secret."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": world.home,
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "USER": "person",
        "DEPLOY_TOKEN": world.secrets["environment"],
        "SSH_AUTH_SOCK": f"{world.base}/{UNIX['ssh-agent']}",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={world.base}/{UNIX['bus']}",
        "DOCKER_HOST": f"unix://{world.base}/{UNIX['docker']}",
    }


def python() -> str:
    """A Python that every user can start, where the host has one."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable


def _start_process(world: World) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            python(),
            "-I",
            "-S",
            VICTIM,
            f"{world.base}/run/signals",
            f"{world.base}/run/kept",
            new_secret(world, "argument"),
        ],
        env={"VICTIM_SECRET": world.secrets["victim"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _sockets(world: World, servers: Servers) -> list[str]:
    for name, path in UNIX.items():
        servers.open_unix(name, f"{world.base}/{path}")
        world.values[name.replace("-", "_")] = f"{world.base}/{path}"
    servers.open_unix("worktree", f"{world.worktree}/dev.sock")
    servers.open_unix("abstract", f"\0{world.nonce}")
    servers.open_unix_datagram("log", f"{world.base}/run/log.sock")
    servers.open_unix_datagram("abstract-log", f"\0{world.nonce}-log")
    world.values["log_socket"] = f"{world.base}/run/log.sock"
    return [*UNIX, "worktree", "abstract", "log", "abstract-log"]


def _shared_memory(world: World) -> int:
    libc = _libc()
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    libc.shmdt.argtypes = [ctypes.c_void_p]
    secret = new_secret(world, "shm").encode()
    number = int(libc.shmget(IPC_PRIVATE, 4096, 0o1666))
    address = libc.shmat(number, None, 0)
    ctypes.memmove(address, secret, len(secret))
    libc.shmdt(address)
    return number


def _message_queue(world: World) -> None:
    library, secret = _realtime(), new_secret(world, "queue").encode()
    queue = library.mq_open(_queue_name(world), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600, None)
    library.mq_send(queue, secret, len(secret), 0)
    library.mq_close(queue)


def _queue_name(world: World) -> bytes:
    return f"/{world.nonce}".encode()


def _realtime() -> ctypes.CDLL:
    return ctypes.CDLL("librt.so.1", use_errno=True)


def _session_key(world: World) -> int:
    """A key in this process's session keyring, as kerberos and disk encryption keep theirs; children inherit it."""
    secret = new_secret(world, "keyring").encode()
    name = f"gauntlet-{world.nonce}".encode()
    key = int(_libc().syscall(SYS_ADD_KEY, b"user", name, secret, len(secret), KEY_SPEC_SESSION_KEYRING))
    if key > 0:
        _libc().syscall(SYS_KEYCTL, KEYCTL_SETPERM, key, 0x3F3F0000)
    return key


def join_session_keyring() -> None:
    """A session keyring of the gauntlet's own, so that no key of the person is within reach of a control run."""
    _libc().syscall(SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None)


def _standing(pid: int, log: str) -> Standing:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        state, nice = fields[0], int(fields[16])
        affinity = frozenset(os.sched_getaffinity(pid))
        files = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        state, nice, affinity, files = "Z", 0, frozenset(), (0, 0)
    return Standing(
        alive=state not in "ZX",
        stopped=state in "Tt",
        signals=_text(log),
        nice=nice,
        affinity=affinity,
        files=files,
    )


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
