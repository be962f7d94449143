"""Who starts a program: the name of a process's parent. A box's own name for itself, so a record and no more."""

import os

KNOWN = 4
"""The names of so many parents of one box are kept open, since most start more than one program."""


class Parents:
    """The parents in one box."""

    def __init__(self) -> None:
        self.names: dict[int, int] = {}
        """By number of the process: its name in ``/proc``, which stands for the process and not for its number."""

    def name(self, pid: int) -> bytes | None:
        """The name of the parent as it is now; None when either is gone."""
        try:
            parent = _parent(pid)
            try:
                return self._name(parent)
            except OSError:
                self._let_go(parent)  # of another process that had its number
                return self._name(parent)
        except (OSError, ValueError, IndexError):
            return None

    def _name(self, pid: int) -> bytes:
        name = self.names.get(pid)
        if name is None:
            while len(self.names) >= KNOWN:
                self._let_go(next(iter(self.names)))
            name = self.names[pid] = os.open(f"/proc/{pid}/comm", os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(name, 64, 0).removesuffix(b"\n")

    def _let_go(self, pid: int) -> None:
        name = self.names.pop(pid, None)
        if name is not None:
            os.close(name)

    def close(self) -> None:
        """Keep nothing open."""
        while self.names:
            self._let_go(next(iter(self.names)))


def _parent(pid: int) -> int:
    stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)  # ``open`` would ask for much that is not needed
    try:
        return int(os.read(stat, 1024).rpartition(b")")[2].split(maxsplit=2)[1])
    finally:
        os.close(stat)
