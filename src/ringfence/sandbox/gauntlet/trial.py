"""One attack, once, in one world, behind one fence: start it, watch it, collect what it said, end what it left."""

import contextlib
import os
import pty
import shlex
import shutil
import signal
import socket
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ringfence.sandbox.gauntlet import plant, watch
from ringfence.sandbox.gauntlet.attack import Attack, fill
from ringfence.sandbox.gauntlet.catalogue import path_of
from ringfence.sandbox.gauntlet.fence import Fence
from ringfence.sandbox.gauntlet.plant import World
from ringfence.sandbox.gauntlet.victims import Victims, environment, python

HOST_SHELL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_shell.py")
KEEP = 1 << 20
"""Bytes of the beginning, and about as many of the end, of each output stream that are kept for judging; all are counted."""
GRACE = 0.08
"""Seconds after the sandbox has come back within which the kernel may still be ending its processes."""
FEW_LOOKS, MANY_LOOKS = 4, 40
"""At processes that may have outlived the sandbox: one that forks all the time is missed by some looks."""
COMMAND = ("sh", "attack/go")
"""What every run asks the sandbox to start; the attack's own arguments stand in that script."""


@dataclass(slots=True)
class Stream:
    """What came out of one descriptor: its beginning and its end, so that no noise of a sandbox hides either."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    count: int = 0

    @property
    def data(self) -> bytes:
        """What was kept of it."""
        return bytes(self.head + self.tail)

    def drain(self, descriptor: int) -> None:
        """Read until the other end is closed, and count all."""
        with contextlib.suppress(OSError):
            while chunk := os.read(descriptor, 1 << 16):
                self.count += len(chunk)
                if len(self.head) < KEEP:
                    self.head += chunk
                    continue
                self.tail += chunk
                if len(self.tail) > 2 * KEEP:
                    del self.tail[:-KEEP]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run showed."""

    output: bytes
    """Standard output and error, the beginning and the end of each."""
    count: int
    """All bytes of both."""
    started_at: float
    """Monotonic; when the sandbox's command came back."""
    seen: watch.Seen
    outlived: bool
    """A process of the attack was alive when the sandbox had come back."""
    typed: bytes = b""
    """What waited in the person's terminal afterwards."""
    local_modes: tuple[int, int] = (0, 0)
    """The terminal's local modes before and after."""
    tag: bytes = b""

    @property
    def started(self) -> bool:
        """The program was started at all."""
        return b"begin " + self.tag in self.output

    @property
    def claims(self) -> bool:
        """The attack believes that it worked. Taken only to tell ``private`` from ``blocked``."""
        return b"claim: done" in self.output


def run(attack: Attack, world: World, fence: Fence, victims: Victims) -> Run:
    """Run the attack behind the fence, as often as it asks. Leaves no process of the attack behind."""
    _lay(attack, world)
    for _ in range(attack.runs - 1):
        _once(attack, world, fence, victims)
    return _once(attack, world, fence, victims)


def _once(attack: Attack, world: World, fence: Fence, victims: Victims) -> Run:
    command = fence.command(world, COMMAND)
    observer = watch.Watch(world.tag, int(world.values["inbound_port"]))
    observer.start()
    begin = time.monotonic()
    with _descriptors(attack, world) as keep:
        if attack.terminal:
            shown = _on_terminal(command, world, attack.seconds, keep, keyboard=attack.terminal == "yes")
        else:
            runner = _into_log if "log" in attack.descriptors else _on_pipes
            shown = runner(command, world, attack.seconds, keep)
    time.sleep(GRACE)
    looks = MANY_LOOKS if attack.judge[0] == "outlived" else FEW_LOOKS
    if outlived := observer.alive_from_now(looks=looks, seconds=GRACE):
        time.sleep(0.6)  # a daemon of the attack gets the time to act
    seen = observer.stop()
    watch.kill(world.tag.encode(), spare={os.getpid(), victims.process.pid})
    if attack.after:
        _person_uses_git(world, attack.after.split()[1:])
    return Run(
        output=shown.output,
        count=shown.count,
        started_at=begin,
        seen=seen,
        outlived=outlived,
        typed=shown.typed,
        local_modes=shown.local_modes,
        tag=world.tag.encode(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    output: bytes
    count: int
    typed: bytes = b""
    local_modes: tuple[int, int] = (0, 0)


def _lay(attack: Attack, world: World) -> None:
    folder = f"{world.worktree}/attack"
    os.makedirs(folder, exist_ok=True)
    shutil.copy(path_of(attack), f"{folder}/{attack.program}")
    interpreter = "python3" if attack.program.endswith(".py") else "sh"
    words = (interpreter, f"attack/{attack.program}", *fill(attack.arguments, world.values), world.tag)
    with open(f"{folder}/go", "w", encoding="utf-8") as file:
        file.write(f"echo begin {world.tag}\necho begin {world.tag} >&2\nexec {shlex.join(words)}\n")


@contextlib.contextmanager
def _descriptors(attack: Attack, world: World) -> Iterator[tuple[int, ...]]:
    opened = []
    for name in attack.descriptors:
        if name == "listener":
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(world.values["docker"])
            opened.append(sock.detach())
        elif name != "log":
            path = f"{world.home}/.ssh/id_rsa" if name == "key" else world.home
            opened.append(os.open(path, os.O_RDONLY))
    try:
        yield tuple(opened)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _into_log(command: tuple[str, ...], world: World, seconds: float, keep: tuple[int, ...]) -> _Shown:
    """Standard output is a log file of the person's that already holds lines, open for reading as well."""
    path = f"{world.base}/run/log"
    before = os.path.getsize(path)
    with open(path, "ab+") as log:
        process = subprocess.Popen(
            command,
            cwd=world.worktree,
            env=environment(world),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.PIPE,
            pass_fds=keep,
            start_new_session=True,
        )
        stream = Stream()
        pipe = process.stderr
        if pipe is not None:
            thread = threading.Thread(target=stream.drain, args=(pipe.fileno(),), daemon=True)
            thread.start()
            _wait(process, seconds)
            thread.join(1.5)
            pipe.close()
        log.seek(before)
        said = log.read(KEEP)
    return _Shown(output=said + stream.data, count=len(said) + stream.count)


def _on_pipes(command: tuple[str, ...], world: World, seconds: float, keep: tuple[int, ...]) -> _Shown:
    process = subprocess.Popen(
        command,
        cwd=world.worktree,
        env=environment(world),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=keep,
        start_new_session=True,
    )
    streams = [Stream(), Stream()]
    pipes = [pipe for pipe in (process.stdout, process.stderr) if pipe is not None]
    threads = [
        threading.Thread(target=stream.drain, args=(pipe.fileno(),), daemon=True)
        for stream, pipe in zip(streams, pipes, strict=True)
    ]
    for thread in threads:
        thread.start()
    _wait(process, seconds)
    for thread in threads:
        thread.join(1.5)
    for thread, pipe in zip(threads, pipes, strict=True):
        if not thread.is_alive():
            pipe.close()
    return _Shown(output=streams[0].data + streams[1].data, count=sum(stream.count for stream in streams))


def _on_terminal(
    command: tuple[str, ...], world: World, seconds: float, keep: tuple[int, ...], *, keyboard: bool
) -> _Shown:
    if not keyboard:
        command = ("sh", "-c", 'exec "$@" </dev/null', "sh", *command)
    master, slave = pty.openpty()
    report, write_end = os.pipe()
    before = termios.tcgetattr(slave)[3]
    process = subprocess.Popen(
        [python(), "-I", "-S", HOST_SHELL, str(write_end), *command],
        cwd=world.worktree,
        env=environment(world),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        pass_fds=(write_end, *keep),
    )
    os.close(write_end)
    stream, said = Stream(), Stream()
    threads = [
        threading.Thread(target=stream.drain, args=(master,), daemon=True),
        threading.Thread(target=said.drain, args=(report,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    _wait(process, seconds)
    threads[1].join(1.5)
    time.sleep(0.05)
    os.close(slave)
    for thread in threads:
        thread.join(1.5)
    for descriptor in (master, report):
        with contextlib.suppress(OSError):
            os.close(descriptor)
    after, typed = before, b""
    for line in said.data.splitlines():
        if line.startswith(b"local "):
            after = int(line[6:])
        typed += line[6:] if line.startswith(b"typed ") else b""
    return _Shown(output=stream.data, count=stream.count, typed=typed, local_modes=(before, after))


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Until it ends or its time is over; it does not go on after this, nor when this is interrupted."""
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()


def _person_uses_git(world: World, folders: list[str]) -> None:
    """What the person does next: look, commit; and a prompt that asks git wherever the person stands."""
    for words in (("status",), ("add", "-A", "src"), ("commit", "--allow-empty", "-m", "Person's own"), ("log", "-1")):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            plant.git(world.worktree, words, home=world.home)
    for folder in folders:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            plant.git(f"{world.worktree}/{folder}", ("status",), home=world.home)
