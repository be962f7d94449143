"""What of a file given as input a box has left unread: the caller's next program finds it, as without a fence.

A file is copied ahead of what the box reads. Whoever else holds the same opening of it (the loop of a shell, whose
commands share its input) goes on where the copying stopped, unless the place in it is set back.
"""

import contextlib
import fcntl
import os
import stat
import sys
import termios
from typing import Self


class Unread:
    """A file and the pipe into which it is copied."""

    def __init__(self, file: int, pipe: int) -> None:
        self.file, self.pipe = os.dup(file), os.dup(pipe)

    @classmethod
    def of(cls, source: int, pipe: int) -> Self | None:
        """None where the source is no file: of all else nothing can be given back. ``pipe`` is the end that is read."""
        return cls(source, pipe) if stat.S_ISREG(os.fstat(source).st_mode) else None

    def give_back(self, held: int) -> None:
        """The box is gone. ``held``: bytes that were read and never came into the pipe."""
        with contextlib.suppress(OSError):
            waiting = int.from_bytes(fcntl.ioctl(self.pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
            os.lseek(self.file, -waiting - held, os.SEEK_CUR)
        os.close(self.file)
        os.close(self.pipe)
