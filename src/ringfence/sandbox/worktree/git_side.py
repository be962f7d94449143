"""Where a layer keeps git's files: in the worktree's own layer, or in one beside it when ``.git`` lies elsewhere.

A linked worktree, a submodule and a linked ``.git`` have their git directory outside the worktree. It gets a layer of
its own over the common directory; its paths are told as ``.git/NAME`` all the same, so that the rest of the gate knows
one way of naming.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ringfence.model.box import Layer
from ringfence.sandbox.worktree.change import Change
from ringfence.sandbox.worktree.git_view import hide
from ringfence.sandbox.worktree.guard import git_internal
from ringfence.sandbox.worktree.repository import Repository
from ringfence.sandbox.worktree.walk import Walk

_SHARED = (
    "refs", "objects", "packed-refs", "info", "hooks", "config", "modules", "worktrees", "branches", "description",
    "shallow", "gc.log", "gc.pid", "ringfence.bundle", "common",
)  # fmt: skip
_OWN_REFS = ("refs/bisect", "refs/worktree", "refs/rewritten")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitSide:
    """Descriptors of the layer's upper directory and of what lies below it, and how names in them are meant."""

    upper: int
    lower: int
    inside: bool
    """``.git`` is a folder of the worktree: the descriptors are the worktree's own."""
    own: str = ""
    """A linked worktree's folder below the common directory, as ``worktrees/NAME``."""

    def physical(self, path: str) -> str:
        """The path below ``upper`` and ``lower`` that ``.git/NAME`` means."""
        if self.inside:
            return path
        name = path.removeprefix(".git/")
        return f"{self.own}/{name}" if self.own and not _shared(name) else name

    def told(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Changes of a layer beside the worktree, walked as ``.git/…``, under the names the worktree's git has for them."""
        for change in changes:
            name = change.path.removeprefix(".git/")
            if self.own and name.startswith(self.own + "/"):
                inner = name.removeprefix(self.own + "/")
                mine = not _shared(inner) and inner != "gitdir" and not inner.startswith("commondir")
                path = f".git/{inner}" if mine else change.path
                yield replace(change, path=path, internal=git_internal(path))
            elif self.own and name in {"worktrees", self.own}:
                yield replace(change, internal=True)
            elif self.own and not _shared(name):
                why = "belongs to another worktree of the same repository"
                yield replace(change, path=f".git/worktrees/{name}", internal=False, fault=change.fault or why)
            else:
                yield change


def git_changes(side: GitSide) -> list[Change]:
    """What the layer changed of git's own files, as the worktree's git names them."""
    found = Walk().git_changes(side.upper, side.lower, inside=side.inside)
    return list(found if side.inside else side.told(found))


def beside_layer(folder: str, repository: Repository) -> Layer:
    """The layer over a common directory that lies outside the worktree: seen without credentials, written to the side."""
    info = os.stat(repository.common)
    masked: list[str] = []
    replaced: list[tuple[str, bytes]] = []
    hide(repository.common, "", masked, replaced)
    return Layer(
        lower=repository.common,
        upper=f"{folder}/git-upper",
        work=f"{folder}/git-work",
        target=repository.common,
        owner=(info.st_uid, info.st_gid),
        middle=f"{folder}/middle",
        masked=tuple(masked),
        replaced=tuple(replaced),
    )


def _shared(name: str) -> bool:
    if name.startswith(_OWN_REFS):
        return False
    return (
        name.startswith("logs/refs")
        or name == "logs"
        or name.split("/", maxsplit=1)[0].removesuffix(".lock").startswith(_SHARED)
    )
