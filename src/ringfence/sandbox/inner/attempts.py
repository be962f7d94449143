"""Attempts of a box to change what it may not change, read from the caller and recorded. Never the wall, never in its way.

The caller waits while its path is read and judged: after the answer it may have ended, and the box's mounts with it. Nothing
is opened but places (``O_PATH``), from the box's own root and never through a link, so no pipe, device or host file is touched.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence
from typing import Any

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.changes import (
    INNER_ATTRIBUTES,
    NOFOLLOW,
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
from ringfence.sandbox.inner.seccomp import CHANGING
from ringfence.sandbox.inner.view import DEVICES

REFUSED, HIDDEN = "refused-write", "hidden-write"
KINDS = frozenset({REFUSED, HIDDEN})
WORKING_FOLDER = -100 & 0xFFFFFFFF
PAGE, FIRST_LOOK, LONGEST = 4096, 256, 4096
OPENAT2 = CHANGING[kernel.MACHINE]["openat2"] if kernel.NUMBERS else -1
NO_FOLLOW = NOFOLLOW.get(kernel.MACHINE, 0)
PLACE = os.O_PATH | os.O_CLOEXEC
RULES = kernel.RESOLVE_IN_ROOT | kernel.RESOLVE_NO_MAGICLINKS
AS_WRITTEN = tuple(
    struct.pack("=QQQ", PLACE | last, 0, RULES | kernel.RESOLVE_NO_SYMLINKS) for last in (os.O_NOFOLLOW, 0)
)
"""``struct open_how`` for a path in which no link stands; the second one also not in the last place."""
VECTORS = struct.Struct("=QQQQ")
"""Two ``struct iovec``: ours and theirs."""
AS_IT_LEADS = struct.pack("=QQQ", PLACE | os.O_NOFOLLOW, 0, RULES)

HOW_SIZE = 24

Taken = tuple[Change, int, list[tuple[bytes, bytes]], bool, bytes]


class Memory:
    """Reads the memory of a process that waits for an answer. Hostile addresses give nothing."""

    def __init__(self) -> None:
        self.buffer = bytearray(LONGEST)
        self.view = memoryview(self.buffer)
        self.vectors = bytearray(VECTORS.size)
        self.into = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))
        self.near = ctypes.addressof(ctypes.c_char.from_buffer(self.vectors))
        self.far = self.near + VECTORS.size // 2

    def _read(self, pid: int, address: int, length: int) -> int:
        """How many bytes came, at most to the end of the address's page, behind which nothing may be mapped."""
        length = min(length, PAGE - address % PAGE)
        VECTORS.pack_into(self.vectors, 0, self.into, length, address, length)
        return kernel.read_other(pid, self.near, 1, self.far, 1, 0)

    def text(self, pid: int, address: int) -> bytes | None:
        """The bytes up to the first zero; None if they cannot be read, or are more than a path may have."""
        count = self._read(pid, address, FIRST_LOOK)
        end = self.buffer.find(0, 0, max(count, 0))
        if end >= 0:
            return bytes(self.view[:end])
        whole = b""
        while count > 0 and len(whole) < LONGEST:
            whole += self.view[:count]
            count = self._read(pid, address + len(whole), LONGEST)
            end = self.buffer.find(0, 0, max(count, 0))
            if end >= 0:
                whole += self.view[:end]
                return whole if len(whole) < LONGEST else None
        return None

    def word(self, pid: int, address: int) -> int:
        """Eight bytes as a number; 0 if they cannot be read."""
        data = b""
        while len(data) < 8:
            count = self._read(pid, address + len(data), 8 - len(data))
            if count <= 0:
                return 0
            data += self.view[:count]
        return int(struct.unpack("=Q", data)[0])


class Attempts:
    """What one box tries to change outside of what it may."""

    def __init__(self, order: dict[str, Any], root: int, memory: Memory) -> None:
        self.places, self.root, self.memory = Places(order, DEVICES), root, memory

    def take(self, change: Change, number: int, pid: int, registers: Sequence[int]) -> Taken | None:
        """What the caller asks for, read from it; None for a call that cannot be an attempt."""
        attribute = b""
        if change.attribute >= 0:
            attribute = self.memory.text(pid, registers[change.attribute]) or b""
        last = follows(change, registers, NO_FOLLOW)
        if number == OPENAT2:
            flags = self.memory.word(pid, registers[2])
            if not flags & WRITE_INTENT:
                return None
            last = not flags & NO_FOLLOW
        paths, plain = [], not attribute and not last and change.words != "rename"
        for folder, place in change.paths:
            path = self.memory.text(pid, registers[place])
            if not path:
                return None  # the kernel will say so too
            base = b"" if path.startswith(b"/") else self._base(pid, folder, registers)
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

    def _base(self, pid: int, folder: int | None, registers: Sequence[int]) -> bytes:
        """The folder from which a path is meant, as the box names it; empty where it is none."""
        number = WORKING_FOLDER if folder is None else registers[folder] & 0xFFFFFFFF
        try:
            base = os.readlink(b"/proc/%d/cwd" % pid if number == WORKING_FOLDER else b"/proc/%d/fd/%d" % (pid, number))
        except OSError:
            return b""
        return base if base.startswith(b"/") else b""

    def _place(self, change: Change, pid: int, path: bytes, last: bool) -> tuple[str, bytes]:
        """The kind of attempt, empty for none, and where the path leads in truth, empty for nowhere else."""
        places, named = self.places, normal(path)
        if places.may_change(named) and (named in places.devices or self._as_written(path, last)):
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

    def _as_written(self, path: bytes, last: bool) -> bool:
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
