"""Facts of the host that a plan is made from. Values only: the same facts and call give the same plan."""

from dataclasses import dataclass

from ringfence.model.ids import Bytes

BOX_UID = 1_900_000_000
"""uid and gid of boxes started by root: from a range that no distribution, container manager or subuid file hands out."""


def box_user(uid: int, gid: int) -> tuple[int, int]:
    """Uid and gid of the box's processes for a caller with these: the caller's own, or unprivileged ones for root."""
    return (uid, gid) if uid else (BOX_UID, BOX_UID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Programs outside /usr that a box may see: ``root`` is shown read-only, ``bin`` goes on its PATH."""

    name: str
    root: str
    bin: str
    instead_of: str = ""
    """The folder on the caller's PATH whose place ``bin`` takes: shims that only start these programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What a plan needs to know of the host."""

    uid: int
    gid: int
    home: str
    links: tuple[tuple[str, str], ...]
    """Top-level links, as ``/bin`` to ``usr/bin``."""
    folders: tuple[str, ...]
    """Top-level program folders that are real folders."""
    etc: str
    """The prepared folder that becomes /etc."""
    toolchains: tuple[Toolchain, ...]
    path: str
    """PATH of the caller."""
    memory: Bytes
    """Of the machine."""
    umask: int = 0o022
    timezone: str = ""


def box_home(host_home: str) -> str:
    """Where the synthetic home stands: a path that is not also the caller's real home."""
    return "/home/fenced" if f"{host_home}/".startswith("/home/agent/") else "/home/agent"
