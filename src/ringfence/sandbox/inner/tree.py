"""Processes of a box as the launcher sees them, read from /proc without a single fork."""

import contextlib
import itertools
import os
import time
from collections.abc import Iterator

TICK = os.sysconf("SC_CLK_TCK")
UNNAMED = (b"/memfd:", b"/dev/zero (deleted)")
MANY_SOCKETS, MANY_MAPPINGS = 256, 70_000
"""Looked at in one go; no process has more mappings, unless its host's settings were changed."""


def below(root: int) -> list[int]:
    """``root`` and all its descendants at this moment."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        children = _children(pid)
        if children is not None:
            found.append(pid)
            waiting += children
    return found


def _children(pid: int) -> list[int] | None:
    """Of all its threads: each has those that it started itself. None where the process is gone."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    return [int(word) for thread in threads for word in (_read(f"/proc/{pid}/task/{thread}/children") or b"").split()]


def tasks(pids: list[int]) -> int:
    """How many threads these processes have in all."""
    count = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def closed(pids: list[int]) -> bool:
    """Whether one of these lets nobody see what it has open, as a program that may be run and not be read."""
    return any(not os.access(f"/proc/{pid}/fd", os.R_OK) and os.access(f"/proc/{pid}", os.F_OK) for pid in pids)


def own_memory(pids: list[int]) -> tuple[int, int, int]:
    """Bytes of memory that belong to these processes alone, also what is swapped out, with page tables; and shared ones in use.

    Third, what of the first may be counted more than once at most, because of forks: page tables never are.
    """
    tables = shared = whole = largest = 0
    for pid in pids:
        anonymous = 0
        for line in (_read(f"/proc/{pid}/status") or b"").splitlines():
            if line.startswith((b"RssAnon:", b"VmSwap:")):
                anonymous += int(line.split()[1]) * 1024
            elif line.startswith(b"VmPTE:"):
                tables += int(line.split()[1]) * 1024
            elif line.startswith(b"RssShmem:"):
                shared += int(line.split()[1]) * 1024
        whole, largest = whole + anonymous, max(largest, anonymous)
    return whole + tables, shared, whole - largest


def shared_by_forks(pids: list[int], enough: int, seconds: float) -> int:
    """Bytes that ``own_memory`` counts more than once, because processes have them in common since a fork.

    The largest processes are looked at first, until that is ``enough``, or for about so long of our own time; of those that
    are left everything counts.
    """
    end, twice = time.thread_time() + seconds, 0
    for pid in sorted(pids, key=_resident, reverse=True):
        twice += _in_common(_read(f"/proc/{pid}/smaps_rollup") or b"")
        if twice >= enough or time.thread_time() > end:
            break
    return twice


def _resident(pid: int) -> int:
    words = (_read(f"/proc/{pid}/statm") or b"").split()
    return int(words[1]) if words else 0


def _in_common(rollup: bytes) -> int:
    """What a process has of pages, less its part of those that others have as well."""
    sizes = {line.partition(b":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:] if line.endswith(b"kB")}
    whole = sizes.get(b"Anonymous", 0) + sizes.get(b"Swap", 0)
    return max(0, whole - sizes.get(b"Pss_Anon", whole) - sizes.get(b"SwapPss", 0)) * 1024


def kept_memory(pids: list[int]) -> int:
    """Bytes that these processes keep in memory without having them mapped: files without a name, and their tmpfs."""
    files: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as entries:
                for entry in entries:
                    if os.readlink(entry.path).startswith("/memfd:"):
                        info = os.stat(entry.path)
                        files[info.st_dev, info.st_ino] = info.st_blocks * 512
        except OSError:
            continue  # gone, or not ours to look into
    return sum(files.values()) + next((size for size in map(_tmpfs, reversed(pids)) if size >= 0), 0)


def mapped_memory(pids: list[int]) -> int:
    """Bytes of shared memory without a name that these processes have mapped, whether or not a page of it is in use."""
    ends: dict[tuple[bytes, bytes], int] = {}
    for pid in pids:
        for line in _lines(f"/proc/{pid}/maps"):
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[1][3:] == b"s" and fields[5].startswith(UNNAMED):
                first, _dash, last = fields[0].partition(b"-")
                file = fields[3], fields[4]
                ends[file] = max(ends.get(file, 0), int(fields[2], 16) + int(last, 16) - int(first, 16))
    return sum(ends.values())


def in_flight(pids: list[int]) -> bool:
    """Whether a descriptor has been sent over a socket of these processes and not been received: a look at some, by chance."""
    sockets = []
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as entries:
                sockets += [(pid, entry.name) for entry in entries if os.readlink(entry.path).startswith("socket:")]
        except OSError:
            continue  # gone, or not ours to look into
    first = int.from_bytes(os.urandom(4), "big") % max(1, len(sockets))
    some = (sockets[first:] + sockets[:first])[:MANY_SOCKETS]
    return any(_sent(_read(f"/proc/{pid}/fdinfo/{name}") or b"") for pid, name in some)


def _sent(about: bytes) -> bool:
    return any(line.startswith(b"scm_fds:") and line.split()[1] != b"0" for line in about.splitlines())


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from itertools.islice(file, MANY_MAPPINGS)
    except OSError:
        return


def _tmpfs(pid: int) -> int:
    """Bytes in the tmpfs mounts of one process's view; -1 where it cannot be looked at. A path there is never followed."""
    total = -1
    for line in (_read(f"/proc/{pid}/mountinfo") or b"").splitlines():
        fields = line.split(b" ")
        if fields[fields.index(b"-") + 1] != b"tmpfs" or b"rw" not in fields[5].split(b","):
            continue
        try:
            info = os.statvfs(b"/proc/%d/root%s" % (pid, fields[4]))
        except OSError:
            continue
        total = max(0, total) + (info.f_blocks - info.f_bfree) * info.f_frsize
    return total


def shared_on_host() -> int:
    """Bytes of shared memory of the whole host: cheap to ask, and no box takes any without this growing."""
    for line in (_read("/proc/meminfo") or b"").splitlines():
        if line.startswith(b"Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def times(pid: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Its id and start, as one name; milliseconds of CPU time of its own, and of the children it has waited for."""
    fields = _fields(pid)
    if not fields:
        return (pid, 0), (0, 0)
    own, waited = (sum(map(int, fields[place : place + 2])) * 1000 // TICK for place in (11, 13))
    return (pid, int(fields[19])), (own, waited)


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
