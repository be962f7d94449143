"""From judged changes to steps: new contents copied beside the real tree, expectations noted. Changes nothing in it."""

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field, replace

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node
from ringfence.sandbox.worktree.journal import packed_identity, source_identity
from ringfence.sandbox.worktree.plan import Packed, Step
from ringfence.sandbox.worktree.state import identity_of, pack, unpack

_CHUNK = 1 << 20


class Refused(Exception):
    """The one change at hand cannot be taken over; the reason is for a person."""


class Overtaken(Exception):
    """Someone else changed the path since the gate looked for conflicts."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """Collects the steps of one commit. ``fd`` is the staging folder, on the real tree's own file system."""

    fd: int
    upper: int
    lower: int
    owner: tuple[int, int]
    max_file: int
    seen: dict[str, Packed | None] = field(default_factory=dict)
    """How paths looked in the real tree when they were found free of conflicts: staging a great deal takes a while."""
    steps: list[Step] = field(default_factory=list)
    changes: dict[int, Change] = field(default_factory=dict)
    left: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By path, what the tree will have there: permissions, and the SHA-256 of a file's bytes or a link's target."""
    _made: set[str] = field(default_factory=set)
    _replaced: set[str] = field(default_factory=set)

    def add(self, change: Change) -> None:
        """Stage one change. Raises Refused for what cannot be taken, Overtaken, RingfenceError when there is no room."""
        try:
            self._add(change)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EIO}:
                raise RingfenceError(
                    "gate-no-room",
                    f"the commit could not be prepared: {error.strerror}; nothing was changed, everything is in the layer",
                    where=repr(change.path),
                    remedy="free some space on the file system of the repository and commit again",
                ) from error
            raise Refused(f"it cannot be taken over: {error.strerror}") from error

    def touch(self, change: Change) -> None:
        """Stage the time alone of a file that is as it was: by it a build tool knows what is up to date."""
        before, entry = (source_identity(fd, change.path) for fd in (self.lower, self.upper))
        if before is None or entry is None or not stat.S_ISREG(before.mode) or before.mtime_ns == entry.mtime_ns:
            return
        after = pack(replace(before, mtime_ns=entry.mtime_ns))
        number, path = len(self.steps), os.fsencode(change.path)
        self.steps.append(Step(verb="touch", path=path, number=number, before=pack(before), after=after))

    def _add(self, change: Change) -> None:
        parent, _, name = change.path.rpartition("/")
        if change.kind is ChangeKind.DELETED:
            self._remove(change)
        elif change.node is Node.DIRECTORY:
            self._directory(change)
        elif change.kind is ChangeKind.MODE and self._links(parent, name) == 1:
            self._note(change, "chmod", mode=change.mode & 0o777)
        else:
            self._put(change, parent, name)

    def _remove(self, change: Change) -> None:
        if change.node is Node.DIRECTORY:
            self._note(change, "rmdir")
            self._replaced.add(change.path)
        else:
            self._note(change, "remove")

    def _directory(self, change: Change) -> None:
        if change.kind is ChangeKind.MODE:
            self._note(change, "chmod", mode=self._folder_mode(change.path, change.mode))
            return
        if change.kind is ChangeKind.TYPE:
            self._note(change, "remove")
            self._replaced.add(change.path)
        self._make(change.path)
        if change.kind is ChangeKind.ADDED and self.steps:
            self.changes.setdefault(self.steps[-1].number, change)

    def _put(self, change: Change, parent: str, name: str) -> None:
        if parent:
            self._make(parent)
        before = None if change.path in self._replaced else self._expected(change.path)
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise Overtaken  # something in the folder stays, so it stays
        number = len(self.steps)
        owner = (before.st_uid, before.st_gid) if before is not None else self._heir(parent)
        source = kernel.open_directory(self.upper, parent) if parent else os.dup(self.upper)
        try:
            entry = packed_identity(source, name)
            if change.node is Node.SYMLINK:
                target = os.readlink(name, dir_fd=source)
                os.symlink(target, str(number), dir_fd=self.fd)
                self._own(number, owner, new=before is None)
                content = hashlib.sha256(os.fsencode(target)).hexdigest()
            else:
                lower = self._lower_file(parent, name, before)
                content = self._copy(source, name, number, owner, (lower, parent))
        finally:
            os.close(source)
        after = packed_identity(self.fd, str(number))
        self.steps.append(
            Step(
                verb="put",
                path=os.fsencode(change.path),
                number=number,
                before=None if before is None else pack(identity_of(before)),
                before_owner=owner,
                after=after,
                source=entry,
                content=content,
            )
        )
        self.changes[number] = change
        made = unpack(after)
        self.left[change.path] = (0 if made is None else stat.S_IMODE(made.mode), content)

    def _copy(self, source: int, name: str, number: int, owner: tuple[int, int], at: tuple[int | None, str]) -> str:
        """Copy a file; gives the SHA-256 of what was copied. ``at``: the file that it replaces, if any, and the folder."""
        lower, parent = at
        reader = kernel.open_beneath(source, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        writer = os.open(str(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
        try:
            info = os.fstat(reader)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
                raise Refused("it changed while the gate read it")
            content = _copy_bytes(reader, writer, self.max_file)
            self._own(number, owner, new=lower is None)
            if lower is not None:
                _copy_attributes(lower, writer)
            else:
                self._inherit(parent, writer)
            os.fchmod(writer, narrowed(info.st_mode, None if lower is None else os.fstat(lower).st_mode))
            os.utime(writer, ns=(info.st_mtime_ns, info.st_mtime_ns))
            return content
        finally:
            os.close(reader)
            os.close(writer)
            if lower is not None:
                os.close(lower)

    def _own(self, number: int, owner: tuple[int, int], *, new: bool) -> None:
        info = os.stat(str(number), dir_fd=self.fd, follow_symlinks=False)
        if (info.st_uid, info.st_gid) == owner:
            return
        try:
            os.chown(str(number), *owner, dir_fd=self.fd, follow_symlinks=False)
        except PermissionError as error:
            if new and info.st_uid == owner[0]:
                return  # a folder gives its group also to who is no member; whoever is none keeps his own here
            os.unlink(str(number), dir_fd=self.fd)
            raise Refused(f"it belongs to {owner[0]}:{owner[1]}; replacing it would change its owner") from error

    def _heir(self, parent: str) -> tuple[int, int]:
        """The owner of what is new in a folder: the repository's, with the group that a set-group-ID folder hands down."""
        under = self._above(parent)[1]
        return (self.owner[0], under.st_gid) if under.st_mode & stat.S_ISGID else self.owner

    def _inherit(self, parent: str, writer: int) -> None:
        """Give a new file the access list that its folder hands down; what it may be at most, its mode says."""
        place, _ = self._above(parent)
        fd = kernel.open_directory(self.lower, place) if place else os.dup(self.lower)
        try:
            with contextlib.suppress(OSError):  # most folders have none, some file systems know of none
                os.setxattr(writer, "system.posix_acl_access", os.getxattr(fd, "system.posix_acl_default"))
        finally:
            os.close(fd)

    def _above(self, path: str) -> tuple[str, os.stat_result]:
        """The folder of the real tree that ``path`` is, or will be made in: folders hand down from one to the next."""
        while path:
            parent, _, name = path.rpartition("/")
            under = None if path in self._replaced else self._lower_stat(parent, name)
            if under is not None and stat.S_ISDIR(under.st_mode):
                return path, under
            path = parent
        return "", os.fstat(self.lower)

    def _make(self, path: str) -> None:
        """Folders that do not exist yet, from the root down, each with the mode that the mission gave it."""
        at = ""
        for part in path.split("/"):
            parent, at = at, f"{at}/{part}" if at else part
            if at in self._made:
                continue
            under = None if at in self._replaced else self._lower_stat(parent, part)
            if under is not None:
                if not stat.S_ISDIR(under.st_mode):
                    raise Refused(f"{at!r} is no folder in the real tree")
                continue
            number = len(self.steps)
            mode = self._folder_mode(at, os.stat(at, dir_fd=self.upper, follow_symlinks=False).st_mode)
            self.steps.append(
                Step(verb="mkdir", path=os.fsencode(at), number=number, mode=mode, before_owner=self._heir(parent))
            )
            self._made.add(at)
            self.left[at] = (mode, "")

    def _note(self, change: Change, verb: str, *, mode: int = 0) -> None:
        before = self._expected(change.path)
        if before is None:
            return
        number = len(self.steps)
        self.steps.append(
            Step(
                verb=verb,  # type: ignore[arg-type] # one of plan.Verb
                path=os.fsencode(change.path),
                number=number,
                mode=mode,
                before=pack(identity_of(before)),
                before_owner=(before.st_uid, before.st_gid),
            )
        )
        self.changes[number] = change
        self.left[change.path] = (mode, "")

    def _folder_mode(self, path: str, mode: int) -> int:
        """A folder's permissions; set-group-ID only where the real tree's folder, or its parent, has it."""
        parent, _, name = path.rpartition("/")
        own = self._lower_stat(parent, name)
        _, under = self._above(path)
        kept = narrowed(mode, None if own is None else own.st_mode) | (stat.S_IMODE(mode) & stat.S_ISVTX)
        return kept | (stat.S_ISGID & under.st_mode)

    def _lower_stat(self, parent: str, name: str) -> os.stat_result | None:
        if any(parent == path or parent.startswith(path + "/") for path in self._replaced):
            return None  # this same commit puts something else there
        try:
            fd = kernel.open_directory(self.lower, parent) if parent else os.dup(self.lower)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None
            raise Refused(f"{parent!r} is no ordinary folder in the real tree") from error
        try:
            return os.stat(name or ".", dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        finally:
            os.close(fd)

    def _expected(self, path: str) -> os.stat_result | None:
        """What stands in the real tree, still as it was when conflicts were looked for."""
        parent, _, name = path.rpartition("/")
        found = self._lower_stat(parent, name)
        if self.seen.get(path, _packed(found)) != _packed(found):
            raise Overtaken
        return found

    def _lower_file(self, parent: str, name: str, before: os.stat_result | None) -> int | None:
        if before is None or not stat.S_ISREG(before.st_mode):
            return None
        path = f"{parent}/{name}" if parent else name
        return kernel.open_beneath(self.lower, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)

    def _links(self, parent: str, name: str) -> int:
        info = self._lower_stat(parent, name)
        return 0 if info is None else info.st_nlink


def narrowed(mode: int, before: int | None) -> int:
    """Permissions as they are taken over: writing by everybody only where the real tree allows that already."""
    return stat.S_IMODE(mode) & (0o775 | (0 if before is None else before & 0o002))


def _packed(info: os.stat_result | None) -> Packed | None:
    return None if info is None else pack(identity_of(info))


def _copy_bytes(reader: int, writer: int, limit: int) -> str:
    total, digest = 0, hashlib.sha256()
    while chunk := os.read(reader, _CHUNK):
        total += len(chunk)
        if total > limit:
            raise Refused(f"it grew beyond the cap of {limit} bytes")
        digest.update(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(writer, view) :]
    return digest.hexdigest()


def _copy_attributes(lower: int, writer: int) -> None:
    """Access lists and users' own attributes stay as they were; capabilities never come along."""
    for name in os.listxattr(lower):
        if name.startswith("user.") or name == "system.posix_acl_access":
            os.setxattr(writer, name, os.getxattr(lower, name))
