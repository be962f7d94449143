"""The root that a box's view is built on: a skeleton answered from outside, or where that cannot be, a small tmpfs.

The device and the mount are made before the order comes. The device's other end goes outside, so a box never
holds it; the mount is read-only, without device nodes and set-uid from its first moment.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable

from ringfence.sandbox.inner import kernel
from ringfence.sandbox.inner.skeleton import Entry

DEVICE = b"/dev/fuse"
OPTIONS = ((b"source", b"ringfence"), (b"rootmode", b"40755"))
FLAGS = (b"default_permissions",)
"""Judged by the modes shown: the kernel then asks for no permission."""
SEALED = kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV
LISTING = 32768


class Root:
    """A mount not attached yet and the device behind it; ``why`` says why there is none.

    ``offer`` hands the device out, with the folders to answer for. ``made``: those that are answered for.
    """

    def __init__(self, offer: Callable[[int, list[Entry]], None]) -> None:
        self.offer = offer
        self.mount = self.device = -1
        self.made: list[Entry] | None = None
        self.why = ""
        self._begin()

    def _begin(self) -> None:
        try:
            self.device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
            self.mount = mount(self.device)
        except OSError as fault:
            self.why = f"{os.fsdecode(DEVICE)}: {errno.errorcode.get(fault.errno or 0, fault.errno)}"
            self.leave()

    def serve(self, made: list[Entry]) -> None:
        """Have these folders answered for, and known to the kernel. Raises OSError where nobody answers.

        Done with the folders of the box before, so that it costs the next one nothing; with others it begins anew.
        """
        if self.made == made:
            return
        if self.made is not None:
            self.leave()
            self._begin()
            if self.mount < 0:
                raise OSError(errno.ENODEV, self.why)
        self.offer(self.device, made)
        os.close(self.device)
        self.device, self.made = -1, made
        _learn(self.mount, made)

    def leave(self) -> None:
        """Let go of both; what is attached stays."""
        for descriptor in (self.device, self.mount):
            if descriptor >= 0:
                os.close(descriptor)
        self.device = self.mount = -1


def mount(device: int) -> int:
    """A detached mount of a file system whose requests are read from ``device``. Raises OSError."""
    context = kernel.fsopen(b"fuse", 1)
    try:
        for key, value in (
            *OPTIONS,
            (b"fd", b"%d" % device),
            (b"user_id", b"%d" % os.geteuid()),
            (b"group_id", b"%d" % os.getegid()),
        ):
            kernel.fsconfig(context, kernel.FSCONFIG_STRING, key, value, 0)
        # Made by root, it is for another user. Made by an ordinary one, it is for that one, in the box and in the launcher.
        for flag in (*FLAGS, *((b"allow_other",) if os.geteuid() == 0 else ())):
            kernel.fsconfig(context, kernel.FSCONFIG_FLAG, flag, None, 0)
        kernel.fsconfig(context, kernel.FSCONFIG_CREATE, None, None, 0)
        return kernel.fsmount(context, 1, SEALED)
    finally:
        os.close(context)


def warm() -> None:
    """Ask once for what every program's start asks for, so that the command itself need not wait for the answer."""
    for path in (b"/lib64", b"/etc/ld.so.preload"):
        with contextlib.suppress(OSError):
            os.readlink(path)


def _learn(base: int, made: list[Entry]) -> None:
    """Have the kernel read every folder that holds more than one name: one request instead of one for each name."""
    names: dict[bytes, int] = {}
    for path, *_rest in made:
        names[os.path.dirname(path)] = names.get(os.path.dirname(path), 0) + 1
    buffer = ctypes.create_string_buffer(LISTING)
    for folder, count in names.items():
        if count > 1:
            file = os.open(folder[1:] or b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=base)
            with contextlib.suppress(OSError):
                kernel.getdents64(file, ctypes.addressof(buffer), LISTING)
            os.close(file)
