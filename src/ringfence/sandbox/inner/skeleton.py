"""The folders of a box's root that only hold mount points, as a tree, and every answer about them. Pure.

What is mounted lies on top of it, so the kernel asks for what is in view once and for what is not at every try; who
answers can tell which tries were on something that is hidden. It is an observer: the view holds without it.
"""

import errno
import posixpath
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringfence.sandbox.inner import fuse

ROOT = 1
FOLDER, PLACE = stat.S_IFDIR | 0o755, stat.S_IFREG
"""A place is a file of mode 0 that something is mounted on; nothing can be read from it."""
MADE_FOLDERS = frozenset({"tmpfs", "mqueue", "proc", "overlay"})
LINK = stat.S_IFLNK | 0o777
PRIVATE = (b"/tmp", b"/var/tmp")
"""Where a box has its own, and a worktree may lie on the host."""

Entry = tuple[bytes, int, bytes, list[bytes] | None, tuple[bytes, int, int, int] | None]
"""Path, mode with its kind, target of a link, names that are in view though not listed here, and for what only tells of
tries: the path that it tells of, owner, group, time in nanoseconds. Names of such a folder are those that are hidden in it;
None: all, and it is closed."""
Missing = Callable[[bytes, bytes, int], bool]
"""Folder, name, process: whether the next try is to be told too."""
Tried = Callable[[bytes, bytes, int], object]
"""Folder, name, process: a try on what only tells of tries."""

QUIET = frozenset({
    fuse.FORGET, fuse.BATCH_FORGET, fuse.INTERRUPT,
})  # fmt: skip
"""Requests that get no answer."""
CHANGES = frozenset({
    fuse.SETATTR, fuse.SYMLINK, fuse.MKNOD, fuse.MKDIR, fuse.UNLINK, fuse.RMDIR, fuse.RENAME, fuse.LINK, fuse.CREATE,
    fuse.RENAME2, fuse.TMPFILE, fuse.WRITE,
})  # fmt: skip


def between(steps: Iterable[Sequence[Any]]) -> list[bytes]:
    """Folders directly in a private place of the box through which its worktree is reached.

    On the host others' things lie in them; in the box they hold nothing but what leads to the worktree, like the root's own.
    """
    steps = list(steps)
    private = [step[1] + b"/" for step in steps if step[0] == "tmpfs" and step[1] in PRIVATE]
    found: dict[bytes, None] = {}
    for step in steps:
        for above in private:
            if step[0] in {"overlay", "rw"} and step[1].startswith(above):
                first, deeper, _rest = step[1][len(above) :].partition(b"/")
                if deeper:
                    found[above + first] = None
    return list(found)


def entries(steps: Iterable[Sequence[Any]], is_folder: Callable[[int], bool]) -> list[Entry] | None:
    """What the steps of an order need of the root, folders before what is in them; ``between`` is part of it.

    ``is_folder``: whether the thing mounted by the step of this number is one. None when a step wants a file with
    content where only the skeleton is: then the root must be a file system that can hold it.
    """
    steps = list(steps)
    made: dict[bytes, Entry] = {}
    bare = tuple(folder + b"/" for folder in between(steps))
    covered: tuple[bytes, ...] = ()
    for number, step in enumerate(steps):
        kind, target = step[0], step[1]
        over = tuple(place for place in covered if not target.startswith(bare) or place[:-1] not in PRIVATE)
        if target.startswith(over):
            continue
        if kind == "file":
            return None
        _folders(made, target[: target.rindex(b"/")])
        if kind == "dir":
            made.setdefault(target, (target, stat.S_IFDIR | step[2], b"", [], None))
        elif kind == "link":
            made[target] = (target, LINK, step[2], [], None)
        else:
            mode = FOLDER if kind in MADE_FOLDERS or is_folder(number) else PLACE
            made.setdefault(target, (target, mode, b"", [], None))
            covered = (*covered, target + b"/")
    return list(made.values())


def _folders(made: dict[bytes, Entry], path: bytes) -> None:
    if path and path not in made:
        _folders(made, path[: path.rindex(b"/")])
        made[path] = (path, FOLDER, b"", [], None)


@dataclass(slots=True)
class Node:
    """One folder, link or place."""

    path: bytes
    mode: int
    parent: int
    target: bytes = b""
    names: dict[bytes, int] = field(default_factory=dict)
    in_view: frozenset[bytes] = frozenset()
    closed: bool = False
    tells: bytes = b""
    """What tries are told of; empty for what is in the view itself."""
    attr: bytes = b""


class Skeleton:
    """The tree, and the answer to each request on it. Node numbers are inode numbers."""

    def __init__(
        self, made: Iterable[Entry], *, owner: tuple[int, int], seconds: int, missing: Missing, tried: Tried
    ) -> None:
        self.missing, self.tried = missing, tried
        self.nodes: dict[int, Node] = {ROOT: Node(b"/", FOLDER, ROOT)}
        numbers = {b"/": ROOT}
        looks: dict[int, list[int]] = {}
        for path, mode, target, in_view, tells in made:
            folder, name = posixpath.split(path)
            number = len(self.nodes) + 1
            numbers[path] = number
            parent = numbers[folder]
            node = self.nodes[number] = Node(
                path, mode, parent, target, in_view=frozenset(in_view or ()), closed=in_view is None
            )
            if tells:
                node.tells, *looks[number] = tells
            self.nodes[parent].names[name] = number
        for number, node in self.nodes.items():
            below = sum(stat.S_ISDIR(self.nodes[one].mode) for one in node.names.values())
            links = 2 + below if stat.S_ISDIR(node.mode) else 1
            uid, gid, time = looks.get(number, (*owner, seconds * 10**9))
            node.attr = fuse.attributes(
                number, node.mode, size=len(node.target), links=links, owner=(uid, gid), time=time
            )

    def answer(self, data: bytes) -> bytes | None:
        """What to write for what was read; None when the kernel waits for nothing. Never raises."""
        request = fuse.parse(data)
        if request is None or request.operation in QUIET:
            return None
        return fuse.reply(request.unique, self._answer(request))

    def _answer(self, request: fuse.Request) -> bytes | int:
        operation, node = request.operation, self.nodes.get(request.node)
        if operation == fuse.INIT:
            return fuse.accept(request.body) or errno.EPROTO
        if operation == fuse.DESTROY:
            return b""
        if node is None:
            return errno.ESTALE
        if operation == fuse.LOOKUP:
            return self._look_up(node, request)
        if operation == fuse.GETATTR:
            return fuse.attribute_answer(node.attr)
        if operation == fuse.READLINK and not node.closed:
            return node.target or errno.EINVAL
        if operation in {fuse.READDIR, fuse.READDIRPLUS}:
            return self._list(request.node, node, request)
        if operation == fuse.STATFS:
            return fuse.STATISTICS
        if operation in {fuse.OPEN, fuse.READ, fuse.READLINK}:
            if node.tells:
                self.tried(*posixpath.split(node.tells), request.pid)
            return errno.EACCES
        # "Not implemented" to OPENDIR and RELEASEDIR is how the kernel learns that it need not ask.
        return errno.EROFS if operation in CHANGES else errno.ENOSYS

    def _look_up(self, node: Node, request: fuse.Request) -> bytes | int:
        name = fuse.name_in(request.body)
        if name is None:
            return errno.EINVAL
        if not stat.S_ISDIR(node.mode):
            return errno.ENOTDIR
        if node.closed:
            self.tried(node.tells, name, request.pid)
            return errno.EACCES
        number = node.names.get(name)
        if number is not None:
            return fuse.entry(number, self.nodes[number].attr)
        if node.tells:
            if name not in node.in_view:
                return fuse.ABSENT
            self.tried(node.tells, name, request.pid)
            return errno.ENOENT
        if name not in node.in_view and self.missing(node.path, name, request.pid):
            return errno.ENOENT
        return fuse.ABSENT

    def _list(self, number: int, node: Node, request: fuse.Request) -> bytes | int:
        asked = fuse.reading(request.body)
        if asked is None:
            return errno.EINVAL
        if not stat.S_ISDIR(node.mode):
            return errno.ENOTDIR
        if node.closed:
            self.tried(*posixpath.split(node.tells), request.pid)
            return errno.EACCES
        offset, room = asked
        lines = [(b".", number), (b"..", node.parent), *node.names.items()]
        data = bytearray()
        for position, (name, which) in enumerate(lines[offset:], offset + 1):
            one, plus = self.nodes[which], b""
            if request.operation == fuse.READDIRPLUS:
                plus = fuse.entry(which, one.attr) if position > 2 else fuse.NO_ENTRY
            line = fuse.listed(name, which, one.mode, position, plus)
            if len(data) + len(line) > room:
                break
            data += line
        return bytes(data)
