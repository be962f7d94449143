"""The commit gate: every change of a layer judged, the allowed ones applied as one commit, the rest named.

1. walk the layer  2. judge every change  3. find conflicts with what others did meanwhile  4. stage contents and keep
originals  5. make the plan durable  6. apply  7. make that durable  8. clean the layer of what the tree has now.
A crash before 7 is taken back at the next start, one after 7 repeats 8.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ringfence.model.spelling import fold
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import apply, carrying, journal, layers, removal, there
from ringfence.sandbox.worktree.change import Change, ChangeKind, GateItem, GateReport, Node, covers
from ringfence.sandbox.worktree.cut_short import bases_after
from ringfence.sandbox.worktree.judge import Judge, Verdict
from ringfence.sandbox.worktree.plan import Packed, Plan, ordered
from ringfence.sandbox.worktree.staging import Overtaken, Refused, Stage
from ringfence.sandbox.worktree.state import Base, LayerState, pack, unpack
from ringfence.sandbox.worktree.tracked import Tracked

_CONFLICT = "someone else changed it since the mission could have read it"
_UNSEEN = "someone else made it where the mission had removed a folder before"


@dataclass(slots=True, kw_only=True)
class Gate:
    """One commit. All descriptors are the caller's; ``folder`` is the mission's."""

    upper: int
    lower: int
    root: str
    folder: str
    stage_path: str
    owner: tuple[int, int]
    bin_folder: str
    state: LayerState
    judge: Judge
    tracked: Tracked
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _conflicts: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, Packed | None] = field(default_factory=dict)
    _kept: dict[str, str] = field(default_factory=dict)
    _left: dict[str, tuple[int, str]] = field(default_factory=dict)

    def commit(
        self, changes: list[Change], *, only: frozenset[str] | None, approved: frozenset[str], now: int
    ) -> GateReport:
        """Apply what is allowed. Raises RingfenceError when nothing could be applied at all; then nothing was."""
        real = [c for c in changes if not c.internal and not c.ignored]
        open_to = [c for c in real if only is None or covers(only, c.path)]
        same = [c for c in open_to if c.kind is ChangeKind.SAME]
        judged = [c for c in open_to if c.kind is not ChangeKind.SAME]
        self._judge(judged, approved)
        self._block_replacements(judged)
        chosen = [c for c in judged if _follows(c) or self._verdicts[c.path].tier is Tier.ALLOW]
        self._conflicts |= {c.path: _UNSEEN for c in judged if _goes(c) and self.state.out_of_sight(c.path)}
        self._find_conflicts(chosen)
        self._spread_conflicts(judged)
        chosen = [c for c in chosen if c.path not in self._conflicts]
        touched = [c for c in same if self._touched(c)]
        calm = self._untouched_folders(chosen)
        done, folder = self._apply(chosen, touched, now) if chosen or touched else ([], "")
        self.state.left |= _packed(self.lower, calm)
        exchanged = self._exchange_layer(changes, done, same)
        if not exchanged:
            self._clean(done, same)
        journal.at_step("cleaned")
        settled = {*done, *same}
        self._remember(changes, settled)
        left = {place for c in changes if not c.internal and c not in settled for _, place in _spellings(c.path)}
        self.state.hiding = [] if exchanged else layers.hiding(self.upper, left)
        if folder:
            journal.Journal(folder).mark("clean")
        return self._report(judged, done, changes, folder)

    def _judge(self, changes: list[Change], approved: frozenset[str]) -> None:
        self.judge.leaving = frozenset(c.path for c in changes if c.kind is ChangeKind.DELETED)
        for change in changes:
            if _follows(change):
                continue
            verdict = self.judge.judge(change)
            if verdict.tier is Tier.ASK and covers(approved, change.path):
                verdict = replace(verdict, tier=Tier.ALLOW, reason=f"committed by name ({verdict.reason})")
            self._verdicts[change.path] = verdict

    def _block_replacements(self, changes: list[Change]) -> None:
        """A folder goes only with all that is in it; what would take its place waits for that, and so on downwards."""
        stopped = {path: verdict for path, verdict in self._verdicts.items() if verdict.tier is not Tier.ALLOW}
        stays = {
            folded: (place, change.path)
            for change in changes
            if change.kind is ChangeKind.DELETED and change.path in stopped
            for folded, place in _spellings(change.path)
        }
        for change in changes:
            if _follows(change) or self._verdicts[change.path].tier is not Tier.ALLOW:
                continue
            cause = self._cause(change, stopped) or self._respelled(change, stays)
            if cause is not None:
                why = f"waits for {cause!r}: {stopped[cause].reason}"
                self._verdicts[change.path] = replace(stopped[cause], reason=why)

    @staticmethod
    def _cause(change: Change, stopped: dict[str, Verdict]) -> str | None:
        goes = change.was is Node.DIRECTORY and change.node is not Node.DIRECTORY
        removed = change.kind is ChangeKind.DELETED and change.node is Node.DIRECTORY
        if goes or removed:
            return next((path for path in stopped if path.startswith(change.path + "/")), None)
        if change.kind is ChangeKind.DELETED:
            return None
        parent = change.path.rpartition("/")[0]
        while parent:
            if parent in stopped:
                return parent
            parent = parent.rpartition("/")[0]
        return None

    @staticmethod
    def _respelled(change: Change, stays: dict[str, tuple[str, str]]) -> str | None:
        """What stays after all, where this change would bring another spelling of it."""
        if change.kind is not ChangeKind.ADDED:
            return None
        met = ((stays[folded], place) for folded, place in _spellings(change.path) if folded in stays)
        return next((path for (where, path), place in met if where != place), None)

    def _find_conflicts(self, chosen: list[Change]) -> None:
        mark = self.state.files.instant()
        folders: dict[str, bool] = {"": False}
        inside = {change.path.rpartition("/")[0] for change in chosen}
        for change in chosen:
            if _follows(change) or (change.node is Node.DIRECTORY and change.kind is ChangeKind.MODE):
                continue
            now = journal.source_identity(self.lower, change.path)
            self._seen[change.path] = pack(now)
            goes = change.was is Node.DIRECTORY and change.kind in {ChangeKind.DELETED, ChangeKind.TYPE}
            empty = goes and change.path not in inside  # else what is in it tells
            touched = empty and now is not None and self.state.touched_since(change.path, now)
            if touched or self.state.changed_since(change.path, now):
                self._conflicts[change.path] = _CONFLICT
            elif change.kind is not ChangeKind.ADDED and self._moved(change.path.rpartition("/")[0], mark, folders):
                self._conflicts[change.path] = "someone else moved its folder since the mission could have read it"
            elif change.kind is ChangeKind.ADDED and self._was_removed(change, mark):
                self._conflicts[change.path] = "someone else removed it since the mission could have read it"

    def _spread_conflicts(self, changes: list[Change]) -> None:
        """What lies in a folder that is no folder any more in the real tree is set aside with it."""
        whole = {c.path for c in changes if c.path in self._conflicts and c.node is Node.DIRECTORY and not _goes(c)}
        if whole:
            for change in changes:
                above = next((path for path in whole if change.path.startswith(path + "/")), None)
                if above is not None and not _follows(change):
                    self._conflicts[change.path] = self._conflicts[above]

    def _untouched_folders(self, chosen: list[Change]) -> list[str]:
        """Folders that the commit is about to change, and nobody else did: what they are afterwards is the gate's doing."""
        parents = _packed(self.lower, {c.path.rpartition("/")[0] for c in chosen})
        found = ((os.fsdecode(path), unpack(packed)) for path, packed in parents.items())
        return [path for path, now in found if now is not None and not self.state.touched_since(path, now)]

    def _moved(self, path: str, mark: int, known: dict[str, bool]) -> bool:
        """A folder put here from elsewhere has a new ctime and an old mtime; making or removing entries moves both."""
        if path not in known:
            info = journal.source_identity(self.lower, path)
            moved = info is None or not stat.S_ISDIR(info.mode) or (info.ctime_ns > mark and info.mtime_ns <= mark)
            known[path] = moved or self._moved(path.rpartition("/")[0], mark, known)
        return known[path]

    def _was_removed(self, change: Change, mark: int) -> bool:
        """A tracked file that is not there, in a folder that someone touched meanwhile, was removed by them."""
        if change.node is not Node.FILE or not self.tracked.covers(os.fsencode(change.path), directory=False):
            return False
        parent = change.path.rpartition("/")[0]
        while parent:
            info = journal.source_identity(self.lower, parent)
            if info is not None:
                return info.ctime_ns > mark
            parent = parent.rpartition("/")[0]
        return os.fstat(self.lower).st_ctime_ns > mark

    def _touched(self, change: Change) -> bool:
        """Whether a file that is as it was has another time, and may be written at all."""
        now, entry = (journal.source_identity(fd, change.path) for fd in (self.lower, self.upper))
        if now is None or entry is None or change.node is not Node.FILE or now.mtime_ns == entry.mtime_ns:
            return False
        return not self.state.changed_since(change.path, now) and self.judge.judge(change).tier is Tier.ALLOW

    def _apply(self, chosen: list[Change], touched: list[Change], now: int) -> tuple[list[Change], str]:
        record = journal.open_journal(self.folder)
        os.makedirs(self.stage_path, mode=0o700)
        fd = os.open(self.stage_path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            stage = self._staged(chosen, touched, fd)
            self._left = stage.left
            if not stage.steps:
                return [], ""
            plan = Plan(
                version=1,
                root=os.fsencode(self.root),
                stage=os.fsencode(self.stage_path),
                time=now,
                steps=ordered(stage.steps),
            )
            journal.at_step("staged")
            record.begin(plan, self.lower)
            journal.at_step("planned")
            record.keep_all(plan, self.lower)
            journal.at_step("kept")
            changed, failed = apply.carry_out(plan, self.lower, fd)
            journal.at_step("applied")
            record.finish([*changed, *failed], self.lower)
            journal.at_step("finished")
        finally:
            os.close(fd)
            with contextlib.suppress(OSError):
                if record.has("done") or not record.has("plan"):
                    removal.remove_tree(self.stage_path)
                    if not record.has("plan"):
                        removal.remove_tree(record.folder)
        for number, why in changed.items():
            if number in stage.changes and not _follows(stage.changes[number]):
                self._conflicts[stage.changes[number].path] = why
        for number, why in failed.items():
            if number in stage.changes and not _follows(stage.changes[number]):
                self._refuse(stage.changes[number].path, why)
        untouched = [step for step in plan.steps if step.number in failed]
        self.state.bases |= bases_after(untouched, self.lower)
        return [c for n, c in stage.changes.items() if n not in changed and n not in failed], record.folder

    def _staged(self, chosen: list[Change], touched: list[Change], fd: int) -> Stage:
        stage = Stage(
            fd=fd, upper=self.upper, lower=self.lower, owner=self.owner, max_file=self.judge.max_file, seen=self._seen
        )
        blocked = {path for path, verdict in self._verdicts.items() if verdict.tier is not Tier.ALLOW}
        blocked |= self._conflicts.keys()
        for change in chosen:
            if _follows(change) and change.kind is not ChangeKind.DELETED:
                continue  # made by the first thing in it
            if _follows(change) and any(path == change.path or path.startswith(change.path + "/") for path in blocked):
                continue  # something in it stays, or what would take its place does not come, so it stays
            try:
                stage.add(change)
            except Overtaken:
                blocked.add(change.path)
                self._conflicts[change.path] = _CONFLICT
            except Refused as answer:
                blocked.add(change.path)
                self._refuse(change.path, str(answer))
        for change in touched:
            stage.touch(change)
        return stage

    def _refuse(self, path: str, why: str) -> None:
        self._verdicts[path] = Verdict(tier=Tier.DENY, rule="gate/unexplained", reason=why)

    def _exchange_layer(self, changes: list[Change], done: list[Change], same: list[Change]) -> bool:
        """The quick way to clean: when all but ignored and git's own files is settled, a fresh layer takes those over."""
        settled = {*done, *same}
        stays = [c for c in changes if not _follows(c) and c not in settled]
        if not settled or self._conflicts or any(not (c.ignored or c.internal) for c in stays):
            return False
        kept = {".git" if c.internal else c.path for c in stays}
        if any(there.lookup(self.upper, path) is None for path in kept):
            return False  # hidden by a folder above, not by an entry of its own
        carrying.carry_on(self.folder, self.root, kept, self.bin_folder)
        return True

    def _clean(self, done: list[Change], same: list[Change]) -> None:
        clean_layer(self.upper, self.lower, [*done, *same])
        for path in sorted(self._conflicts):
            above = next((one for one in self._kept if path.startswith(one + "/")), None)
            if above is None:
                self._set_aside(path)
            elif os.path.lexists(kept := self._kept[above] + path[len(above) :]):
                self._kept[path] = kept
        layers.prune(self.upper, self.lower, [*(c.path for c in (*done, *same)), *self._conflicts])

    def _set_aside(self, path: str) -> None:
        """Move the mission's version out of the layer, so that its next call sees what the other one wrote."""
        folder = journal.next_folder(f"{self.folder}/aside")
        parent, _, name = path.rpartition("/")
        fd = there.folder(self.upper, parent)
        if fd is not None:
            try:
                info = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if not stat.S_ISCHR(info.st_mode):
                    os.mkdir(folder, 0o700)
                    os.rename(name, f"{folder}/{name}", src_dir_fd=fd)
                    self._kept[path] = f"{folder}/{name}"
            except FileNotFoundError:
                pass
            finally:
                os.close(fd)
        layers.expose(self.upper, self.lower, path)
        while parent and there.lookup(self.lower, parent) is None:  # what was made for it alone goes with it
            layers.drop_empty(self.upper, parent)
            parent = parent.rpartition("/")[0]

    def _remember(self, changes: list[Change], settled: set[Change]) -> None:
        """Note how the real tree looked below what stays in the layer, for the day a person commits it or unignores it."""
        old = self.state.bases
        kept: dict[bytes, Base] = {}
        for change in changes:
            raw = os.fsencode(change.path)
            if change.internal or _follows(change) or change in settled or change.path in self._conflicts:
                continue
            if change.ignored:
                kept |= {raw: old[raw]} if raw in old else {}
                continue
            now = journal.source_identity(self.lower, change.path)
            kept[raw] = old.get(raw) or Base(identity=pack(now), changed=self.state.changed_since(change.path, now))
        self.state.bases = kept
        self.state.ignored = self.state.since(c.path for c in changes if c.ignored)
        self.state.files.gated = True

    def _report(self, judged: list[Change], done: list[Change], all_changes: list[Change], folder: str) -> GateReport:
        finished = {c.path for c in done}
        lists: dict[str, list[GateItem]] = {"committed": [], "held": [], "refused": [], "conflicts": []}
        for change in judged:
            if _follows(change):
                continue
            verdict = self._verdicts[change.path]
            where = _list_of(change.path, verdict, finished, self._conflicts)
            reason = self._conflicts[change.path] if where == "conflicts" else verdict.reason
            mode, content = self._left.get(change.path, (0, "")) if where == "committed" else (0, "")
            item = GateItem(
                path=change.path,
                change=change,
                tier=verdict.tier,
                reason=reason,
                rule="gate/conflict" if where == "conflicts" else verdict.rule,
                kept=self._kept.get(change.path, ""),
                mode=mode,
                content=content,
            )
            lists[where].append(item)
        return GateReport(
            committed=tuple(lists["committed"]),
            held=tuple(lists["held"]),
            refused=tuple(lists["refused"]),
            conflicts=tuple(lists["conflicts"]),
            ignored=sum(c.ignored for c in all_changes),
            internal=sum(c.internal for c in all_changes),
            journal=folder,
        )


def clean_layer(upper: int, lower: int, settled: list[Change]) -> None:
    """Take out of the layer what the real tree has now, so that the next call sees one consistent tree."""
    for change in settled:
        if change.kind is ChangeKind.DELETED:
            info = there.lookup(upper, change.path)
            if info is not None and stat.S_ISCHR(info.st_mode) and there.lookup(lower, change.path) is None:
                layers.drop(upper, change.path)
        elif change.node is not Node.DIRECTORY:
            layers.expose(upper, lower, change.path)


def _packed(fd: int, paths: Iterable[str]) -> dict[bytes, Packed]:
    """How those of the paths look that are there."""
    found = ((os.fsencode(path), pack(journal.source_identity(fd, path))) for path in paths if path)
    return {path: packed for path, packed in found if packed is not None}


def _follows(change: Change) -> bool:
    """A folder that comes or goes with what is in it has no verdict of its own."""
    return change.implied and not change.fault


def _goes(change: Change) -> bool:
    return change.kind is ChangeKind.DELETED and not _follows(change)


def _spellings(path: str) -> Iterator[tuple[str, str]]:
    """A path and the folders that it lies in: as the most forgiving file system compares them, and as written."""
    while path:
        yield "/".join(fold(part) for part in path.split("/")), path
        path = path.rpartition("/")[0]


def _list_of(path: str, verdict: Verdict, finished: set[str], conflicts: dict[str, str]) -> str:
    if path in conflicts:
        return "conflicts"
    if path in finished:
        return "committed"
    return "held" if verdict.tier is Tier.ASK else "refused"
