"""The box's view, carried out: new root from the order's steps, overlay, /proc, /dev; then the old root is gone.

Sources are opened as detached mounts first and attached afterwards, so that no source can be hidden by a mount made
meanwhile, and no path of the host is resolved once the new root stands.
"""

import os
import stat
from collections.abc import Sequence

from ringfence.sandbox.inner import kernel

BASE = b"/tmp"
PLAIN = kernel.MS_NOSUID | kernel.MS_NODEV
DEVICES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
LINKS = (
    (b"fd", b"/proc/self/fd"),
    (b"stdin", b"/proc/self/fd/0"),
    (b"stdout", b"/proc/self/fd/1"),
    (b"stderr", b"/proc/self/fd/2"),
    (b"ptmx", b"pts/ptmx"),
)

Step = tuple[bytes, ...]


class ViewError(Exception):
    """The view could not be built: which step, and what the kernel said. The remedy is chosen by the launcher."""

    def __init__(self, step: str, cause: OSError) -> None:
        super().__init__(f"{step}: {cause.strerror}")
        self.step = step
        self.number = cause.errno or 0


class View:
    """Builds one box's root. ``user`` is the box's uid and gid as seen inside; ``idmap`` a user namespace or -1."""

    def __init__(self, order: dict[str, object], *, user: tuple[int, int], idmap: int) -> None:
        self.steps: Sequence[tuple] = order["steps"]  # type: ignore[type-arg, assignment]
        self.user = user
        self.idmap = idmap
        self.made: set[bytes] = {b""}
        self.trees: dict[int, int] = {}

    def build(self) -> None:
        """Make the new root and enter it. Raises ViewError; the mount namespace is then fit only to be left."""
        self._try("make mounts private", kernel.mount, None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
        for index, step in enumerate(self.steps):
            if step[0] in {"ro", "rw", "dev", "overlay"}:
                self.trees[index] = self._open(step)
        devices = [kernel.clone_tree(b"/dev/" + name, recursive=False) for name in DEVICES]
        self._try("make the root", kernel.mount, b"tmpfs", BASE, b"tmpfs", PLAIN, b"mode=0755,size=32m")
        for index, step in enumerate(self.steps):
            try:
                self._carry_out(index, step)
            except OSError as cause:
                raise ViewError(f"{step[0]} {os.fsdecode(step[1])}", cause) from cause
        self._devices(devices)
        self._try(
            "close the root", kernel.set_attributes, kernel.AT_FDCWD, kernel.ATTR_RDONLY, path=BASE, recursive=False
        )
        os.chdir(BASE)
        self._try("enter the root", kernel.pivot_root, b".", b".")
        self._try("leave the old root", kernel.umount2, b".", kernel.MNT_DETACH)
        os.chdir("/")

    def _try(self, what: str, function: object, *arguments: object, **named: object) -> None:
        try:
            function(*arguments, **named)  # type: ignore[operator]
        except OSError as cause:
            raise ViewError(what, cause) from cause

    def _open(self, step: tuple) -> int:  # type: ignore[type-arg]
        try:
            if step[0] == "overlay":
                return self._overlay(*step[2:])
            tree = kernel.clone_tree(step[2])
            flags = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
            if step[0] == "ro":
                flags |= kernel.ATTR_RDONLY
            mapped = self.idmap if step[0] == "rw" else -1
            kernel.set_attributes(tree, flags, userns=mapped)
            return tree
        except OSError as cause:
            raise ViewError(f"{cause.filename or step[0]} for {os.fsdecode(step[1])}", cause) from cause

    def _overlay(self, lowers: Sequence[bytes], upper: bytes, work: bytes) -> int:
        """An overlay mount, detached. With an identity map its layers are mapped mounts, so disk owners stay true."""
        if self.idmap < 0:
            folders = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (*lowers, upper, work)]
            tree = self._mount_overlay([b"/proc/self/fd/%d" % folder for folder in folders])
            for folder in folders:
                os.close(folder)
            return tree
        shared = os.path.commonpath([upper, work])
        trees = [self._mapped(path) for path in (*lowers, shared)]  # opened before BASE covers anything
        kernel.mount(b"tmpfs", BASE, b"tmpfs", PLAIN, b"mode=0700,size=1m")
        parts = []
        for number, tree in enumerate(trees):
            place = BASE + b"/%d" % number
            os.mkdir(place)
            kernel.attach(tree, place)
            parts.append(place)
        top = parts.pop()
        parts += [top + b"/" + os.path.relpath(path, shared) for path in (upper, work)]
        tree = self._mount_overlay(parts)
        kernel.umount2(BASE, kernel.MNT_DETACH)
        return tree

    def _mapped(self, path: bytes) -> int:
        with_covered = kernel.open_tree(kernel.AT_FDCWD, _real(path), kernel.OPEN_TREE_CLONE | kernel.OPEN_TREE_CLOEXEC)
        kernel.set_attributes(with_covered, kernel.ATTR_NOSUID, userns=self.idmap, recursive=False)
        return with_covered

    @staticmethod
    def _mount_overlay(parts: list[bytes]) -> int:
        *lowers, upper, work = parts
        context = kernel.fsopen(b"overlay", 1)
        for key, value in (
            (b"source", b"ringfence"),
            (b"lowerdir", b":".join(lowers)),
            (b"upperdir", upper),
            (b"workdir", work),
        ):
            kernel.fsconfig(context, kernel.FSCONFIG_STRING, key, value, 0)
        kernel.fsconfig(context, kernel.FSCONFIG_FLAG, b"userxattr", None, 0)
        kernel.fsconfig(context, kernel.FSCONFIG_CREATE, None, None, 0)
        tree = kernel.fsmount(context, 1, kernel.ATTR_NOSUID | kernel.ATTR_NODEV)
        os.close(context)
        return tree

    def _carry_out(self, index: int, step: tuple) -> None:  # type: ignore[type-arg]
        kind, target = step[0], step[1]
        place = BASE + target
        if kind == "dir":
            self._folder(target, step[2])
        elif kind == "link":
            self._folder(os.path.dirname(target))
            os.symlink(step[2], place)
        elif kind == "file":
            self._file(target, step[2], step[3], owned=step[4])
        elif kind == "tmpfs":
            self._folder(target)
            uid, gid = self.user
            options = b"mode=%o,size=%d,uid=%d,gid=%d" % (step[2], step[3], uid, gid)
            kernel.mount(b"tmpfs", place, b"tmpfs", PLAIN, options)
        elif kind == "proc":
            self._folder(target)
            kernel.mount(b"proc", place, b"proc", PLAIN | kernel.MS_NOEXEC, None)
        elif step[0] in {"ro", "rw", "dev", "overlay"}:
            tree = self.trees.pop(index)
            if stat.S_ISDIR(os.fstat(tree).st_mode):
                self._folder(target)
            else:
                self._file(target, b"", 0o644, owned=False)
            kernel.attach(tree, place)
        else:
            raise OSError(22, f"unknown step {kind}")

    def _folder(self, path: bytes, mode: int = 0o755) -> None:
        if path in self.made or path == b"/":
            return
        self._folder(os.path.dirname(path))
        place = BASE + path
        try:
            os.mkdir(place, mode)
        except FileExistsError:
            # Before the old root is left, a link would be followed on the host.
            if os.path.islink(place) or not os.path.isdir(place):
                raise
        self.made.add(path)

    def _file(self, target: bytes, content: bytes, mode: int, *, owned: bool) -> None:
        self._folder(os.path.dirname(target))
        file = os.open(BASE + target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if content:
            os.write(file, content)
        os.fchmod(file, mode)
        if owned and self.user[0] != os.geteuid():
            os.fchown(file, *self.user)
        os.close(file)

    def _devices(self, trees: Sequence[int]) -> None:
        self._folder(b"/dev")
        for name, tree in zip(DEVICES, trees, strict=True):
            self._file(b"/dev/" + name, b"", 0o666, owned=False)
            kernel.attach(tree, BASE + b"/dev/" + name)
        for name, target in LINKS:
            os.symlink(target, BASE + b"/dev/" + name)
        self._folder(b"/dev/pts")
        options = b"newinstance,ptmxmode=0666,mode=0620"
        self._try(
            "terminals",
            kernel.mount,
            b"devpts",
            BASE + b"/dev/pts",
            b"devpts",
            kernel.MS_NOSUID | kernel.MS_NOEXEC,
            options,
        )


def _real(path: bytes) -> bytes:
    return os.path.realpath(path)
