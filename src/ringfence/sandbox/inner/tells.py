"""Folders and files whose only use is that a try on them is told: hidden names of the worktree, files of /proc.

A folder of this kind lies in the worktree's overlay above the layer that hides. It holds no name at all, so the kernel
asks once for each name, and goes on with the layer below; what is hidden stays hidden by that layer alone. In the skeleton
these folders lie below ``/proc``, which the box's own /proc covers.
"""

import itertools
import os
import stat
import struct
from collections.abc import Iterable

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.skeleton import Entry

BELOW = b"/proc"
MOST_NAMES, MOST_FOLDERS, MOST_BYTES = 1000, 64, 1 << 16
"""Names in a folder of the worktree, each of which costs a question at its first use; folders; and bytes of hidden paths."""
KEYS = (b"/keys", b"/key-users")
"""Of /proc: the person's keys would be listed by name, for a box may have the person's uid."""
CLOSED = {
    **dict.fromkeys(
        (*KEYS, b"/kcore", b"/kmsg", b"/1/environ", b"/1/mem", b"/1/maps", b"/1/auxv"), stat.S_IFREG | 0o444
    ),
    **dict.fromkeys((b"/1/root", b"/1/cwd", b"/1/exe"), stat.S_IFLNK | 0o777),
    **dict.fromkeys((b"/1/fd", b"/1/map_files", b"/1/ns", b"/1/task"), stat.S_IFDIR | 0o555),
}
"""Of /proc; beside the keys and the threads of process 1, what is closed to a box anyway.

Whoever answers refuses to open the file, to follow the link, to list the folder or to look for a name in it, and hears of the try so.
"""


def place(number: int) -> bytes:
    """Where the folders for the overlay of this step lie in the skeleton."""
    return BELOW + b"/%d" % number


def closed_place(name: bytes) -> bytes:
    """Where that lies in the skeleton which stands for this one of /proc."""
    return BELOW + b"/of" + name.replace(b"/", b"-")


def closed() -> list[Entry]:
    """What stands for what is closed, for the skeleton."""
    return [(closed_place(name), mode, b"", None, (BELOW + name, 0, 0, 0)) for name, mode in CLOSED.items()]


class Telling:
    """The folders for one overlay. ``left`` counts hidden paths of which no try is told, for want of room."""

    def __init__(self, hiding: int, real: int) -> None:
        """Descriptors of the layer that hides, and of the worktree as it is."""
        self.hiding, self.real = hiding, real
        self.looks: dict[bytes, tuple[int, int, int, int] | None] = {}
        self.names: dict[bytes, list[bytes]] = {}
        self.left = 0

    def entries(self, number: int, shown: bytes, hidden: Iterable[bytes]) -> list[Entry]:
        """For the skeleton, folders before what is in them; empty when there is nothing to tell of.

        ``shown``: where the worktree lies in the view; ``hidden``: paths below it.
        """
        room = MOST_BYTES
        for path in sorted(hidden):
            room -= len(path)
            above, name = os.path.split(path)
            if room < 0 or not self._whole(above):
                self.left += 1
                continue
            self.names.setdefault(above, []).append(name)
        needed = {b""} if self.names else set()
        for folder in self.names:
            while folder:
                needed.add(folder)
                folder = os.path.dirname(folder)
        return [self._entry(number, shown, folder) for folder in sorted(needed)]

    def _entry(self, number: int, shown: bytes, folder: bytes) -> Entry:
        mode, uid, gid, changed = self.looks[folder] or (0, 0, 0, 0)
        below = b"/" + folder if folder else b""
        return (place(number) + below, mode, b"", self.names.get(folder, []), (shown + below, uid, gid, changed))

    def _whole(self, folder: bytes) -> bool:
        """Whether this folder and all above it can be told of."""
        if folder not in self.looks:
            above = not folder or self._whole(os.path.dirname(folder))
            self.looks[folder] = self._look(folder) if above and len(self.looks) < MOST_FOLDERS else None
        return self.looks[folder] is not None

    def _look(self, folder: bytes) -> tuple[int, int, int, int] | None:
        """Mode, owner, group and time that the merged folder shows; None where it is none, or holds too many names."""
        try:
            if _count(self.real, folder) > MOST_NAMES:
                return None
            info = os.stat(folder or b".", dir_fd=self.hiding, follow_symlinks=False)
        except OSError:
            return None
        if not stat.S_ISDIR(info.st_mode):
            return None
        # The uppermost folder shows the look of the layer that is written to, so its time is of no use.
        return info.st_mode, info.st_uid, info.st_gid, info.st_mtime_ns if folder else 0


def _count(root: int, folder: bytes) -> int:
    """Names in a folder, as far as they matter. Raises OSError."""
    how = struct.pack("=QQQ", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0, kernel.RESOLVE_HERE)
    here = kernel.openat2(root, folder or b".", how, len(how))
    try:
        with os.scandir(here) as names:
            return sum(1 for _name in itertools.islice(names, MOST_NAMES + 1))
    finally:
        os.close(here)
