"""One change at a time: what refuses it whatever the policy says, then what the policy says. Moves nothing.

Every change is put to the decider as a file call, a write with its content or a delete. A file larger than one
piece is judged piece by piece, overlapping, and the strictest answer counts, so that no pattern is passed by size.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from ringfence.model.call import FileAction, ToolCall
from ringfence.model.ports import Decider
from ringfence.model.spelling import fold
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node
from ringfence.sandbox.worktree.guard import Protection, misnamed, protection, stands_for_protected
from ringfence.sandbox.worktree.journal import source_identity
from ringfence.sandbox.worktree.links import is_winding, leads_to
from ringfence.sandbox.worktree.reached import NOTHING, Reached
from ringfence.sandbox.worktree.staging import narrowed
from ringfence.sandbox.worktree.there import folder
from ringfence.sandbox.worktree.walk import overlay_attributes

PIECE = 4 * 1024 * 1024
OVERLAP = 8192
MAX_FILE = 256 * 1024 * 1024
MAX_HOLES = 256 * 1024 * 1024
"""In all files of one commit: what takes no room in the layer would take as much time, and room in the tree, as is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of one change, and by which rule."""

    tier: Tier
    rule: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Judge:
    """Judges the changes of one commit. ``upper`` and ``lower`` are the root descriptors of layer and real tree."""

    upper: int
    lower: int
    root: str
    decider: Decider
    hides: Callable[[str], bool]
    max_file: int = MAX_FILE
    reached: Reached = NOTHING
    leaving: frozenset[str] = frozenset()
    """Paths that this same commit deletes: a new name may differ from them by case alone."""
    _holes: int = 0
    _spelled: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def judge(self, change: Change) -> Verdict:
        """The verdict on one change."""
        guarded = stricter(protection(change.path), self.reached.protection(change.path))
        if change.kind in {ChangeKind.ADDED, ChangeKind.TYPE}:
            guarded = stricter(guarded, misnamed(change.path))
        if guarded is not None and guarded.tier is Tier.DENY and not change.fault:
            return Verdict(tier=guarded.tier, rule=guarded.rule, reason=guarded.because)
        refusal = self._refused(change)
        if refusal is not None:
            return refusal
        verdict = self._ask(change)
        if guarded is not None and guarded.tier > verdict.tier:
            return Verdict(tier=guarded.tier, rule=guarded.rule, reason=guarded.because)
        return verdict

    def _refused(self, change: Change) -> Verdict | None:
        if change.fault:
            return _deny("unexplained", change.fault)
        if self.hides(change.path):
            return _deny("hidden", "the policy hides this path from the box, so the change cannot be meant for it")
        if change.kind is ChangeKind.DELETED:
            return None
        if change.node not in {Node.FILE, Node.DIRECTORY, Node.SYMLINK}:
            return _deny(change.node.value, f"a {change.node.value} is never taken into a worktree")
        if change.node is Node.FILE and change.mode & 0o7000:
            return _deny("set-id", f"mode {change.mode:04o} would run with another user's rights")
        if change.node is Node.DIRECTORY and change.mode & stat.S_ISUID:
            return _deny("set-id", f"mode {change.mode:04o} on a folder is never meant")
        if change.kind is ChangeKind.MODE and self._opens(change):
            return _deny("opens", f"mode {change.mode:04o} would let every user of this host write here")
        if change.node is not Node.DIRECTORY and change.links > 1:
            return _deny("hard-link", f"the file has {change.links} names; copy it instead of linking it")
        if change.size > self.max_file:
            return _deny("too-large", f"{change.size} bytes is beyond the cap of {self.max_file} for one file")
        if self._holes + change.holes > MAX_HOLES:
            return _deny(
                "sparse", f"files with more than {MAX_HOLES} bytes that were never written; fill or shorten them"
            )
        self._holes += change.holes
        if len(os.fsencode(f"{self.root}/{change.path}")) > 4095:
            return _deny("name-too-long", "the whole path is longer than 4095 bytes")
        if change.node is Node.SYMLINK:
            return self._link(change)
        return self._collides(change)

    def _opens(self, change: Change) -> bool:
        now = source_identity(self.lower, change.path)
        return now is not None and narrowed(change.mode, now.mode) != change.mode & 0o777

    def _link(self, change: Change) -> Verdict | None:
        places = leads_to(self.upper, self.lower, self.root, change.path, change.target)
        if places is None:
            return _deny("link-outside", f"the link points out of the worktree, to {change.target!r}")
        if is_winding(change.target):
            return _deny("link-winding", f"the link steps up after stepping into something, {change.target!r}")
        below = stands_for_protected(change.path)
        if below or self.reached.below(change.path):
            return _deny("link-stands-for", f"what it leads to would be reached as {below or 'a program of git'!r}")
        for where in places:
            guarded = protection(where)
            if guarded is not None:
                return _deny("link-protected", f"the link points to a protected path, {where!r}: {guarded.because}")
            if self.hides(where):
                return _deny("link-hidden", f"the link points to a path that the policy hides, {where!r}")
        return self._collides(change)

    def _collides(self, change: Change) -> Verdict | None:
        """Neither the name nor that of a folder made with it may be another spelling of one that is there."""
        if change.kind is not ChangeKind.ADDED:
            return None
        parent = ""
        for name in change.path.split("/"):
            other = self._other_spelling(parent, name)
            if other:
                why = f"the name {name!r} differs from {other!r} only in case or invisible characters"
                return _deny("case-collision", why)
            parent = f"{parent}/{name}".lstrip("/")
        return None

    def _other_spelling(self, parent: str, name: str) -> str:
        """A name of the same folder, there or made before by this commit, that some file system takes for this one."""
        if parent not in self._spelled:
            self._spelled[parent] = {}
            for there in self._names_below(parent):
                self._spelled[parent].setdefault(fold(there), set()).add(there)
        spellings = self._spelled[parent].setdefault(fold(name), set())
        stay = [one for one in sorted(spellings) if f"{parent}/{one}".lstrip("/") not in self.leaving]
        if name in spellings or not stay:
            spellings.add(name)
            return ""
        return stay[0]

    def _names_below(self, parent: str) -> list[str]:
        fd = folder(self.lower, parent)
        if fd is None:
            return []
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def _ask(self, change: Change) -> Verdict:
        gone = change.kind is ChangeKind.DELETED or (change.kind is ChangeKind.TYPE and change.node is Node.DIRECTORY)
        action = FileAction.DELETE if gone else FileAction.WRITE
        if change.node is not Node.FILE or action is FileAction.DELETE:
            content = change.target if change.node is Node.SYMLINK else None
            return self._decide(change, action, content)
        strictest: Verdict | None = None
        try:
            file = kernel.open_beneath(self.upper, change.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            return _deny("unreadable", f"the file cannot be read: {error.strerror}")
        with open(file, "rb", buffering=0) as stream:
            if {"metacopy", "redirect"} & overlay_attributes(file):
                return _deny(
                    "unexplained", "the overlay keeps this file's content elsewhere, which this gate never asked for"
                )
            tail, text = b"", stream.read(PIECE)
            while strictest is None or (text and strictest.tier is not Tier.DENY):
                answer = self._decide(change, action, (tail + text).decode("utf-8", "replace"))
                if strictest is None or answer.tier > strictest.tier:
                    strictest = answer
                tail, text = text[-OVERLAP:], stream.read(PIECE)
        return strictest

    def _decide(self, change: Change, action: FileAction, content: str | None) -> Verdict:
        call = ToolCall.file(action, f"{self.root.rstrip('/')}/{change.path}", cwd=self.root, content=content)
        decision = self.decider.decide(call)
        reason = decision.deciding[0]
        return Verdict(tier=decision.tier, rule=reason.rule, reason=reason.because)


def stricter(one: Protection | None, other: Protection | None) -> Protection | None:
    """The stricter of two, the first where they are equal."""
    if one is None or (other is not None and other.tier > one.tier):
        return other
    return one


def _deny(rule: str, because: str) -> Verdict:
    return Verdict(tier=Tier.DENY, rule=f"gate/{rule}", reason=because)
