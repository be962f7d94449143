"""The git side of one worktree's missions: what they committed is asked for and taken over, their git files kept in order.

``Worktree`` calls this while it holds the repository; nothing here takes the lock. Git's files of a layer lie in the
layer itself or, where ``.git`` lies elsewhere, in one beside it.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ringfence.model.box import Layer
from ringfence.model.errors import RingfenceError
from ringfence.model.ports import Decider
from ringfence.sandbox.worktree import carrying, history, layers, state
from ringfence.sandbox.worktree.change import Change
from ringfence.sandbox.worktree.concluded import is_over
from ringfence.sandbox.worktree.git_left import carried, layer_index, pending
from ringfence.sandbox.worktree.git_side import beside_layer, git_changes
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.history_report import BundleRequest, HistoryReport, bundle_request
from ringfence.sandbox.worktree.judge_history import HistoryJudge
from ringfence.sandbox.worktree.large_files import stays_in_layer
from ringfence.sandbox.worktree.opening import opened_side, opened_taking
from ringfence.sandbox.worktree.plan import Packed
from ringfence.sandbox.worktree.reached import NOTHING, look
from ringfence.sandbox.worktree.refs import Unreadable, layer_refs, packed_away, real_refs
from ringfence.sandbox.worktree.repository import Repository, find_repository, read_small
from ringfence.sandbox.worktree.staged_index import MAX_INDEX, recover_index, same_tree, says
from ringfence.sandbox.worktree.there import is_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """The repository of a worktree, if it has one, and how a mission's record is loaded and checked by its folder."""

    root: str
    repository: Repository | None
    hides: Callable[[str], bool]
    record: Callable[[str], state.LayerState]

    def request(self, layer: Layer) -> BundleRequest | None:
        """The command that bundles what the layer's branches, tags and HEAD have.

        None when no ref moved in it: there is nothing to take, and what git left in the layer is put in order at once.
        """
        if self.repository is None:
            return None
        with self._taking(layer) as taking:
            changes = git_changes(taking.side)
            if not pending(changes):
                if is_over(changes):
                    return BundleRequest(argv=("true",), cwd=self.root, lands="")  # ``take`` has something to tell
                if changes or taking.record.index_owed is not None:
                    taking.take(changes)
                    state.store(os.path.dirname(layer.upper), taking.record)
                return None
            try:
                real = real_refs(taking.common, taking.directory)
                wanted = layer_refs(real, taking.side, changes)
            except Unreadable:
                return BundleRequest(argv=("true",), cwd=self.root, lands="")  # nothing to bundle: ``take`` says why
        git = f"{self.root}/.git" if self.repository.inside else self.repository.common
        return bundle_request(self.root, git, real, wanted)

    def take(self, layer: Layer, decider: Decider, approved: frozenset[str]) -> HistoryReport:
        """Take over branches, tags, HEAD and the index; the layer must not be mounted."""
        if self.repository is None:
            return HistoryReport()
        with self._taking(layer, decider, approved) as taking:
            layers.assert_not_mounted(layer.upper)
            recover_index(self.repository.directory)
            try:
                return taking.take(git_changes(taking.side))
            finally:
                state.store(os.path.dirname(layer.upper), taking.record)

    def recover(self, folder: str, layer: Layer) -> list[str]:
        """After a crash: let the index follow a HEAD that had moved. Gives a line for a person where there was something to do."""
        record = state.load(folder)
        if record is None or record.index_owed is None or not is_folder(f"{folder}/upper"):
            return []
        with self._taking(layer) as taking:
            taking.finish()
            state.store(folder, taking.record)
        return [f"the index of {self.root!r} follows the commit that HEAD had moved to"]

    def before_mount(self, record: state.LayerState, folder: str) -> None:
        """An index, or packed refs, that the layer kept would undo what a person did since: theirs count, and are noted."""
        if self.repository is None:
            return
        stale = []
        if record.index is not None and self._index_differs(record):
            stale.append(".git/index")
            record.index = None
        if record.packed is not None and _packed(f"{self.repository.common}/packed-refs") != record.packed:
            stale.append(".git/packed-refs")
            record.packed = None
        if stale:
            with opened_side(self.root, folder, self.repository) as side:
                for path in stale:
                    layers.expose(side.upper, side.lower, side.physical(path))
        if record.git.begins:
            record.index_says = self._index_says()

    def _index_differs(self, record: state.LayerState) -> bool:
        """Whether the real index says something else than it did; that git noted other times of files is nothing new."""
        if self.repository is None or record.index is None:
            return True
        now = _packed(self.repository.index)
        if now != record.index and record.index_says and self._index_says() == record.index_says:
            record.index = now
        return now != record.index

    def _index_says(self) -> str:
        if self.repository is None:
            return ""
        owner = os.stat(self.repository.common)
        git = Git(directory=self.repository.directory, owner=(owner.st_uid, owner.st_gid))
        return says(git, self.repository.index)

    def left(self, layer: Layer, record: state.LayerState | None) -> tuple[str, ...]:
        """What of git's files goes on from an ending mission to the next, by paths in the layer that holds them."""
        if self.repository is None or record is None:
            return ()
        folder = os.path.dirname(layer.upper)
        with opened_side(self.root, folder, self.repository) as side:
            for name, value in packed_away(side).items():  # where no gate came between
                layers.write(side.upper, side.physical(f".git/{name}"), f"{value}\n".encode(), layer.owner)
            index = layer_index(side)
            staged = bool(index) and not same_tree(index, read_small(self.repository.index, MAX_INDEX))
            stale = self._index_differs(record)
            names = carried(git_changes(side), staged=staged, stale=stale)
            paths = [side.physical(f".git/{name}") for name in names]
            return tuple(path for path in paths if layers.holds(side.upper, path))

    def make_beside(self, folder: str, carried: str = "") -> None:
        """Make the folders of the layer beside the worktree's, where there is one, of what was ``carried`` on."""
        if self.repository is not None and not self.repository.inside:
            if carried and not is_folder(f"{folder}/git-upper"):
                carrying.take_on(f"{carried}-git", f"{folder}/git-upper", self.repository.common)
            for name in ("git-upper", "git-work"):
                carrying.make_like(f"{folder}/{name}", self.repository.common)

    def beside(self, folder: str) -> tuple[Layer, ...]:
        """The layer beside the worktree's, if git's directory lies elsewhere."""
        return () if self.repository is None or self.repository.inside else (beside_layer(folder, self.repository),)

    def idle(self, layer: Layer, changes: Iterable[Change]) -> bool:
        """Whether the layer, with these changes, differs in no file of git's own."""
        if self.repository is None or self.repository.inside:
            return not any(change.internal for change in changes)
        with opened_side(self.root, os.path.dirname(layer.upper), self.repository) as side:
            return not git_changes(side)

    def changes_beside(self, layer: Layer) -> list[Change]:
        """What a git directory beside the worktree holds that is not git's bookkeeping."""
        if not layer.beside:
            return []
        with self._taking(layer) as taking:
            return [c for c in git_changes(taking.side) if not c.internal]

    def discard_beside(self, layer: Layer, paths: Iterable[str]) -> None:
        """Drop changes of git's files from the layer beside the worktree's."""
        if layer.beside:
            with self._taking(layer) as taking:
                for path in (taking.side.physical(p) for p in paths if p.startswith(".git/")):
                    layers.expose(taking.side.upper, taking.side.lower, path)

    def _taking(
        self, layer: Layer, decider: Decider | None = None, approved: frozenset[str] = frozenset()
    ) -> contextlib.AbstractContextManager[history.Taking]:
        if self.repository is None:
            raise RingfenceError("git-directory-broken", "the worktree has no repository", where=repr(self.root))
        folder = os.path.dirname(layer.upper)
        carrying.mend(folder, self.root)
        index = b"" if decider is None else read_small(self.repository.index, MAX_INDEX)
        repository = self.repository
        reached = NOTHING if decider is None else look(self.root, repository, index)
        judge = HistoryJudge(
            root=self.root,
            decider=decider,
            hides=self.hides,
            approved=approved,
            reached=reached,
            lacks=self._submodule_lacks,
            loses=lambda content: stays_in_layer(layer, repository, content),
        )
        return opened_taking(layer, repository, self.record(folder), judge)

    def _submodule_lacks(self, path: str, oid: str) -> bool:
        """Whether a submodule that is checked out in the real tree has no such commit."""
        try:
            inner = find_repository(f"{self.root}/{path}")
        except RingfenceError:
            return False
        if inner is None:
            return False
        owner = os.stat(inner.common)
        git = Git(directory=inner.directory, owner=(owner.st_uid, owner.st_gid))
        return not git.run("cat-file", "-e", f"{oid}^{{commit}}").ok


def _packed(path: str) -> Packed | None:
    try:
        return state.pack(state.identity_of(os.lstat(path)))
    except FileNotFoundError:
        return None
