"""The box's view, carried out: new root from the order's steps, overlay, /proc, /dev; then the old root is gone.

Sources are opened as detached mounts first and attached afterwards, so that no source can be hidden by a mount made
meanwhile, and no path of the host is resolved once the new root stands.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Sequence

from ringfence.sandbox.inner import kernel, root, skeleton, tells

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

TERMINALS = 256
"""So many may a box make, of the 4,096 that all boxes and the host share by default."""
DEVICE_STEPS = (
    *(("ro", b"/dev/" + name) for name in DEVICES),
    *(("link", b"/dev/" + name, target) for name, target in LINKS),
    ("tmpfs", b"/dev/pts"),
)
"""What ``_devices`` makes, as steps, for the skeleton."""
LAYERED = (b"/etc", b"/run")
"""Folders with content of their own below which the skeleton is asked last; the kernel remembers what it answered."""

Step = tuple[bytes, ...]


class ViewError(Exception):
    """The view could not be built: which step, and what the kernel said. The remedy is chosen by the launcher."""

    def __init__(self, step: str, cause: OSError) -> None:
        super().__init__(f"{step}: {cause.strerror}")
        self.step = step
        self.number = cause.errno or 0


class View:
    """Builds one box's root. ``user`` is the box's uid and gid as seen inside; ``idmap`` a user namespace or -1.

    ``unseen`` says afterwards where tries on what is not in view go unseen, ``shared`` which granted folders are the host's own.
    """

    def __init__(
        self,
        order: dict[str, object],
        *,
        user: tuple[int, int],
        idmap: int,
        base: root.Root,
    ) -> None:
        self.steps: Sequence[tuple] = order["steps"]  # type: ignore[type-arg, assignment]
        self.user = user
        self.idmap = idmap
        self.root = base
        self.made: set[bytes] = {b""}
        self.trees: dict[int, int] = {}
        self.parts: dict[int, list[int]] = {}
        self.told: dict[int, int] = {}
        self.between: dict[bytes, int] = {}
        self.layers: dict[bytes, int] = {}
        self.granted: dict[int, int] = {}
        self.nothing = -1
        self.shared: list[str] = []
        self.unseen: list[str] = []
        self.served = False

    def build(self) -> None:
        """Make the new root and enter it. Raises ViewError; the mount namespace is then fit only to be left."""
        self._try("make mounts private", kernel.mount, None, b"/", None, kernel.MS_REC | kernel.MS_PRIVATE, None)
        for index, step in enumerate(self.steps):
            if step[0] == "overlay":
                self.parts[index] = self._parts(step)
            elif step[0] in {"ro", "granted", "rw", "dev"}:
                self.trees[index] = self._open(step)
        self._find_granted()
        devices = [kernel.clone_tree(b"/dev/" + name, recursive=False) for name in DEVICES]
        self._root()
        for index, step in enumerate(self.steps):
            try:
                self._carry_out(index, step)
            except OSError as cause:
                raise ViewError(f"{step[0]} {os.fsdecode(step[1])}", cause) from cause
        self._devices(devices)
        if not self.served:
            self._try(
                "close the root", kernel.set_attributes, kernel.AT_FDCWD, kernel.ATTR_RDONLY, path=BASE, recursive=False
            )
        os.chdir(BASE)
        self._try("enter the root", kernel.pivot_root, b".", b".")
        self._try("leave the old root", kernel.umount2, b".", kernel.MNT_DETACH)
        os.chdir("/")
        if self.served:
            root.warm()

    def held(self) -> list[int]:
        """For the launcher: the box's /proc, by which it finds who asked, and the mounts that it lets go of later.

        The last one who lets go of a file system waits for the kernel, and a box should not end later for that.
        """
        if not self.served:
            return []
        return [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in (b"/proc", b"/", *LAYERED)]

    def _root(self) -> None:
        """A skeleton that somebody answers for, or where that cannot be, a small tmpfs in which every folder is made."""
        if self.root.mount >= 0:
            try:
                self._answered()
            except OSError as fault:
                self.root.why = f"the root: {fault.strerror}"
        if not self.served:
            self.root.leave()
            self.unseen = [self.root.why]
            self._try("make the root", kernel.mount, b"tmpfs", BASE, b"tmpfs", PLAIN, b"mode=0755,size=32m")

    def _answered(self) -> None:
        made = skeleton.entries((*self.steps, *DEVICE_STEPS), self._is_folder)
        if made is None:
            self.root.why = "the plan puts a file where nothing is mounted"
            return
        for path in LAYERED:
            in_view = next((os.listdir(step[2]) for step in self.steps if step[:2] == ("ro", path)), [])
            made = [(*entry[:3], in_view, None) if entry[0] == path else entry for entry in made]
        if any(entry[0] == tells.BELOW for entry in made):
            made += self._tellers()
        self.root.serve(made)
        kernel.move_mount(self.root.mount, b"", kernel.AT_FDCWD, BASE, kernel.MOVE_FROM_EMPTY)
        self.root.leave()
        names = {entry[0] for entry in made}
        between = {folder: kernel.clone_tree(BASE + folder, recursive=False) for folder in skeleton.between(self.steps)}
        places = {index: tells.place(index) for index in self.parts}
        told = {
            index: os.open(BASE + place, os.O_PATH | os.O_DIRECTORY)
            for index, place in places.items()
            if place in names
        }
        # Only now does anything rest on it: where one of these failed, the small tmpfs takes its place.
        self.made |= names
        self.between, self.told, self.served = between, told, True

    def _tellers(self) -> list[skeleton.Entry]:
        found = tells.closed()
        for index, parts in self.parts.items():
            _kind, shown, _lowers, _upper, _work, hidden = self.steps[index]
            if not hidden:
                continue
            telling = tells.Telling(parts[0], parts[1])
            found += telling.entries(index, shown, hidden)
            if telling.left:
                self.unseen.append(f"{telling.left} hidden paths of {os.fsdecode(shown)}")
        return found

    def _is_folder(self, number: int) -> bool:
        return number in self.trees and stat.S_ISDIR(os.fstat(self.trees[number]).st_mode)

    def _try(self, what: str, function: object, *arguments: object, **named: object) -> None:
        try:
            function(*arguments, **named)  # type: ignore[operator]
        except OSError as cause:
            raise ViewError(what, cause) from cause

    def _open(self, step: tuple) -> int:  # type: ignore[type-arg]
        try:
            if step[1] in LAYERED and self.root.mount >= 0:
                self.layers[step[1]] = os.open(step[2], os.O_PATH | os.O_DIRECTORY)
            tree = kernel.clone_tree(step[2])
            flags = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
            if step[0] in {"ro", "granted"}:
                flags |= kernel.ATTR_RDONLY
            mapped = self.idmap if step[0] == "rw" else -1
            kernel.set_attributes(tree, flags, userns=mapped)
            return tree
        except OSError as cause:
            raise ViewError(f"{cause.filename or step[0]} for {os.fsdecode(step[1])}", cause) from cause

    def _parts(self, step: tuple) -> list[int]:  # type: ignore[type-arg]
        """What an overlay is made of, opened before anything covers it: its lower layers, and the folders written to.

        With an identity map the layers are mapped mounts, so that disk owners stay true; the last one is the folder that
        holds both the upper and the work directory.
        """
        lowers, upper, work = step[2:5]
        try:
            if self.idmap < 0:
                return [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (*lowers, upper, work)]
            return [self._mapped(path) for path in (*lowers, os.path.commonpath([upper, work]))]
        except OSError as cause:
            raise ViewError(f"{cause.filename or step[0]} for {os.fsdecode(step[1])}", cause) from cause

    def _overlay(self, index: int, step: tuple, place: bytes) -> None:  # type: ignore[type-arg]
        parts = self.parts.pop(index)
        told = self.told.pop(index, -1)
        one_file_system = len({os.fstat(part).st_dev for part in parts}) == 1
        if self.idmap >= 0:
            parts = self._attached(parts, place, step[3:5])
        # By descriptor: an option of an overlay holds 255 bytes, and takes a colon and a backslash for its own.
        folders = [b"/proc/self/fd/%d" % part for part in parts]
        if told >= 0:
            folders.insert(0, b"/proc/self/fd/%d" % told)
        try:
            tree = self._mount_overlay(folders, numbers=told >= 0 and one_file_system)
        except OSError as fault:
            if told < 0:
                raise
            # The folder on top only tells: a kernel that takes none like it hides as well without.
            self.unseen.append(f"{os.fsdecode(step[1])}: {fault.strerror}")
            tree = self._mount_overlay(folders[1:])
        if self.idmap >= 0:
            kernel.umount2(place, kernel.MNT_DETACH)
        for part in (*parts, *((told,) if told >= 0 else ())):
            os.close(part)
        kernel.attach(tree, place)

    @staticmethod
    def _attached(trees: list[int], place: bytes, written: tuple[bytes, bytes]) -> list[int]:
        """The layers behind mapped mounts, which make an overlay only where they are attached: below ``place``, for now.

        The last of them holds both folders that are written to.
        """
        kernel.mount(b"tmpfs", place, b"tmpfs", PLAIN, b"mode=0700,size=1m")
        parts, shared = [], os.path.commonpath(written)
        for number, tree in enumerate(trees):
            folder = place + b"/%d" % number
            os.mkdir(folder)
            kernel.attach(tree, folder)
            parts.append(os.open(folder, os.O_PATH | os.O_DIRECTORY))
        top = parts.pop()
        parts += [os.open(os.path.relpath(path, shared), os.O_PATH | os.O_DIRECTORY, dir_fd=top) for path in written]
        os.close(top)
        return parts

    def _mapped(self, path: bytes) -> int:
        with_covered = kernel.open_tree(kernel.AT_FDCWD, _real(path), kernel.OPEN_TREE_CLONE | kernel.OPEN_TREE_CLOEXEC)
        kernel.set_attributes(with_covered, kernel.ATTR_NOSUID, userns=self.idmap, recursive=False)
        return with_covered

    @staticmethod
    def _mount_overlay(parts: list[bytes], *, writable: bool = True, numbers: bool = False) -> int:
        """``numbers``: one device number for all, though a layer is on another file system.

        Where the real tree is not on that of the layer that is written to, its files would lose their inode numbers by it.
        """
        lowers = parts[:-2] if writable else parts
        above = zip((b"upperdir", b"workdir"), parts[-2:], strict=True) if writable else ()
        context = kernel.fsopen(b"overlay", 1)
        for key, value in ((b"source", b"ringfence"), (b"lowerdir", b":".join(lowers)), *above):
            kernel.fsconfig(context, kernel.FSCONFIG_STRING, key, value, 0)
        kernel.fsconfig(context, kernel.FSCONFIG_FLAG, b"userxattr", None, 0)
        if numbers:
            kernel.fsconfig(context, kernel.FSCONFIG_STRING, b"xino", b"on", 0)
        kernel.fsconfig(context, kernel.FSCONFIG_CREATE, None, None, 0)
        flags = kernel.ATTR_NOSUID | kernel.ATTR_NODEV | (0 if writable else kernel.ATTR_RDONLY)
        tree = kernel.fsmount(context, 1, flags)
        os.close(context)
        return tree

    def _carry_out(self, index: int, step: tuple) -> None:  # type: ignore[type-arg]
        kind, target = step[0], step[1]
        place = BASE + target
        if self.served and kind in {"ro", "tmpfs"} and target in LAYERED and target in self.made:
            self._layered(index, step)
        elif kind == "dir":
            self._folder(target, step[2])
        elif kind == "link":
            self._link(target, step[2])
        elif kind == "file":
            self._file(target, step[2], step[3], owned=step[4])
        elif kind == "tmpfs":
            self._folder(target)
            self._tmpfs(place, step)
            for folder in [one for one in self.between if os.path.dirname(one) == target]:
                os.mkdir(BASE + folder, 0o755)
                kernel.attach(self.between.pop(folder), BASE + folder)
        elif kind == "proc":
            self._folder(target)
            self._proc(place)
        elif kind == "mqueue":
            self._folder(target)
            with contextlib.suppress(OSError):  # a kernel without message queues
                kernel.mount(b"mqueue", place, b"mqueue", PLAIN | kernel.MS_NOEXEC, None)
        elif kind == "overlay":
            self._folder(target)
            self._overlay(index, step, place)
        elif index in self.granted:
            self._folder(target)
            self._apart(index, target, place)
        elif kind in {"ro", "granted", "rw", "dev"}:
            tree = self.trees.pop(index)
            if stat.S_ISDIR(os.fstat(tree).st_mode):
                self._folder(target)
            else:
                self._file(target, b"", 0o644, owned=False)
            kernel.attach(tree, place)
        else:
            raise OSError(22, f"unknown step {kind}")

    def _find_granted(self) -> None:
        """Folders that can be an overlay's layer: all but those that other things are mounted in, which it would not show."""
        wanted = [
            (index, step) for index, step in enumerate(self.steps) if step[0] == "granted" and self._is_folder(index)
        ]
        places = _places() if wanted else []
        for index, (_kind, target, source) in wanted:
            if any(place.startswith(_real(source).rstrip(b"/") + b"/") for place in places):
                self.shared.append(f"{os.fsdecode(target)} holds mounts")
            else:
                self.granted[index] = os.open(source, os.O_PATH | os.O_DIRECTORY)

    def _apart(self, index: int, target: bytes, place: bytes) -> None:
        """A granted folder as an overlay's layer: what lies in it of sockets and pipes leads nowhere, its locks are the box's own."""
        folder, tree = self.granted.pop(index), self.trees.pop(index)
        try:
            above = self._mount_overlay(
                [b"/proc/self/fd/%d" % one for one in (folder, self.nothing)], writable=False, numbers=True
            )
        except OSError as fault:
            self.shared.append(f"{os.fsdecode(target)}: {fault.strerror}")
        else:
            os.close(tree)
            tree = above
        os.close(folder)
        kernel.attach(tree, place)

    def _proc(self, place: bytes) -> None:
        """Its own /proc. What of it is nobody's in the box tells of tries; where nothing can, the keys are empty."""
        covers = dict.fromkeys(tells.KEYS, b"/dev/null")
        if self.served:
            covers = {name: BASE + tells.closed_place(name) for name in tells.CLOSED}
        trees = {name: kernel.clone_place(cover) for name, cover in covers.items()}
        if self.granted:  # an empty folder, which the box's /proc then covers: an overlay needs two layers
            kernel.mount(b"tmpfs", place, b"tmpfs", PLAIN | kernel.MS_RDONLY, b"mode=0755,size=4k")
            self.nothing = os.open(place, os.O_PATH | os.O_DIRECTORY)
        kernel.mount(b"proc", place, b"proc", PLAIN | kernel.MS_NOEXEC, None)
        for name, tree in trees.items():
            try:
                kernel.attach(tree, place + name)
            except OSError as fault:
                os.close(tree)
                if fault.errno == errno.ENOENT:
                    continue  # a kernel without it
                if name in tells.KEYS:
                    raise
                self.unseen.append(f"/proc{os.fsdecode(name)}: {fault.strerror}")

    def _tmpfs(self, place: bytes, step: tuple) -> None:  # type: ignore[type-arg]
        options = b"mode=%o,size=%d,uid=%d,gid=%d" % (step[2], step[3], *self.user)
        kernel.mount(b"tmpfs", place, b"tmpfs", PLAIN, options)

    def _layered(self, index: int, step: tuple) -> None:  # type: ignore[type-arg]
        """A folder with content of its own over the skeleton's; where no overlay can be made, the content alone."""
        place = BASE + step[1]
        parts = [os.open(place, os.O_PATH | os.O_DIRECTORY)]
        if step[0] == "tmpfs":
            self._tmpfs(place, step)
            for name in (b"/own", b"/work"):
                os.mkdir(place + name, step[2])
                parts.append(os.open(place + name, os.O_PATH | os.O_DIRECTORY))
            if self.user[0] != os.geteuid():
                os.chown(place + b"/own", *self.user)
        else:
            parts.insert(0, self.layers[step[1]])
        try:
            tree = self._mount_overlay([b"/proc/self/fd/%d" % part for part in parts], writable=step[0] == "tmpfs")
        except OSError as fault:
            self.unseen.append(f"{os.fsdecode(step[1])}: {fault.strerror}")
            if step[0] == "tmpfs":
                kernel.umount2(place, kernel.MNT_DETACH)
                self._tmpfs(place, step)
            else:
                kernel.attach(self.trees.pop(index), place)
        else:
            kernel.attach(tree, place)
        for part in parts:
            os.close(part)

    def _link(self, target: bytes, to: bytes) -> None:
        if target not in self.made:
            self._folder(os.path.dirname(target))
            os.symlink(to, BASE + target)

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
        if target in self.made:
            return
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
            self._link(b"/dev/" + name, target)
        self._folder(b"/dev/pts")
        options = b"newinstance,ptmxmode=0666,mode=0620,max=%d" % TERMINALS
        self._try(
            "terminals",
            kernel.mount,
            b"devpts",
            BASE + b"/dev/pts",
            b"devpts",
            kernel.MS_NOSUID | kernel.MS_NOEXEC,
            options,
        )


def _places() -> list[bytes]:
    """Where something is mounted; a name with a blank or a backslash in it stands there in octal."""
    with open("/proc/self/mountinfo", "rb") as file:
        named = [line.split(b" ")[4] for line in file]
    return [re.sub(rb"\\(\d{3})", lambda octal: bytes([int(octal[1], 8)]), name) for name in named]


def _real(path: bytes) -> bytes:
    return os.path.realpath(path)
