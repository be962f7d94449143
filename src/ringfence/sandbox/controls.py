"""What a box is fenced with, control by control, and what a fault while building one means for a person. Pure."""

import errno
import posixpath

from ringfence.model.box import BoxPlan, Control, ControlState
from ringfence.model.errors import BoxError

HIDDEN_LOG = "hidden-path log"
DECOY_LOG = "decoy log"
FULL_LANDLOCK = 6
"""The ABI that confines signals and abstract sockets too."""
ALWAYS = (
    ("user namespace", "nothing in it maps to root; nested ones are forbidden"),
    ("mount namespace", "root from an allowlist, old root left"),
    ("pid namespace", "sees and signals only itself; ends as a whole"),
    ("network namespace", "loopback of its own only"),
    ("ipc namespace", ""),
    ("uts namespace", ""),
    ("capabilities", "none, bounding set empty"),
    ("no_new_privs", ""),
    ("seccomp", "refused calls are seen and answered outside"),
    ("descriptors", "none inherited; streams are copied"),
)

SHORT_OF = {
    errno.EMFILE: "too many files are open: end some commands, or raise the limit of open files (ulimit -Hn), then ringfence stop",
    errno.ENFILE: "this host has too many files open: end some programs, then run it again",
    errno.ENOMEM: "this host is short of memory: end some programs, then run it again",
    errno.ENOBUFS: "this host is short of memory: end some programs, then run it again",
    errno.ENOSPC: "a disk, or a count that the kernel bounds (watches, mounts, control groups), is full: df, ringfence doctor",
    errno.EAGAIN: "this user may begin no more processes: end some (ulimit -u), then run it again",
    errno.ETOOMANYREFS: "too many descriptors are on their way between programs of this user: end some, then run it again",
}
"""What to do where the host has too little of something for the moment, by what the kernel said."""


def controls_of(plan: BoxPlan) -> tuple[Control, ...]:
    """The controls that stand whenever the plan's command has been started: without any one of them it is not."""
    controls = [Control(name=name, state=ControlState.ENFORCED, detail=detail) for name, detail in ALWAYS]
    if plan.layer is not None:
        state = ControlState.DOWNGRADED if plan.layer.direct else ControlState.ENFORCED
        detail = "bound writable, by an explicit grant" if plan.layer.direct else "changes stay above the real tree"
        controls.append(Control(name="worktree overlay", state=state, detail=detail))
    return tuple(controls)


def controls_in(plan: BoxPlan, limits: str, landlock: int, *, logged: bool, unseen: str) -> tuple[Control, ...]:
    """The controls that a host may lack: how limits were held, which Landlock, which refused tries were logged."""
    found = []
    polled = limits == "polling"
    found.append(
        Control(
            name="limits",
            state=ControlState.DOWNGRADED if polled else ControlState.ENFORCED,
            detail="no control groups: memory and CPU polled, processes by rlimit" if polled else limits,
        )
    )
    if landlock:
        whole = landlock >= FULL_LANDLOCK
        state = ControlState.ENFORCED if whole else ControlState.DOWNGRADED
        found.append(Control(name="Landlock", state=state, detail=f"ABI {landlock}"))
    else:
        found.append(Control(name="Landlock", state=ControlState.ABSENT, detail="not usable in this kernel"))
    detail = "" if logged else "this kernel has no nf_tables for us: refused tries are unseen"
    state = ControlState.ENFORCED if logged else ControlState.DOWNGRADED
    found.append(Control(name="egress-log", state=state, detail=detail or plan.network))
    state = ControlState.DOWNGRADED if unseen else ControlState.ENFORCED
    detail = f"unseen: {unseen}" if unseen else "tries on what the box's view leaves out are recorded"
    found.append(Control(name=HIDDEN_LOG, state=state, detail=detail))
    return tuple(found)


def decoys_in(plan: BoxPlan, unwatched: str) -> tuple[Control, ...]:
    """Whether it is seen that one is opened, where there are any."""
    if not any(mount.kind in {"decoy", "watched"} for mount in plan.mounts):
        return ()
    state = ControlState.DOWNGRADED if unwatched else ControlState.ENFORCED
    detail = f"opening one goes unseen of {unwatched}" if unwatched else "opening one is recorded"
    return (Control(name=DECOY_LOG, state=state, detail=detail),)


def granted_in(plan: BoxPlan, shared: str) -> tuple[Control, ...]:
    """What granted folders are to the box, where there are any: a layer that can be read, or the host's own folders."""
    if not any(mount.kind == "granted" for mount in plan.mounts):
        return ()
    state = ControlState.DOWNGRADED if shared else ControlState.ENFORCED
    detail = (
        f"sockets and pipes of the host can be reached in them: {shared}"
        if shared
        else "what lies in them can be read, no more"
    )
    return (Control(name="granted folders", state=state, detail=detail),)


def explain(plan: BoxPlan, what: str, number: int) -> BoxError:
    """A fault as a person can use it: which step, why the kernel refused, and what to do."""
    cause = f": {errno.errorcode.get(number, number)}" if number else ""
    where = plan.layer.target if plan.layer else plan.cwd
    step = what.partition(" ")[0]
    if step == "enter" and "directory" in what:
        return BoxError(
            "box-cwd",
            f"the working directory is not in the box's view{cause}",
            where=plan.cwd,
            remedy="run inside the worktree, or grant the folder",
        )
    if what.startswith(("mount_setattr", "overlay")) and number == errno.EINVAL and plan.layer:
        return BoxError(
            "box-worktree-filesystem",
            f"the file system of {plan.layer.lower!r} (or of the state directory) cannot carry the box's view: "
            "as root it must support id-mapped mounts, and the state directory must not be an overlay itself",
            where=posixpath.normpath(where),
            remedy="run as the owner of the worktree instead of root, or move it to ext4, xfs or btrfs (from Linux 6.6 also tmpfs)",
        )
    if number in {errno.EPERM, errno.ENOSPC} and ("clone" in what or "unshare" in what):
        return BoxError(
            "box-namespaces",
            f"this host does not let us make namespaces{cause}",
            where=what,
            remedy="ringfence doctor names the cause and the remedy",
        )
    return BoxError(
        "box-start",
        f"the box could not be built: {what}{cause}",
        where=where,
        remedy=SHORT_OF.get(number, "ringfence doctor"),
    )


def lost(plan: BoxPlan, what: str) -> BoxError:
    """The fault of a box that had started its command and then was no more."""
    return BoxError(
        "box-lost",
        f"the command was cut short: {what}; nothing that it changed was applied",
        where=plan.layer.target if plan.layer else plan.cwd,
        remedy="run it again; what it changed until then is kept, see `ringfence mission list`",
    )
