"""Commits made in a box, taken into the real repository: judged like files, moved by compare-and-swap, or left out.

1. the layer's ref files say what moved  2. a bundle made in the box brings the objects, indexed in quarantine
3. every path that a new commit touches is judged  4. objects are handed over  5. refs and HEAD move, each only from
the value the mission saw; one that someone else moved is kept aside under ``refs/ringfence/``  6. the index follows
7. the layer's copy of git's files goes, so that the next call and the person see the same repository.
"""

import os
from dataclasses import dataclass, field, replace

from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import layers, state
from ringfence.sandbox.worktree.change import Change, Node
from ringfence.sandbox.worktree.concluded import autostashes, concluded, finished, put_by, rebased
from ringfence.sandbox.worktree.git_left import goes, layer_index, other_ref
from ringfence.sandbox.worktree.git_side import GitSide
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.history_report import BUNDLE, HistoryReport, RefItem, item_of
from ringfence.sandbox.worktree.journal import packed_identity
from ringfence.sandbox.worktree.judge_history import HistoryJudge, no_place, refused_as, shadowing
from ringfence.sandbox.worktree.kept_refs import keep, kept_name
from ringfence.sandbox.worktree.quarantine import Quarantine, Rejected
from ringfence.sandbox.worktree.refs import (
    MAX_PACKED,
    Move,
    Refs,
    Unreadable,
    layer_refs,
    moves,
    packed_away,
    packed_without,
    read_head,
    real_refs,
    remote_names,
)
from ringfence.sandbox.worktree.repository import Repository, read_small
from ringfence.sandbox.worktree.staged_index import MAX_INDEX, amounts_to, move_index, says, sparse
from ringfence.sandbox.worktree.there import lookup

_ELSEWHERE = "moved"
"""Remembered of a ref that someone else moved, and that waits all the same: no value that it may have again."""


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
    _waiting: set[str] = field(default_factory=set)
    """Refs that were held or refused, now or before: the layer keeps what it has of them."""
    _index_ours: bool = True
    """Nobody touched the real index since the mount, before this moved it."""

    def take(self, changes: list[Change]) -> HistoryReport:
        """Do all steps. What cannot be explained is refused with the reason; files are not this part's business."""
        internal = [c for c in changes if c.internal]
        self.finish()
        try:
            report = self._take(internal) if internal else HistoryReport()
            self.record.git.gated = True
            return report
        except Unreadable as answer:
            self._refuse("HEAD", None, None, str(answer))
            return self._report("")

    def _take(self, internal: list[Change]) -> HistoryReport:
        real = real_refs(self.common, self.directory)
        wanted = layer_refs(real, self.side, internal)
        todo = moves(real, wanted)
        self._index_ours = self._has_index(real)
        over = concluded(internal, self.repository.directory, self.record.git.instant()) if self._index_ours else ()
        if not todo and real.head == wanted.head and not over:
            self._settle(internal, real, wanted)
            return HistoryReport()
        sha256 = any(len(oid) == 64 for oid in (*real.names.values(), *wanted.names.values()))
        store = Quarantine(f"{self.folder}/quarantine.git", f"{self.repository.common}/objects", sha256=sha256)
        store.make()
        try:
            if todo or real.head != wanted.head:
                index = self._carry_out(store, real, wanted, todo, over)
            else:
                index = ""
                self._hold_given_up(store, real, wanted, todo, over)
            index = self._conclude(store, over) or index
        except Rejected as answer:
            for move in todo or (Move(name="HEAD", old=real.head, new=wanted.head),):
                self._refuse(move.name, move.old, move.new, str(answer))
            index = ""
        finally:
            store.remove()
        layers.drop(self.side.upper, self.side.physical(f".git/{BUNDLE}"))
        self._settle(internal, real_refs(self.common, self.directory), wanted)
        return self._report(index)

    def _carry_out(
        self, store: Quarantine, real: Refs, wanted: Refs, todo: tuple[Move, ...], over: tuple[str, ...]
    ) -> str:
        store.index_bundle(self.side.upper, self.side.physical(f".git/{BUNDLE}"))
        tips = [(move.name, move.new) for move in todo if move.new is not None]
        if not wanted.head.startswith("refs/"):
            tips.append(("HEAD", wanted.head))
        known = [*real.names.values(), *([real.head] if not real.head.startswith("refs/") else [])]
        odd = store.check_tips(tips, known)
        self._hold_given_up(store, real, wanted, todo, over)
        taken = remote_names(self.common) | real.names.keys() | real.other.keys() | wanted.names.keys()
        gone = {move.name for move in todo if move.new is None and move.name in self.judge.approved}
        judged = [
            refused_as(move, odd.get(move.name))
            or no_place(move, real.names.keys() | real.other.keys(), gone)
            or (None if self._named(move.name) else shadowing(store, move, move.name, taken))
            or self.judge.judge(store, move, known)
            for move in todo
        ]
        good = [move for move, item in zip(todo, judged, strict=True) if item.tier is Tier.ALLOW]
        for move, item in zip(todo, judged, strict=True):
            if item.tier is not Tier.ALLOW:
                self._put("held" if item.tier is Tier.ASK else "refused", item)
                self._remember(move)
        if "HEAD" in odd:
            self._refuse("HEAD", real.head, wanted.head, f"it points to a {odd['HEAD']}")
        head = "HEAD" not in odd and self._judge_head(store, real, wanted, good, known, taken)
        if good or head:
            store.hand_over(self.owner)
        before = real.tip()
        expected = wanted.tip() if head or real.head == wanted.head else before
        if expected is not None and expected != before:
            self.record.index_owed = (before or "", expected)
            state.store(self.folder, self.record)
            self._keep_index(store, before, expected)
        for move in sorted(good, key=lambda move: move.name not in gone):  # what makes room for another name goes first
            self._move(move, real, store)
        if head:
            self._move_head(real, wanted)
        return self._follow_index(store)

    def _keep_index(self, store: Quarantine, before: str | None, after: str) -> None:
        """``git reset --soft`` and the like move HEAD back under an index that git leaves: the mission goes on with that one."""
        written = layers.holds(self.side.upper, self.side.physical(".git/index"))
        if before is not None and self._index_ours and not written and not store.descends(after, before):
            self._write("index", read_small(self.repository.index, MAX_INDEX))

    def _hold_given_up(
        self, store: Quarantine, real: Refs, wanted: Refs, todo: tuple[Move, ...], over: tuple[str, ...]
    ) -> None:
        """What a person had resolved so far is worth more than a command of the mission: giving it up is theirs to allow."""
        moved, ends = {move.name for move in todo}, (real.tip(), wanted.tip())
        if not over or finished(over, self.repository.directory, moved, ends, store.descends):
            return
        if self.judge.approved.isdisjoint(over):
            why = "the mission gave up what git had stopped at here; name it to give that up in the repository too"
            self._put("held", item_of(Move(name=over[0], old=None, new=None), Tier.ASK, "gate/given-up", why))

    def _conclude(self, store: Quarantine, names: tuple[str, ...]) -> str:
        """Let what a person's git had stopped at be over, where all that the mission made of it arrived."""
        if not names or self._waiting or self._lists["conflicts"]:
            return ""
        directory, mission = self.repository.directory, os.path.basename(self.folder)
        for number, oid in enumerate(autostashes(directory, names), start=1):
            if not keep(self._real_git(), mission, f"autostash-{number}", oid)[1].ok:
                return "what git had put by for a merge or rebase cannot be kept, so that is left as it is"
        tip = real_refs(self.common, self.directory).tip()
        if tip is not None:
            self.record.index_owed = (tip, tip)
            state.store(self.folder, self.record)
        kept = f"{self.folder}/concluded"
        kept = f"{kept}/{len(os.listdir(kept)) + 1 if os.path.isdir(kept) else 1}"
        put_by(directory, names, kept)
        why = "what git had stopped at is over in the mission"
        over = item_of(Move(name=names[0], old=None, new=None), Tier.ALLOW, "gate/history", why)
        self._put("moved", replace(over, kept=kept))
        return self._follow_index(store, whole=bool(layer_index(self.side)) and not self._staged_beyond(tip))

    def _has_index(self, real: Refs) -> bool:
        """Whether the mission had the person's index: it says what it said, or has nothing in it but HEAD's commit."""
        if not self._touched_since(self.directory, "index"):
            return True
        if self.record.index_says and says(self._real_git(), self.repository.index) == self.record.index_says:
            return True
        tip = real.tip()
        path = real.head if real.head in real.loose else "packed-refs"
        if tip is None or self._touched_since(self.directory, "HEAD") or self._touched_since(self.common, path):
            return False
        return self._amounts(read_small(self.repository.index, MAX_INDEX), tip)

    def _follow_index(self, store: Quarantine, *, whole: bool = False) -> str:
        """Let the index follow HEAD, now or after a crash that came between the two."""
        owed, self.record.index_owed = self.record.index_owed, None
        tip = real_refs(self.common, self.directory).tip()
        if owed is None or tip != owed[1]:
            return ""
        directory = self.repository.directory
        ours, old = self._index_ours, owed[0] or None
        root = self.judge.root if sparse(self._real_git(), directory) else ""
        why = move_index(
            store.git, directory, self.folder, old=old, new=tip, owner=self.owner, ours=ours, whole=whole, root=root
        )
        self.record.index_owed = owed if why else None
        return why

    def finish(self) -> None:
        """After a crash: let the index follow a HEAD that had moved already."""
        if self.record.index_owed is not None:
            sha256 = len(self.record.index_owed[1]) == 64
            store = Quarantine(f"{self.folder}/quarantine.git", f"{self.repository.common}/objects", sha256=sha256)
            store.make()
            self._index_ours = False
            try:
                self._follow_index(store)
            finally:
                store.remove()

    def _judge_head(  # noqa: PLR0917 - private
        self, store: Quarantine, real: Refs, wanted: Refs, good: list[Move], known: list[str], taken: frozenset[str]
    ) -> bool:
        if wanted.head == real.head:
            return False
        move = Move(name="HEAD", old=real.head, new=wanted.head)
        given_up = next((item.name for item in self._lists["held"] if item.rule == "gate/given-up"), "")
        item: RefItem | None
        if given_up:
            item = item_of(move, Tier.ASK, "gate/given-up", f"it waits for {given_up}")
        elif not wanted.head.startswith("refs/"):
            item = self.judge.judge(store, move, known)
        elif wanted.head in wanted.names:
            item = self._not_taken(move, real, wanted, good)
        else:  # a branch without commits, which the person's next one would make
            begun = wanted.head in taken or self._named("HEAD", wanted.head)
            item = None if begun else shadowing(store, replace(move, old=None), wanted.head, taken)
        if item is None or item.tier is Tier.ALLOW:
            return True
        self._remember(move)
        self._put("held" if item.tier is Tier.ASK else "refused", item)
        return False

    def _named(self, *names: str) -> bool:
        return not self.judge.approved.isdisjoint(names)

    def _not_taken(self, move: Move, real: Refs, wanted: Refs, good: list[Move]) -> RefItem | None:
        """HEAD waits for the branch that it is on, where that does not arrive."""
        name = wanted.head
        if any(one.name == name for one in good) or wanted.names[name] == real.names.get(name):
            return None
        held = any(item.name == name for item in self._lists["held"])
        return item_of(move, Tier.ASK if held else Tier.DENY, "gate/history", f"{name} itself was not taken")

    def _move(self, move: Move, real: Refs, store: Quarantine) -> None:
        """Compare-and-swap: git takes the step only if the ref still has the value that the mission started from."""
        base = self._base(move, real, store)
        if base == "moved":
            self._keep_aside(move)
            return
        other = self._in_use(move.name)
        if other:
            self._keep_aside(move, other)
            return
        git = self._real_git()
        if move.new is None:  # a deleted branch's commits stay reachable
            deleted = f"deleted/{move.name.removeprefix('refs/')}"
            kept = kept_name(git, os.path.basename(self.folder), deleted, move.old or "")
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

    def _in_use(self, name: str) -> str:
        """Why a branch may not move, as git sees it too: another worktree has it, or a rebase that the mission knows nothing of."""
        common, own = self.repository.common, os.path.realpath(self.repository.directory)
        names = os.listdir(f"{common}/worktrees") if os.path.isdir(f"{common}/worktrees") else []
        for directory in (common, *(f"{common}/worktrees/{one}" for one in names)):
            mine = os.path.realpath(directory) == own
            if not mine and read_head(directory) == name:
                other = os.path.basename(directory) if directory != common else "the main one"
                return f"another worktree, {other!r}, has it checked out"
            if rebased(directory, name, since=self.record.git.instant() if mine else 0):
                return "someone else began to rebase it"
        return ""

    def _real_git(self) -> Git:
        common, directory = self.repository.common, self.repository.directory
        gives = (f"{common}/refs", f"{common}/logs", directory)
        return Git(directory=directory, owner=self.owner, gives=gives)

    def _base(self, move: Move, real: Refs, store: Quarantine) -> str | None:
        """The value the mission started from: remembered, or the present one if nobody touched the ref since the mount.

        Git packs refs without moving them: what goes on from the present value is no conflict then.
        """
        key = move.name.encode()
        known = self.record.refs.get(key)
        if known is not None and known != _ELSEWHERE:
            return move.old if (known or None) == move.old else "moved"
        loose = move.name in real.loose
        touched = known is not None or self._touched_since(self.common, move.name if loose else "packed-refs")
        if move.old is None or not touched:
            return move.old if known is None else "moved"
        goes_on = (known is not None or not loose) and move.new is not None and store.descends(move.new, move.old)
        return move.old if goes_on else "moved"

    def _touched_since(self, fd: int, path: str) -> bool:
        try:
            info = os.stat(path, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return info.st_ctime_ns > self.record.git.instant()

    def _keep_aside(self, move: Move, why: str = "someone else moved it meanwhile") -> None:
        """The mission's commits stay within reach; where git cannot keep them, what the layer has of them stays there."""
        kept = ""
        if move.new is not None and not (move.name == "HEAD" and move.new.startswith("refs/")):
            name = move.name.removeprefix("refs/")
            kept, answer = keep(self._real_git(), os.path.basename(self.folder), name, move.new)
            if not answer.ok:
                kept, why = "", f"{why}, and git cannot keep the mission's commits yet: {answer.error}"
                self.record.refs[move.name.encode()] = _ELSEWHERE
                self._waiting.add(move.name)
        item = item_of(move, Tier.ALLOW, "gate/conflict", why)
        self._put("conflicts", replace(item, kept=kept))

    def _move_head(self, real: Refs, wanted: Refs) -> None:
        git = self._real_git()
        move = Move(name="HEAD", old=real.head, new=wanted.head)
        blocked = wanted.head.startswith("refs/") and any(i.name == wanted.head for i in self._lists["conflicts"])
        remembered = self.record.refs.get(b"HEAD", real.head)
        if blocked or remembered != real.head or self._touched_since(self.directory, "HEAD"):
            self._keep_aside(move)
            return
        left, entered = (name.removeprefix("refs/heads/") for name in (real.head, wanted.head))
        note = ("-m", f"checkout: moving from {left} to {entered} (ringfence: mission {os.path.basename(self.folder)})")
        if wanted.head.startswith("refs/"):
            answer = git.run("symbolic-ref", *note, "HEAD", wanted.head)
        else:
            answer = git.run("update-ref", *note, "--no-deref", "HEAD", wanted.head)
        if answer.ok:
            self._put("moved", item_of(move, Tier.ALLOW, "gate/history", "the branch is allowed"))
        else:
            self._refuse("HEAD", real.head, wanted.head, answer.error)

    def _settle(self, internal: list[Change], real: Refs, wanted: Refs) -> None:
        """Take git's files out of the layer, but for what waits there: anything else would hide what a person does later."""
        self.record.packed = packed_identity(self.common, "packed-refs")  # before it is read
        deleted = self._waiting & (real.packed.keys() - wanted.names.keys())
        packed = self._unpack_waiting(wanted)
        stash = packed_away(self.side) if packed else {}
        packed = packed and all(self._write(name, f"{value}\n".encode()) for name, value in stash.items())
        other = bool(stash) or any(other_ref(c.path) for c in internal)
        own = any(name == wanted.head or not name.startswith("refs/") for name in self._waiting)  # what its index says
        index = not own and not self._work_staged(real, wanted)
        for change in sorted(internal, key=lambda c: -c.path.count("/")):
            name = change.path.removeprefix(".git/")
            if change.node is Node.DIRECTORY:
                layers.drop_empty(self.side.upper, self.side.physical(change.path))
            elif name.endswith(".lock") or goes(change, self._waiting, packed=packed, other=other, index=index):
                layers.expose(self.side.upper, self.side.lower, self.side.physical(change.path))
        if packed and deleted:
            theirs = read_small(f"{self.repository.common}/packed-refs", MAX_PACKED)
            self._write("packed-refs", packed_without(theirs, deleted))
        for change in internal:
            if change.node is Node.DIRECTORY:
                layers.unseal(self.side.upper, self.side.lower, self.side.physical(change.path))
        self.record.refs = {k: v for k, v in self.record.refs.items() if k.decode() in self._waiting}
        self.record.index = packed_identity(self.directory, "index")
        self.record.index_says = says(self._real_git(), self.repository.index) if layer_index(self.side) else ""
        layers.prune(self.side.upper, self.side.lower, [self.side.physical(c.path) for c in internal])

    def _unpack_waiting(self, wanted: Refs) -> bool:
        """A ref that waits gets a file of its own again, where ``git gc`` packed it among others that do not. Whether it did."""
        done = True
        for name in self._waiting & (wanted.packed.keys() - wanted.loose.keys()):
            layers.drop(self.side.upper, self.side.physical(f".git/{name}"))
            done &= self._write(name, f"{wanted.packed[name]}\n".encode())
        return done

    def _write(self, name: str, data: bytes) -> bool:
        """Whether the ref has a file of its own now; where the disk has no room the packed one must stay."""
        try:
            layers.write(self.side.upper, self.side.physical(f".git/{name}"), data, self.owner)
        except OSError:
            return False
        return True

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
        return not self._amounts(index, tip)

    def _amounts(self, index: bytes, tip: str | None) -> bool:
        tree = self._real_git().run("rev-parse", f"{tip}^{{tree}}")
        return tree.ok and amounts_to(index, tree.out.decode().strip())

    def _remember(self, move: Move) -> None:
        """Note what the mission started from, of a ref that waits: what someone else made of it since is not that."""
        head = move.name == "HEAD"
        path = move.name if head or lookup(self.common, move.name) is not None else "packed-refs"
        moved = move.old is not None and self._touched_since(self.directory if head else self.common, path)
        self.record.refs.setdefault(move.name.encode(), _ELSEWHERE if moved else move.old or "")

    def _refuse(self, name: str, old: str | None, new: str | None, why: str) -> None:
        move = Move(name=name, old=old, new=new)
        self._remember(move)
        self._put("refused", item_of(move, Tier.DENY, "gate/history", why))

    def _put(self, kind: str, item: RefItem) -> None:
        """File an item; a refusal that an earlier report named already is only counted."""
        if kind in {"held", "refused"}:
            self._waiting.add(item.name)
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
