"""The hot path: calls that surely are no attempt, told from all others with as few looks as can be.

Most calls that change a path name one plain place inside. Whatever is not as plain as that goes the long way, in ``attempts``.
"""

import ctypes
import errno
import os
import re
import stat
import struct
from collections.abc import Sequence

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.callers import SLASH, WORKING_FOLDER, Callers
from ringfence.sandbox.inner.changes import AT_SYMLINK_NOFOLLOW, CHANGES, NOFOLLOW, O_TMPFILE, ONLY_NEW, Places
from ringfence.sandbox.inner.seccomp import CHANGING, OPENING, TIMING

CHANGES_BY_NUMBER = (
    {number: CHANGES[name] for name, number in CHANGING[kernel.MACHINE].items()}
    | {number: CHANGES[name] for name, (number, _flags) in OPENING[kernel.MACHINE].items()}
    | {TIMING[kernel.MACHINE]: CHANGES["utimensat"]}
    if kernel.NUMBERS
    else {}
)
OPENAT2 = CHANGING[kernel.MACHINE]["openat2"] if kernel.NUMBERS else -1
NO_FOLLOW = NOFOLLOW.get(kernel.MACHINE, 0)
PLACE = os.O_PATH | os.O_CLOEXEC
RULES = kernel.RESOLVE_IN_ROOT | kernel.RESOLVE_NO_MAGICLINKS
AS_WRITTEN = tuple(
    struct.pack("=QQQ", PLACE | last, 0, RULES | kernel.RESOLVE_NO_SYMLINKS) for last in (os.O_NOFOLLOW, 0)
)
"""``struct open_how`` for a path in which no link stands; the second one also not in the last place."""
AS_IT_LEADS = struct.pack("=QQQ", PLACE | os.O_NOFOLLOW, 0, RULES)

HOW_SIZE = 24
PLACING = frozenset({"rename", "symlink", "link"})
"""What can put a link where none was."""
FLAGGED = (
    frozenset({CHANGING[kernel.MACHINE][name] for name in ("renameat2", "linkat")}) if kernel.NUMBERS else frozenset()
)
MANY_PATHS = 1024
ODD = re.compile(rb"/\.{0,2}(?:/|\Z)")
"""A part that is empty, ``.`` or ``..``, so that the letters are not the whole truth."""
ORDINARY = {
    number: (
        -1 if change.paths[0][0] is None else change.paths[0][0],
        change.paths[0][1],
        change.flags,
        change.follows,
        change.words == "open for writing",
    )
    for number, change in CHANGES_BY_NUMBER.items()
    if len(change.paths) == 1
    and change.attribute < 0
    and change.size < 0
    and change.words not in {*PLACING, "mknod"}
    and number != OPENAT2
}
"""Register of the folder or -1, of the path, of the flags or -1; whether a link in the last place is followed; opens."""
OPEN = frozenset(
    number for number, change in CHANGES_BY_NUMBER.items() if change.descriptor == 0 and change.attribute < 0
)
"""About an open file."""
Ends = tuple[tuple[int | None, int], ...]
PAIRS: dict[int, tuple[Ends, int]] = {
    number: (change.paths, 4 if number in FLAGGED else -1)
    for number, change in CHANGES_BY_NUMBER.items()
    if len(change.paths) == 2
}
"""Of renames and links: both paths, and the register with flags or -1."""


def as_written(root: int, path: bytes, *, last: bool) -> bool:
    """Whether no link stands in the path, which need not be there; ``last``: nor in the last place."""
    place = kernel.open_place(OPENAT2, root, path, AS_WRITTEN[last], HOW_SIZE)
    if place < 0:
        return ctypes.get_errno() != errno.ELOOP
    os.close(place)
    return True


class Ordinary:
    """The ordinary calls of one box. ``root`` stands for the box's own."""

    def __init__(self, places: Places, root: int, callers: Callers) -> None:
        self.places, self.root, self.callers = places, root, callers
        self.unlinked: set[bytes] = set()

    def is_one(self, number: int, pid: int, registers: Sequence[int]) -> bool:
        """Whether the call surely is no attempt: plain paths inside, in which no link stands. The hot path of all.

        What was seen to be free of links stays so, in a place that only this box can change, until it places what could be
        one. (Threads that ask at the same time could have it otherwise; so they could by changing the path itself.)
        """
        call = ORDINARY.get(number)
        if call is None:
            if number in OPEN:
                return self.places.inside(self.callers.base(pid, registers[0] & 0xFFFFFFFF))
            return number in PAIRS and self._moves_a_file(PAIRS[number], pid, registers)
        folder, place, flags, last, opens = call
        if flags >= 0:
            asked = registers[flags]
            if not opens:
                last = not asked & AT_SYMLINK_NOFOLLOW
            elif asked & O_TMPFILE:
                return False
            else:
                last = not (asked & NO_FOLLOW or asked & ONLY_NEW == ONLY_NEW)
        start = WORKING_FOLDER if folder < 0 else registers[folder] & 0xFFFFFFFF
        path, base = self.callers.path(pid, registers[place], start)
        if not path:
            return False
        if not base and path in self.places.devices:
            return True
        return self._plain(base + b"/" + path if base else path, last=last, added=base != b"" and b"/" not in path)

    def _plain(self, path: bytes, *, last: bool, added: bool) -> bool:
        """Whether the letters lie inside and are the whole truth. ``added``: one name to a folder that the kernel named."""
        places = self.places
        if (b"/." in path or b"//" in path or path[-1] == SLASH) and ODD.search(path):
            return False
        if not places.inside(path) or path in places.hidden:
            return False
        if not last:
            if added:
                return True  # the kernel names folders without links
            path = path[: path.rindex(b"/")]
        return path in self.unlinked or self._unlinked(path)

    def _moves_a_file(self, call: tuple[Ends, int], pid: int, registers: Sequence[int]) -> bool:
        """For a rename or link: whether both paths are plain and it is about a file, so that no link appears by it."""
        ends, flags = call
        if flags >= 0 and registers[flags]:
            return False
        old = b""
        for folder, place in ends:
            start = WORKING_FOLDER if folder is None else registers[folder] & 0xFFFFFFFF
            path, base = self.callers.path(pid, registers[place], start)
            if not path:
                return False
            whole = base + b"/" + path if base else path
            if not self._plain(whole, last=False, added=base != b"" and b"/" not in path):
                return False
            old = old or whole
        found = kernel.open_place(OPENAT2, self.root, old, AS_WRITTEN[False], HOW_SIZE)
        if found < 0:
            return False
        try:
            return stat.S_ISREG(os.fstat(found).st_mode)
        finally:
            os.close(found)

    def _unlinked(self, path: bytes) -> bool:
        """Whether no link stands in the path, which need not be there; remembered where nobody else could make one."""
        if not as_written(self.root, path, last=True):
            return False
        if self.places.own(path):
            if len(self.unlinked) >= MANY_PATHS:
                self.unlinked.clear()
            self.unlinked.add(path)
        return True

    def links_may_appear(self) -> None:
        """Something is about to be placed that could be a link: look anew."""
        self.unlinked.clear()
