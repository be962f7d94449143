"""Calls that would change a path, and which of them the box may not make. Pure: what was read of a call in, words out.

What is judged here is recorded and never decided on: the caller could change its memory meanwhile, and the kernel's own
rules (mounts, Landlock, owners) are the wall. Every answer to such a call is "go on".
"""

import posixpath
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

AT_SYMLINK_NOFOLLOW = 0x100
O_CREAT, O_EXCL, O_TRUNC, O_TMPFILE = 0o100, 0o200, 0o1000, 0o20000000
WRITE_INTENT = 0o3 | O_CREAT | O_TRUNC
"""Bits of open flags that say that the file would be changed or made: write-only, read-write, create, truncate."""
ONLY_NEW = O_CREAT | O_EXCL
"""An open that only makes a file which is not there yet follows no link in the last place."""
NOFOLLOW = {"x86_64": 0o400000, "aarch64": 0o100000}
HERE = None
"""In place of a register with a folder's descriptor: the caller's working folder."""
SHOWN = 200
"""Bytes of a path that a record shows; of a longer one, its beginning and its end."""
INNER_ATTRIBUTES = (b"trusted.", b"security.", b"user.overlay.")
"""Extended attributes that belong to the kernel, or by which an overlay finds what lies below."""
OWN_SETTINGS = re.compile(
    rb"/proc/(?!1/)(self|thread-self|\d+)/(task/\d+/)?(comm|oom_score_adj|oom_adj|coredump_filter|timerslack_ns|autogroup|clear_refs)"
)
"""What a process may set about itself, and ordinary runtimes do (the name of a thread, its place when memory runs out).

Process 1 is the fence's own, and nothing of it may be set."""
ATTRIBUTES = frozenset(
    {"chmod", "chown", "set times of", "set attributes of", "setxattr", "removexattr", "let others in by setxattr"}
)
OWN_DESCRIPTOR = re.compile(rb"/proc/(?:self|thread-self)/fd/(\d+)")
CACHES = b"/__pycache__"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One kind of call: the words for it and where its registers hold what it is about."""

    words: str
    paths: tuple[tuple[int | None, int], ...]
    """For each path: the register with the folder's descriptor, and the register with the path's address."""
    follows: bool = False
    """Whether a link in the last place is followed."""
    flags: int = -1
    """The register with ``AT_*`` or open flags, where there is one."""
    attribute: int = -1
    """The register with the address of an extended attribute's name."""
    descriptor: int = -1
    """The register with the descriptor of an open file, where it is about that."""
    size: int = -1
    """The register with the size of a socket's address, where the path stands in one."""


def _open(folder: int | None, path: int, flags: int = -1) -> Change:
    return Change(words="open for writing", paths=((folder, path),), follows=True, flags=flags)


def _one(words: str, folder: int | None, path: int, *, follows: bool = False, flags: int = -1) -> Change:
    return Change(words=words, paths=((folder, path),), follows=follows, flags=flags)


CHANGES = {
    "open": _open(HERE, 0, 1),
    "creat": _open(HERE, 0),
    "openat": _open(0, 1, 2),
    "openat2": _open(0, 1),
    "truncate": _one("truncate", HERE, 0, follows=True),
    "unlink": _one("remove", HERE, 0),
    "unlinkat": _one("remove", 0, 1),
    "rmdir": _one("remove", HERE, 0),
    "mkdir": _one("make folder", HERE, 0),
    "mkdirat": _one("make folder", 0, 1),
    "mknod": _one("mknod", HERE, 0),
    "mknodat": _one("mknod", 0, 1),
    "symlink": _one("symlink", HERE, 1),
    "symlinkat": _one("symlink", 1, 2),
    "link": Change(words="link", paths=((HERE, 0), (HERE, 1))),
    "linkat": Change(words="link", paths=((0, 1), (2, 3))),
    "rename": Change(words="rename", paths=((HERE, 0), (HERE, 1))),
    "renameat": Change(words="rename", paths=((0, 1), (2, 3))),
    "renameat2": Change(words="rename", paths=((0, 1), (2, 3))),
    "bind": Change(words="make socket", paths=((HERE, 1),), size=2),
    "chmod": _one("chmod", HERE, 0, follows=True),
    "fchmodat": _one("chmod", 0, 1, follows=True),
    "fchmodat2": _one("chmod", 0, 1, follows=True, flags=3),
    "fchmod": Change(words="chmod", paths=(), descriptor=0),
    "fchown": Change(words="chown", paths=(), descriptor=0),
    "utime": _one("set times of", HERE, 0, follows=True),
    "utimes": _one("set times of", HERE, 0, follows=True),
    "futimesat": _one("set times of", 0, 1, follows=True),
    "utimensat": _one("set times of", 0, 1, follows=True, flags=3),
    "file_setattr": _one("set attributes of", 0, 1, follows=True, flags=4),
    "chown": _one("chown", HERE, 0, follows=True),
    "lchown": _one("chown", HERE, 0),
    "fchownat": _one("chown", 0, 1, follows=True, flags=4),
    "setxattr": Change(words="setxattr", paths=((HERE, 0),), follows=True, attribute=1),
    "lsetxattr": Change(words="setxattr", paths=((HERE, 0),), attribute=1),
    "fsetxattr": Change(words="setxattr", paths=(), attribute=1, descriptor=0),
    "setxattrat": Change(words="setxattr", paths=((0, 1),), flags=2, follows=True, attribute=3),
    "removexattr": Change(words="removexattr", paths=((HERE, 0),), follows=True, attribute=1),
    "lremovexattr": Change(words="removexattr", paths=((HERE, 0),), attribute=1),
    "fremovexattr": Change(words="removexattr", paths=(), attribute=1, descriptor=0),
    "removexattrat": Change(words="removexattr", paths=((0, 1),), flags=2, follows=True, attribute=3),
}
LOCAL_FAMILY = struct.pack("=H", 1)
"""AF_UNIX, as a socket's address begins."""
LONGEST_ADDRESS = 128
SETTING = Change(words="set attributes of", paths=(), descriptor=0)
"""By ioctl."""
DEVICE = "make device"
"""In words, what a mknod asks for whose mode says so; no place of a box may hold one."""


LETTING_IN = "let others in by setxattr"
"""In words, an access list that names others than the box's own user and group, whom nobody in it may name."""
ACCESS_LISTS = b"system.posix_acl_"
ACCESS_ENTRY = struct.Struct("<HHI")
NAMED_USER, NAMED_GROUP = 2, 8


def names_others(text: bytes, own: tuple[int, int]) -> bool:
    """Whether the text of an access list names a user or group that is not this one."""
    entries = text[4 : 4 + (len(text) - 4) // ACCESS_ENTRY.size * ACCESS_ENTRY.size]
    return any(
        (tag, who) not in {(NAMED_USER, own[0]), (NAMED_GROUP, own[1])}
        for tag, _rights, who in ACCESS_ENTRY.iter_unpack(entries)
        if tag in {NAMED_USER, NAMED_GROUP}
    )


def place_of_socket(address: bytes) -> bytes:
    """The path that a local socket's address names; empty for any other address, and for a name without a file."""
    return address[2:].partition(b"\0")[0] if address[:2] == LOCAL_FAMILY else b""


def follows(change: Change, registers: Sequence[int], nofollow: int) -> bool:
    """Whether this call would follow a link in the last place of its path."""
    if not change.follows or change.flags < 0:
        return change.follows
    flags = registers[change.flags]
    if change.words == "open for writing":
        return not (flags & nofollow or flags & ONLY_NEW == ONLY_NEW)
    return not flags & AT_SYMLINK_NOFOLLOW


def unnamed(change: Change, registers: Sequence[int]) -> bool:
    """Whether a file without a name is to be made in the folder that the path names."""
    return change.flags >= 0 and change.words == "open for writing" and bool(registers[change.flags] & O_TMPFILE)


def joined(base: bytes, path: bytes) -> bytes:
    """The path from the root as it was meant; empty where it is relative to no known folder."""
    if path.startswith(b"/"):
        return path
    return base + b"/" + path if base else b""


def normal(path: bytes) -> bytes:
    """Without ``.``, ``..`` and empty parts, by the letters; where links stand, ``real`` tells more."""
    if b"/." in path or b"//" in path or path.endswith(b"/"):
        path = posixpath.normpath(path)
        return path[1:] if path.startswith(b"//") else path
    return path


class Places:
    """What one box may change, from its order: the writable places, the devices, and the names that the view hides."""

    def __init__(self, order: dict[str, Any], devices: Sequence[bytes]) -> None:
        self.writable: tuple[bytes, ...] = tuple(place.rstrip(b"/") + b"/" for place in order["writable"])
        self.devices = frozenset(b"/dev/" + name for name in (*devices, b"ptmx", b"pts/ptmx"))
        self.hidden: frozenset[bytes] = frozenset(order["hidden"])
        self.overlays: tuple[bytes, ...] = tuple(
            step[1].rstrip(b"/") + b"/" for step in order["steps"] if step[0] == "overlay"
        )
        self.alone: tuple[bytes, ...] = (
            *self.overlays,
            *(step[1].rstrip(b"/") + b"/" for step in order["steps"] if step[0] == "tmpfs"),
        )
        self.shared: tuple[bytes, ...] = tuple(
            step[1].rstrip(b"/") + b"/" for step in order["steps"] if step[0] == "rw"
        )
        trees = [step[1].rstrip(b"/") for step in order["steps"] if step[0] in {"ro", "granted"}]
        self.programs: tuple[bytes, ...] = tuple(tree for tree in trees if tree != b"/etc")
        self.closed: tuple[bytes, ...] = tuple(tree + b"/" for tree in trees if tree.startswith(self.writable))
        self.bare: tuple[bytes, ...] = tuple(folder + b"/" for folder in order["bare"])
        self.within: tuple[bytes, ...] = tuple(place for place in self.writable if place.startswith(self.bare))

    def inside(self, path: bytes) -> bool:
        """Whether the path, taken by its letters, lies in a writable place."""
        if not path.startswith(self.writable) or path.startswith(self.closed):
            return False
        return not path.startswith(self.bare) or path.startswith(self.within)

    def may_change(self, path: bytes) -> bool:
        """Whether the path, taken by its letters, is one that the box may change."""
        if path.startswith(self.writable):
            return self.inside(path)
        if path in self.devices:
            return True
        if path.startswith(b"/dev/pts/"):
            return True
        return path.startswith(b"/proc/") and OWN_SETTINGS.fullmatch(path) is not None

    def may_set(self, path: bytes, words: str) -> bool:
        """Whether the path is a writable place itself, and the call only about its mode, owner, times or attributes."""
        return words in ATTRIBUTES and path + b"/" in self.writable

    def own(self, path: bytes) -> bool:
        """Whether nobody but the box can change what stands there."""
        return path.startswith(self.alone) and not (path + b"/").startswith(self.shared)

    def plain(self, path: bytes, words: str) -> bool:
        """Whether the path lies in a writable place, and the view hides nothing under it."""
        return self.inside(path) and not self.hides(path, words)

    def hides(self, path: bytes, words: str) -> bool:
        """Whether the view hides something under this name; for a rename also below it."""
        if not self.hidden:
            return False
        return path in self.hidden or (words == "rename" and any(one.startswith(path + b"/") for one in self.hidden))

    def folded(self, path: bytes) -> bytes:
        """The path as a record names it: one name for all byte code caches of one tree of programs.

        Python tries to keep byte code beside each module that it loads, so by its full name this ordinary noise would
        crowd out all else.
        """
        if CACHES in path:
            for tree in self.programs:
                if path.startswith(tree + b"/"):
                    return tree + b"/**" + CACHES
        return path


def real(path: bytes, *, last: bool, read_link: Callable[[bytes], bytes | None], most: int = 400) -> bytes:
    """The path with links followed, as far as ``read_link`` (None: no link there) tells; the last one if asked for.

    Ends after ``most`` looks whatever the links say; what is left then stays as it stands. Nothing is followed through
    ``/proc``, where links lead by the kernel's own word.
    """
    done, rest = b"", [part for part in path.split(b"/") if part]
    rest.reverse()
    while rest:
        part = rest.pop()
        if part == b".":
            continue
        if part == b"..":
            if done.startswith(b"/proc/"):
                return b"/".join([done, part, *reversed(rest)])
            done = done.rpartition(b"/")[0]
            continue
        here = done + b"/" + part
        target = None
        if most > 0 and (rest or last) and not here.startswith(b"/proc/"):
            most -= 1
            target = read_link(here)
        if target is None:
            done = here
            continue
        if target.startswith(b"/"):
            done = b""
        rest += [one for one in reversed(target.split(b"/")) if one]
        if len(rest) > most:
            return normal(done + b"/" + b"/".join(reversed(rest)))
    return done or b"/"


def shown(path: bytes) -> str:
    """The path for a record: as it is where every letter can be printed, otherwise escaped; a long one without its middle."""
    if len(path) > SHOWN:
        path = path[: SHOWN // 2] + "…".encode() + path[-SHOWN // 2 :]
    text = path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() and " " not in text else ascii(text)
