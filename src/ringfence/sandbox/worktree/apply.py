"""The steps of a commit carried out on the real tree. Check and change are one system call wherever the kernel allows.

A file is exchanged with its successor, then looked at: if what came out is not what the plan expected, they are
exchanged back. So a person who saves the same file in that instant loses nothing.
"""

import errno
import os
import stat

from ringfence.sandbox.worktree import journal, kernel, there
from ringfence.sandbox.worktree.change import Identity
from ringfence.sandbox.worktree.plan import Plan, Step
from ringfence.sandbox.worktree.state import identity_of, unpack


class Changed(Exception):
    """Someone else changed the path since the plan was made; the step did nothing."""


def carry_out(plan: Plan, root: int, stage: int) -> tuple[dict[int, str], dict[int, str]]:
    """Do every step. Gives steps that met someone else's change, and steps the kernel refused, each with why."""
    changed: dict[int, str] = {}
    failed: dict[int, str] = {}
    for step in plan.steps:
        try:
            _step(step, root, stage)
        except Changed as answer:
            changed[step.number] = str(answer)
        except OSError as error:
            failed[step.number] = error.strerror or "the kernel refused it"
        journal.at_step(f"step-{step.number}")
    return changed, failed


def _step(step: Step, root: int, stage: int) -> None:
    parent, _, name = os.fsdecode(step.path).rpartition("/")
    fd = there.folder(root, parent)
    if fd is None:
        raise Changed("its folder is gone or no longer a folder")
    try:
        if step.verb == "put":
            _put(step, fd, name, stage)
        elif step.verb == "remove":
            _remove(step, fd, name, stage)
        elif step.verb == "mkdir":
            _make(step, fd, name)
        elif step.verb == "rmdir":
            os.rmdir(name, dir_fd=fd)
        elif step.verb == "chmod":
            _chmod(step, fd, name)
        else:
            _touch(step, fd, name)
    finally:
        os.close(fd)


def _put(step: Step, fd: int, name: str, stage: int) -> None:
    staged = str(step.number)
    before = unpack(step.before)
    if before is None:
        try:
            kernel.rename_at(stage, staged, fd, name, kernel.RENAME_NOREPLACE)
        except FileExistsError as error:
            raise Changed("someone else made a file of this name") from error
        return
    try:
        kernel.rename_at(stage, staged, fd, name, kernel.RENAME_EXCHANGE)
    except FileNotFoundError as error:
        raise Changed("someone else removed it") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _check(fd, name, before)  # a file system without exchange: the window is a few microseconds
        os.rename(staged, name, src_dir_fd=stage, dst_dir_fd=fd)
        return
    if not before.same_content(_identity(stage, staged)):
        kernel.rename_at(stage, staged, fd, name, kernel.RENAME_EXCHANGE)
        raise Changed("someone else changed it")


def _remove(step: Step, fd: int, name: str, stage: int) -> None:
    before = unpack(step.before)
    gone = f"gone-{step.number}"
    try:
        kernel.rename_at(fd, name, stage, gone, kernel.RENAME_NOREPLACE)
    except FileNotFoundError:
        return  # gone already: both wanted the same
    if before is None or not before.same_content(_identity(stage, gone)):
        kernel.rename_at(stage, gone, fd, name, kernel.RENAME_NOREPLACE)
        raise Changed("someone else changed it")


def _make(step: Step, fd: int, name: str) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=fd)
    except FileExistsError as error:
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            return
        raise Changed("someone else made a file of this name") from error
    inner = kernel.open_directory(fd, name)
    try:
        info = os.fstat(inner)
        if (info.st_uid, info.st_gid) != step.before_owner and os.geteuid() == 0:
            os.fchown(inner, *step.before_owner)
        os.fchmod(inner, step.mode)
    finally:
        os.close(inner)


def _chmod(step: Step, fd: int, name: str) -> None:
    file = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        before, now = unpack(step.before), identity_of(os.fstat(file))
        folder = stat.S_ISDIR(now.mode)
        if before is None or not (now.mode == before.mode if folder else before.same_content(now)):
            raise Changed("someone else changed it")
        os.fchmod(file, step.mode)
    finally:
        os.close(file)


def _touch(step: Step, fd: int, name: str) -> None:
    file = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        before, after, info = unpack(step.before), unpack(step.after), os.fstat(file)
        if before is None or after is None or not before.same_content(identity_of(info)):
            raise Changed("someone else changed it")
        os.utime(file, ns=(info.st_atime_ns, after.mtime_ns))
    finally:
        os.close(file)


def _check(fd: int, name: str, before: Identity) -> None:
    if not before.same_content(_identity(fd, name)):
        raise Changed("someone else changed it")


def _identity(fd: int, name: str) -> Identity | None:
    try:
        return identity_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
    except FileNotFoundError:
        return None
