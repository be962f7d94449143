"""What a process that waits for our answer points at, and the folder its paths start from. Hostile addresses give nothing.

A caller is read by its number until it has asked twice; then its folder below ``/proc`` and its memory are kept open, which
takes a third of the time. That folder stands for the process and not for its number: each time it is asked, and says when
the process is gone. A process gets another memory only by an exec, which is seen, and then all is let go of.
"""

import ctypes
import os
import struct

from ringfence.sandbox.inner import kernel

WORKING_FOLDER = -100 & 0xFFFFFFFF
PAGE, FIRST_LOOK, LONGEST = 4096, 256, 4096
VECTORS = struct.Struct("=QQQQ")
"""Two ``struct iovec``: ours and theirs."""
SLASH = ord("/")
KNOWN, MET = 6, 64
"""So many callers of one box are kept open (two descriptors each), and so many more are remembered."""


class Callers:
    """The callers of one box."""

    def __init__(self) -> None:
        self.buffer = bytearray(LONGEST)
        self.view = memoryview(self.buffer)
        self.vectors = bytearray(VECTORS.size)
        self.into = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))
        self.near = ctypes.addressof(ctypes.c_char.from_buffer(self.vectors))
        self.far = self.near + VECTORS.size // 2
        self.met: set[int] = set()
        self.known: dict[int, tuple[int, int]] = {}
        """By number: the folder below ``/proc``, and the memory."""

    def path(self, pid: int, address: int, folder: int) -> tuple[bytes | None, bytes]:
        """The path as ``text`` gives it, and where it is relative, the folder it starts from: empty where that is none.

        ``folder`` is a descriptor of the caller's, or ``WORKING_FOLDER``. The kernel names folders without links.
        """
        known = self.known.get(pid)
        if known is not None:
            try:
                path, found, _rest = os.pread(known[1], FIRST_LOOK, address).partition(b"\0")
                if found and path:
                    if path[0] != SLASH:
                        base = os.readlink(b"cwd" if folder == WORKING_FOLDER else b"fd/%d" % folder, dir_fd=known[0])
                        return path, base if base[0] == SLASH else b""
                    if os.access(b"stat", os.F_OK, dir_fd=known[0]):
                        return path, b""
            except (OSError, OverflowError):
                pass  # gone, or a hostile address or number: below it is read by its number
            self._let_go(pid)
        else:
            self._meet(pid)
        whole = self.text(pid, address)
        return whole, b"" if not whole or whole[0] == SLASH else self.base(pid, folder)

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
        data = self.some(pid, address, 8)
        return int(struct.unpack("=Q", data)[0]) if len(data) == 8 else 0

    def some(self, pid: int, address: int, length: int) -> bytes:
        """So many bytes, or as many of them as can be read.

        Asked for by a call, not by the file ``mem``, which is closed to an ordinary user where a process made itself so.
        """
        data = b""
        while len(data) < length:
            count = self._read(pid, address + len(data), length - len(data))
            if count <= 0:
                break
            data += self.view[:count]
        return data

    def _read(self, pid: int, address: int, length: int) -> int:
        """How many bytes came, at most to the end of the address's page, behind which nothing may be mapped."""
        length = min(length, PAGE - address % PAGE)
        VECTORS.pack_into(self.vectors, 0, self.into, length, address, length)
        return kernel.read_other(pid, self.near, 1, self.far, 1, 0)

    @staticmethod
    def base(pid: int, folder: int) -> bytes:
        """Where a descriptor of the caller's leads, or its working folder; empty where that is nowhere."""
        try:
            base = os.readlink(b"/proc/%d/cwd" % pid if folder == WORKING_FOLDER else b"/proc/%d/fd/%d" % (pid, folder))
        except OSError:
            return b""
        return base if base.startswith(b"/") else b""

    def _meet(self, pid: int) -> None:
        """Once it is only remembered: most processes change no more than a path or two."""
        if pid not in self.met:
            if len(self.met) >= MET:
                self.met.clear()
            self.met.add(pid)
            return
        while len(self.known) >= KNOWN:
            self._let_go(next(iter(self.known)))
        try:
            folder = os.open(b"/proc/%d" % pid, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            self.known[pid] = (folder, os.open(b"mem", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
        except OSError:
            os.close(folder)

    def _let_go(self, pid: int) -> None:
        for descriptor in self.known.pop(pid):
            os.close(descriptor)

    def forget(self) -> None:
        """A process gets a new memory, or the box has ended: keep none open."""
        self.met.clear()
        while self.known:
            self._let_go(next(iter(self.known)))
