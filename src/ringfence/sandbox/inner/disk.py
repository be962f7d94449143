"""Bytes that lie above the real tree. Watched cheaply: the file system's free space says when it is worth counting."""

import os

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

    def reached(self) -> bool:
        """Whether the layer holds more than the cap."""
        if not self.folder:
            return False
        lost = self.free - self._free()
        guess = self.estimates.get(self.folder, 0) + max(0, lost)
        if lost < LEAST or guess < self.cap * 3 // 4:
            return False
        self.free = self._free()
        size = self.estimates[self.folder] = sum(used(folder) for folder in self.folders)
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


def used(folder: bytes) -> int:
    """Bytes allotted below a folder; what vanishes or is closed meanwhile counts nothing."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += max(LEAST_EACH, entry.stat(follow_symlinks=False).st_blocks * 512)
        except OSError:
            continue
    return total
