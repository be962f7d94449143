"""The second lower layer: whiteouts over what must not be seen, and files seen instead of the real ones.

Inside the overlay nothing can be unmounted, renamed away or read through: for the box those paths never existed.
Made once per set of paths and kept beside the mission's upper layer, in a folder named by what it hides.
"""

import errno
import os
import shutil
import stat
import tempfile

from ringfence.model.box import Layer
from ringfence.model.errors import BoxError
from ringfence.sandbox.orders import middle_path


def prepare_middle(layer: Layer) -> None:
    """Make the layer that ``masked`` and ``replaced`` ask for. Nothing is done when it stands already.

    A layer once made is never changed: a running box may look through it. Raises BoxError when it cannot be made: then
    nothing may run, for the paths would be seen. The same for the overlays that belong to this one.
    """
    for beside in layer.beside:
        prepare_middle(beside)
    if not layer.masked and not layer.replaced:
        return
    if not layer.middle:
        raise BoxError("box-masks", "paths are to be hidden but no folder for it was given", where=layer.target)
    wanted = middle_path(layer)
    if os.path.isdir(wanted):
        return
    try:
        _build(layer, wanted)
    except OSError as fault:
        raise BoxError(
            "box-masks",
            f"the layer that hides paths could not be made: {fault.strerror}",
            where=os.fsdecode(fault.filename or layer.middle),
            remedy="the state directory must be on a file system that keeps device nodes and owners, as ext4, xfs or btrfs",
        ) from fault


def _build(layer: Layer, wanted: str) -> None:
    os.makedirs(layer.middle, mode=0o700, exist_ok=True)
    made = tempfile.mkdtemp(prefix="new.", dir=layer.middle)
    folders: list[str] = [""]
    for relative in layer.masked:
        if _folders(layer.lower, made, relative, folders) and not os.path.lexists(f"{made}/{relative}"):
            os.mknod(f"{made}/{relative}", stat.S_IFCHR, 0)
    for relative, content in layer.replaced:
        if _folders(layer.lower, made, relative, folders):
            _replace(layer, made, relative, content)
    for relative in sorted(folders, key=len, reverse=True):
        _copy_look(f"{layer.lower}/{relative}", f"{made}/{relative}")
    try:
        os.rename(made, wanted)
    except OSError as fault:
        shutil.rmtree(made)
        if fault.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise  # else another call of this mission was faster, with the same content


def _folders(lower: str, made: str, relative: str, folders: list[str]) -> bool:
    """Make the folders above a path. False where a component is not a real folder: nothing lies there to be hidden."""
    parts = relative.split("/")
    if os.path.isabs(relative) or ".." in parts or "" in parts:
        raise BoxError("box-masks", f"{relative!a} is not a path within the worktree", where=lower)
    current = ""
    for part in parts[:-1]:
        current = f"{current}/{part}" if current else part
        try:
            kind = os.lstat(f"{lower}/{current}").st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(kind):
            return False
        if not os.path.lexists(f"{made}/{current}"):
            os.mkdir(f"{made}/{current}")
            folders.append(current)
        elif not os.path.isdir(f"{made}/{current}"):
            return False  # a folder above it is hidden already
    return True


def _replace(layer: Layer, made: str, relative: str, content: bytes) -> None:
    target = f"{made}/{relative}"
    if os.path.lexists(target):
        return
    with open(target, "wb") as file:
        file.write(content)
    if os.path.lexists(f"{layer.lower}/{relative}"):
        _copy_look(f"{layer.lower}/{relative}", target)


def _copy_look(source: str, target: str) -> None:
    """Mode, owner and times of the original: a merged folder shows those of its uppermost layer."""
    info = os.lstat(source)
    if os.geteuid() == 0:
        os.chown(target, info.st_uid, info.st_gid)
    os.chmod(target, stat.S_IMODE(info.st_mode))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
