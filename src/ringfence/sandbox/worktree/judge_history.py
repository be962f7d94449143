"""New commits judged: every path that one of them writes or deletes, with the content it leaves, as if it were a file now.

A path that was added and removed again still counts: history is what a push would carry.
"""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from ringfence.model.call import FileAction, ToolCall
from ringfence.model.ports import Decider
from ringfence.model.spelling import fold
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree.change import covers
from ringfence.sandbox.worktree.guard import (
    is_repository,
    misleading,
    misnamed,
    protection,
    stands_for_protected,
)
from ringfence.sandbox.worktree.history_report import RefItem, item_of
from ringfence.sandbox.worktree.judge import OVERLAP, PIECE, stricter
from ringfence.sandbox.worktree.links import is_winding
from ringfence.sandbox.worktree.quarantine import Left, Quarantine, Touched
from ringfence.sandbox.worktree.reached import NOTHING, Reached
from ringfence.sandbox.worktree.refs import Move, in_the_way, shadowed

_LINK, _SUBMODULE = 0o120000, 0o160000


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryJudge:
    """Judges what new commits touch. Without a decider everything is refused."""

    root: str
    decider: Decider | None
    hides: Callable[[str], bool]
    approved: frozenset[str]
    reached: Reached = NOTHING
    lacks: Callable[[str, str], bool] = lambda _path, _oid: False
    """Whether the submodule at a path lacks a commit."""
    loses: Callable[[bytes], bool] = lambda _content: False
    """Whether a content points to a large file that stays in the layer."""
    _judged: dict[str, RefItem] = field(default_factory=dict)

    def judge(self, store: Quarantine, move: Move, known: list[str]) -> RefItem:
        """The verdict on one moved ref, over everything that its new commits touch."""
        item = item_of(move, Tier.ALLOW, "gate/history", "every path is allowed")
        if move.new is None:
            if move.name in self.approved:
                return item
            why = "a branch or tag that was there before would be deleted; name it to allow that"
            return replace(item, tier=Tier.ASK, rule="gate/ref-deleted", reason=why)
        by_name = move.name in self.approved
        said = None if by_name else self._judged.get(move.new)  # thousands of names may mean one commit
        if said is None:
            said = self._judge_commits(item, move.new, store, known, by_name=by_name)
        if not by_name:
            self._judged[move.new] = said
        return replace(said, name=move.name, old=move.old)

    def _judge_commits(self, item: RefItem, tip: str, store: Quarantine, known: list[str], *, by_name: bool) -> RefItem:
        left = store.left(tip, known)
        contents = store.blobs(t.blob for t in left.files if not t.deleted and t.mode != _SUBMODULE)
        item = self._judge_folders(item, store, left)
        for one in left.files:
            tier, rule, because = self._judge_path(one, contents.get(one.blob, b""))
            if tier is Tier.ASK and (covers(self.approved, one.path) or by_name):
                continue
            if tier > item.tier:
                item = replace(item, tier=tier, rule=rule, reason=f"a commit touches {one.path!r}: {because}")
        return self._judge_text(item, store.texts(tip, known), approved=by_name)

    @staticmethod
    def _judge_folders(item: RefItem, store: Quarantine, left: Left) -> RefItem:
        """No folder may become a repository of its own, nor hold two names that some file system takes for one."""
        names = store.names(tree for _, tree in left.folders)
        written = {place for one in left.files if not one.deleted for place in _above(one.path)}
        for path, tree in left.folders:
            if path in written and is_repository(names[tree]):
                why = f"{path!r} would be a folder that git takes for a repository of its own"
                return replace(item, tier=Tier.DENY, rule="gate/unexplained", reason=why)
            spelled: dict[str, str] = {}
            for name in names[tree]:
                other = spelled.setdefault(fold(name), name)
                if other != name and not left.added.isdisjoint({_join(path, name), _join(path, other)}):
                    why = f"{_join(path, name)!r} differs from {other!r} only in case or invisible characters"
                    return replace(item, tier=Tier.DENY, rule="gate/case-collision", reason=why)
        return item

    def _judge_text(self, item: RefItem, text: str, *, approved: bool) -> RefItem:
        """Names and messages are content too: what a pattern forbids in a file it forbids there."""
        if self.decider is None:
            return item
        if not approved and item.tier is Tier.ALLOW and misleading(text.replace("\r", "")):
            why = "a commit or tag says something that a terminal would obey, or show as something else"
            item = replace(item, tier=Tier.ASK, rule="gate/message-control", reason=why)
        path = f"{self.root.rstrip('/')}/COMMIT_EDITMSG"
        plain = self.decider.decide(ToolCall.file(FileAction.WRITE, path, cwd=self.root, content=""))
        known = {reason.rule for reason in plain.reasons}
        for piece in _pieces(text.encode()):
            said = self.decider.decide(ToolCall.file(FileAction.WRITE, path, cwd=self.root, content=piece))
            for reason in said.reasons:
                asked = reason.tier is Tier.ASK and approved
                if reason.rule not in known and reason.tier > item.tier and not asked:
                    why = f"a commit or tag says it in its own text: {reason.because}"
                    item = replace(item, tier=reason.tier, rule=reason.rule, reason=why)
        return item

    def _judge_path(self, one: Touched, content: bytes) -> tuple[Tier, str, str]:
        guarded = stricter(protection(one.path), self.reached.protection(one.path))
        if not one.deleted:
            guarded = stricter(guarded, misnamed(one.path))
        if guarded is not None and guarded.tier is Tier.DENY:
            return guarded.tier, guarded.rule, guarded.because
        if self.hides(one.path):
            return Tier.DENY, "gate/hidden", "the policy hides this path from the box"
        target = os.fsdecode(content)
        if one.mode == _LINK and (_leads_out(one.path, target) or is_winding(target)):
            return Tier.DENY, "gate/link-outside", "the link points out of the worktree, or to a protected path"
        if one.mode == _LINK and self.hides(_where(one.path, target).removeprefix("/root/")):
            return Tier.DENY, "gate/link-hidden", "the link points to a path that the policy hides"
        if one.mode == _LINK and (stands_for_protected(one.path) or self.reached.below(one.path)):
            return Tier.DENY, "gate/link-stands-for", "what it leads to would be reached under a protected name"
        action = FileAction.DELETE if one.deleted else FileAction.WRITE
        worst = (guarded.tier, guarded.rule, guarded.because) if guarded is not None else (Tier.ALLOW, "", "")
        if one.mode == _SUBMODULE and not one.deleted and worst[0] is Tier.ALLOW and self.lacks(one.path, one.blob):
            why = "it names a commit that the submodule lacks: made or fetched in the box, where it would be lost"
            worst = (Tier.ASK, "gate/submodule", why)
        if not one.deleted and worst[0] is Tier.ALLOW and self.loses(content):
            why = "it points to a large file that was stored in the box, where it would be lost: commit it outside"
            worst = (Tier.ASK, "gate/large-file", why)
        if self.decider is None:
            return Tier.DENY, "gate/history", "nobody is there to decide"
        for piece in [""] if one.deleted else _pieces(content):
            text = None if one.deleted else piece
            decision = self.decider.decide(
                ToolCall.file(action, f"{self.root.rstrip('/')}/{one.path}", cwd=self.root, content=text)
            )
            if decision.tier > worst[0]:
                reason = decision.deciding[0]
                worst = (decision.tier, reason.rule, reason.because)
        return worst


def _above(path: str) -> Iterator[str]:
    """The folders that a path lies in, without the root."""
    while path := path.rpartition("/")[0]:
        yield path


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _where(path: str, target: str) -> str:
    """Where a link leads by its words alone, with the worktree at ``/root``."""
    return os.path.normpath(os.path.join("/", "root", os.path.dirname(path), target))


def _leads_out(path: str, target: str) -> bool:
    where = _where(path, target)
    return (
        target.startswith("/")
        or not (where + "/").startswith("/root/")
        or protection(where.removeprefix("/root/")) is not None
    )


def _pieces(content: bytes) -> list[str]:
    starts = range(0, max(1, len(content)), PIECE)
    return [content[max(0, at - OVERLAP) : at + PIECE].decode("utf-8", "replace") for at in starts]


def refused_as(move: Move, kind: str | None) -> RefItem | None:
    """The refusal of a ref that points to a kind of object which none may; None where its kind is fine."""
    if kind is None:
        return None
    return item_of(move, Tier.DENY, "gate/history", f"it points to a {kind}, which no branch or tag of a box may")


def no_place(move: Move, names: Collection[str], gone: Collection[str]) -> RefItem | None:
    """A new name waits while another one stands where git would keep it, as when a branch was renamed to one below it."""
    if move.old is not None or move.new is None:
        return None
    there = [name for name in in_the_way(move.name, names) if name not in gone]
    if not there:
        return None
    why = f"git cannot have it beside {there[0]!r}; name that one to let it go"
    return item_of(move, Tier.ASK, "gate/ref-no-place", why)


def shadowing(store: Quarantine, move: Move, name: str, taken: frozenset[str]) -> RefItem | None:
    """A new name that a person, and a script, would take for another branch, the remote's, or a commit, waits."""
    if move.old is not None or move.new is None:
        return None
    meant = shadowed(name, taken) or store.abbreviated(name.split("/", 2)[2])
    if not meant:
        return None
    why = f"its short name would be taken for {meant!r}, or the other way round; name it to allow that"
    return item_of(move, Tier.ASK, "gate/ref-shadows", why)
