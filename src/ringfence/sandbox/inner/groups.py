"""Limits on the whole tree of a box: control groups v2 where they are delegated, v1 for root, else polling.

Everything made is below one folder of this launcher per hierarchy, named by its process id and start time, so that a
later teardown knows what is left of a launcher that was killed.
"""

import contextlib
import os

from ringfence.sandbox.inner import buffers
from ringfence.sandbox.inner.beside import Beside, wait
from ringfence.sandbox.inner.polled import Forks, Spent
from ringfence.sandbox.inner.tree import (
    below,
    closed,
    in_flight,
    kept_memory,
    mapped_memory,
    own_memory,
    shared_on_host,
    start_ticks,
    tasks,
)

PREFIX = "ringfence."
V1 = ("memory", "pids", "freezer", "cpuacct")
NEEDED = ("memory", "pids")
POLLING = "polling"
CHUNK = 4096


class Hierarchies:
    """Where this launcher may make groups: a folder per controller, or none at all."""

    def __init__(self) -> None:
        self.kind = POLLING
        self.folders: dict[str, str] = {}
        self.count = 0
        for kind, find in (("cgroup v2", _delegated), ("cgroup v1", _as_root)):
            folders = find()
            if folders:
                self.kind, self.folders = kind, folders
                return

    def sweep(self) -> int:
        """Remove what launchers left that were killed; gives how many folders are still there afterwards."""
        return sum(len(stale(os.path.dirname(folder), remove=True)) for folder in set(self.folders.values()))

    def make(self) -> "Groups":
        """Groups for one more box."""
        self.count += 1
        return Groups(self.kind, {name: f"{folder}/{self.count}" for name, folder in self.folders.items()})

    def close(self) -> None:
        """Remove our folders, with what a box that could not be begun left in them; every box has ended."""
        for folder in set(self.folders.values()):
            _remove_all(folder)


class Groups:
    """The groups of one box."""

    def __init__(self, kind: str, folders: dict[str, str]) -> None:
        self.kind, self.folders = kind, folders
        self.limits: dict[str, int] = {}
        self.frozen = False
        self.full = False
        """Where nothing counts refused forks: at a look there were as many tasks as there may be."""
        self.segments = -1
        """The box's list of System V memory, open for reading; only kept where memory is polled."""
        self.forks, self.spent = Forks(), Spent()
        self.shared_before = shared_on_host() if kind == POLLING else 0
        self.buffers_before = 0 if kind == "cgroup v2" else buffers.on_host()
        try:
            for folder in self._joined():
                os.mkdir(folder)
        except OSError:
            self.remove()
            raise

    def limit(self, limits: dict[str, int]) -> None:
        """Set the limits; nothing of the box may run before. Raises OSError."""
        self.limits, kind = limits, self.kind
        if kind == "cgroup v2":
            self._set("memory", "memory.max", limits["memory"])
            self._set("memory", "memory.swap.max", 0, needed=False)
            self._set("memory", "memory.oom.group", 1, needed=False)
            self._set("pids", "pids.max", limits["processes"])
        elif kind == "cgroup v1":
            self._set("memory", "memory.limit_in_bytes", limits["memory"])
            self._set("memory", "memory.memsw.limit_in_bytes", limits["memory"], needed=False)
            self._set("pids", "pids.max", limits["processes"])

    def doors(self) -> list[str]:
        """Files to which a process of one thread writes ``0`` to put itself, and all it will ever start, under the limits.

        In v1 the list of threads: one that moves itself waits for nobody. Moving a whole process holds up every fork, exec
        and exit of the host until the kernel has asked all its processors, which is 10 ms at times.
        """
        name = "tasks" if self.kind == "cgroup v1" else "cgroup.procs"
        return [f"{folder}/{name}" for folder in sorted(self._joined())]

    def _joined(self) -> set[str]:
        """Folders joined at the start; the freezer of v1 is joined when it is needed, which most boxes never do."""
        return {folder for name, folder in self.folders.items() if name != "freezer"}

    def reached(self, pid: int) -> str:
        """The limit the tree has passed by now, as it is to be named, or an empty string."""
        if self._out_of_memory(pid):
            return f"memory, {self.limits['memory'] // 1048576} MiB"
        if self._cpu(pid) >= self.limits["cpu"]:
            return f"cpu, {self.limits['cpu']} ms"
        return ""

    def notes(self) -> dict[str, int]:
        """Limits that held the box back without ending it, with how often."""
        held = {}
        stopped = int(self.full) if self.kind == POLLING else self._counter("pids", "pids.events", "max")
        if stopped:
            held[f"processes, {self.limits['processes']}"] = stopped
        killed = self._kills()
        if killed:
            held[f"memory, {self.limits['memory'] // 1048576} MiB"] = killed
        return held

    def _out_of_memory(self, pid: int) -> bool:
        if self.kind == POLLING:
            return self._polled(pid) > self.limits["memory"]
        return self._kills() > 0 or (self.kind == "cgroup v1" and self._buffers(pid) > self.limits["memory"])

    def _buffers(self, pid: int) -> int:
        """Bytes that wait in sockets, looked for only when the host's have grown. Version 2 counts them itself."""
        if buffers.on_host() - self.buffers_before <= self.limits["memory"] // 4:
            return 0
        return buffers.of_box(pid, self.limits["memory"])

    def _polled(self, pid: int) -> int:
        """Bytes in memory of the tree. What nothing has mapped is looked for only when the host's shared memory has grown.

        Buffers of pipes and of sockets within the machine are not found this way.
        """
        pids, limit = below(pid), self.limits["memory"]
        self.full = self.full or tasks(pids) >= self.limits["processes"]
        own, shared, common = own_memory(pids)
        grown = shared_on_host() - self.shared_before
        if grown > limit // 4:
            shared = max(shared, kept_memory(pids) + _segments(self.segments))
        if shared <= limit < grown and (in_flight(pids) or mapped_memory(pids) > limit or closed(pids[1:])):
            shared = grown  # it holds files of memory whose pages no list shows; process 1, always closed, holds none
        return own + shared - self.forks.twice(pids, own + shared, limit, common) + self._buffers(pid)

    def keep(self, segments: int) -> None:
        """Take over the box's list of System V memory."""
        if self.kind == POLLING and self.segments < 0:
            self.segments = segments
        else:
            os.close(segments)

    def _kills(self) -> int:
        if self.kind == POLLING:
            return 0
        return self._counter(
            "memory", "memory.events" if self.kind == "cgroup v2" else "memory.oom_control", "oom_kill"
        )

    def _cpu(self, pid: int) -> int:
        if "cpuacct" in self.folders:
            return _number(f"{self.folders['cpuacct']}/cpuacct.usage") // 1_000_000
        if self.kind == "cgroup v2":
            return self._counter("memory", "cpu.stat", "usage_usec") // 1000
        return self.spent.millis(below(pid))

    def freeze(self) -> bool:
        """Have every task stopped where it stands, which is so when ``settled``; False where no freezer is to be had."""
        self.frozen = self._gather() and self._freezer(True)
        return self.frozen

    def _gather(self) -> bool:
        """Bring the whole tree into the freezer, again until no task was born outside meanwhile. False where that has no end."""
        if self.kind != "cgroup v1":
            return True
        folder, everything = self.folders.get("freezer", ""), f"{self.folders['pids']}/cgroup.procs"
        try:
            os.makedirs(folder, exist_ok=True)
            for _attempt in range(100):
                outside = set(_text(everything).split()) - set(_text(f"{folder}/cgroup.procs").split())
                if not outside:
                    return True
                for one in outside:
                    _move(f"{folder}/cgroup.procs", one)
        except OSError:
            return False
        return False

    def thaw(self) -> bool:
        """Let every task go on."""
        done = self.frozen and self._freezer(False)
        self.frozen = False
        return done

    def _freezer(self, stop: bool) -> bool:
        if self.kind == "cgroup v1":
            return self._set("freezer", "freezer.state", "FROZEN" if stop else "THAWED", needed=False)
        return self.kind == "cgroup v2" and self._set("memory", "cgroup.freeze", int(stop), needed=False)

    def settled(self) -> bool:
        """Whether every task stands still: freezing is asked for, and then happens."""
        if self.kind == "cgroup v1":
            return _text(f"{self.folders['freezer']}/freezer.state").strip() == "FROZEN"
        return self._counter("memory", "cgroup.events", "frozen") == 1

    def remove(self) -> None:
        """Leave nothing: the box has ended, so its groups are empty."""
        if self.segments >= 0:
            os.close(self.segments)
            self.segments = -1
        for folder in set(self.folders.values()):
            _remove(folder)
        self.folders = {}

    def _set(self, controller: str, name: str, value: object, *, needed: bool = True) -> bool:
        try:
            _write(f"{self.folders[controller]}/{name}", value)
        except OSError:
            if needed:
                raise
            return False
        return True

    def _counter(self, controller: str, name: str, key: str) -> int:
        if controller not in self.folders:
            return 0
        for line in _text(f"{self.folders[controller]}/{name}").splitlines():
            word, _space, value = line.partition(" ")
            if word == key and value.isdigit():
                return int(value)
        return 0


def own_name() -> str:
    """The name of this launcher's folders: a process id alone could mean another process later."""
    return f"{PREFIX}{os.getpid()}.{start_ticks(os.getpid())}"


def _as_root() -> dict[str, str]:
    """Controllers of v1 where root may make groups, below our own."""
    if os.geteuid() != 0:
        return {}
    mounts = _mounts("cgroup")
    own = dict(_memberships())
    folders: dict[str, str] = {}
    for controller in V1:
        place = mounts.get(controller)
        if place is not None and controller in own:
            folders[controller] = f"{place}{own[controller].rstrip('/')}/{own_name()}"
    if not all(name in folders for name in NEEDED):
        return {}
    return _make_all(folders, "")


def _segments(descriptor: int) -> int:
    """Bytes of System V memory in the namespace whose list this is: the column before the last."""
    if descriptor < 0:
        return 0
    try:
        lines = os.pread(descriptor, 1 << 20, 0).splitlines()[1:]
        return sum(int(line.split()[-2]) for line in lines)
    except (OSError, ValueError, IndexError):
        return 0


def _delegated() -> dict[str, str]:
    """A folder in v2 that is ours to divide and holds no process itself, on our own branch."""
    place = _mounts("cgroup2").get("")
    own = dict(_memberships()).get("")
    if place is None or own is None:
        return {}
    above = own
    while True:
        folder = f"{place}{above.rstrip('/')}"
        enabled = _text(f"{folder}/cgroup.subtree_control").split()
        if all(name in enabled for name in NEEDED) and os.access(f"{folder}/cgroup.procs", os.W_OK):
            base = f"{folder}/{own_name()}"
            return _make_all({"memory": base, "pids": base}, f"{base}/cgroup.subtree_control")
        if above == "/":
            return {}
        above = os.path.dirname(above)


def _make_all(folders: dict[str, str], switch: str) -> dict[str, str]:
    """Make the folders and try what boxes will do: move a process in. Nothing is left where it does not work."""
    child = None
    try:
        for folder in set(folders.values()):
            os.mkdir(folder)
        if switch:
            _write(switch, "+memory +pids")
        child = Beside(wait)
        for folder in set(folders.values()):
            os.mkdir(f"{folder}/0")
            _write(f"{folder}/0/cgroup.procs", child.pid)
    except OSError:
        works = False
    else:
        works = True
    if child is not None:
        child.close()
    for folder in set(folders.values()):
        _remove(f"{folder}/0")
        if not works:
            _remove(folder)
    return folders if works else {}


def stale(parent: str, *, remove: bool) -> list[str]:
    """Folders of launchers that are no more, after removing them if asked: so then only what resists.

    What stands still in them, since its launcher was killed while it was paused, is let go first: to its end, which awaits it.
    """
    left = []
    for name in sorted(os.listdir(parent)) if os.path.isdir(parent) else []:
        pid, _dot, start = name.removeprefix(PREFIX).partition(".")
        if not name.startswith(PREFIX) or not pid.isdigit() or not start.isdigit():
            continue
        if start_ticks(int(pid)) == int(start):
            continue
        folder = f"{parent}/{name}"
        if not _own(folder):
            continue  # another user's: theirs to remove
        if remove:
            _remove_all(folder)
        if os.path.isdir(folder):
            left.append(folder)
    return left


def _own(folder: str) -> bool:
    try:
        return os.geteuid() in {0, os.lstat(folder).st_uid}
    except OSError:
        return False


def _remove_all(folder: str) -> None:
    try:
        for inner in os.listdir(folder):
            if os.path.isdir(f"{folder}/{inner}"):
                with contextlib.suppress(OSError):  # no freezer of version 1, or already gone
                    _write(f"{folder}/{inner}/freezer.state", "THAWED")
                _remove(f"{folder}/{inner}")
    except OSError:
        return  # someone else is removing it at this moment
    _remove(folder)


def parents() -> list[str]:
    """Folders in which launchers started from here may have made theirs."""
    v1, own = _mounts("cgroup"), dict(_memberships())
    found = [f"{v1[name]}{own[name].rstrip('/')}" for name in V1 if name in v1 and name in own]
    place, above = _mounts("cgroup2").get(""), own.get("")
    while place is not None and above is not None:
        found.append(f"{place}{above.rstrip('/')}")
        if above == "/":
            break
        above = os.path.dirname(above)
    return found


def mechanism() -> str:
    """``cgroup v2``, ``cgroup v1`` or ``polling``, tried and cleaned up again."""
    hierarchies = Hierarchies()
    hierarchies.close()
    return hierarchies.kind


def _mounts(kind: str) -> dict[str, str]:
    """Controller to mount point; v2 has the empty name."""
    found: dict[str, str] = {}
    for line in _text("/proc/self/mounts").splitlines():
        _device, place, system, options, *_rest = line.split(" ")
        if system == kind:
            names = options.split(",") if kind == "cgroup" else [""]
            for name in names:
                found.setdefault(name, place)
    return found


def _memberships() -> list[tuple[str, str]]:
    pairs = []
    for line in _text("/proc/self/cgroup").splitlines():
        controllers, path = line.split(":", 2)[1:]
        pairs += [(name, path) for name in controllers.split(",")]
    return pairs


def _text(path: str) -> str:
    """What a small file of the kernel's holds; empty where it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    data = bytearray()
    try:
        while part := os.read(file, CHUNK):
            data += part
    except OSError:
        return ""
    finally:
        os.close(file)
    return data.decode("utf-8", "replace")


def _number(path: str) -> int:
    text = _text(path).strip()
    return int(text) if text.isdigit() else 0


def _write(path: str, value: object) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, str(value).encode())
    finally:
        os.close(file)


def _move(procs: str, pid: str) -> None:
    try:
        _write(procs, pid)
    except ProcessLookupError:
        return  # it has ended meanwhile


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return  # not there, or a task is still on its way out: teardown finds it
