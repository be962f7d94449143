"""What is noted beside a layer that is carried on from an ended mission to the repository's next one."""

import contextlib
import os

import msgspec

from ringfence.sandbox.worktree.state import LayerState, Mark, above

_NOTHING = (0, 0, 0, 0, 0, 0)


class Notes(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the same names of a layer's record."""

    index: tuple[int, int, int, int, int, int] | None = None
    index_says: str = ""
    ignored: dict[bytes, Mark] = {}


def take_notes(path: str, record: LayerState) -> None:
    """Let a mission's new record begin with what was noted of the layer that it takes on; ``drop_notes`` once it is stored."""
    notes = _load(path)
    record.index, record.index_says, record.ignored = notes.index, notes.index_says, notes.ignored


def drop_notes(path: str) -> None:
    """Remove what was noted."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def note(path: str, record: LayerState | None, ignored: list[str], git: tuple[str, ...]) -> list[str]:
    """Note what the next mission must compare with, before ``ignored`` paths, and paths of git's files, are carried on.

    Gives the ignored paths that another mission left there and this one has nothing of, around or in them.
    """
    notes = _load(path)
    mine = set(map(os.fsencode, ignored))
    around = {folder for place in mine for folder in above(place)}
    others = {
        place: mark
        for place, mark in notes.ignored.items()
        if place and place not in around and mine.isdisjoint(above(place))
    }
    notes.ignored = others | (record.since(ignored) if record is not None else {})
    if record is not None and git:
        whole = any(name.endswith("index") for name in git)
        notes.index, notes.index_says = (record.index, record.index_says) if whole else (None, "")
    if notes == Notes():
        drop_notes(path)
    else:
        with open(path + ".new", "wb") as stream:
            stream.write(msgspec.msgpack.encode(notes))
        os.replace(path + ".new", path)
    return [os.fsdecode(place) for place in others]


def _load(path: str) -> Notes:
    """Where they cannot be read, the carried index is old, and whatever a person has is newer than what was ignored."""
    try:
        with open(path, "rb") as stream:
            return msgspec.msgpack.decode(stream.read(), type=Notes)
    except FileNotFoundError:
        return Notes()
    except (PermissionError, msgspec.MsgspecError):
        return Notes(index=_NOTHING, ignored={b"": Mark(stamp_ns=1)})
