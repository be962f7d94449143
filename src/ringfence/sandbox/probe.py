"""What this host can enforce, control by control, tried and not guessed; why not where it cannot, and what to do."""

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from ringfence.model.box import Control, ControlState, Level
from ringfence.sandbox.controls import HIDDEN_LOG
from ringfence.sandbox.inner.trial import lacking

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inner", "entry.py")
PROBE_SECONDS = 60
NEEDED = {
    "user": "user namespace", "mnt": "mount namespace", "pid": "pid namespace", "net": "network namespace",
    "ipc": "ipc namespace", "uts": "uts namespace", "cgroup": "cgroup namespace", "mounts": "mount calls",
    "overlay": "overlay worktree", "proc": "own /proc", "idmap": "id-mapped mounts", "seccomp": "seccomp notification",
    "rights": "rights to build boxes",
}  # fmt: skip
OLDEST, MAPPED_LAYERS = (5, 12), (5, 19)
GOOD_PLACES = "ext4, xfs or btrfs (from Linux 6.6 also tmpfs)"
BUBBLEWRAP = "/usr/bin/bwrap"
UNCONFINED = (
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
)
AS_MAKER = ("--dev-bind", "/", "/", "--unshare-user", "--cap-add", "ALL", "--die-with-parent", "--")
"""bubblewrap only makes the namespace our launcher may not make; everything else is built by ourselves inside."""
APPARMOR_PROFILE = """abi <abi/4.0>,
profile ringfence {python} flags=(unconfined) {{
  userns,
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What the probe found. ``backend`` is ``native``, ``bubblewrap`` or empty where nothing may run."""

    level: Level
    backend: str
    controls: tuple[Control, ...]
    causes: tuple[str, ...]
    remedies: tuple[str, ...]
    limits: str
    """How trees are limited here: ``cgroup v2``, ``cgroup v1`` or ``polling``."""


def probe_host(state_dir: str) -> HostReport:
    """Try everything a box needs, in throw-away processes, in well under a second. Nothing is left behind.

    ``state_dir`` is where the layers of boxes will lie: its file system is tried too. Never raises for what is missing.
    """
    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    results = _try(state_dir, [])
    backend = "native" if _complete(results) else ""
    if not backend and os.path.exists(BUBBLEWRAP) and os.geteuid() != 0:
        inside = _try(state_dir, [BUBBLEWRAP, *AS_MAKER])
        if _complete(inside):
            backend, results = "bubblewrap", inside
    abi = results.get("landlock", 0)
    causes, remedies = ((), ()) if backend else explain_missing(results, _host_settings())
    return HostReport(
        level=Level.NAMESPACES if backend else (Level.LANDLOCK if abi else Level.NONE),
        backend=backend,
        controls=(*_controls(results), _landlock(abi), _limits(), _hidden(results.get("hidden"))),
        causes=causes,
        remedies=remedies,
        limits=limit_mechanism(),
    )


def _try(state_dir: str, prefix: list[str]) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="probe.", dir=state_dir, ignore_cleanup_errors=True) as folder:
        command = [*prefix, sys.executable, "-I", "-S", "-B", ENTRY, "trial", folder]
        try:
            done = subprocess.run(
                command, env={}, capture_output=True, timeout=PROBE_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
            text = done.stdout.decode("ascii", "replace")
        except (OSError, subprocess.TimeoutExpired):
            text = ""
        _free(folder)
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _free(folder: str) -> None:
    """Overlayfs leaves a folder without any rights in its work folder."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.join(folder, "work", "work"), 0o700)
    shutil.rmtree(os.path.join(folder, "work"), ignore_errors=True)


def _complete(results: dict[str, int]) -> bool:
    return all(results.get(name) == 0 for name in NEEDED)


def _controls(results: dict[str, int]) -> tuple[Control, ...]:
    def control(name: str, title: str) -> Control:
        number = results.get(name)
        if number == 0:
            return Control(name=title, state=ControlState.ENFORCED)
        why = "not tried" if number is None else f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"
        return Control(name=title, state=ControlState.ABSENT, detail=why)

    return tuple(control(name, title) for name, title in NEEDED.items())


def _landlock(abi: int) -> Control:
    if abi >= 6:
        return Control(
            name="Landlock", state=ControlState.ENFORCED, detail=f"ABI {abi}: files, devices, signals, abstract sockets"
        )
    if abi >= 2:
        lacks = [
            text
            for need, text in ((3, "truncation"), (5, "device control"), (6, "signals and abstract sockets"))
            if abi < need
        ]
        return Control(name="Landlock", state=ControlState.DOWNGRADED, detail=f"ABI {abi}: without {', '.join(lacks)}")
    return Control(
        name="Landlock", state=ControlState.ABSENT, detail="not in this kernel or not enabled: the mounts stand alone"
    )


def limit_mechanism() -> str:
    """How the whole tree of a box can be limited by this user on this host."""
    from ringfence.sandbox.inner.groups import mechanism

    return mechanism()


def _limits() -> Control:
    found = limit_mechanism()
    if found == "polling":
        return Control(
            name="limits",
            state=ControlState.DOWNGRADED,
            detail="no control groups to be had: memory and CPU are polled, processes by rlimit",
        )
    return Control(name="limits", state=ControlState.ENFORCED, detail=found)


def _hidden(number: int | None) -> Control:
    if number == 0:
        return Control(name=HIDDEN_LOG, state=ControlState.ENFORCED)
    why = "not tried" if number is None else errno.errorcode.get(number, str(number))
    return Control(
        name=HIDDEN_LOG,
        state=ControlState.DOWNGRADED,
        detail=f"/dev/fuse: {why}; tries on what a box's view leaves out are unseen until this user may open it",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Host settings that explain why a namespace was refused."""

    release: tuple[int, int]
    apparmor_userns: bool = False
    userns_clone_off: bool = False
    no_namespaces_left: bool = False
    container: str = ""
    root: bool = False
    lacks: tuple[str, ...] = ()
    """Capabilities that root's boxes need and this root has not; those of an ordinary user need none."""
    python: str = ""


def _host_settings() -> Settings:
    major, minor = os.uname().release.split(".")[:2]
    return Settings(
        release=(int(major), int("".join(c for c in minor if c.isdigit()) or 0)),
        apparmor_userns=_setting("kernel/apparmor_restrict_unprivileged_userns") == "1",
        userns_clone_off=_setting("kernel/unprivileged_userns_clone") == "0",
        no_namespaces_left=_setting("user/max_user_namespaces") == "0",
        container=_container(),
        root=os.geteuid() == 0,
        lacks=lacking() if os.geteuid() == 0 else (),
        python=os.path.realpath(sys.executable),
    )


def _setting(name: str) -> str:
    try:
        with open(f"/proc/sys/{name}", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _container() -> str:
    if os.path.exists("/run/.containerenv"):
        return "podman"
    return "docker" if os.path.exists("/.dockerenv") else ""


def explain_missing(results: dict[str, int], host: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Causes and exact remedies for what did not work. Pure."""
    missing = [name for name in NEEDED if results.get(name, errno.ENOSYS) != 0]
    causes: list[str] = []
    remedies: list[str] = []

    def add(cause: str, remedy: str) -> None:
        causes.append(cause)
        remedies.append(remedy)

    if host.release < OLDEST:
        add(
            f"kernel {host.release[0]}.{host.release[1]} is older than {OLDEST[0]}.{OLDEST[1]}",
            "boot a kernel of at least 5.15; 6.1 or later is better",
        )
    if "rights" in missing and host.lacks:
        add(
            f"this root lacks {', '.join(f'CAP_{name}' for name in host.lacks)}, as in most containers",
            "start it as an ordinary user, whose boxes need no capability, or give root those (docker, podman: "
            f"{' '.join(f'--cap-add {name}' for name in host.lacks)}); a container also needs {UNCONFINED}",
        )
        return tuple(causes), tuple(remedies)  # what else is refused is refused for this
    if "user" in missing and host.apparmor_userns:
        profile = APPARMOR_PROFILE.format(python=host.python)
        add(
            "AppArmor lets only programs with a profile make user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
            f"as root, write this to /etc/apparmor.d/ringfence and run: apparmor_parser -r /etc/apparmor.d/ringfence\n{profile}",
        )
    if "user" in missing and host.userns_clone_off:
        add("kernel.unprivileged_userns_clone is 0", "as root: sysctl -w kernel.unprivileged_userns_clone=1")
    if "user" in missing and host.no_namespaces_left:
        add("user.max_user_namespaces is 0", "as root: sysctl -w user.max_user_namespaces=10000")
    names = ", ".join(NEEDED[name] for name in missing)
    if missing and host.container and not causes:
        add(
            f"this is a {host.container} container, in which the kernel refuses: {names}",
            f"run the container with {UNCONFINED}, or run ringfence on the host",
        )
    if missing == ["proc"]:
        add(
            "mounting /proc is refused because parts of the outer /proc are covered",
            "docker: --security-opt systempaths=unconfined; podman: --security-opt unmask=ALL",
        )
    if "overlay" in missing and "mounts" not in missing:
        add(
            "an overlay that keeps everything cannot be made on the state directory's file system",
            f"put the state directory on {GOOD_PLACES}; it must not be an overlay or a network file system itself",
        )
    if missing == ["idmap"] and host.root and host.release < MAPPED_LAYERS:
        add(
            f"kernel {host.release[0]}.{host.release[1]} makes no overlay of id-mapped mounts, which a box of root needs",
            "run as an ordinary user, or boot a kernel of at least 5.19",
        )
    elif missing == ["idmap"] and host.root:
        add(
            "id-mapped mounts are not supported by the state directory's file system",
            f"run as an ordinary user, or put state directory and worktree on {GOOD_PLACES}",
        )
    if missing and not causes:
        add(
            f"the kernel refuses: {names}",
            "run on a host where an ordinary user may make namespaces: `unshare -Urnpmf true` must work",
        )
    return tuple(causes), tuple(remedies)
