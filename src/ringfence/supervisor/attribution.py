"""Which program of a box opened a connection: the owners of its socket, nearest first, then their parents.

Read from the box's processes on the host; nothing in the box is asked.
"""

import ipaddress
import os
from collections.abc import Callable, Iterable

Address = tuple[str, int]
MAX_OWNERS = 8
MAX_CHAIN = 16


def owners(pids: Callable[[], Iterable[int]], source: Address, target: Address) -> tuple[str, ...]:
    """Executables that hold the socket from ``source`` to ``target``, then their parents; empty where it is gone."""
    known = tuple(pids())
    inode = next((found for pid in known[:1] if (found := _inode(pid, source, target)) is not None), None)
    if inode is None:
        return ()
    holders = [pid for pid in known if _holds(pid, inode)][:MAX_OWNERS]
    chain = list(dict.fromkeys(holders))
    for pid in holders:
        chain += [parent for parent in _parents(pid, set(known)) if parent not in chain]
    names = (_executable(pid) for pid in chain[:MAX_CHAIN])
    return tuple(name for name in names if name)


def _inode(pid: int, source: Address, target: Address) -> int | None:
    """The socket's inode in the network namespace of a process."""
    for table, wide in (("tcp", False), ("tcp6", True), ("udp", False), ("udp6", True)):
        wanted = {(_encoded(source, wide=wide), _encoded(target, wide=wide))} - {("", "")}
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                next(lines, None)
                for line in lines:
                    fields = line.split()
                    if (fields[1], fields[2]) in wanted:
                        return int(fields[9])
        except (OSError, IndexError, ValueError):
            continue
    return None


def _encoded(address: Address, *, wide: bool) -> str:
    """An address as /proc/net spells it: each 32-bit word in the machine's byte order, in hexadecimal."""
    try:
        parsed = ipaddress.ip_address(address[0])
    except ValueError:
        return ""
    packed = parsed.packed
    if wide and parsed.version == 4:
        packed = b"\0" * 10 + b"\xff\xff" + packed
    elif not wide and parsed.version == 6:
        return ""
    words = [packed[at : at + 4][::-1].hex() for at in range(0, len(packed), 4)]
    return f"{''.join(words).upper()}:{address[1]:04X}"


def _holds(pid: int, inode: int) -> bool:
    wanted = f"socket:[{inode}]"
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_link(entry.path) == wanted for entry in entries)
    except OSError:
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _parents(pid: int, known: set[int]) -> list[int]:
    found: list[int] = []
    while len(found) < MAX_CHAIN:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            break
        if pid not in known:
            break
        found.append(pid)
    return found


def _executable(pid: int) -> str:
    return _link(f"/proc/{pid}/exe").removesuffix(" (deleted)")
