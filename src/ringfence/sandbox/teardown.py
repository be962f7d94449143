"""Teardown: removes what boxes left (processes, control groups, layers, views), also after every part was killed.

Ledger, evidence and undo journals stay. Work in a layer that was not committed refuses the removal of that layer,
unless its mission is discarded by name. Mounts and namespaces live in a box's own processes and end with them.
"""

import contextlib
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ringfence.model.errors import RingfenceError
from ringfence.model.ids import MissionId
from ringfence.sandbox.inner import groups
from ringfence.sandbox.inner.tree import below
from ringfence.sandbox.launcher import Launcher
from ringfence.sandbox.worktree import removal, state
from ringfence.sandbox.worktree.tree import Worktree

SCRATCH = re.compile(r"(view|smoke|probe)[.-].+")
PARTS = ("upper", "work", "middle", "fresh-upper", "git-upper", "git-work")
"""Of a mission's layer, in its folder."""
TITLE = b"box-init"
GONE_SECONDS = 10.0
TRIES = 5
TORN_DOWN = "torn down"
"""What ended a box that ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownReport:
    """What was removed, what could not be, and which missions were left alone because of uncommitted work."""

    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Nothing of any box is left."""
        return not self.left and not self.refused


Turn = Callable[[str], AbstractContextManager[None]]
"""By the name of a mission: to be held while its layer is looked at and removed."""


@dataclass(slots=True)
class _Work:
    state: str
    discard: frozenset[str]
    dry_run: bool
    turn: Turn
    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def teardown(
    state_dir: str,
    *,
    discard: Sequence[str] = (),
    dry_run: bool = False,
    launcher: Launcher | None = None,
    turn: Turn | None = None,
    quiet: AbstractContextManager[object] | None = None,
) -> TeardownReport:
    """Remove all that boxes of this user left below ``state_dir`` and on the host.

    ``discard`` names missions whose uncommitted work is given up; ``dry_run`` only tells. Running boxes of ``launcher``
    are ended first. ``turn`` keeps others from a mission's layer, ``quiet`` from views and tests, while they are removed.
    Never raises for one thing that resists: it is listed in ``left``.
    """
    alone: Turn = turn if turn is not None and not dry_run else lambda _name: contextlib.nullcontext()
    work = _Work(state=os.path.realpath(state_dir), discard=frozenset(discard), dry_run=dry_run, turn=alone)
    if launcher is not None and not dry_run:
        launcher.kill_all(TORN_DOWN)
    held = _stale_groups(remove=False)
    if not dry_run:
        _stale_groups(remove=True)  # what stands still in them could not be ended
    _processes(work)
    _control_groups(work, held)
    _missions(work)
    with quiet or contextlib.nullcontext():
        _scratch(work)
    return TeardownReport(removed=tuple(work.removed), left=tuple(work.left), refused=tuple(work.refused))


def orphans() -> tuple[int, ...]:
    """Launchers and boxes of this user whose supervisor is gone, with everything below them."""
    found = []
    for pid in _own_titled():
        parent = _parent(pid)
        if parent == os.getpid() or not _adopts(parent):
            continue  # a box with its launcher, or a launcher with what started it
        found += below(pid)
    return tuple(found)


def _processes(work: _Work) -> None:
    pids = orphans()
    for pid in pids:
        if not work.dry_run:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    deadline = time.monotonic() + GONE_SECONDS
    for pid in pids:
        while not work.dry_run and _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        (work.left if not work.dry_run and _alive(pid) else work.removed).append(f"process {pid}")


def _control_groups(work: _Work, found: list[str]) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    left = [] if work.dry_run else found
    while left and time.monotonic() < deadline:
        still = _stale_groups(remove=True)
        left = [folder for folder in left if folder in still]
        time.sleep(0.01 if left else 0)  # a process that has ended is on its way out of its group for a while
    work.left += [f"control group {folder}" for folder in left]
    work.removed += [f"control group {folder}" for folder in found if folder not in left]


def _stale_groups(*, remove: bool) -> list[str]:
    return [folder for parent in dict.fromkeys(groups.parents()) for folder in groups.stale(parent, remove=remove)]


def _missions(work: _Work) -> None:
    for name in _folders(f"{work.state}/missions"):
        folder = f"{work.state}/missions/{name}"
        if not any(os.path.lexists(f"{folder}/{part}") for part in PARTS):
            continue
        with work.turn(name):
            _mission(work, name, folder)
    for key in _folders(f"{work.state}/repositories"):
        folder = f"{work.state}/repositories/{key}"
        for name in sorted(os.listdir(folder)):
            if name.startswith("carried-"):
                _remove(work, f"{folder}/{name}")
    _remove(work, f"{work.state}/homes")


def _folders(place: str) -> list[str]:
    """Names of what is a folder itself, in order: no link leads teardown elsewhere, and no other thing stops it."""
    try:
        with os.scandir(place) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _mission(work: _Work, name: str, folder: str) -> None:
    if name not in work.discard:
        waiting = _uncommitted(work.state, name, folder)
        if waiting:
            work.refused.append(f"mission {name}: {waiting}")
            return
    for part in PARTS:
        _remove(work, f"{folder}/{part}")
    if not work.dry_run:
        _unlink(folder)


def remove_unused(folder: str) -> bool:
    """Remove the layer of a mission in which nothing was ever changed; whether there is none now. Raises OSError."""
    if _changed(folder):
        return False
    remove_layer(folder)
    return True


def remove_layer(folder: str) -> None:
    """Remove the layer of a mission with all that is in it; the undo journal and what conflicts set aside stay."""
    for part in PARTS:
        removal.remove_tree(f"{folder}/{part}")
    _unlink(folder)


def _unlink(folder: str) -> None:
    for name in ("layer.state", "middle.digest"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/{name}")


def _changed(folder: str) -> bool:
    layers_of = (f"{folder}/upper", f"{folder}/git-upper", f"{folder}/fresh-upper")
    return any(os.path.isdir(layer) and os.listdir(layer) for layer in layers_of)


def _uncommitted(state_dir: str, name: str, folder: str) -> str:
    """Why the mission's layer may not be removed yet; empty when it may. What cannot be told counts as work."""
    try:
        if not _changed(folder):
            return ""
        record = state.load(folder)
        if record is None:
            return "its layer has no record, so what it holds cannot be told"
        tree = Worktree.open(os.fsdecode(record.root), state_dir)
        layer = tree.look(MissionId(name))
        changes = [c for c in tree.changes(layer) if not c.ignored and not c.internal]
        if not changes and tree.bundle_request(layer) is not None:
            return "commits made in the box that were not taken over"
    except (RingfenceError, OSError) as fault:
        return fault.what if isinstance(fault, RingfenceError) else f"{fault.strerror}: {fault.filename!r}"
    return f"{len(changes)} uncommitted change(s)" if changes else ""


def _scratch(work: _Work) -> None:
    for name in sorted(os.listdir(work.state)) if os.path.isdir(work.state) else []:
        if SCRATCH.fullmatch(name):
            _remove(work, f"{work.state}/{name}")


def _remove(work: _Work, path: str) -> None:
    if not os.path.lexists(path):
        return
    if not work.dry_run:
        for _try in range(TRIES):  # what another removes at the same time is gone before or after one of them
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    removal.remove_tree(path)
                else:
                    os.unlink(path)
            if not os.path.lexists(path):
                break
        else:
            work.left.append(path)
            return
    work.removed.append(path)


def _own_titled() -> Iterable[int]:
    uid = os.geteuid()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if _title(int(name)) == TITLE and (uid == 0 or _uid(int(name)) == uid):
                yield int(name)
        except OSError:
            continue


def _title(pid: int) -> bytes:
    """The name as it is in ``comm``: a box's programs are in namespaces of their own and cannot be parents here."""
    return _read(f"/proc/{pid}/comm").strip()


def _adopts(pid: int) -> bool:
    """Whether this process is one that is given the children of those that died: it started none of ours."""
    return pid <= 1 or _title(pid) in {b"systemd", b"init", b"tini", b"dumb-init", b"docker-init", b"catatonit"}


def _parent(pid: int) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _uid(pid: int) -> int:
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return -1


def _alive(pid: int) -> bool:
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(fields) and fields[0] not in {b"Z", b"X"}


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(65536)
    except OSError:
        return b""
