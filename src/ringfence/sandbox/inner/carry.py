"""Renames of folders that an overlay cannot do: carried over by links, in the box, by its own process 1. The last resort.

An overlay without ``redirect_dir`` answers EXDEV when a folder of its lower tree is renamed. ``mv`` then copies; git and
most languages' libraries do not. What is done here, any program of the box could do: it has the same user, the same view
and the same confinement, so a path that lies gains nothing.
"""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator

from ringfence.sandbox.inner import kernel

AS_ASKED = 1 << 32
"""In the upper half of the flags, which the kernel does not read: the launcher need not hand this call over again."""
ATTRIBUTES = ("user.", "system.posix_acl_")
NEAR = b"/.moving-"


def rename(old: bytes, new: bytes, flags: int) -> int:
    """As the kernel does it: 0 or an errno."""
    if kernel.rename(old, new, flags | AS_ASKED) == 0:
        return 0
    return ctypes.get_errno()


def carry(old: bytes, new: bytes, flags: int) -> int:
    """Rename a folder for which ``rename`` gave EXDEV: 0 or an errno. Whatever goes wrong, one of both trees is whole.

    1. Beside the new place, make the same folders under a name of our own, with a link to each file: the kernel copies
       what must be copied, with owner, mode, times and attributes, and no file is ever there twice.
    2. Rename that to the new place, with the kernel's own rules about what may stand there.
    3. Remove the old tree: of what was carried, and nothing that came into it meanwhile.
    """
    above = os.path.dirname(new.rstrip(b"/")) or b"."
    spare = above + NEAR + os.urandom(8).hex().encode()
    old = old.rstrip(b"/")
    try:
        if os.lstat(old).st_dev != os.stat(above).st_dev:
            return errno.EXDEV  # two file systems: here the kernel means what it says
        if _holds_something(new):
            return errno.ENOTEMPTY
    except OSError:
        return errno.EXDEV
    try:
        _link_folder(old, spare, {})  # 1
        made = rename(spare, new, flags)  # 2
    except (OSError, RecursionError):
        made = errno.EXDEV
    if made:
        _remove(spare)
        return made
    with contextlib.suppress(OSError, RecursionError):
        _remove_carried(old, new.rstrip(b"/"))  # 3
    return 0


def _holds_something(path: bytes) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except (FileNotFoundError, NotADirectoryError):
        return False


def _link_folder(old: bytes, new: bytes, twins: dict[int, bytes]) -> None:
    info = os.lstat(old)
    os.mkdir(new, 0o700)
    for name, folder in _entries(old):
        source, target = old + b"/" + name, new + b"/" + name
        if folder:
            _link_folder(source, target, twins)
            continue
        file = os.lstat(source)
        # Two names of one file stay that, though the overlay copies each by itself.
        os.link(twins.get(file.st_ino, source), target, follow_symlinks=False)
        if file.st_nlink > 1:
            twins.setdefault(file.st_ino, target)
    for attribute in os.listxattr(old, follow_symlinks=False):
        if attribute.startswith(ATTRIBUTES):
            os.setxattr(new, attribute, os.getxattr(old, attribute, follow_symlinks=False), follow_symlinks=False)
    os.chmod(new, stat.S_IMODE(info.st_mode))
    os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns))


def _entries(path: bytes) -> Iterator[tuple[bytes, bool]]:
    with os.scandir(path) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return iter(found)


def _remove(path: bytes) -> None:
    """A tree of our own, as far as it can be: its files are links to those of the old tree, which stay."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for name, folder in _entries(path):
            if folder:
                _remove(path + b"/" + name)
            else:
                os.unlink(path + b"/" + name)
        os.rmdir(path)


def _remove_carried(old: bytes, new: bytes) -> None:
    with contextlib.suppress(PermissionError):
        if not os.access(old, os.R_OK | os.W_OK | os.X_OK):
            os.chmod(old, 0o700)
    for name, folder in _entries(old):
        source, target = old + b"/" + name, new + b"/" + name
        with contextlib.suppress(OSError):
            if folder:
                _remove_carried(source, target)
            elif _carried(source, target):
                os.unlink(source)
    os.rmdir(old)


def _carried(source: bytes, target: bytes) -> bool:
    """Whether the file at the old place is the one that was carried: one file, or unchanged since it was linked.

    An overlay numbers links and pipes anew when it copies them, and lower files with two names are one file no more.
    """
    one, other = os.lstat(source), os.lstat(target)
    if os.path.samestat(one, other):
        return True
    if (one.st_mode, one.st_size, one.st_mtime_ns) != (other.st_mode, other.st_size, other.st_mtime_ns):
        return False
    return not stat.S_ISLNK(one.st_mode) or os.readlink(source) == os.readlink(target)
