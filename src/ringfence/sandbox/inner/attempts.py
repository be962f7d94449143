"""Attempts of a box to change what it may not change, read from the caller and recorded. Never the wall, never in its way.

The caller waits while its path is read and judged: after the answer it may have ended, and the box's mounts with it. Nothing
is opened but places (``O_PATH``), from the box's own root and never through a link, so no pipe, device or host file is touched.
"""

import ctypes
import errno
import os
import re
import stat
import struct
from collections.abc import Sequence
from typing import Any

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.callers import SLASH, WORKING_FOLDER, Callers
from ringfence.sandbox.inner.changes import (
    AT_SYMLINK_NOFOLLOW,
    CHANGES,
    INNER_ATTRIBUTES,
    NOFOLLOW,
    O_TMPFILE,
    ONLY_NEW,
    OWN_DESCRIPTOR,
    WRITE_INTENT,
    Change,
    Places,
    follows,
    joined,
    normal,
    real,
    shown,
    unnamed,
)
from ringfence.sandbox.inner.seccomp import CHANGING, OPENING
from ringfence.sandbox.inner.view import DEVICES

REFUSED, HIDDEN = "refused-write", "hidden-write"
KINDS = frozenset({REFUSED, HIDDEN})
CHANGES_BY_NUMBER = (
    {number: CHANGES[name] for name, number in CHANGING[kernel.MACHINE].items()}
    | {number: CHANGES[name] for name, (number, _flags) in OPENING[kernel.MACHINE].items()}
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
    if len(change.paths) == 1 and change.attribute < 0 and change.words not in PLACING and number != OPENAT2
}
"""Register of the folder or -1, of the path, of the flags or -1; whether a link in the last place is followed; opens."""

Taken = tuple[Change, int, list[tuple[bytes, bytes]], bool, bytes]


class Attempts:
    """What one box tries to change outside of what it may."""

    def __init__(self, order: dict[str, Any], root: int, callers: Callers) -> None:
        self.places, self.root, self.callers = Places(order, DEVICES), root, callers
        self.unlinked: set[bytes] = set()

    def ordinary(self, number: int, pid: int, registers: Sequence[int]) -> bool:
        """Whether the call surely is no attempt: one plain path inside, in which no link stands. The hot path of all.

        What was seen to be free of links stays so, in a place that only this box can change, until it asks for a link or a
        rename. (Threads that ask at the same time could have it otherwise; so they could by changing the path itself.)
        """
        call = ORDINARY.get(number)
        if call is None:
            return False
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
        places = self.places
        if base:
            whole = base + b"/" + path
        elif path in places.devices:
            return True
        else:
            whole = path
        if (b"/." in whole or b"//" in whole or whole[-1] == SLASH) and ODD.search(whole):
            return False
        if not whole.startswith(places.writable) or whole.startswith(places.closed) or whole in places.hidden:
            return False
        if not last:
            if base and b"/" not in path:
                return True  # the kernel names the folder without links
            whole = whole[: whole.rindex(b"/")]
        return whole in self.unlinked or self._unlinked(whole)

    def _unlinked(self, path: bytes) -> bool:
        """Whether no link stands in the path, which need not be there; remembered where nobody else could make one."""
        if not self._as_written(path, last=True):
            return False
        if self.places.own(path):
            if len(self.unlinked) >= MANY_PATHS:
                self.unlinked.clear()
            self.unlinked.add(path)
        return True

    def links_may_appear(self) -> None:
        """Something is about to be placed that could be a link: look anew."""
        self.unlinked.clear()

    def take(self, change: Change, number: int, pid: int, registers: Sequence[int]) -> Taken | None:
        """What the caller asks for, read from it; None for a call that cannot be an attempt."""
        if change.words in PLACING:
            self.links_may_appear()
        attribute = b""
        if change.attribute >= 0:
            attribute = self.callers.text(pid, registers[change.attribute]) or b""
        last = follows(change, registers, NO_FOLLOW)
        if number == OPENAT2:
            flags = self.callers.word(pid, registers[2])
            if not flags & WRITE_INTENT:
                return None
            last = not flags & NO_FOLLOW
        paths, plain = [], not attribute and not last and change.words != "rename"
        for folder, place in change.paths:
            start = WORKING_FOLDER if folder is None else registers[folder] & 0xFFFFFFFF
            path, base = self.callers.path(pid, registers[place], start)
            if not path:
                return None  # the kernel will say so too
            whole = joined(base, path + b"/(unnamed)" if unnamed(change, registers) else path)
            # The kernel names the folder without links, so where only a name is added there is none to look for.
            plain = plain and base != b"" and b"/" not in path and self.places.plain(normal(whole), change.words)
            paths.append((path, whole))
        return None if plain else (change, pid, paths, last, attribute)

    def folder(self, taken: Taken) -> tuple[bytes, bytes] | None:
        """The two paths of a rename, where a folder is renamed within one overlay."""
        (_path, old), (_other, new) = taken[2]
        if not old or not new:
            return None
        place = kernel.open_place(OPENAT2, self.root, old.rstrip(b"/"), AS_IT_LEADS, HOW_SIZE)
        if place < 0:
            return None
        try:
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                return None
        finally:
            os.close(place)
        ends = [real(path, last=False, read_link=self._read_link) for path in (old, new)]
        whole = any(all(end.startswith(tree) for end in ends) for tree in self.places.overlays)
        return (old, new) if whole else None

    def judge(self, taken: Taken) -> tuple[str, str] | None:
        """Kind and detail for the record, if it would change what the box may not change."""
        change, pid, paths, last, attribute = taken
        kind, led = "", []
        for _path, whole in paths:
            one, place = self._place(change, pid, whole, last) if whole else ("", b"")
            kind = one if one == REFUSED or not kind else kind
            led.append(place)
        if attribute.startswith(INNER_ATTRIBUTES):
            kind = REFUSED
        if not kind:
            return None
        verb = f"{change.words} {shown(attribute)} on" if attribute else change.words
        named = [self._words(path, whole, place) for (path, whole), place in zip(paths, led, strict=True)]
        return kind, f"{verb} {' to '.join(named) or 'an open file'}"

    def _words(self, path: bytes, whole: bytes, led: bytes) -> str:
        given = normal(whole or path)
        if led and led not in {given, whole}:
            return f"{shown(self.places.folded(led))} through {shown(whole)}"
        return shown(self.places.folded(led or given))

    def _place(self, change: Change, pid: int, path: bytes, last: bool) -> tuple[str, bytes]:
        """The kind of attempt, empty for none, and where the path leads in truth, empty for nowhere else."""
        places, named = self.places, normal(path)
        if places.may_change(named) and (named in places.devices or self._as_written(path, last=last)):
            return (HIDDEN if places.hides(named, change.words) else ""), b""
        led = real(path, last=last, read_link=self._read_link)
        descriptor = OWN_DESCRIPTOR.fullmatch(led)
        if descriptor is not None:
            try:
                led = os.readlink(b"/proc/%d/fd/%d" % (pid, int(descriptor[1])))
            except OSError:
                return "", b""
            if not led.startswith(b"/"):
                return "", b""  # a pipe, a socket: nothing that a path leads to
        if places.may_change(led):
            return (HIDDEN if places.hides(led, change.words) else ""), led
        if change.words == "make folder" and self._exists(led):
            return "", b""  # "it exists" is no refusal, and `mkdir -p` asks for every folder on the way
        return REFUSED, led

    def _as_written(self, path: bytes, *, last: bool) -> bool:
        """Whether no link stands in the path."""
        place = kernel.open_place(OPENAT2, self.root, path, AS_WRITTEN[last], HOW_SIZE)
        if place < 0:
            return ctypes.get_errno() != errno.ELOOP
        os.close(place)
        return True

    def _exists(self, path: bytes) -> bool:
        place = kernel.open_place(OPENAT2, self.root, path, AS_IT_LEADS, HOW_SIZE)
        if place >= 0:
            os.close(place)
        return place >= 0

    def _read_link(self, path: bytes) -> bytes | None:
        link = kernel.open_place(OPENAT2, self.root, path, AS_WRITTEN[False], HOW_SIZE)
        if link < 0:
            return None
        try:
            return os.readlink(b"", dir_fd=link)
        except OSError:
            return None  # not a link
        finally:
            os.close(link)

    def close(self) -> None:
        """Let go of the box's root."""
        os.close(self.root)
