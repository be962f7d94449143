"""Where the shell stands: directory changes followed through a line, with every alternative that a failure leaves. Pure."""

import posixpath

from msgspec import Struct

from ringfence.shell.syntax import Directory

MAX_PLACES = 12


class Place(Struct, frozen=True, gc=False):
    """One possible state of the shell: its directory, the one before (``cd -``), and the pushd stack. None: unknown."""

    path: str | None = "."
    previous: str | None = None
    stack: tuple[str | None, ...] = ()


Places = tuple[Place, ...]
START: Places = (Place(),)
UNKNOWN: Places = (Place(path=None),)


class Flow(Struct, frozen=True, gc=False):
    """The possible places after something succeeded, and after it failed."""

    ok: Places
    fail: Places

    @property
    def any(self) -> Places:
        """Where the next command starts when nobody looked at the status."""
        return merge(self.ok, self.fail)


def still(places: Places) -> Flow:
    """A command that changes no directory."""
    return Flow(places, places)


def merge(*several: Places) -> Places:
    """Every place of all; past the cap nothing is known."""
    if all(places == several[0] for places in several):
        return several[0]
    merged = tuple(dict.fromkeys(place for places in several for place in places))
    return merged if len(merged) <= MAX_PLACES else UNKNOWN


def directory(places: Places) -> Directory:
    """What a command that starts in one of these is told."""
    if places == START:
        return _HERE
    paths = tuple(dict.fromkeys(place.path for place in places))
    if not paths or None in paths:
        return Directory(path=None)
    return Directory(path=paths[0], alternatives=tuple(path for path in paths[1:] if path is not None))


_HERE = Directory()


def join(base: str | None, target: str | None, *, logical: bool = True) -> str | None:
    """The directory that ``cd target`` leads to from ``base``; None where either is not known."""
    if target is None:
        return None
    if target.startswith("/"):
        return posixpath.normpath(target) if logical else target
    if target.startswith("~"):
        normal = posixpath.normpath(target)
        return normal if normal.split("/", 1)[0] == target.split("/", 1)[0] else None
    if base is None:
        return None
    joined = posixpath.join(base, target) if base != "." else target
    if not logical:
        return joined
    normal = posixpath.normpath(joined)
    if normal.startswith("~"):
        if base.startswith("~"):
            return normal if normal.split("/", 1)[0] == base.split("/", 1)[0] else None
        return "./" + normal
    return None if base.startswith("~") else normal


def change(places: Places, target: str | None, *, logical: bool = True) -> Flow:
    """``cd target``: where it succeeds each place moves, where it fails nothing does."""
    moved = tuple(
        dict.fromkeys(Place(join(place.path, target, logical=logical), place.path, place.stack) for place in places)
    )
    return Flow(moved, places)


def change_back(places: Places) -> Flow:
    """``cd -``."""
    return Flow(tuple(dict.fromkeys(Place(place.previous, place.path, place.stack) for place in places)), places)


def push(places: Places, target: str | None) -> Flow:
    """``pushd target``."""
    moved = tuple(
        dict.fromkeys(
            Place(join(place.path, target), place.path, (place.path, *place.stack)[:MAX_PLACES]) for place in places
        )
    )
    return Flow(moved, places)


def pop(places: Places) -> Flow:
    """``popd``; an empty stack makes it fail."""
    moved = tuple(dict.fromkeys(Place(place.stack[0], place.path, place.stack[1:]) for place in places if place.stack))
    return Flow(moved or places, places)
