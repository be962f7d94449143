"""What is asked of a box, and what a person is told, when commits made in it are taken over. Values only."""

from dataclasses import dataclass

from ringfence.model.tier import Tier
from ringfence.sandbox.worktree.refs import Move, Refs

BUNDLE = "ringfence.bundle"
_MAX_BASES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class RefItem:
    """One branch, tag or HEAD in a report. ``old`` and ``new`` are object ids, or a branch name for HEAD; None is absent."""

    name: str
    old: str | None
    new: str | None
    tier: Tier
    rule: str
    reason: str
    kept: str = ""
    """For a conflict: the ref under which the real repository keeps the mission's commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReport:
    """What became of the commits a mission made."""

    moved: tuple[RefItem, ...] = ()
    held: tuple[RefItem, ...] = ()
    refused: tuple[RefItem, ...] = ()
    conflicts: tuple[RefItem, ...] = ()
    told_before: int = 0
    """Refusals left out here because an earlier report named them."""
    index: str = ""
    """Why the index did not follow; empty when it did, or did not have to."""

    @property
    def clean(self) -> bool:
        """Nothing was held, refused or in conflict."""
        return not (self.held or self.refused or self.conflicts or self.told_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRequest:
    """The command to run in a box over the same layer, before the gate. Its exit status does not matter."""

    argv: tuple[str, ...]
    cwd: str
    lands: str
    """Where the file appears in the box; the gate reads it out of the layer."""


def bundle_request(root: str, git: str, real: Refs, wanted: Refs) -> BundleRequest:
    """The bundle of everything the box's branches, tags and HEAD have beyond the real repository's.

    HEAD is named where it is no branch: on one without commits git would make no bundle at all.
    """
    bases = sorted(set(real.names.values()) | ({real.head} if not real.head.startswith("refs/") else set()))[
        :_MAX_BASES
    ]
    lands = f"{git}/{BUNDLE}"
    settings = (
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "gc.auto=0",
        "-c",
        "pack.threads=1",
    )
    head = () if wanted.head.startswith("refs/") else ("HEAD",)
    refs = ("--branches", "--tags", *head, *(("--not", *bases) if bases else ()))
    return BundleRequest(argv=("git", *settings, "bundle", "create", "-q", lands, *refs), cwd=root, lands=lands)


def item_of(move: Move, tier: Tier, rule: str, reason: str) -> RefItem:
    """The report's line for one ref."""
    return RefItem(name=move.name, old=move.old, new=move.new, tier=tier, rule=rule, reason=reason)
