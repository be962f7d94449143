"""Files of a box that have no name any more, or never had one, but still lie on the disk since a process holds them."""

import itertools
import os
import stat
import time
from collections.abc import Iterable, Iterator

from ringfence.sandbox.inner import kernel

MOST_HELD, MOST_SOCKETS, SECONDS = 4096, 256, 0.01
"""So many descriptors and sockets are looked at, and mappings for so long."""
PART = 1 << 16
KCMP_FILES = 2
DELETED = b" (deleted)"


class Unseen(Exception):
    """Not all could be looked at."""


def unnamed(pids: Iterable[int]) -> tuple[int, bool]:
    """Bytes allotted to files without a name that these processes hold, and whether all was seen."""
    found: dict[tuple[int, int], int] = {}
    try:
        in_memory = _in_memory(pids := list(pids))
        _held(pids, in_memory, found)
        _mapped(pids, in_memory, found)
    except Unseen:
        return sum(found.values()), False
    return sum(found.values()), True


def _held(pids: list[int], in_memory: set[int], found: dict[tuple[int, int], int]) -> None:
    sockets = 0
    for number, entry in enumerate(itertools.chain.from_iterable(map(_descriptors, pids))):
        if number >= MOST_HELD or sockets >= MOST_SOCKETS:
            raise Unseen
        try:
            info = os.stat(entry.path)
        except OSError:
            continue  # closed meanwhile
        if stat.S_ISSOCK(info.st_mode):
            sockets += 1
            _nothing_waits(entry.path)
        elif stat.S_ISREG(info.st_mode) and not info.st_nlink and info.st_dev not in in_memory:
            found[info.st_dev, info.st_ino] = info.st_blocks * 512


def _descriptors(pid: int) -> Iterator[os.DirEntry[str]]:
    """Also those of a thread that has descriptors of its own."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            if int(thread) != pid and _same_descriptors(pid, int(thread)):
                continue
            with os.scandir(f"/proc/{pid}/task/{thread}/fd") as entries:
                yield from entries
    except (FileNotFoundError, ProcessLookupError):
        return
    except PermissionError:
        raise Unseen from None


def _same_descriptors(one: int, other: int) -> bool:
    try:
        return kernel.kcmp(one, other, KCMP_FILES, 0, 0) == 0
    except OSError:
        return False  # a kernel that cannot compare: it is looked at again


def _nothing_waits(descriptor: str) -> None:
    """A descriptor that waits in a socket is held by no process. Raises Unseen if there is one."""
    folder, number = os.path.split(descriptor)
    try:
        with open(f"{folder}info/{number}", "rb") as file:
            lines = file.read(PART).splitlines()
    except OSError:
        return  # closed meanwhile
    if any(line.startswith(b"scm_fds:") and int(line.split()[1]) for line in lines):
        raise Unseen


def _mapped(pids: list[int], in_memory: set[int], found: dict[tuple[int, int], int]) -> None:
    """A mapping outlives its descriptor. Its size is not told, so one that no descriptor has told of counts as not seen."""
    until = time.monotonic() + SECONDS
    for line in itertools.chain.from_iterable(map(_mappings, pids)):
        if time.monotonic() > until:
            raise Unseen
        if not line.endswith(DELETED):
            continue
        device, inode = line.split()[3:5]
        major, _colon, minor = device.partition(b":")
        key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
        if key[0] not in in_memory and key not in found:
            raise Unseen


def _mappings(pid: int) -> Iterator[bytes]:
    try:
        with open(f"/proc/{pid}/maps", "rb", buffering=PART) as file:
            yield from map(bytes.rstrip, file)
    except PermissionError:
        raise Unseen from None
    except OSError:
        return  # it has ended


def _in_memory(pids: list[int]) -> set[int]:
    """Devices whose files take memory and no disk: memory files, System V memory, and the tmpfs of the box's view."""
    own = os.memfd_create("own", os.MFD_CLOEXEC)
    devices = {os.fstat(own).st_dev}
    os.close(own)
    for pid in reversed(pids):
        try:
            with open(f"/proc/{pid}/mountinfo", "rb") as file:
                lines = [line.split() for line in file]
        except OSError:
            continue
        for fields in lines:
            if fields[fields.index(b"-") + 1] == b"tmpfs":
                major, _colon, minor = fields[2].partition(b":")
                devices.add(os.makedev(int(major), int(minor)))
        if lines:
            return devices
    return devices
