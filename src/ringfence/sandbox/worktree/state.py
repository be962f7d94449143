"""What is remembered of one mission's layer between calls: when it was mounted, and how the paths it holds looked below.

A path changed in the real tree after the mount is told by its ctime, which no ordinary program can set; a clock that
was stepped back meanwhile moves the mark back by as much.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator

import msgspec

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree.change import Identity

_FILE = "layer.state"
_FARTHEST = 2**63 - 1


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one path looked in the real tree when the mission changed it. ``changed``: someone was there meanwhile."""

    identity: tuple[int, int, int, int, int, int] | None
    changed: bool = False


class Mark(msgspec.Struct, forbid_unknown_fields=True):
    """When the layer was first mounted since the last gate. ``gated``: a gate ended since, so the next mount counts anew."""

    stamp_ns: int = 0
    offset_ns: int = 0
    gated: bool = False

    @property
    def begins(self) -> bool:
        """Whether the next mount is the first since the last gate."""
        return self.gated or not self.stamp_ns

    def set(self) -> None:
        """Note a mount about to happen."""
        if self.begins:
            self.stamp_ns = time.time_ns()
            self.offset_ns = _offset()
            self.gated = False

    def instant(self) -> int:
        """The instant (ns) after which a ctime in the real tree means: changed by someone else."""
        return self.stamp_ns + min(0, _offset() - self.offset_ns)


class LayerState(msgspec.Struct, forbid_unknown_fields=True):
    """The record of one layer. Files and git go through gates of their own, so each has a mark."""

    root: bytes
    device: int
    inode: int
    files: Mark = msgspec.field(default_factory=Mark)
    git: Mark = msgspec.field(default_factory=Mark)
    index: tuple[int, int, int, int, int, int] | None = None
    """The real index when the layer's own, with staged work, was left in the layer."""
    index_says: str = ""
    """What the real index said then, and at the mount: git writes it anew for other reasons than a person's work."""
    packed: tuple[int, int, int, int, int, int] | None = None
    """The real ``packed-refs`` when the layer's own, with something that waits, was left in the layer."""
    bases: dict[bytes, Base] = {}
    hiding: list[bytes] = []
    """Places of the layer behind which the real tree was out of sight when the last gate ended, all that is below them too."""
    left: dict[bytes, tuple[int, int, int, int, int, int]] = {}
    """Folders of the real tree in which the gate itself changed something since the last mount, as it left them."""
    ignored: dict[bytes, Mark] = {}
    """Places of the layer that git ignored at the last gate, each with the mark of the call in which it came to the layer."""
    refs: dict[bytes, str] = {}
    """What branches and tags that wait in the layer pointed to when the mission moved them; empty text for absent."""
    index_owed: tuple[str, str] | None = None
    """HEAD's commit before (empty: none) and after a move whose index did not follow yet: a crash came between."""
    reported: list[str] = []
    """Refusals of history already told once."""

    def stamp(self) -> None:
        """Note that the layer is about to be mounted."""
        if self.files.gated:
            self.left = {}
        self.files.set()
        self.git.set()

    def changed_since(self, path: str, now: Identity | None) -> bool:
        """Whether someone else changed ``path`` since the mission could have read it. ``now`` is None where it is absent."""
        base = self.bases.get(os.fsencode(path))
        folder = now is not None and stat.S_ISDIR(now.mode)
        if base is not None:
            if folder and base.identity is not None:
                return base.changed or now is None or base.identity[:2] != (now.device, now.inode)
            return base.changed or base.identity != pack(now)
        return now is not None and not folder and now.ctime_ns > self._mark(os.fsencode(path)).instant()

    def touched_since(self, path: str, now: Identity) -> bool:
        """Whether someone else made, removed or renamed anything in a folder of the real tree, or put it there, since the mount."""
        return now.ctime_ns > self.files.instant() and self.left.get(os.fsencode(path)) != pack(now)

    def since(self, places: Iterable[str]) -> dict[bytes, Mark]:
        """By place, the mark of the call in which the first of what it holds came to the layer."""
        below: dict[bytes, Mark] = {}
        for known, mark in self.ignored.items():
            for place in above(known):
                below[place] = min(below.get(place, mark), mark, key=Mark.instant)
        found = {}
        for raw in map(os.fsencode, places):
            own = self._mark(raw)
            found[raw] = msgspec.structs.replace(min(below.get(raw, own), own, key=Mark.instant))
        return found

    def _mark(self, raw: bytes) -> Mark:
        """What git does not ignore any more may have been in the layer for long: a mount since then did not show it."""
        return next((self.ignored[place] for place in above(raw) if place in self.ignored), self.files)

    def out_of_sight(self, path: str) -> bool:
        """Whether ``path`` came to be where the mission could not see it: behind what waited in the layer already."""
        raw = os.fsencode(path)
        return raw not in self.bases and any(raw.startswith(place + b"/") for place in self.hiding)


def above(path: bytes) -> Iterator[bytes]:
    """A path, the folders that it lies in, and the root."""
    while path:
        yield path
        path = path.rpartition(b"/")[0]
    yield b""


def load(folder: str) -> LayerState | None:
    """The record in a mission's folder, or None before its first mount. Raises RingfenceError where it is unreadable."""
    path = f"{folder}/{_FILE}"
    try:
        with open(path, "rb") as stream:
            return msgspec.msgpack.decode(stream.read(), type=LayerState)
    except FileNotFoundError:
        return None
    except (PermissionError, IsADirectoryError, msgspec.MsgspecError) as error:
        raise RingfenceError(
            "layer-unreadable",
            f"the record of this mission's layer cannot be read: {error}",
            where=path,
            remedy="nothing will be committed from it; copy out what you need and discard the mission",
        ) from error


def store(folder: str, state: LayerState) -> None:
    """Replace the record in one step."""
    path = f"{folder}/{_FILE}"
    with open(path + ".new", "wb") as stream:
        stream.write(msgspec.msgpack.encode(state))
    os.replace(path + ".new", path)


def identity_of(info: os.stat_result) -> Identity:
    """The identity in a stat result. Times centuries away, which some file systems let a box set, are the last ones that a record holds."""
    return Identity(
        device=info.st_dev,
        inode=info.st_ino,
        size=info.st_size,
        mtime_ns=max(-_FARTHEST, min(info.st_mtime_ns, _FARTHEST)),
        ctime_ns=info.st_ctime_ns,
        mode=info.st_mode,
    )


def pack(identity: Identity | None) -> tuple[int, int, int, int, int, int] | None:
    """An identity as the record and the journal hold it."""
    if identity is None:
        return None
    return (
        identity.device,
        identity.inode,
        identity.size,
        identity.mtime_ns,
        identity.ctime_ns,
        identity.mode,
    )


def unpack(packed: tuple[int, int, int, int, int, int] | None) -> Identity | None:
    """The reverse of ``pack``."""
    if packed is None:
        return None
    device, inode, size, mtime, ctime, mode = packed
    return Identity(device=device, inode=inode, size=size, mtime_ns=mtime, ctime_ns=ctime, mode=mode)


def _offset() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
