"""What one opening of the commit gate did, files and history together, as JSON and as lines for a person. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.model.entry import Json
from ringfence.sandbox.worktree.change import GateItem, GateReport
from ringfence.sandbox.worktree.history_report import HistoryReport, RefItem

MAX_LINES = 20
MAX_LISTED = 2000
"""Items of one list that go into a record or an answer; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """One opening of the gate. ``history`` is None where no branch, tag or HEAD moved in the box."""

    files: GateReport
    history: HistoryReport | None

    @property
    def clean(self) -> bool:
        """Nothing was held, refused or in conflict."""
        return self.files.clean and (self.history is None or self.history.clean)

    def fields(self) -> dict[str, Json]:
        """Each list by name, cut at ``MAX_LISTED`` with the number left out, and the history beside."""
        lists = {name: getattr(self.files, name) for name in ("committed", "held", "refused", "conflicts")}
        shown: dict[str, Json] = {name: [_item(item) for item in items[:MAX_LISTED]] for name, items in lists.items()}
        left_out = sum(max(0, len(items) - MAX_LISTED) for items in lists.values())
        shown |= {"ignored": self.files.ignored, "internal": self.files.internal, "left_out": left_out}
        if self.files.digest:
            shown["digest"] = self.files.digest
        if self.history is not None:
            history = self.history
            shown["history"] = {
                "moved": [_ref(item) for item in history.moved],
                "held": [_ref(item) for item in history.held],
                "refused": [_ref(item) for item in history.refused],
                "conflicts": [_ref(item) for item in history.conflicts],
                "index": history.index,
            }
        return shown

    def lines(self) -> Iterable[str]:
        """A line for each thing that did not reach the repository, and why."""
        lists = (("held", self.files.held), ("refused", self.files.refused), ("conflict", self.files.conflicts))
        for word, items in lists:
            for item in items[:MAX_LINES]:
                kept = f"; the mission's version is kept in {item.kept}" if item.kept else ""
                yield f"not applied, {word}: {_shown(item.path)}: {item.reason}{kept}"
            if len(items) > MAX_LINES:
                yield f"not applied, {word}: {len(items) - MAX_LINES} more; see `ringfence mission diff`"
        if self.history is not None:
            history = self.history
            for word, refs in (("held", history.held), ("refused", history.refused), ("conflict", history.conflicts)):
                for ref in refs:
                    kept = f"; the mission's commits are kept as {ref.kept}" if ref.kept else ""
                    yield f"not moved, {word}: {_shown(ref.name)}: {ref.reason}{kept}"
            for ref in history.moved:
                if ref.kept:
                    yield f"over: {_shown(ref.name)}: {ref.reason}; what git noted of it is kept in {ref.kept}"
            if history.index:
                yield f"the index was left as it is: {history.index}"


def _item(item: GateItem) -> Json:
    left: dict[str, Json] = {"content": item.content} if item.content else {}
    if item.mode:
        left["mode"] = f"{item.mode:04o}"
    return {
        **left,
        "path": _shown(item.path),
        "change": item.change.kind.value,
        "tier": item.tier.word,
        "rule": item.rule,
        "reason": item.reason,
        "kept": item.kept,
    }


def _ref(item: RefItem) -> Json:
    return {
        "name": _shown(item.name),
        "old": item.old,
        "new": item.new,
        "tier": item.tier.word,
        "rule": item.rule,
        "reason": item.reason,
        "kept": item.kept,
    }


def _shown(path: str) -> str:
    """A path as valid Unicode: bytes that are not UTF-8 are spelled out."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
