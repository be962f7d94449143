"""Memory that waits in a box's sockets of the internet: control groups v1 do not count it, and no process owns it."""

import itertools
import os

TABLES = ("udp", "udp6", "tcp", "tcp6")
READ_BYTES, READS = 4096, 256
"""The kernel hands out a table page by page, and finds its place anew each time: of a very long one only the front is read."""
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def on_host() -> int:
    """Bytes in such buffers of the whole host: cheap to ask, and no box takes any without this growing."""
    words = _read("/proc/net/sockstat")[0].split()
    return sum(int(size) for word, size in itertools.pairwise(words) if word == b"mem") * PAGE_BYTES


def of_box(pid: int, enough: int) -> int:
    """Bytes in the buffers of the network that this process is in; looks no further where that is more than ``enough``."""
    total = 0
    for table in TABLES:
        if total <= enough:
            text, whole = _read(f"/proc/{pid}/net/{table}")
            total += queued(text, 0 if whole else _sockets(pid))
    return total


def queued(text: bytes, sockets: int) -> int:
    """Bytes in the queues of one table. Where there are more ``sockets`` than lines, as if all were like these."""
    lines = text.split(b"\n")[1:-1]
    total = 0
    for line in lines:
        sent, _colon, received = line.split()[4].partition(b":")
        total += int(sent, 16) + int(received, 16)
    return total * max(sockets, len(lines)) // len(lines) if lines else 0


def _sockets(pid: int) -> int:
    """All sockets in this network, of whatever kind."""
    words = _read(f"/proc/{pid}/net/sockstat")[0].split()
    return int(words[2]) if len(words) > 2 else 0


def _read(path: str) -> tuple[bytes, bool]:
    """What there is, and whether that is all. Nothing where it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b"", True
    data = b""
    try:
        for _read_once in range(READS):
            part = os.read(file, READ_BYTES)
            if not part:
                return data, True
            data += part
    except OSError:
        return b"", True
    finally:
        os.close(file)
    return data, False
