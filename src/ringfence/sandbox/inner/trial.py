"""Tries each thing a box needs, each in a process of its own, and prints what the kernel answered.

Run as a program by the probe; prints one line a trial: name, errno (0: works) and, for Landlock, the ABI.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable

SECONDS = 10
ROOT_NEEDS = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "NET_ADMIN": 12,
    "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SETFCAP": 31,
}  # fmt: skip


def _user_namespace(_folder: bytes) -> None:
    from ringfence.sandbox.inner import init, kernel

    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    init.map_self(uid, gid)


def _enter(flags: int) -> None:
    from ringfence.sandbox.inner import kernel

    if os.geteuid() != 0 and not holds_capabilities():
        _user_namespace(b"")
    kernel.unshare(flags)


def holds_capabilities() -> bool:
    """Whether CAP_SYS_ADMIN is in effect here (root, or inside a namespace made for us)."""
    return "SYS_ADMIN" not in lacking()


def lacking() -> tuple[str, ...]:
    """Capabilities that building a box as root takes and that are not in effect here."""
    effective = 0
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("CapEff:"):
                effective = int(line.split()[1], 16)
    return tuple(name for name, number in ROOT_NEEDS.items() if not effective >> number & 1)


def _rights(_folder: bytes) -> None:
    if os.geteuid() == 0 and lacking():
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def _namespace(name: str) -> Callable[[bytes], None]:
    def trial(_folder: bytes) -> None:
        from ringfence.sandbox.inner import kernel

        _enter(getattr(kernel, f"CLONE_NEW{name}"))

    return trial


def _private(folder: bytes) -> None:
    from ringfence.sandbox.inner import kernel

    _enter(kernel.CLONE_NEWNS)
    kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
    os.chdir(folder)


def _new_mounts(folder: bytes) -> None:
    from ringfence.sandbox.inner import kernel

    _private(folder)
    tree = kernel.clone_tree(b"/usr")
    kernel.set_attributes(tree, kernel.ATTR_RDONLY | kernel.ATTR_NOSUID)


def _overlay(folder: bytes) -> None:
    from ringfence.sandbox.inner.view import View

    _private(folder)
    for name in (b"lower", b"upper", b"work"):
        os.makedirs(folder + b"/" + name, exist_ok=True)
    # Without these the overlay mounts and then cannot make a folder anew where one was removed: tmpfs before Linux 6.6.
    os.setxattr(folder + b"/upper", b"user.ringfence", b"y")
    View._mount_overlay([folder + b"/lower", folder + b"/upper", folder + b"/work"])  # noqa: SLF001  the very call boxes make


def _proc(folder: bytes) -> None:
    from ringfence.sandbox.inner import kernel

    _enter(kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)
    kernel.mount(None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
    _in_child(lambda: kernel.mount(b"proc", folder, b"proc", 0, None))


def _identity_map(folder: bytes) -> None:
    from ringfence.sandbox.inner import idmap, kernel
    from ringfence.sandbox.inner.view import View

    if os.geteuid() != 0:
        return
    _private(folder)
    tree = kernel.clone_tree(folder, recursive=False)
    kernel.set_attributes(tree, 0, userns=idmap.make((0, 0), (1_900_000_000, 1_900_000_000)), recursive=False)
    for name in (b"/lower", b"/upper", b"/work"):
        os.makedirs(folder + name, exist_ok=True)
    kernel.attach(tree, folder)
    View._mount_overlay([folder + b"/lower", folder + b"/upper", folder + b"/work"])  # noqa: SLF001  refused before Linux 5.19


def _filter(_folder: bytes) -> None:
    from ringfence.sandbox.inner import kernel, seccomp

    program = seccomp.build(kernel.MACHINE)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    seccomp.install(program)


def _hidden(_folder: bytes) -> None:
    from ringfence.sandbox.inner import kernel, root

    _enter(kernel.CLONE_NEWNS)
    device = os.open(root.DEVICE, os.O_RDWR | os.O_CLOEXEC)
    os.close(root.mount(device))


def _in_child(action: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # that of its parent is not inherited
        try:
            action()
        except OSError as fault:
            os._exit(min(fault.errno or 1, 255))
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


TRIALS: dict[str, Callable[[bytes], None]] = {
    "user": _user_namespace,
    "mnt": _namespace("NS"),
    "pid": _namespace("PID"),
    "net": _namespace("NET"),
    "ipc": _namespace("IPC"),
    "uts": _namespace("UTS"),
    "cgroup": _namespace("CGROUP"),
    "mounts": _new_mounts,
    "overlay": _overlay,
    "proc": _proc,
    "idmap": _identity_map,
    "seccomp": _filter,
    "rights": _rights,
    "hidden": _hidden,
}


def main(folder: str) -> int:
    """Try everything with ``folder`` as the place for the overlay's parts."""
    for name, trial in TRIALS.items():
        print(name, _outcome(trial, os.fsencode(folder)), flush=True)
    from ringfence.sandbox.inner import landlock

    print("landlock", landlock.abi())
    return 0


def _outcome(trial: Callable[[bytes], None], folder: bytes) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        try:
            trial(folder)
        except OSError as fault:
            os._exit(min(fault.errno or errno.EIO, 255))
        except BaseException:  # noqa: BLE001  an unknown architecture and the like: counted as not working
            os._exit(errno.ENOSYS)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else errno.ETIMEDOUT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
