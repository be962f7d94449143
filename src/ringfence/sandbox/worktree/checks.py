"""Whether a folder can be a worktree here: refused with the remedy before anything is mounted or written."""

import os
import pwd

from ringfence.model.errors import RingfenceError
from ringfence.sandbox.worktree import kernel

_OVERLAY = 0x794C7630
_NETWORK = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x01021997: "9p (a share of another system)",
    0x65735546: "FUSE (may be a network share)",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x00C36400: "Ceph",
    0x73757245: "Coda",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x786F4256: "a shared folder of a virtual machine",
}
_NO_UPPER = {0x4D44: "FAT", 0x5346544E: "NTFS", 0x7366746E: "NTFS", 0x2011BAB0: "exFAT", 0xF15F: "eCryptfs"}


def check_root(root: str) -> str:
    """The real path of a folder that can be fenced. Raises RingfenceError that names why not and what to do."""
    real = os.path.realpath(root)
    if not os.path.isdir(real):
        raise _refused(
            "not-a-directory",
            f"{root!r} is not a directory",
            real,
            "give the root folder of the repository; of a mission whose repository is gone: put it back, or give the mission's "
            "changes up (ringfence mission discard ID --all)",
        )
    if real == "/":
        raise _refused("root-too-broad", "the worktree would be the whole system", real, "give one repository's folder")
    for home in _homes():
        if home == real or home.startswith(real + "/"):
            raise _refused(
                "root-too-broad",
                f"the worktree would hold the home directory {home!r}",
                real,
                "give one repository's folder",
            )
    _check_lower(real)
    return real


def check_state(state: str, root: str) -> None:
    """Refuse a state folder inside the worktree, or on a file system that cannot hold an overlay's upper directory."""
    if state == root or state.startswith(root + "/"):
        raise _refused(
            "state-inside-worktree",
            "ringfence's state would lie inside the worktree",
            state,
            "choose a repository outside it",
        )
    magic = kernel.filesystem_type(state)
    if magic == _OVERLAY:
        raise _refused(
            "overlay-on-overlay",
            "the state folder lies on an overlay file system, which cannot hold another overlay's upper directory",
            state,
            "mount a volume or tmpfs there (in a container: a volume for the home's .local/state)",
        )
    if magic in _NETWORK or magic in _NO_UPPER:
        kind = _NETWORK.get(magic) or _NO_UPPER[magic]
        raise _refused(
            "state-file-system",
            f"the state folder lies on {kind}",
            state,
            "keep the home's .local/state on a local disk",
        )


def _check_lower(real: str) -> None:
    magic = kernel.filesystem_type(real)
    if magic in _NETWORK:
        raise _refused(
            "network-file-system",
            f"the worktree lies on {_NETWORK[magic]}: its files can change without this kernel knowing",
            real,
            "work in a clone on a local disk",
        )
    if magic == _OVERLAY:
        raise _refused(
            "overlay-on-overlay",
            "the worktree lies on an overlay file system already (a container's own layer)",
            real,
            "put the repository on a volume or another mount",
        )
    if os.statvfs(real).f_flag & os.ST_RDONLY or not os.access(real, os.W_OK | os.X_OK):
        raise _refused(
            "worktree-read-only",
            "the worktree cannot be written, so nothing could be committed to it",
            real,
            "make it writable for this user, or work in a copy",
        )


def _homes() -> set[str]:
    own = os.getuid()
    return {os.path.realpath(p.pw_dir) for p in pwd.getpwall() if p.pw_uid in {0, own} or p.pw_uid >= 1000} - {"/"}


def _refused(code: str, what: str, where: str, remedy: str) -> RingfenceError:
    return RingfenceError(code, what, where=repr(where), remedy=remedy)
