"""The undo journal: originals kept before they are replaced, a commit cut short taken back, a finished one undone.

One folder per commit: ``plan`` (durable before the first step), ``kept/N`` (originals), ``done`` (durable after the last
step), ``clean`` (the layer was cleaned too). Without ``plan`` nothing happened; with ``plan`` alone the commit is taken
back; with ``done`` it stands and only the layer's cleaning is repeated.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.change import Identity
from ringfence.sandbox.worktree.plan import Outcome, Plan, Step
from ringfence.sandbox.worktree.removal import remove_tree
from ringfence.sandbox.worktree.state import identity_of, pack, unpack
from ringfence.sandbox.worktree.there import folder, is_there

_STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EBUSY})
_at_step: Callable[[str], None] | None = None
"""Called at each point where a crash would matter; tests put a kill here."""


def at_step(name: str) -> None:
    """A point where a crash would matter."""
    if _at_step is not None:
        _at_step(name)


Record = TypeVar("Record", Plan, Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoReport:
    """What taking back a mission's commits did. A path that someone changed since is left alone and listed."""

    restored: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class Journal:
    """The journal of one commit, in ``folder``."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def keep_all(self, plan: Plan, root: int) -> None:
        """Keep every original, durably, before the first of them is replaced."""
        for step in plan.steps:
            self._keep(root, step)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kernel.sync_filesystem(folder)
        finally:
            os.close(folder)

    def _keep(self, root: int, step: Step) -> None:
        """Keep the original of a step: the very inode where the file system allows a link, else a copy with all it has."""
        if (
            step.before is None
            or step.verb == "touch"
            or not (stat.S_ISREG(step.before[5]) or stat.S_ISLNK(step.before[5]))
        ):
            return
        parent, name = _split(step.path)
        fd = _parent(root, parent)
        try:
            kept = f"{self.folder}/kept/{step.number}"
            try:
                os.link(name, kept, src_dir_fd=fd, follow_symlinks=False)
            except OSError as error:
                if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                    raise
                _copy(fd, name, kept)
        finally:
            os.close(fd)

    def begin(self, plan: Plan, root: int) -> None:
        """Make the plan durable: the staged files first, then the plan itself."""
        kernel.sync_filesystem(root)
        self._store("plan", msgspec.msgpack.encode(plan))

    def finish(self, void: list[int], root: int) -> None:
        """Make the steps durable, then say so."""
        kernel.sync_filesystem(root)
        self._store("done", msgspec.msgpack.encode(Outcome(void=tuple(void))))

    def mark(self, name: str) -> None:
        """Note that the layer was cleaned (``clean``) or the commit undone (``undone``)."""
        self._store(name, b"")

    def has(self, name: str) -> bool:
        """Whether a mark is there."""
        return is_there(f"{self.folder}/{name}")

    def plan(self) -> Plan:
        """The plan. Raises RingfenceError where it is damaged."""
        return self._load("plan", Plan)

    def outcome(self) -> Outcome:
        """The outcome. Raises RingfenceError where it is damaged."""
        return self._load("done", Outcome)

    def take_back(self, root: int, *, void: tuple[int, ...] = ()) -> UndoReport:
        """Give the tree back what the steps changed, last step first. Safe to repeat."""
        plan = self.plan()
        stage = os.fsdecode(plan.stage)
        os.makedirs(stage, mode=0o700, exist_ok=True)
        stage_fd = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        restored: list[str] = []
        conflicts: list[str] = []
        try:
            for step in reversed(plan.steps):
                if step.number in void:
                    continue
                answer = self._restore(root, stage_fd, step)
                if answer is not None:
                    (restored if answer else conflicts).append(os.fsdecode(step.path))
                at_step(f"undo-{step.number}")
        finally:
            os.close(stage_fd)
            remove_tree(stage)
        kernel.sync_filesystem(root)
        return UndoReport(restored=tuple(restored), conflicts=tuple(conflicts))

    def _restore(self, root: int, stage: int, step: Step) -> bool | None:
        """True: given back. False: someone else changed it. None: there was nothing to do."""
        parent, name = _split(step.path)
        fd = folder(root, parent)
        if fd is None:
            return None if step.before is None else False
        try:
            now = _identity(fd, name)
            before, after = unpack(step.before), unpack(step.after)
            if step.verb == "mkdir":
                return _remove_made(fd, name, now)
            if step.verb == "rmdir":
                return self._remake(fd, name, step, now)
            if step.verb == "chmod":
                return _chmod_back(fd, name, step, now)
            if step.verb == "touch":
                return _touch_back(fd, name, before, after, now)
            if same(now, before):
                return None
            ours = same(now, None if step.verb == "remove" else after) and _holds(fd, name, step.content)
            if not ours or _put_back(fd, name, stage, step):
                return False
            if before is None:
                os.unlink(name, dir_fd=fd)
            else:
                self._bring_back(fd, name, stage, step)
            return True
        finally:
            os.close(fd)

    def _bring_back(self, fd: int, name: str, stage: int, step: Step) -> None:
        kept, back = f"{self.folder}/kept/{step.number}", f"back-{step.number}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(back, dir_fd=stage)
        try:
            os.link(kept, back, dst_dir_fd=stage, follow_symlinks=False)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                raise
            source = os.open(os.path.dirname(kept), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _copy(source, os.path.basename(kept), f"/proc/self/fd/{stage}/{back}")
            finally:
                os.close(source)
        if step.verb == "remove":
            kernel.rename_at(stage, back, fd, name, kernel.RENAME_NOREPLACE)
        else:
            os.rename(back, name, src_dir_fd=stage, dst_dir_fd=fd)

    @staticmethod
    def _remake(fd: int, name: str, step: Step, now: Identity | None) -> bool | None:
        if now is not None:
            return None if stat.S_ISDIR(now.mode) else False
        os.mkdir(name, 0o700, dir_fd=fd)
        inner = kernel.open_directory(fd, name)
        try:
            if os.geteuid() == 0:
                os.fchown(inner, *step.before_owner)
            os.fchmod(inner, stat.S_IMODE(step.before[5] if step.before else 0o755))
        finally:
            os.close(inner)
        return True

    def _store(self, name: str, data: bytes) -> None:
        path = f"{self.folder}/{name}"
        with open(path + ".new", "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.rename(path + ".new", path)
            os.fsync(folder)
        finally:
            os.close(folder)

    def _load(self, name: str, kind: type[Record]) -> Record:
        try:
            with open(f"{self.folder}/{name}", "rb") as stream:
                return msgspec.msgpack.decode(stream.read(), type=kind)
        except (FileNotFoundError, PermissionError, msgspec.MsgspecError) as error:
            raise RingfenceError(
                "journal-unreadable",
                f"the undo journal of a commit cannot be read: {error}",
                where=f"{self.folder}/{name}",
                remedy="the originals are in its folder `kept`; compare them with the tree, then move the folder away",
            ) from error


def open_journal(mission: str) -> Journal:
    """A new, empty journal in a mission's folder."""
    folder = next_folder(f"{mission}/journal")
    os.makedirs(f"{folder}/kept", mode=0o700)
    return Journal(folder)


def next_folder(base: str) -> str:
    """The path of a numbered folder in ``base`` that comes behind all that are there; not made yet, ``base`` is."""
    os.makedirs(base, mode=0o700, exist_ok=True)
    number = max((int(n) for n in os.listdir(base) if n.isdigit()), default=0) + 1
    return f"{base}/{number:06d}"


def journals(mission: str) -> list[Journal]:
    """The journals of a mission, oldest first."""
    base = f"{mission}/journal"
    names = sorted(n for n in os.listdir(base) if n.isdigit()) if is_there(base) else []
    return [Journal(f"{base}/{name}") for name in names]


def source_identity(fd: int, path: str) -> Identity | None:
    """The identity of an entry below ``fd``, without following links anywhere on the way."""
    parent, _, name = path.rpartition("/")
    inner = folder(fd, parent)
    if inner is None:
        return None
    try:
        return _identity(inner, name)
    finally:
        os.close(inner)


def packed_identity(fd: int, name: str) -> tuple[int, int, int, int, int, int] | None:
    """The identity of ``name`` in the folder ``fd`` as plans hold it."""
    return pack(_identity(fd, name))


def _identity(fd: int, name: str) -> Identity | None:
    try:
        return identity_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError:
        return None


def same(now: Identity | None, before: Identity | None) -> bool:
    """Equal content by size, time and mode; a copy brought back from another file system has another inode."""
    if now is None or before is None:
        return now is before
    return (now.size, now.mtime_ns, now.mode) == (before.size, before.mtime_ns, before.mode)


def _holds(fd: int, name: str, content: str) -> bool:
    """Whether what stands there has this content; its size and time alone can be given back to another one."""
    if not content:
        return True
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=fd))).hexdigest() == content
    file = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == content


def _put_back(fd: int, name: str, stage: int, step: Step) -> bool:
    """Someone's save that a commit had just taken out of the tree, and not looked at, when it was cut short."""
    out = str(step.number) if step.verb == "put" else f"gone-{step.number}"
    taken, before = _identity(stage, out), unpack(step.before)
    if taken is None or before is None or before.same_content(taken):
        return False
    flag = kernel.RENAME_EXCHANGE if step.verb == "put" else kernel.RENAME_NOREPLACE
    kernel.rename_at(stage, out, fd, name, flag)
    return True


def _remove_made(fd: int, name: str, now: Identity | None) -> bool | None:
    if now is None or not stat.S_ISDIR(now.mode):
        return None
    try:
        os.rmdir(name, dir_fd=fd)
    except OSError as error:
        if error.errno not in _STAYS:
            raise
        return False  # someone put something there
    return True


def _chmod_back(fd: int, name: str, step: Step, now: Identity | None) -> bool | None:
    if now is None or step.before is None:
        return False
    if stat.S_IMODE(now.mode) == stat.S_IMODE(step.before[5]):
        return None
    if stat.S_IMODE(now.mode) != step.mode:
        return False
    file = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fchmod(file, stat.S_IMODE(step.before[5]))
    finally:
        os.close(file)
    return True


def _touch_back(
    fd: int, name: str, before: Identity | None, after: Identity | None, now: Identity | None
) -> bool | None:
    if before is None or now is None or not same(now, after):
        return None
    os.utime(name, ns=(before.mtime_ns, before.mtime_ns), dir_fd=fd, follow_symlinks=False)
    return True


def _copy(fd: int, name: str, to: str) -> None:
    info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=fd), to)
    else:
        source = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(source, "rb") as reader, open(to, "xb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
            os.fchmod(writer.fileno(), 0o600)
    if os.geteuid() == 0:
        os.chown(to, info.st_uid, info.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(info.st_mode):
        os.chmod(to, stat.S_IMODE(info.st_mode))
    os.utime(to, ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)


def _split(path: bytes) -> tuple[str, str]:
    parent, _, name = os.fsdecode(path).rpartition("/")
    return parent, name


def _parent(root: int, parent: str) -> int:
    return kernel.open_directory(root, parent) if parent else os.dup(root)
