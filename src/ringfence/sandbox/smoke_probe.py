"""Runs inside a box, started by the smoke test: tries what must fail, and prints what it got as one JSON object.

Its word counts only against the box: what it managed is believed, what it failed at is checked from outside where it
can be. Standard modules only.
"""

import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time

CLONE_NEWUSER = 0x10000000
SECONDS, SECONDS_BEHIND = 1.0, 30.0
ADDRESS_BYTES = 107
"""What the kernel takes for a Unix socket's path."""


def secrets(planted: dict[str, str]) -> list[str]:
    """Where the planted word was found."""
    word = planted["word"].encode()
    found = [f"environment of {pid}" for pid in _pids() if word in _read(f"/proc/{pid}/environ")]
    places = [planted["file"], f"{planted['tree']}/.env", f"{planted['tree']}/.git/config"]
    found += [place for place in places if word in _read(place)]
    return found + [f"descriptor {n}" for n in range(3, 64) if word in _read(f"/proc/self/fd/{n}")]


def escalation() -> list[str]:
    """Rights that this process has or gained."""
    got = [] if os.geteuid() else ["uid 0"]
    for line in _read("/proc/self/status").decode().splitlines():
        name, _colon, value = line.partition(":")
        if name.startswith("Cap") and int(value, 16):
            got.append(f"{name} {value.strip()}")
        if name == "NoNewPrivs" and value.strip() != "1":
            got.append("new privileges allowed")
    try:
        os.setuid(0)
        got.append("setuid(0)")
    except OSError:
        pass  # as it must be
    try:
        done = subprocess.run(["sudo", "-n", "true"], capture_output=True, timeout=5, check=False)
        got += ["sudo"] if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        pass  # not even there, or it led to nothing
    return got


def connections(places: list[tuple[str, int]]) -> list[str]:
    """Addresses that answered."""
    reached = []
    for host, port in places:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as client:
            client.settimeout(SECONDS)
            if client.connect_ex((host, port)) == 0:
                reached.append(f"{host} port {port}")
    return reached


def sockets(paths: list[str]) -> list[str]:
    """Unix sockets of the host that could be reached; a leading ``@`` means an abstract one."""
    return [path for path in paths if _listens(path)]


def _listens(path: str) -> bool:
    folder = -1
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        try:
            if len(os.fsencode(path)) > ADDRESS_BYTES:
                folder = os.open(os.path.dirname(path), os.O_PATH)
                path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
            client.connect("\0" + path[1:] if path.startswith("@") else path)
        except OSError:
            return False
        finally:
            if folder >= 0:
                os.close(folder)
    return True


def nesting() -> list[str]:
    """Ways to a namespace of one's own."""
    libc = ctypes.CDLL(None, use_errno=True)
    got = ["unshare"] if libc.unshare(CLONE_NEWUSER) == 0 else []
    limit = _read("/proc/sys/user/max_user_namespaces").strip()
    return got + ([] if limit == b"0" else [f"max_user_namespaces {limit.decode()}"])


def write(places: list[str]) -> None:
    """Try to write where nothing may be written; whether anything arrived is looked at from outside."""
    for place in places:
        try:
            with open(place, "w", encoding="ascii") as file:
                file.write("written by the smoke test")
        except OSError:
            continue


def rename_attack(tree: str) -> None:
    """The way round read-only mounts: move the whole folder aside and plant another."""
    shutil.move(f"{tree}/.git", f"{tree}/.git.moved")
    os.makedirs(f"{tree}/.git/hooks")
    for name in ("config", "hooks/pre-commit"):
        with open(f"{tree}/.git/{name}", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\ntouch /tmp/owned\n")


def devices(places: list[str]) -> list[str]:
    """Device nodes that could be made. What marks a hole in an overlay needs no right: only Landlock refuses it."""
    made = []
    for place in places:
        try:
            os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(0, 0))
            made.append(place)
        except OSError:
            continue
    return made


def stay_behind() -> None:
    """A daemon in a session of its own, with no pipe of ours, that would outlive us."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(SECONDS_BEHIND)
        os._exit(0)
    os.wait()


def main() -> None:
    """Print what was reached, then leave a daemon behind."""
    planted = json.loads(sys.argv[1])
    result = {
        "secrets": secrets(planted),
        "escalation": escalation(),
        "metadata": connections([("169.254.169.254", 80), ("fd00:ec2::254", 80)]),
        "loopback": connections([("127.0.0.1", planted["port"])]),
        "sockets": sockets(planted["sockets"]),
        "shadow": ["/etc/shadow"] if _read("/etc/shadow") else [],
        "nesting": nesting(),
        "devices": devices(["/tmp/smoke-device"]),  # noqa: S108  the box's own
        "processes": [str(pid) for pid in planted["pids"] if pid in _pids()],
        "descriptors": [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 3],
    }
    write([planted["victim"], "/etc/smoke", "/usr/smoke", "/smoke"])
    rename_attack(planted["tree"])
    _read(os.path.expanduser("~/.ssh/id_rsa"))
    stay_behind()
    print(json.dumps(result), flush=True)
    sys.stdin.read()  # until the smoke test has looked at us from outside


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(65536)
    except OSError:
        return b""


if __name__ == "__main__":
    main()
