"""What the host refuses the gate on the way, said to a person with what to do about it."""

import contextlib
import errno
from collections.abc import Iterator

from ringfence.model.errors import RingfenceError

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_REMEDIES = {
    errno.EMFILE: "end commands that are running, or raise the limit of open files (ulimit -n) of whoever starts the supervisor",
    errno.ENFILE: "end programs: the host has as many files open as it may (sysctl fs.file-max)",
    errno.ENOMEM: "end programs: the host has no memory left",
    errno.EROFS: "mount the file system writable again; the kernel's log says why it is not (dmesg)",
    errno.EIO: "look after the disk: the kernel's log says what failed (dmesg)",
}
_STANDARD = "see that the repository and ringfence's state folder can be read and written"


@contextlib.contextmanager
def told(place: str) -> Iterator[None]:
    """Any refusal of the kernel in the block becomes a RingfenceError; where it names no file, ``place`` is meant."""
    try:
        yield
    except ConnectionError:
        raise  # another process of the fence is gone: told where it is known
    except OSError as error:
        where = repr(error.filename or place)
        if error.errno in _NO_ROOM:
            raise RingfenceError(
                "gate-no-room",
                f"there was no room for the fence's own files: {error.strerror}; what the mission changed is in its layer",
                where=where,
                remedy="free some space on the file systems of the repository and of the home, then try again",
            ) from error
        raise RingfenceError(
            "gate-hindered",
            f"{error.strerror or error}: this was not done, or not all of it; what the mission changed is in its layer",
            where=where,
            remedy=f"{_REMEDIES.get(error.errno or 0, _STANDARD)}; then try again",
        ) from error
