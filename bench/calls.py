"""What one call that is shown to the launcher costs: how long its caller waits, and the launcher's processor time.

    .venv/bin/python -m bench.calls [--calls N] [--between MICROSECONDS] [--only WORDS]

The listener is the launcher's own, the filter that of a box, and no box is around it. ``--between`` is other work of the caller.
"""

import argparse
import ctypes
import os
import shutil
import socket
import tempfile
import time

from ringfence.sandbox.inner import kernel, seccomp
from ringfence.sandbox.inner.loop import READ, Loop
from ringfence.sandbox.inner.watch import Calls, Record

HERE = -100
WRITE, NEW = os.O_CREAT | os.O_WRONLY, os.O_CREAT | os.O_EXCL | os.O_WRONLY


def calls(base: bytes, folder: int) -> dict[str, tuple[object, ...]]:
    """By what it is: a number of the x86-64 table, and the arguments. None of them changes anything."""
    return {
        "remove a name": (87, b"none"),
        "remove a name in an open folder": (263, folder, b"none", 0),
        "remove an absolute path": (87, base + b"/a/b/none"),
        "open a new file": (257, HERE, b"a/none/x", NEW),
        "open to append": (257, HERE, b"a/none/x", WRITE | os.O_APPEND),
        "make a folder": (83, base + b"/a/b", 0o755),
        "rename a file": (82, base + b"/a/file", base + b"/a/file"),
        "remove outside": (87, b"/usr/none"),
    }


def caller(base: bytes, channel: socket.socket, call: tuple[object, ...], options: argparse.Namespace) -> None:
    os.chdir(base)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener, _patient = seccomp.install(seccomp.build(kernel.MACHINE))
    socket.send_fds(channel, [b"x"], [listener])
    os.close(listener)
    channel.recv(1)
    function = ctypes.PyDLL(None).syscall
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in call]
    waits = []
    for _ in range(options.calls):
        end = time.perf_counter_ns() + options.between * 1000
        while time.perf_counter_ns() < end:
            pass
        begin = time.perf_counter_ns()
        function(*words)
        waits.append((time.perf_counter_ns() - begin) / 1000)
    waits.sort()
    channel.send(
        f"{waits[len(waits) // 20]:.1f} | {waits[len(waits) // 2]:.1f} | {waits[len(waits) * 9 // 10]:.1f}".encode()
    )


def once(base: bytes, name: str, call: tuple[object, ...], options: argparse.Namespace) -> None:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            caller(base, theirs, call, options)
        finally:
            os._exit(0)
    theirs.close()
    listener = socket.recv_fds(ours, 1, 1)[1][0]
    order = {"argv": [b"x"], "writable": [base], "hidden": frozenset(), "steps": [("ro", b"/usr"), ("tmpfs", base)]}
    loop = Loop()
    seen = Calls(loop, [listener, os.open("/", os.O_PATH)], Record(), order, (-1, None))
    process = os.pidfd_open(pid)
    loop.watch(process, READ, lambda _events: setattr(loop, "running", False))
    begun = time.process_time()
    ours.send(b"g")
    loop.run()
    spent = (time.process_time() - begun) / options.calls * 1e6
    print(f"| {name} | {ours.recv(100).decode()} | {spent:.1f} |", flush=True)
    os.waitpid(pid, 0)
    seen.close()
    ours.close()
    os.close(process)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=3000)
    options.add_argument("--between", type=int, default=0)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    base = tempfile.mkdtemp(prefix="calls-")
    os.makedirs(f"{base}/a/b")
    with open(f"{base}/a/file", "wb"):
        pass
    folder = os.open(f"{base}/a", os.O_PATH)
    kernel.set_slice(100_000)
    print("| call | µs, a twentieth | median | nine tenths | processor µs of the launcher |\n|---|---|---|---|---|")
    try:
        for name, call in calls(os.fsencode(base), folder).items():
            if chosen.only in name:
                once(os.fsencode(base), name, call, chosen)
    finally:
        os.close(folder)
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
