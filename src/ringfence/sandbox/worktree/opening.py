"""Folders and files of a worktree, its repository and a layer opened for one piece of work, and closed after it."""

import contextlib
import os
from collections.abc import Iterator

from ringfence.model.box import Layer
from ringfence.sandbox.worktree.git_side import GitSide
from ringfence.sandbox.worktree.history import Taking
from ringfence.sandbox.worktree.judge_history import HistoryJudge
from ringfence.sandbox.worktree.repository import Repository
from ringfence.sandbox.worktree.state import LayerState


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """A descriptor for a folder that is not a symbolic link."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def opened_side(root: str, folder: str, repository: Repository) -> Iterator[GitSide]:
    """Git's files of the layer in a mission's folder, and what lies below them, in the worktree's layer or beside it."""
    inside = repository.inside
    own = "." if inside else os.path.relpath(repository.directory, repository.common)
    with (
        opened(root if inside else repository.common) as lower,
        opened(f"{folder}/{'upper' if inside else 'git-upper'}") as upper,
    ):
        yield GitSide(upper=upper, lower=lower, inside=inside, own="" if own == "." else own)


@contextlib.contextmanager
def opened_taking(layer: Layer, repository: Repository, record: LayerState, judge: HistoryJudge) -> Iterator[Taking]:
    """Everything that taking over history needs, with git's files found in the layer or beside it."""
    folder = os.path.dirname(layer.upper)
    with (
        opened(repository.common) as common,
        opened(repository.directory) as directory,
        opened_side(layer.lower, folder, repository) as side,
    ):
        yield Taking(
            repository=repository,
            owner=layer.owner,
            folder=folder,
            side=side,
            common=common,
            directory=directory,
            record=record,
            judge=judge,
        )
