"""Processes of a box as the launcher sees them, read from /proc without a single fork."""

import os

TICK = os.sysconf("SC_CLK_TCK")


def below(root: int) -> list[int]:
    """``root`` and all its descendants at this moment."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        text = _read(f"/proc/{pid}/task/{pid}/children")
        if text is None:
            continue
        found.append(pid)
        waiting += [int(word) for word in text.split()]
    return found


def anonymous_memory(pids: list[int]) -> int:
    """Bytes of memory that belong to these processes alone: anonymous and shared, not file pages."""
    total = 0
    for pid in pids:
        for line in (_read(f"/proc/{pid}/status") or b"").splitlines():
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total


def cpu_millis(pid: int) -> int:
    """CPU time of a process and of the children it has waited for."""
    fields = _fields(pid)
    return sum(int(word) for word in fields[11:15]) * 1000 // TICK if fields else 0


def start_ticks(pid: int) -> int:
    """When it started, in clock ticks since boot; 0 when it is gone. With the id it names one process for ever."""
    fields = _fields(pid)
    return int(fields[19]) if fields else 0


def _fields(pid: int) -> list[bytes]:
    return (_read(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()


def _read(path: str) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, 65536)
    except OSError:
        return None
    finally:
        os.close(file)
