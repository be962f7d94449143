"""Commits made in a box, taken into the real repository: judged like files, moved by compare-and-swap, or left out.

1. the layer's ref files say what moved  2. a bundle made in the box brings the objects, indexed in quarantine
3. every path that a new commit touches is judged  4. objects are handed over  5. refs and HEAD move, each only from
the value the mission saw; one that someone else moved is kept aside under ``refs/ringfence/``  6. the index follows
7. the layer's copy of git's files goes, so that the next call and the person see the same repository.
"""

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import kernel, layers, state
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node
from ringfence.sandbox.worktree.git_side import GitSide
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.history_report import BUNDLE, HistoryReport, RefItem, item_of
from ringfence.sandbox.worktree.journal import packed_identity
from ringfence.sandbox.worktree.judge_history import HistoryJudge
from ringfence.sandbox.worktree.quarantine import Quarantine, Rejected
from ringfence.sandbox.worktree.refs import (
    Move,
    Refs,
    Unreadable,
    layer_refs,
    moves,
    packed_away,
    read_head,
    real_refs,
    remote_names,
    shadowed,
)
from ringfence.sandbox.worktree.repository import Repository
from ringfence.sandbox.worktree.staged_index import MAX_INDEX, amounts_to, move_index


@dataclass(slots=True, kw_only=True)
class Taking:
    """One taking-over. Descriptors are the caller's; ``folder`` is the mission's."""

    repository: Repository
    owner: tuple[int, int]
    folder: str
    side: GitSide
    common: int
    directory: int
    record: state.LayerState
    judge: HistoryJudge
    _lists: dict[str, list[RefItem]] = field(
        default_factory=lambda: {"moved": [], "held": [], "refused": [], "conflicts": []}
    )
    _told: int = 0
    _index_ours: bool = True
    """Nobody touched the real index since the mount, before this moved it."""

    def take(self, changes: list[Change]) -> HistoryReport:
        """Do all steps. What cannot be explained is refused with the reason; files are not this part's business."""
        internal = [c for c in changes if c.internal]
        self.finish()
        try:
            return self._take(internal) if internal else HistoryReport()
        finally:
            self.record.git.gated = True

    def _take(self, internal: list[Change]) -> HistoryReport:
        try:
            real = real_refs(self.common, self.directory)
            wanted = layer_refs(real, self.side, internal)
            todo = moves(real, wanted)
        except Unreadable as answer:
            self._refuse("HEAD", None, None, str(answer))
            return self._report("")
        self._index_ours = not self._touched_since(self.directory, "index")
        if not todo and real.head == wanted.head:
            self._settle(internal, real, wanted)
            return HistoryReport()
        sha256 = any(len(oid) == 64 for oid in (*real.names.values(), *wanted.names.values()))
        store = Quarantine(f"{self.folder}/quarantine.git", f"{self.repository.common}/objects", sha256=sha256)
        store.make()
        try:
            index = self._carry_out(store, real, wanted, todo)
        except Rejected as answer:
            for move in todo or (Move(name="HEAD", old=real.head, new=wanted.head),):
                self._refuse(move.name, move.old, move.new, str(answer))
            index = ""
        finally:
            store.remove()
        layers.drop(self.side.upper, self.side.physical(f".git/{BUNDLE}"))
        self._settle(internal, real_refs(self.common, self.directory), wanted)
        return self._report(index)

    def _carry_out(self, store: Quarantine, real: Refs, wanted: Refs, todo: tuple[Move, ...]) -> str:
        store.index_bundle(self.side.upper, self.side.physical(f".git/{BUNDLE}"))
        tips = [(move.name, move.new) for move in todo if move.new is not None]
        if not wanted.head.startswith("refs/"):
            tips.append(("HEAD", wanted.head))
        known = [*real.names.values(), *([real.head] if not real.head.startswith("refs/") else [])]
        store.check_tips(tips, known)
        taken = remote_names(self.common) | real.names.keys() | real.other.keys() | wanted.names.keys()
        judged = [self._shadowing(store, move, taken) or self.judge.judge(store, move, known) for move in todo]
        good = [move for move, item in zip(todo, judged, strict=True) if item.tier is Tier.ALLOW]
        for move, item in zip(todo, judged, strict=True):
            if item.tier is not Tier.ALLOW:
                self._put("held" if item.tier is Tier.ASK else "refused", item)
                self._remember(move)
        head = self._judge_head(store, real, wanted, good, known)
        if good or head:
            store.hand_over(self.owner)
        before = real.tip()
        expected = wanted.tip() if head or real.head == wanted.head else before
        if expected is not None and expected != before:
            self.record.index_owed = (before or "", expected)
            state.store(self.folder, self.record)
        for move in good:
            self._move(move, real)
        if head:
            self._move_head(real, wanted)
        return self._follow_index(store)

    def _shadowing(self, store: Quarantine, move: Move, taken: frozenset[str]) -> RefItem | None:
        """A new name that a person, and a script, would take for another branch, the remote's, or a commit, waits."""
        if move.old is not None or move.new is None or move.name in self.judge.approved:
            return None
        meant = shadowed(move.name, taken) or store.abbreviated(move.name.split("/", 2)[2])
        if not meant:
            return None
        why = f"its short name would be taken for {meant!r}, or the other way round; name it to allow that"
        return replace(
            item_of(move, Tier.ALLOW, "gate/history", ""), tier=Tier.ASK, rule="gate/ref-shadows", reason=why
        )

    def _follow_index(self, store: Quarantine) -> str:
        """Let the index follow HEAD, now or after a crash that came between the two."""
        owed, self.record.index_owed = self.record.index_owed, None
        tip = real_refs(self.common, self.directory).tip()
        if owed is None or tip != owed[1]:
            return ""
        directory = self.repository.directory
        return move_index(store.git, directory, self.folder, old=owed[0] or None, new=tip, owner=self.owner)

    def finish(self) -> None:
        """After a crash: let the index follow a HEAD that had moved already."""
        if self.record.index_owed is not None:
            sha256 = len(self.record.index_owed[1]) == 64
            store = Quarantine(f"{self.folder}/quarantine.git", f"{self.repository.common}/objects", sha256=sha256)
            store.make()
            try:
                self._follow_index(store)
            finally:
                store.remove()

    def _judge_head(self, store: Quarantine, real: Refs, wanted: Refs, good: list[Move], known: list[str]) -> bool:
        if wanted.head == real.head:
            return False
        if wanted.head.startswith("refs/"):
            oid = wanted.names.get(wanted.head)
            fine = any(m.name == wanted.head for m in good) or (oid is not None and oid == real.names.get(wanted.head))
            if not fine and oid is not None:
                self._refuse("HEAD", real.head, wanted.head, f"{wanted.head} itself was not taken")
            return fine or oid is None
        item = self.judge.judge(store, Move(name="HEAD", old=real.head, new=wanted.head), known)
        if item.tier is not Tier.ALLOW:
            self._put("held" if item.tier is Tier.ASK else "refused", item)
        return item.tier is Tier.ALLOW

    def _move(self, move: Move, real: Refs) -> None:
        """Compare-and-swap: git takes the step only if the ref still has the value that the mission started from."""
        base = self._base(move, real)
        if base == "moved":
            self._keep_aside(move)
            return
        other = self._checked_out_elsewhere(move.name)
        if other:
            self._keep_aside(move, f"another worktree, {other!r}, has it checked out")
            return
        git = self._real_git()
        if move.new is None:  # a deleted branch's commits stay reachable
            kept = f"refs/ringfence/{os.path.basename(self.folder)}/deleted/{move.name.removeprefix('refs/')}"
            lines = f"start\nupdate {kept} {move.old}\ndelete {move.name} {move.old}\nprepare\ncommit\n"
        else:
            lines = f"start\nupdate {move.name} {move.new} {move.old or '0' * len(move.new)}\nprepare\ncommit\n"
        answer = git.run(
            "update-ref", "-m", f"ringfence: mission {os.path.basename(self.folder)}", "--stdin", given=lines.encode()
        )
        if not answer.ok:
            self._keep_aside(move, answer.error)
            return
        self._put("moved", item_of(move, Tier.ALLOW, "gate/history", "every path is allowed"))

    def _checked_out_elsewhere(self, name: str) -> str:
        """The worktree that has this branch checked out, other than this one: moving it would pull the rug from under it."""
        common, own = self.repository.common, os.path.realpath(self.repository.directory)
        names = os.listdir(f"{common}/worktrees") if os.path.isdir(f"{common}/worktrees") else []
        for directory in (common, *(f"{common}/worktrees/{one}" for one in names)):
            if os.path.realpath(directory) != own and read_head(directory) == name:
                return os.path.basename(directory) if directory != common else "the main one"
        return ""

    def _real_git(self) -> Git:
        common, directory = self.repository.common, self.repository.directory
        gives = (f"{common}/refs", f"{common}/logs", directory)
        return Git(directory=directory, owner=self.owner, gives=gives)

    def _base(self, move: Move, real: Refs) -> str | None:
        """The value the mission started from: remembered, or the present one if nobody touched the ref since the mount."""
        key = move.name.encode()
        if key in self.record.refs:
            remembered = self.record.refs[key] or None
            return remembered if remembered == move.old else "moved"
        path = move.name if move.name in real.loose else "packed-refs"
        return "moved" if move.old is not None and self._touched_since(self.common, path) else move.old

    def _touched_since(self, fd: int, path: str) -> bool:
        try:
            info = os.stat(path, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return info.st_ctime_ns > self.record.git.instant()

    def _keep_aside(self, move: Move, why: str = "someone else moved it meanwhile") -> None:
        kept = ""
        if move.new is not None:
            kept = f"refs/ringfence/{os.path.basename(self.folder)}/{move.name.removeprefix('refs/')}"
            git = self._real_git()
            answer = git.run("update-ref", "--stdin", given=f"update {kept} {move.new}\n".encode())
            kept = kept if answer.ok else ""
        item = item_of(move, Tier.ALLOW, "gate/conflict", why)
        self._put("conflicts", replace(item, kept=kept))

    def _move_head(self, real: Refs, wanted: Refs) -> None:
        git = self._real_git()
        move = Move(name="HEAD", old=real.head, new=wanted.head)
        blocked = wanted.head.startswith("refs/") and any(i.name == wanted.head for i in self._lists["conflicts"])
        if blocked or self._touched_since(self.directory, "HEAD"):
            self._put("conflicts", item_of(move, Tier.ALLOW, "gate/conflict", "someone else moved it meanwhile"))
            return
        note = ("-m", f"ringfence: mission {os.path.basename(self.folder)}")
        if wanted.head.startswith("refs/"):
            answer = git.run("symbolic-ref", *note, "HEAD", wanted.head)
        else:
            answer = git.run("update-ref", *note, "--no-deref", "HEAD", wanted.head)
        if answer.ok:
            self._put("moved", item_of(move, Tier.ALLOW, "gate/history", "the branch is allowed"))
        else:
            self._refuse("HEAD", real.head, wanted.head, answer.error)

    def _settle(self, internal: list[Change], real: Refs, wanted: Refs) -> None:
        """Take git's files out of the layer: all of them when nothing is pending, else only what no longer differs."""
        pending = {i.name for kind in ("held", "refused") for i in self._lists[kind]}
        done = not pending and not self._told
        apart = self._unpack() if done else False
        other = apart or any(_other_ref(c.path) for c in internal)
        index = not self._work_staged(real, wanted)
        for change in sorted(internal, key=lambda c: -c.path.count("/")):
            name = change.path.removeprefix(".git/")
            lock = name.endswith(".lock")
            if change.node is Node.DIRECTORY:
                layers.drop_empty(self.side.upper, self.side.physical(change.path))
            elif lock or (done and _settled(name, other=other, index=index)):
                layers.expose(self.side.upper, self.side.lower, self.side.physical(change.path))
        if done:
            self.record.refs = {}
        self.record.index = packed_identity(self.directory, "index")
        layers.prune(self.side.upper, self.side.lower, [self.side.physical(c.path) for c in internal])

    def _unpack(self) -> bool:
        """The stash and its like get files of their own again: what ``git gc`` packed them into is about to go."""
        found = packed_away(self.side)
        for name, value in found.items():
            with contextlib.suppress(OSError):
                layers.write(self.side.upper, self.side.physical(f".git/{name}"), f"{value}\n".encode(), self.owner)
        return bool(found)

    def _work_staged(self, real: Refs, wanted: Refs) -> bool:
        """Whether the layer's index may hold work staged but not committed that still fits the real repository."""
        if self._lists["conflicts"] or real.head != wanted.head or not self._index_ours:
            return False
        return not self._lists["moved"] or self._staged_beyond(real.tip())

    def _staged_beyond(self, tip: str | None) -> bool:
        """Whether the layer's index, if there is one, says anything else than that all is as in this commit."""
        index = layer_index(self.side)
        if not index:
            return False
        tree = self._real_git().run("rev-parse", f"{tip}^{{tree}}")
        return not tree.ok or not amounts_to(index, tree.out.decode().strip())

    def _remember(self, move: Move) -> None:
        self.record.refs.setdefault(move.name.encode(), move.old or "")

    def _refuse(self, name: str, old: str | None, new: str | None, why: str) -> None:
        move = Move(name=name, old=old, new=new)
        self._remember(move)
        self._put("refused", item_of(move, Tier.DENY, "gate/history", why))

    def _put(self, kind: str, item: RefItem) -> None:
        """File an item; a refusal that an earlier report named already is only counted."""
        told = f"{item.name} {item.new} {item.rule}"
        if kind == "refused":
            if told in self.record.reported:
                self._told += 1
                return
            self.record.reported.append(told)
        self._lists[kind].append(item)

    def _report(self, index: str) -> HistoryReport:
        return HistoryReport(
            moved=tuple(self._lists["moved"]),
            held=tuple(self._lists["held"]),
            refused=tuple(self._lists["refused"]),
            conflicts=tuple(self._lists["conflicts"]),
            told_before=self._told,
            index=index,
        )


def _other_ref(path: str) -> bool:
    """Refs that this part leaves in the layer (the stash, notes), and work in progress: their objects must stay too."""
    name = path.removeprefix(".git/")
    kept = (
        "refs/stash",
        "refs/notes",
        "refs/bisect",
        "rebase-",
        "sequencer",
        "MERGE_HEAD",
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
    )
    return name.startswith(kept)


def _settled(name: str, *, other: bool, index: bool) -> bool:
    if name == "index":
        return index
    if name.startswith(("refs/heads", "refs/tags", "logs/refs/heads", "logs/HEAD")) or name in {"HEAD", "packed-refs"}:
        return True
    return (
        not other and index and name.startswith(("objects", "logs", "COMMIT_EDITMSG", "ORIG_HEAD", "AUTO_MERGE", "gc."))
    )


def layer_index(side: GitSide) -> bytes:
    """The index that a layer holds; empty where it holds none."""
    try:
        file = kernel.open_beneath(side.upper, side.physical(".git/index"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    with open(file, "rb") as stream:
        return stream.read(MAX_INDEX) if stat.S_ISREG(os.fstat(file).st_mode) else b""


_CARRIED = ("objects", "refs/stash", "refs/notes", "logs/refs/stash", "logs/refs/notes")
_IN_PROGRESS = (
    "index", "refs/bisect", "rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE",
    "MERGE_AUTOSTASH", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "ORIG_HEAD", "BISECT_LOG",
    "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK",
)  # fmt: skip


def carried(changes: Iterable[Change], *, staged: bool, stale: bool) -> tuple[str, ...]:
    """Names of git's files that go on to the repository's next mission: the stash and notes, and work in progress.

    ``staged``: the index holds more than the real one. ``stale``: someone changed the real one since; then work in progress
    stays behind, as it does where a branch waits.
    """
    left = [c for c in changes if c.internal and c.kind is not ChangeKind.DELETED]
    going = not stale and not pending(left)
    if not any(_other_ref(c.path) for c in left) and not (staged and going):
        return ()
    shared = (c.path.removeprefix(".git/") for c in left if c.path.startswith(".git/sharedindex."))
    return (*_CARRIED, *_IN_PROGRESS, *shared) if going else _CARRIED


def pending(changes: Iterable[Change]) -> bool:
    """Whether the layer holds ref files that differ, so that a bundle is worth making."""
    names = [c.path.removeprefix(".git/") for c in changes if c.internal and c.kind is not ChangeKind.SAME]
    return any(n in {"HEAD", "packed-refs"} or n.startswith(("refs/heads/", "refs/tags/")) for n in names)
