"""The stash and notes of two missions that were at work at the same time, brought together: the later end loses nothing.

Both are folders of git's files that layers carried, written by agents: read beneath their descriptors, never followed.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.there import NOT_THERE, entry, folder, small_file

_LOG, _REF = "logs/refs/stash", "refs/stash"
_WHOLE = ("objects", "refs/notes", "logs/refs/notes")
_LINE = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64}) ((?:[0-9a-f]{40}|[0-9a-f]{64})) [^\n]+\Z")
_ODD = NOT_THERE | {errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EPERM}
"""What something else in the place of a folder or file of git's is answered with."""
_FRESH = "stash.lock"
_DEEPEST = 32
_MAX_LOG = 4 * 1024 * 1024


def join(older: str, newer: str) -> None:
    """Add to git's files in ``newer`` what those in ``older`` have beyond them of stash and notes.

    What a box put in the place of git's folders there keeps its place. Raises OSError where there is no room.
    """
    with contextlib.ExitStack() as opened:
        source, target = (_opened(opened, path) for path in (older, newer))
        for path in _WHOLE:
            with _odd_places():
                _move(source, target, path)
        entries = _entries(source)
        known = {new for new, _ in entries}
        entries += [(new, line) for new, line in _entries(target) if new not in known]
        if entries:
            with _odd_places():
                _store(target, entries)


@contextlib.contextmanager
def _odd_places() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _ODD:
            raise


def _opened(opened: contextlib.ExitStack, path: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    opened.callback(os.close, fd)
    return fd


def _move(source: int, target: int, path: str, depth: int = 0) -> None:
    """Move what is below ``path`` and not there yet; folders that both have only as deep as git nests them."""
    with contextlib.ExitStack() as opened:
        here = folder(source, path)
        if here is None:
            return
        opened.callback(os.close, here)
        there = _made(target, path)
        opened.callback(os.close, there)
        for name in os.listdir(here):
            info = entry(there, name)
            if info is None:
                os.rename(name, name, src_dir_fd=here, dst_dir_fd=there)
            elif stat.S_ISDIR(info.st_mode) and depth < _DEEPEST:
                _move(here, there, name, depth + 1)


def _made(fd: int, path: str) -> int:
    """A folder below ``fd``, made if need be like the one that it lies in."""
    here = os.dup(fd)
    try:
        for part in path.split("/"):
            if entry(here, part) is None:
                info = os.fstat(here)
                os.mkdir(part, stat.S_IMODE(info.st_mode), dir_fd=here)
                if os.geteuid() == 0:
                    os.chown(part, info.st_uid, info.st_gid, dir_fd=here, follow_symlinks=False)
            inner = kernel.open_directory(here, part)
            os.close(here)
            here = inner
    except BaseException:
        os.close(here)
        raise
    return here


def _entries(fd: int) -> list[tuple[bytes, bytes]]:
    """The stash of a layer, oldest first: the commit that an entry names, and its line. Nothing where it has none."""
    if not small_file(fd, _REF, _MAX_LOG):
        return []
    text = small_file(fd, _LOG, _MAX_LOG) or b""
    matches = (_LINE.match(line) for line in text.split(b"\n"))
    return [(match[1], match[0]) for match in matches if match is not None]


def _store(fd: int, entries: list[tuple[bytes, bytes]]) -> None:
    """Each entry follows the one before it, as git writes them."""
    before = b"0" * len(entries[0][0])
    lines = []
    for new, line in entries:
        lines.append(before + line[len(before) :] + b"\n")
        before = new
    for path, data in ((_LOG, b"".join(lines)), (_REF, before + b"\n")):
        parent, _, name = path.rpartition("/")
        inner = _made(fd, parent)
        try:
            info = os.fstat(inner)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_FRESH, dir_fd=inner)
            fresh = os.open(_FRESH, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=inner)
            with open(fresh, "wb") as stream:
                stream.write(data)
                if os.geteuid() == 0:
                    os.fchown(stream.fileno(), info.st_uid, info.st_gid)
            os.rename(_FRESH, name, src_dir_fd=inner, dst_dir_fd=inner)
        finally:
            os.close(inner)
