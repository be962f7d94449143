"""What one commit will do to the real tree, step by step, as it stands in the undo journal. Pure.

The order is fixed: files that go, folders that go, folders that come, files that come, modes, times. Each step names what it
expects to find and what it leaves, so that a commit cut short can be taken back, and a finished one undone later.
"""

from typing import Literal, TypeAlias

import msgspec

Packed: TypeAlias = tuple[int, int, int, int, int, int]
Verb: TypeAlias = Literal["remove", "rmdir", "mkdir", "put", "chmod", "touch"]
_RANK: dict[str, int] = {"remove": 0, "rmdir": 1, "mkdir": 2, "put": 3, "chmod": 4, "touch": 5}


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step. ``number`` names its staged file and its kept original."""

    verb: Verb
    path: bytes
    number: int
    mode: int = 0
    before: Packed | None = None
    before_owner: tuple[int, int] = (0, 0)
    after: Packed | None = None
    source: Packed | None = None
    """The layer's entry that this step takes over; removed from the layer afterwards only while it is still that."""
    content: str = ""
    """SHA-256 of what a ``put`` leaves: a file's bytes or a link's target."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All steps of one commit. ``stage`` is a folder on the real tree's own file system."""

    version: int
    root: bytes
    stage: bytes
    time: int
    steps: tuple[Step, ...]


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Written when every step is on disk. ``void`` are numbers of steps that found someone else's change and did nothing."""

    void: tuple[int, ...] = ()


def ordered(steps: list[Step]) -> tuple[Step, ...]:
    """Steps in the order in which they are carried out; what goes does so from the leaves up, what comes from the root down."""

    def key(step: Step) -> tuple[int, int, bytes]:
        depth = step.path.count(b"/")
        return (_RANK[step.verb], -depth if step.verb in {"remove", "rmdir"} else depth, step.path)

    return tuple(sorted(steps, key=key))
