"""Attempts of a box to change what it may not change, read from the caller and recorded. Never the wall, never in its way.

The caller waits while its path is read and judged: after the answer it may have ended, and the box's mounts with it. Nothing
is opened but places (``O_PATH``), from the box's own root and never through a link, so no pipe, device or host file is touched.
"""

import os
import stat
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.callers import WORKING_FOLDER, Callers
from ringfence.sandbox.inner.changes import (
    ACCESS_LISTS,
    DEVICE,
    INNER_ATTRIBUTES,
    LETTING_IN,
    LONGEST_ADDRESS,
    OWN_DESCRIPTOR,
    WRITE_INTENT,
    Change,
    Places,
    follows,
    joined,
    names_others,
    normal,
    place_of_socket,
    real,
    shown,
    unnamed,
)
from ringfence.sandbox.inner.ordinary import (
    AS_IT_LEADS,
    AS_WRITTEN,
    HOW_SIZE,
    NO_FOLLOW,
    OPENAT2,
    PLACING,
    Ordinary,
    as_written,
)
from ringfence.sandbox.inner.view import DEVICES

REFUSED, HIDDEN = "refused-write", "hidden-write"
DELETED = b" (deleted)"
KIND_BITS, DEVICE_BITS = 0o170000, frozenset({stat.S_IFCHR, stat.S_IFBLK})
KINDS = frozenset({REFUSED, HIDDEN})
VALUE_AT = struct.Struct("=QI4x")
"""What setxattrat is told of a value: its address and size."""
LONGEST_VALUE = 4096

Taken = tuple[Change, int, list[tuple[bytes, bytes]], bool, bytes]


class Attempts:
    """What one box tries to change outside of what it may."""

    def __init__(self, order: dict[str, Any], root: int, callers: Callers) -> None:
        self.places, self.root, self.callers = Places(order, DEVICES), root, callers
        self.ordinary = Ordinary(self.places, root, callers)
        self.own: tuple[int, int] = order["user"]

    def take(self, change: Change, number: int, pid: int, registers: Sequence[int]) -> Taken | None:
        """What the caller asks for, read from it; None for a call that cannot be an attempt."""
        if change.words in PLACING:
            self.ordinary.links_may_appear()
        if change.words == "mknod" and registers[change.paths[0][1] + 1] & KIND_BITS in DEVICE_BITS:
            change = replace(change, words=DEVICE)
        attribute = b""
        if change.attribute >= 0:
            attribute = self.callers.text(pid, registers[change.attribute]) or b""
        if attribute.startswith(ACCESS_LISTS) and change.words == "setxattr":
            others = names_others(self._value(change, pid, registers), self.own)
            change = replace(change, words=LETTING_IN) if others else change
        last = follows(change, registers, NO_FOLLOW)
        if number == OPENAT2:
            flags = self.callers.word(pid, registers[2])
            if not flags & WRITE_INTENT:
                return None
            last = not flags & NO_FOLLOW
        if change.descriptor >= 0:
            return self._open(change, pid, registers[change.descriptor], attribute)
        paths, plain = [], not attribute and not last and change.words not in {"rename", DEVICE}
        for folder, place in change.paths:
            start = WORKING_FOLDER if folder is None else registers[folder] & 0xFFFFFFFF
            path, base = self._named(change, pid, registers, place, start)
            if path == b"" and start != WORKING_FOLDER:
                return self._open(change, pid, start, attribute)  # by AT_EMPTY_PATH
            if not path:
                return None  # the kernel will say so too
            whole = joined(base, path + b"/(unnamed)" if unnamed(change, registers) else path)
            # The kernel names the folder without links, so where only a name is added there is none to look for.
            plain = plain and base != b"" and b"/" not in path and self.places.plain(normal(whole), change.words)
            paths.append((path, whole))
        return None if plain else (change, pid, paths, last, attribute)

    def _named(
        self, change: Change, pid: int, registers: Sequence[int], place: int, start: int
    ) -> tuple[bytes | None, bytes]:
        """The path as it was written, and the folder that a relative one starts from."""
        if change.size < 0:
            return self.callers.path(pid, registers[place], start)
        size = min(registers[change.size] & 0xFFFFFFFF, LONGEST_ADDRESS)
        path = place_of_socket(self.callers.some(pid, registers[place], size))
        return path, b"" if not path or path.startswith(b"/") else self.callers.base(pid, start)

    def _value(self, change: Change, pid: int, registers: Sequence[int]) -> bytes:
        """That an attribute is to get."""
        place, size = registers[change.attribute + 1], registers[change.attribute + 2]
        if change.flags >= 0:
            place, size = VALUE_AT.unpack(self.callers.some(pid, place, VALUE_AT.size).ljust(VALUE_AT.size, b"\0"))
        return self.callers.some(pid, place, min(size, LONGEST_VALUE))

    def _open(self, change: Change, pid: int, descriptor: int, attribute: bytes) -> Taken | None:
        """A change of what is open already."""
        place = self.callers.base(pid, descriptor & 0xFFFFFFFF)
        if place.endswith(DELETED):
            place = b""  # no path leads there
        if not place and not attribute:
            return None
        return change, pid, [(place, place)], False, attribute

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
        if attribute.startswith(INNER_ATTRIBUTES) or change.words in {DEVICE, LETTING_IN}:
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
        if places.may_change(named) and (named in places.devices or as_written(self.root, path, last=last)):
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
        if places.may_set(led, change.words):
            return "", b""
        if places.may_change(led):
            return (HIDDEN if places.hides(led, change.words) else ""), led
        if change.words == "make folder" and self._exists(led):
            return "", b""  # "it exists" is no refusal, and `mkdir -p` asks for every folder on the way
        return REFUSED, led

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
