"""A BoxPlan as the launcher takes it: plain steps in order, no names to look up. Pure."""

import hashlib
from typing import Any

from ringfence.model.box import BoxPlan, Layer, Mount
from ringfence.model.errors import BoxError

Step = tuple[Any, ...]
NO_CORE = 1
"""Bytes of a core: too few for a file, and the number by which the kernel starts no crash handler of the host either."""
HOME_FILES = frozenset({"file", "decoy", "watched"})
SEEN_AS = {"decoy": "decoy", "watched": "credential-read"}
"""Kind of mount to the kind of observation that opening it becomes."""


def compile_order(plan: BoxPlan, *, root: bool, mapped: bool = False) -> dict[str, Any]:
    """The order for one box.

    ``root``: the launcher is root, so the box gets a real uid instead of a mapped one. ``mapped``: the launcher runs in
    a user namespace that was made for it, so the box needs none to be built.

    Raises BoxError for a plan that cannot be carried out safely, such as a mount below a place the box may rename.
    """
    if 0 in plan.user:
        raise BoxError("box-identity", "a box never runs as uid or gid 0", remedy="plan it with facts of this host")
    writable = [m.target for m in plan.mounts if m.kind in {"rw", "tmpfs", "mqueue"}]
    late: list[Mount] = []
    early: list[Mount] = []
    for mount in plan.mounts:
        (late if mount.kind in HOME_FILES and _inside(mount.target, (plan.home,)) else early).append(mount)
    overlays = (plan.layer, *plan.layer.beside) if plan.layer is not None else ()
    unsafe = (plan.home, *(overlay.target for overlay in overlays))
    for mount in early:
        if _inside(mount.target, unsafe):
            raise BoxError(
                "box-mount",
                f"{mount.target!r} would be mounted below {unsafe!r}, where the box could rename what holds it",
                remedy="grant a path outside the worktree and the home",
            )
    steps = [_step(mount) for mount in early]
    for overlay in overlays:
        writable.append(overlay.target)
        steps.append(_overlay(overlay))
    limits = plan.limits
    return {
        "call": plan.call_id,
        "argv": [_bytes(word) for word in plan.argv],
        "env": [(_bytes(name), _bytes(value)) for name, value in plan.env],
        "cwd": _bytes(plan.cwd),
        "steps": steps,
        "late": [(_bytes(m.target), m.content, m.mode, SEEN_AS.get(m.kind, "")) for m in late],
        "writable": [_bytes(path) for path in writable],
        "hidden": [_bytes(f"{o.target}/{path}") for o in overlays for path in o.masked],
        "user": plan.user,
        "map_user": not root and not mapped,
        "owner": (plan.layer.owner if plan.layer else (0, 0)) if root else None,
        "umask": plan.umask,
        "pty": plan.pty,
        "size": plan.size,
        "modes": plan.modes,
        "stops": plan.pty or plan.stops,
        "behind": plan.behind,
        "network": plan.network,
        "endpoints": list(plan.endpoints),
        "host_ports": list(plan.host_ports),
        "inbound": plan.inbound,
        "watched": [
            *(_bytes(overlay.upper) for overlay in overlays if not overlay.direct),
            *([_bytes(plan.home_upper)] if plan.home_upper else []),
        ],
        "rlimits": {
            "core": NO_CORE,
            "nofile": limits.open_files,
            "fsize": limits.file_size,
            "nproc": limits.processes,
            # Of each process; a second more than the tree's, which is looked at twenty times a second and so is named first.
            "cpu": 1 - (-limits.cpu // 1000),
            # Counted for the whole account of an ordinary user: a box leaves the person the larger part.
            "sigpending": 4096,
            "msgqueue": 409_600,
            "rtprio": 0,
            "nice": 0,
        },
        "limits": {
            name: int(getattr(limits, name)) for name in ("runtime", "output", "memory", "processes", "disk", "cpu")
        },
    }


def middle_path(layer: Layer) -> str:
    """Where the layer that hides and replaces lies: named by what it says, so that another one never takes its place."""
    text = repr((sorted(layer.masked), sorted(layer.replaced), layer.owner))
    return f"{layer.middle}/{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:24]}"


def _step(mount: Mount) -> Step:
    target = _bytes(mount.target)
    match mount.kind:
        case "ro" | "granted" | "rw":
            return (mount.kind, target, _bytes(mount.source))
        case "tmpfs":
            return ("tmpfs", target, mount.mode, int(mount.size))
        case "file":
            return ("file", target, mount.content, mount.mode, False)
        case "link":
            return ("link", target, _bytes(mount.source))
        case "dir":
            return ("dir", target, mount.mode)
        case "proc" | "mqueue":
            return (mount.kind, target)
        case "hidden":
            return ("ro", target, b"/dev/null")  # nodev: opening it fails
        case other:
            raise BoxError("box-mount", f"a mount of kind {other!r} cannot be made at {mount.target!r}")


def _overlay(layer: Layer) -> Step:
    if layer.direct:
        return ("rw", _bytes(layer.target), _bytes(layer.lower))
    lowers = [_bytes(layer.lower)]
    if layer.masked or layer.replaced:
        lowers.insert(0, _bytes(middle_path(layer)))
    return ("overlay", _bytes(layer.target), lowers, _bytes(layer.upper), _bytes(layer.work), _told(layer))


def _told(layer: Layer) -> list[bytes]:
    """Hidden paths at which tries are told: all but git's own, which git itself asks for at every start."""
    return [_bytes(path) for path in layer.masked if not path.startswith(".git/")] if layer.middle else []


def _inside(path: str, roots: tuple[str, ...]) -> bool:
    return any(path.startswith(root.rstrip("/") + "/") for root in roots)


def _bytes(text: str) -> bytes:
    """As the file system has it: names that are not UTF-8 arrive with surrogates and leave as they were."""
    return text.encode("utf-8", "surrogateescape")
