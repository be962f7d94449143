"""Bytes that lie above the real tree. Watched cheaply: the file system's free space says when it is worth counting."""

import os

from ringfence.sandbox.inner.tree import below
from ringfence.sandbox.inner.unnamed import unnamed

LEAST = 1 << 20
LEAST_EACH = 4096
"""What any entry counts: an empty file takes no block, but an inode, of which a disk has only so many."""


class DiskWatch:
    """The upper layers of one box against its cap. What is there from earlier calls of the mission counts too.

    All of a mission's layers lie on one file system; the first one is the worktree's.
    """

    estimates: dict[bytes, int] = {}  # noqa: RUF012  shared on purpose: a layer outlives the boxes over it
    """Upper layer to bytes, as last counted plus what the file system has lost since."""

    def __init__(self, folders: list[bytes], cap: int) -> None:
        self.folders, self.cap = folders, cap
        self.folder = folders[0] if folders else b""
        self.free = self._free() if folders else 0

    def reached(self, pid: int) -> bool:
        """Whether the layer holds more than the cap, with what the box below ``pid`` holds of it without a name.

        What cannot be counted, the file system's free space tells.
        """
        if not self.folder:
            return False
        free = self._free()
        self.free = max(self.free, free)  # what others delete hides nothing that the box writes later
        lost = self.free - free
        guess = self.estimates.get(self.folder, 0) + lost
        if self.free and (lost < LEAST or guess < self.cap * 3 // 4):
            return False
        self.free = self._free()
        counts = [*(used(folder) for folder in self.folders), unnamed(below(pid))]
        size = sum(bytes_ for bytes_, _ in counts)
        if not all(whole for _, whole in counts):
            size = max(size, guess)  # a box must not escape its cap by closing folders, or by moving them about
        self.estimates[self.folder] = size
        return size > self.cap

    def close(self) -> None:
        """Remember for the next box over the same layer."""
        if self.folder:
            lost = max(0, self.free - self._free())
            self.estimates[self.folder] = self.estimates.get(self.folder, 0) + lost

    def _free(self) -> int:
        try:
            info = os.statvfs(self.folder)
        except OSError:
            return 0
        return info.f_bfree * info.f_frsize + info.f_ffree * LEAST_EACH


def used(folder: bytes) -> tuple[int, bool]:
    """Bytes allotted below a folder, and whether all was seen: entries may vanish meanwhile, folders may be closed."""
    total, whole, waiting = 0, True, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += LEAST_EACH
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        total += max(0, entry.stat(follow_symlinks=False).st_blocks * 512 - LEAST_EACH)
                    except OSError:
                        whole = False
        except OSError:
            whole = False
    return total, whole
