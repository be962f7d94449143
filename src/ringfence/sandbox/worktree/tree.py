"""One worktree as missions see it: opened with checks, layered, its changes listed, committed, undone, discarded.

This is what the supervisor calls. Nothing here decides: the policy is asked through the ``Decider`` that is passed in.
"""

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator

from ringfence.model.box import Layer
from ringfence.model.errors import RingfenceError
from ringfence.model.ids import Micros, MissionId
from ringfence.model.ports import Decider
from ringfence.sandbox.worktree import carrying, journal, kernel, layers, removal, state
from ringfence.sandbox.worktree import diff as differ
from ringfence.sandbox.worktree.change import Change, ChangeKind, GateReport
from ringfence.sandbox.worktree.checks import check_root, check_state
from ringfence.sandbox.worktree.cut_short import recover
from ringfence.sandbox.worktree.gate import Gate
from ringfence.sandbox.worktree.guard import STAGE
from ringfence.sandbox.worktree.hindered import told
from ringfence.sandbox.worktree.history_report import BundleRequest, HistoryReport
from ringfence.sandbox.worktree.ignore import MAX_BYTES, parse
from ringfence.sandbox.worktree.judge import MAX_FILE, Judge
from ringfence.sandbox.worktree.lock import RepositoryLock
from ringfence.sandbox.worktree.notes import drop_notes, note, take_notes
from ringfence.sandbox.worktree.opening import opened
from ringfence.sandbox.worktree.reached import NOTHING, list_tracked, look
from ringfence.sandbox.worktree.repository import Repository, find_repository, read_small
from ringfence.sandbox.worktree.staged_index import MAX_INDEX, recover_index
from ringfence.sandbox.worktree.takeover import Takeover
from ringfence.sandbox.worktree.there import is_folder, is_there
from ringfence.sandbox.worktree.tracked import Tracked
from ringfence.sandbox.worktree.walk import Walk

PathTest = Callable[[str], bool]


def _never(_path: str) -> bool:
    return False


class Worktree:
    """A worktree and the layers of its missions. Make one with ``open``; it holds no descriptors between calls.

    ``policy_hides`` says whether a path (relative to the root) is hidden from boxes; ``explicit`` whether
    ``files.write.allow`` names an ignored path all the same (a folder is asked for with a trailing ``/``, and the
    answer is yes when anything below it could be named).
    """

    def __init__(
        self, *, root: str, state_dir: str, repository: Repository | None, hides: PathTest, explicit: PathTest
    ) -> None:
        self.root = root
        self.repository = repository
        self.max_file = MAX_FILE
        self._state = state_dir
        self._hides = hides
        self._explicit = explicit
        self._git = Takeover(root=root, repository=repository, hides=hides, record=self._record)
        place = repository.common if repository else root
        info = os.stat(place)
        self.key = hashlib.sha256(f"{info.st_dev}:{info.st_ino}:{kernel.birth(place)}".encode()).hexdigest()[:24]
        self._lock = RepositoryLock(f"{state_dir}/locks/{self.key}.lock")

    @classmethod
    def open(
        cls,
        root: str,
        state_dir: str,
        *,
        policy_hides: PathTest | None = None,
        explicit: PathTest | None = None,
        timeout: float = 30.0,
    ) -> "Worktree":
        """The worktree at ``root``. Raises RingfenceError with the remedy for a folder that cannot be fenced."""
        real = check_root(root)
        with told(state_dir):
            for name in ("locks", "repositories", "missions"):
                os.makedirs(f"{state_dir}/{name}", mode=0o700, exist_ok=True)
            state_real = os.path.realpath(state_dir)
            check_state(state_real, real)
            tree = cls(
                root=real,
                state_dir=state_real,
                repository=find_repository(real),
                hides=policy_hides or _never,
                explicit=explicit or _never,
            )
        tree._lock = RepositoryLock(f"{state_real}/locks/{tree.key}.lock", timeout=timeout)
        return tree

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the repository: mounts, commits and host-side file tools take turns. Re-entrant for one thread.

        What the kernel refuses becomes a RingfenceError: a commit that was under way is finished or taken back at the next one.
        """
        with told(self._state), self._lock.held():
            yield

    def layer(self, mission: MissionId) -> Layer:
        """The mission's layer, made if need be, ready to be mounted now: what others change from here on is a conflict."""
        folder = self._folder(mission)
        with self.lock():
            carrying.make_upper(folder, self.root, self._carried)
            self._git.make_beside(folder, self._carried)
            known = state.load(folder)
            record = known or self._begun()
            self._same_root(record, folder)
            self._git.before_mount(record, folder)
            with opened(f"{folder}/upper") as upper:
                record.hiding = layers.hiding(upper, map(os.fsdecode, record.hiding))
            record.stamp()
            state.store(folder, record)
            if known is None:
                drop_notes(f"{self._carried}.notes")
            return self._layer(folder)

    def _begun(self) -> state.LayerState:
        info = os.stat(self.root)
        record = state.LayerState(root=os.fsencode(self.root), device=info.st_dev, inode=info.st_ino)
        take_notes(f"{self._carried}.notes", record)
        return record

    def look(self, mission: MissionId) -> Layer:
        """The mission's layer for looking, committing or discarding: unlike ``layer``, no mount is about to follow."""
        folder = self._folder(mission)
        with self.lock():
            if not is_folder(folder):
                raise RingfenceError(
                    "mission-unknown", f"mission {mission!r} has no layer", remedy="see ringfence mission list"
                )
            self._record(folder)
            carrying.make_upper(folder, self.root, f"{folder}/none")
            self._git.make_beside(folder)
            return self._layer(folder)

    def _layer(self, folder: str) -> Layer:
        info = os.stat(self.root)
        return Layer(
            lower=self.root,
            upper=f"{folder}/upper",
            work=f"{folder}/work",
            target=self.root,
            owner=(info.st_uid, info.st_gid),
            beside=self._git.beside(folder),
        )

    def changes(self, layer: Layer) -> tuple[Change, ...]:
        """Every difference of the layer from the real tree. Ignored folders are one change each; git's own files are marked."""
        with self.lock(), self._opened(layer) as (upper, lower):
            return tuple(c for c in self._changes(layer, upper, lower) if c.kind is not ChangeKind.SAME)

    def diff(self, layer: Layer) -> str:
        """The changes as text for a person: counts, then a unified diff. Names and contents are escaped for a terminal."""
        changes = tuple(c for c in self.changes(layer) if not c.internal)
        with self.lock(), self._opened(layer) as (upper, lower):
            return differ.render(changes, upper, lower)

    def commit(
        self,
        layer: Layer,
        decider: Decider,
        *,
        only: Iterable[str] | None = None,
        now: Micros,
        approved: Iterable[str] = (),
        last: bool = False,
    ) -> GateReport:
        """Judge every change and apply the allowed ones; see ``GateReport``. The box must be dead or frozen.

        ``only`` limits the commit to these paths and what lies below them; ``approved`` names paths a person said yes
        to, for which ASK counts as ALLOW. All that is applied is on disk when this returns. ``last``: no box is to follow
        over this layer, so where nothing changed no later mount needs to count anew, and the record stays as it is.
        """
        folder = os.path.dirname(layer.upper)
        with self.lock(), self._opened(layer) as (upper, lower):
            layers.assert_not_mounted(layer.upper)
            self._record(folder)
            recover(folder, layer.upper, lower, self._stage(folder))
            record = self._record(folder)
            walk = self._walk()
            changes = self._changes(layer, upper, lower, walk=walk)
            judge = Judge(
                upper=upper,
                lower=lower,
                root=self.root,
                decider=decider,
                hides=self._hides,
                max_file=self.max_file,
                reached=look(self.root, self.repository, walk.tracked().raw)
                if any(not c.ignored for c in changes)
                else NOTHING,
            )
            gate = Gate(
                upper=upper,
                lower=lower,
                root=self.root,
                folder=folder,
                stage_path=self._stage(folder),
                owner=layer.owner,
                bin_folder=self._bin,
                state=record,
                judge=judge,
                tracked=walk.tracked(),
            )
            report = gate.commit(
                changes,
                only=None if only is None else self._named(only),
                approved=self._named(approved),
                now=now,
            )
            record.git.gated = record.git.gated or self._git.idle(layer, changes)
            if changes or not last:
                state.store(folder, record)  # replacing a file has the disk write the new one at once: 0.3 to 0.6 ms
            return report

    def bundle_request(self, layer: Layer) -> BundleRequest | None:
        """The command to run in a box over this layer before ``take_history``, or None when no ref moved in it."""
        with self.lock():
            return self._git.request(layer)

    def take_history(
        self, layer: Layer, decider: Decider, *, now: Micros, approved: Iterable[str] = ()
    ) -> HistoryReport:
        """Take over commits made in the box: branches, tags, HEAD and the index; see ``HistoryReport``. Box dead or frozen.

        ``approved`` names paths or full ref names a person said yes to. Nothing of the layer is executed, and git is
        run only so that no configuration or hook can run anything.
        """
        del now  # the ledger's business; kept so that both halves of a commit are called alike
        with self.lock():
            return self._git.take(layer, decider, self._named(approved))

    def discard(self, layer: Layer, paths: Iterable[str] | None = None) -> tuple[str, ...]:
        """Drop changes from the layer: the named paths and what lies below them, or all but the ignored ones."""
        dropped = sorted(self._named(paths or ()))
        with self.lock(), self._opened(layer) as (upper, lower):
            layers.assert_not_mounted(layer.upper)
            found = tuple(self._changes(layer, upper, lower))
            if paths is None or "." in dropped:
                self._drop_all(layer, found)
                return tuple(c.path for c in found if not c.ignored and not c.internal)
            for path in dropped:
                layers.expose(upper, lower, path)
            layers.prune(upper, lower, dropped)
            self._git.discard_beside(layer, dropped)
            return tuple(c.path for c in found if any(c.path == p or c.path.startswith(p + "/") for p in dropped))

    def end(self, layer: Layer) -> None:
        """End the layer: ignored paths and the stash are carried on to the repository's next mission, the rest is removed.

        The undo journal, and what conflicts set aside, stay in the mission's folder.
        """
        folder = os.path.dirname(layer.upper)
        with self.lock():
            layers.assert_not_mounted(layer.upper)
            carrying.mend(folder, self.root)
            if is_folder(layer.upper):
                self._carry_on(layer, folder)
            for part in (layer.work, f"{folder}/git-upper", f"{folder}/git-work"):
                removal.set_out(part, self._bin)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/layer.state")

    def _carry_on(self, layer: Layer, folder: str) -> None:
        with self._opened(layer) as (upper, lower):
            ignored = self._ignored(layer, self._changes(layer, upper, lower))
        record = state.load(folder)
        git = self._git.left(layer, record)
        os.makedirs(os.path.dirname(self._carried), mode=0o700, exist_ok=True)
        others = note(f"{self._carried}.notes", record, ignored, git)
        if layer.beside:
            carrying.hand_on(f"{folder}/git-upper", f"{self._carried}-git", git, self._bin)
            git = ()
        carrying.carry_on(folder, self.root, [*ignored, *git], self._bin, target=self._carried, others=others)

    def forget_carried(self) -> None:
        """Remove the ignored paths, and the stash, that would be carried on to the next mission."""
        with self.lock():
            for place in (self._carried, f"{self._carried}-git"):
                removal.remove_tree(place)
            drop_notes(f"{self._carried}.notes")
            self.sweep()

    def sweep(self) -> None:
        """Remove what commits and discards set out of the way. Slow; call it after the answer is given, and at the end."""
        removal.empty_bin(self._bin)

    def undo(self, mission: MissionId) -> journal.UndoReport:
        """Give back what all commits of a mission changed, newest first. What someone changed since stays, and is listed."""
        restored: list[str] = []
        conflicts: list[str] = []
        with self.lock(), opened(self.root) as lower:
            folder = self._folder(mission)
            recover(folder, f"{folder}/upper", lower, self._stage(folder))
            for record in reversed(journal.journals(folder)):
                if record.has("undone"):
                    continue
                report = record.take_back(lower, void=record.outcome().void)
                record.mark("undone")
                restored += report.restored
                conflicts += report.conflicts
        return journal.UndoReport(restored=tuple(restored), conflicts=tuple(conflicts))

    def recover(self) -> tuple[str, ...]:
        """Finish or take back the commits of this worktree that a crash cut short; call it at every start."""
        told: list[str] = []
        with self.lock(), opened(self.root) as lower:
            self.sweep()
            if self.repository is not None:
                recover_index(self.repository.directory)
            for name in sorted(os.listdir(f"{self._state}/missions")):
                folder = f"{self._state}/missions/{name}"
                if self._belongs(folder):
                    told += self._git.recover(folder, self._layer(folder))
                    told += recover(folder, f"{folder}/upper", lower, self._stage(folder))
        return tuple(told)

    @property
    def _bin(self) -> str:
        return f"{self._state}/repositories/{self.key}/carried-bin"

    @property
    def _carried(self) -> str:
        info = os.stat(self.root)
        return f"{self._state}/repositories/{self.key}/carried-{info.st_dev}-{info.st_ino}"

    def _folder(self, mission: MissionId) -> str:
        if not mission or mission != os.path.basename(mission) or mission.startswith("."):
            raise RingfenceError(
                "mission-unknown", f"{mission!r} is not the name of a mission", remedy="see ringfence mission list"
            )
        return f"{self._state}/missions/{mission}"

    def _stage(self, folder: str) -> str:
        """A folder on the worktree's own file system, out of sight: in ``.git`` where that is on the same one."""
        name = f"{STAGE}{os.path.basename(folder)}"
        dot = f"{self.root}/.git"
        inside = self.repository is not None and self.repository.inside
        if inside and os.lstat(dot).st_dev == os.stat(self.root).st_dev and os.access(dot, os.W_OK):
            return f"{dot}/{name.removeprefix('.')}"
        return f"{self.root}/{name}"

    def _belongs(self, folder: str) -> bool:
        with contextlib.suppress(RingfenceError):
            known = state.load(folder)
            if known is not None:
                return known.root == os.fsencode(self.root)
        for record in journal.journals(folder):
            with contextlib.suppress(RingfenceError):
                if record.has("plan") and record.plan().root == os.fsencode(self.root):
                    return True
        return False

    def _record(self, folder: str) -> state.LayerState:
        record = state.load(folder)
        if record is None:
            raise RingfenceError(
                "layer-unreadable",
                "this mission has no record of its layer",
                where=folder,
                remedy="nothing will be committed from it; copy out what you need and discard the mission",
            )
        self._same_root(record, folder)
        return record

    def _same_root(self, record: state.LayerState, folder: str) -> None:
        info = os.stat(self.root)
        if record.root != os.fsencode(self.root) or (record.device, record.inode) != (info.st_dev, info.st_ino):
            raise RingfenceError(
                "worktree-replaced",
                "the folder is not the one this mission began in",
                where=repr(self.root),
                remedy=f"the mission's changes are kept in {folder}/upper; put the folder back, or discard the mission",
            )

    def _drop_all(self, layer: Layer, found: tuple[Change, ...]) -> None:
        folder = os.path.dirname(layer.upper)
        carrying.carry_on(folder, self.root, self._ignored(layer, found), self._bin)
        removal.set_out(f"{folder}/git-upper", self._bin)
        self._git.make_beside(folder)
        record = state.load(folder)
        if record is not None:
            record.bases, record.refs, record.files.gated, record.git.gated = {}, {}, True, True
            state.store(folder, record)

    @staticmethod
    def _ignored(layer: Layer, found: Iterable[Change]) -> list[str]:
        """Ignored paths that the layer has an entry for; one hidden by a folder above needs none to be carried on."""
        return [c.path for c in found if c.ignored and is_there(f"{layer.upper}/{c.path}")]

    def _changes(self, layer: Layer, upper: int, lower: int, *, walk: Walk | None = None) -> list[Change]:
        """What the worktree's layer changed, and what a git directory beside it holds that is not git's bookkeeping."""
        found = list((walk or self._walk()).changes(upper, lower))
        return found + self._git.changes_beside(layer)

    def _named(self, paths: Iterable[str]) -> frozenset[str]:
        """Paths as a person names them, relative to the root. Raises RingfenceError for one that lies elsewhere."""
        found = set()
        for path in paths:
            clean = os.path.relpath(path, self.root) if path.startswith("/") else os.path.normpath(path)
            if clean == ".." or clean.startswith("../"):
                raise RingfenceError(
                    "path-outside-worktree",
                    f"{path!r} does not lie in the worktree, so no change of a mission is meant",
                    where=repr(self.root),
                    remedy="name paths below the repository's root, as ringfence mission diff shows them",
                )
            found.add(clean)
        return frozenset(found)

    def _walk(self) -> Walk:
        exclude = b"" if self.repository is None else read_small(self.repository.exclude, MAX_BYTES)
        return Walk(tracked=functools.cache(self._tracked), exclude=parse(exclude), explicit=self._explicit)

    def _tracked(self) -> Tracked:
        if self.repository is None:
            return Tracked()
        index = read_small(self.repository.index, MAX_INDEX)
        tracked = Tracked(index)
        if tracked.unreadable:
            with contextlib.suppress(RingfenceError):  # then everything counts as tracked
                return Tracked(index, list_tracked(self.repository))
        return tracked

    @contextlib.contextmanager
    def _opened(self, layer: Layer) -> Iterator[tuple[int, int]]:
        carrying.mend(os.path.dirname(layer.upper), self.root)
        with opened(self.root) as lower, opened(layer.upper) as upper:
            yield upper, lower
