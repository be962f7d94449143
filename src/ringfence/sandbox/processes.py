"""The processes of a box as the host sees them."""

import os
import socket
import sys
from dataclasses import dataclass


def tree(root: int) -> tuple[int, ...]:
    """``root`` and everything below it, as far as it can be read at this moment."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue
        found.append(pid)
        for thread in threads:  # each has the children that it started itself
            waiting += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process that holds a socket: its id on the host, its program as the box sees it, its command line."""

    pid: int
    program: str
    command: str


def owners(root: int, source: tuple[str, int], target: tuple[str, int]) -> tuple[Owner, ...]:
    """All processes of a box that hold the TCP connection from ``source`` to ``target``, addresses as the box sees them.

    Every holder is listed: a child inherits its parent's sockets. Empty when the connection is closed already.
    """
    pids = tree(root)
    inodes = _inodes(pids, source, target)
    if not inodes:
        return ()
    return tuple(_owner(pid) for pid in pids if inodes & _sockets(pid))


def _inodes(pids: tuple[int, ...], source: tuple[str, int], target: tuple[str, int]) -> set[str]:
    wanted = {(_hex(*source), _hex(*target))}
    for pid in pids[1:] or pids:
        found = set()
        for name in ("tcp", "tcp6"):
            for line in _text(f"/proc/{pid}/net/{name}").splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and (fields[1], fields[2]) in wanted:
                    found.add(fields[9])
        if found:
            return found
    return set()


def _hex(address: str, port: int) -> str:
    """An address as /proc/net/tcp writes it: 32-bit words in the machine's own order."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    words = (packed[n : n + 4] for n in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"


def _sockets(pid: int) -> set[str]:
    found = set()
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            link = os.readlink(f"{folder}/{name}")
            if link.startswith("socket:["):
                found.add(link[8:-1])
    except OSError:
        return found  # gone meanwhile, or the box's own init, which holds no connection
    return found


def _owner(pid: int) -> Owner:
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        program = ""
    command = _text(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " ")
    return Owner(pid=pid, program=program, command=command[:1000])


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
