"""One segment file, opened for writing: zeros written ahead, overwrites in place, a flush before anyone is told.

A growing file pays for a change of its size at each flush; overwriting zeros that were written before does not, and
cannot run out of space half way.
"""

import contextlib
import errno
import os

from ringfence.ledger.flush import Flusher, write_all
from ringfence.ledger.frame import Header, segment_name

SEGMENT_BYTES = 64 * 1024 * 1024
WINDOW_BYTES = 4 * 1024 * 1024
_ZEROS = bytes(64 * 1024)


def sync_directory(path: str) -> None:
    """Make names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: str, data: bytes, mode: int = 0o600) -> None:
    """Put ``data`` at ``path`` so that a crash leaves the old file or the new one, whole."""
    temporary = f"{path}.new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        try:
            write_all(fd, data, 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # on a full disk the room that it took is wanted
        raise
    sync_directory(os.path.dirname(path))


def _take_back(path: str) -> None:
    """Remove a segment whose name may not be durable. Where that fails, no more may be written to the one before it."""
    try:
        os.unlink(path)
    except OSError as error:
        raise OSError(errno.EIO, "a new segment can neither be used nor removed", path) from error


class Segment:
    """The segment that takes new records. ``offset`` is where the next group goes, ``zeroed`` how far zeros reach."""

    def __init__(self, *, path: str, fd: int, offset: int, zeroed: int, window: int) -> None:
        """Use ``create`` or ``resume``."""
        self.path, self.fd, self.offset, self.zeroed, self.window = path, fd, offset, zeroed, window
        self._flusher = Flusher(fd)

    @classmethod
    def create(cls, folder: str, header: Header, *, window: int, first: bytes = b"") -> "Segment":
        """A new segment with its header, a ``first`` group and a window of zeros, durable under its name."""
        path = f"{folder}/{segment_name(header.first)}"
        temporary = f"{path}.new"
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            line = header.line() + first
            write_all(fd, line, 0)
            segment = cls(path=path, fd=fd, offset=len(line), zeroed=len(line), window=window)
            segment.extend()
            os.fsync(fd)
            os.rename(temporary, path)
        except BaseException:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        try:
            sync_directory(folder)
        except OSError:
            os.close(fd)
            _take_back(path)
            raise
        return segment

    @classmethod
    def resume(cls, path: str, *, offset: int, window: int) -> "Segment":
        """The last segment of an earlier run, to be continued at ``offset``.

        Flushed first: what that run wrote may have been read here without being on the disk yet.
        """
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fdatasync(fd)
        except OSError:
            os.close(fd)
            raise
        return cls(path=path, fd=fd, offset=offset, zeroed=os.fstat(fd).st_size, window=window)

    @property
    def first(self) -> int:
        """Number of its first record, by its name."""
        return int(os.path.basename(self.path)[:20])

    @property
    def room(self) -> int:
        """Bytes that can be written without asking the file system for space."""
        return self.zeroed - self.offset

    def extend(self) -> None:
        """Write one more window of zeros and flush it. Raises OSError; the segment is as before then."""
        before = self.zeroed
        goal = (before // self.window + 1) * self.window
        try:
            for start in range(before, goal, len(_ZEROS)):
                write_all(self.fd, _ZEROS[: goal - start], start)
            os.fdatasync(self.fd)
        except OSError:
            os.ftruncate(self.fd, before)
            raise
        self.zeroed = goal

    def write(self, group: bytes) -> None:
        """Make a group durable in the zeros ahead. Raises OSError; what reached the disk is then unknown."""
        self._flusher.write(group, self.offset)
        self.offset += len(group)

    def wipe(self, length: int) -> None:
        """Put zeros back over ``length`` bytes from ``offset``: a torn tail, or a group that was refused."""
        for start in range(self.offset, self.offset + length, len(_ZEROS)):
            write_all(self.fd, _ZEROS[: self.offset + length - start], start)
        os.fdatasync(self.fd)

    def seal(self) -> None:
        """Cut the zeros off: a sealed segment ends with its last commit line."""
        os.ftruncate(self.fd, self.offset)
        os.fsync(self.fd)
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
