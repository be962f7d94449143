"""Where ringfence keeps things: from the passwd entry and /run/user/UID, never from environment variables.

Every component of a path in use is owned by this user or root and not writable by others; never below /tmp.
The hidden global flag ``--test-root DIR`` (for tests alone) puts all of them below one folder.
"""

import os
import pwd
import stat
from collections.abc import Callable

from ringfence.model.errors import RingfenceError

ADDRESS_BYTES = 107
"""What the kernel takes for a Unix socket's path."""


class Paths:
    """The folders of one user's ringfence. All are mode 0700 once made.

    ``state`` holds the ledger, policies by digest, trust and missions; ``runtime`` the supervisor's socket and lock;
    ``config`` the user's policy and credentials configuration; ``organisation`` the organisation's policy.
    A plain class: the thin client imports this file, and dataclasses would triple its start-up.
    """

    __slots__ = ("config", "organisation", "runtime", "state", "test_root")

    def __init__(
        self,
        *,
        state: str,
        runtime: str,
        config: str,
        organisation: str = "/etc/ringfence",
        test_root: str | None = None,
    ) -> None:
        self.state = state
        self.runtime = runtime
        self.config = config
        self.organisation = organisation
        self.test_root = test_root

    @property
    def socket(self) -> str:
        """The supervisor's Unix socket."""
        return f"{self.runtime}/supervisor.sock"

    @property
    def ledger(self) -> str:
        """The folder of the ledger's segments."""
        return f"{self.state}/ledger"

    @property
    def policies(self) -> str:
        """Every effective policy, by digest."""
        return f"{self.state}/policies"

    @property
    def missions(self) -> str:
        """One folder a mission: layer, journal, kept originals."""
        return f"{self.state}/missions"


def user_paths(test_root: str | None = None) -> Paths:
    """Paths of the calling user. Nothing is created."""
    if test_root is not None:
        base = os.path.realpath(test_root)
        return Paths(
            state=f"{base}/state",
            runtime=f"{base}/run",
            config=f"{base}/config",
            organisation=f"{base}/etc",
            test_root=base,
        )
    uid = os.getuid()
    try:
        home = pwd.getpwuid(uid).pw_dir
    except KeyError:
        raise RingfenceError(
            "no-account",
            f"uid {uid} has no entry in the user database, so there is no home to keep state in",
            remedy="run as a user that the host knows; in a container, make one with useradd",
        ) from None
    state = f"{home}/.local/state/ringfence"
    run = f"/run/user/{uid}"
    runtime = f"{run}/ringfence" if _is_own_folder(run, uid) else f"{state}/run"
    return Paths(state=state, runtime=runtime, config=f"{home}/.config/ringfence")


def by_short_address(path: str, use: Callable[[str], int | None]) -> int | None:
    """Use a Unix socket by an address that fits however long its path is; of the address itself nothing is left."""
    if len(os.fsencode(path)) <= ADDRESS_BYTES:
        return use(path)
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return use(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def make_private(path: str) -> str:
    """Make the folder and what is missing above it (mode 0700), and check every component.

    Raises RingfenceError naming the bad one.
    """
    try:
        _make(path)
        check_trusted(path)
        if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise unusable(error, path) from error
    return path


def unusable(error: OSError, path: str) -> RingfenceError:
    """The fault of a folder or file of ringfence's own that the system does not let it have."""
    return RingfenceError(
        "state-unusable",
        f"ringfence cannot make or use a file or folder of its own: {error.strerror or error}",
        where=os.fsdecode(error.filename or path),
        remedy="move away what has its name; see that you may write there (`ls -ld`), and that the disk has room",
    )


def _make(path: str) -> None:
    """Closed to others whatever the umask: what is made here must not be refused by the check that follows."""
    if os.path.isdir(path):
        return
    _make(os.path.dirname(path))
    try:
        os.mkdir(path, mode=0o700)
    except FileExistsError:
        if not os.path.isdir(path):  # else another client was faster
            raise


def check_trusted(path: str) -> None:
    """Refuse a path any component of which another user could replace.

    A component is trusted when this user or root owns it and nobody else can write to it. In a sticky folder above the
    path nobody else can replace what is ours, so it passes too; the path itself must be closed to others.
    """
    uid = os.getuid()
    trusted = {0, uid, _root_seen_as()}
    place = current = os.path.realpath(path)
    while True:
        info = os.lstat(current)
        mode = stat.S_IMODE(info.st_mode)
        shared = bool(mode & 0o022) and not (mode & stat.S_ISVTX and current != place)
        if info.st_uid not in trusted or shared:
            raise RingfenceError(
                "unsafe-path",
                f"{current!r} belongs to uid {info.st_uid} with mode {mode:04o}: another user could replace what lies below",
                where=path,
                remedy=f"make it yours and closed to others: chown {uid} {current} && chmod go-w {current}",
            )
        if current == "/":
            return
        current = os.path.dirname(current)


def identity(path: str) -> tuple[int, int] | None:
    """What lies at the path, or None where nothing does."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def file_stamp(path: str) -> tuple[int, ...]:
    """What changes when the file does; empty where it cannot be looked at, and then nothing is remembered."""
    try:
        info = os.stat(path)
    except OSError:
        return ()
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_uid, info.st_mode)


def _root_seen_as() -> int:
    """The uid under which root's files appear here: 0, or the overflow uid in a user namespace that does not map root.

    There, as in a rootless container, everything unmapped looks alike; what matters is that only this user and root
    outside can write to it, which the mode bits say.
    """
    try:
        with open("/proc/self/uid_map", encoding="ascii") as lines:
            maps = [[int(number) for number in line.split()] for line in lines]
        if any(first_outside == 0 for _, first_outside, _ in maps):
            return 0
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _is_own_folder(path: str, uid: int) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == uid and not stat.S_IMODE(info.st_mode) & 0o077
