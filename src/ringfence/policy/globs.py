"""Path patterns: glob, prefix (ends in ``/``) or exact path, matched component by component. Pure.

Allow rules match exactly; deny and ask rules match loosely: whatever the spelling of letters, the folder that a
``/**`` pattern stands in, and a folder above it when that is removed or renamed.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ringfence.model.spelling import fold, is_plain


class Calm(NamedTuple):
    """Components, begins and ends of names, one of which every path has that some pattern covers (folded)."""

    parts: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]

    def __or__(self, other: "Calm") -> "Calm":
        """What every path has that one of both covers."""
        return Calm(self.parts | other.parts, self.starts + other.starts, self.ends + other.ends)

    def passes(self, path: str) -> bool:
        """Whether no pattern covers the path, given in lowercase."""
        parts = path.split("/")
        return self.parts.isdisjoint(parts) and not path.endswith(self.ends) and not parts[-1].startswith(self.starts)


class PathPattern:
    """One pattern, ready to be compared with paths split into components."""

    __slots__ = ("_parts", "absolute", "home", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.home = text.startswith("~/") or text == "~"
        body = text[2:] if self.home else text
        self.absolute = body.startswith("/")
        parts = [part for part in body.split("/") if part not in {"", "."}]
        if text.endswith("/"):
            parts.append("**")
        self._parts = tuple(parts)

    def matches(self, path: Sequence[str], *, loose: bool) -> bool:
        """Whether the pattern covers a path given as components (relative to a root, the home or ``/``)."""
        if loose:
            folded = tuple([fold(part) for part in path])
            pattern = tuple([fold(part) for part in self._parts])
            if glob_matches(pattern, folded):
                return True
            return pattern[-1:] == ("**",) and len(pattern) > 1 and glob_matches(pattern[:-1], folded)
        return glob_matches(self._parts, tuple(path))

    def reaches_below(self, path: Sequence[str]) -> bool:
        """Whether something the pattern names lies below this folder: removing the folder would remove it too."""
        anywhere = self.anywhere
        parts = self._parts[1:] if anywhere else self._parts
        literal: list[str] = []
        for part in parts:
            if _is_glob(part):
                break
            literal.append(fold(part))
        here = [fold(part) for part in path]
        if not anywhere:
            return len(parts) > len(here) and len(literal) >= len(here) and literal[: len(here)] == here
        longest = min(len(literal), len(parts) - 1, len(here))
        return any(here[-count:] == literal[:count] for count in range(1, longest + 1))

    @property
    def anywhere(self) -> bool:
        """Whether it begins with ``**`` and so speaks about any depth."""
        return self._parts[:1] == ("**",)

    @property
    def key(self) -> str | None:
        """A component that every covered path holds, or None where all are globs."""
        # The folder that a loose `x/**` covers too still holds every literal part.
        literal = [part for part in self._parts if not _is_glob(part)]
        return max(literal, key=len) if literal else None

    @property
    def suffix(self) -> str | None:
        """The end of the name that ``**/*.end`` asks for, folded; None for another shape."""
        name = self._name_anywhere()
        return fold(name[1:]) if name[:1] == "*" and name[1:] and not _is_glob(name[1:]) else None

    @property
    def stem(self) -> str | None:
        """The begin of the name that ``**/begin*`` asks for, folded; None for another shape."""
        name = self._name_anywhere()
        return fold(name[:-1]) if name[-1:] == "*" and name[:-1] and not _is_glob(name[:-1]) else None

    def _name_anywhere(self) -> str:
        """The name that ``**/name`` asks for, empty for another shape."""
        plain = len(self._parts) == 2 and self._parts[0] == "**" and not self.absolute and not self.home
        return self._parts[1] if plain else ""

    @property
    def everything(self) -> bool:
        """Whether it covers every path below where it stands."""
        return all(part == "**" for part in self._parts)


def _is_glob(part: str) -> bool:
    return "*" in part or "?" in part or "[" in part


def glob_matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Glob over components with ``**`` as any number of them; the usual two-pointer walk, so never exponential."""
    at, here, star, mark = 0, 0, -1, 0
    while here < len(path):
        if at < len(pattern) and pattern[at] == "**":
            star, mark = at, here
            at += 1
        elif at < len(pattern) and _one(pattern[at], path[here]):
            at += 1
            here += 1
        elif star >= 0:
            mark += 1
            at, here = star + 1, mark
        else:
            return False
    return all(part == "**" for part in pattern[at:])


def _one(pattern: str, name: str) -> bool:
    if pattern in {name, "*"}:
        return True
    return _is_glob(pattern) and component_pattern(pattern).match(name) is not None


@functools.lru_cache(maxsize=4096)
def component_pattern(pattern: str) -> re.Pattern[str]:
    """The expression of one glob component."""
    return re.compile(fnmatch.translate(pattern))


def text_matches(patterns: Sequence[str], value: str) -> bool:
    """Whether a value of a condition or an argument matches one of the globs (``*`` crosses every character)."""
    return any(
        pattern == value or (_is_glob(pattern) and component_pattern(pattern).match(value)) for pattern in patterns
    )


def split(path: str) -> tuple[str, ...]:
    """The components of a path."""
    return tuple([part for part in path.split("/") if part and part != "."])


Payload = TypeVar("Payload")


class PatternIndex(Generic[Payload]):
    """Many patterns, looked up by the literal components that a path must hold to be covered by them.

    A path is compared only with patterns that share a component with it, so that a long list costs little.
    """

    __slots__ = ("_by_part", "_keys", "_rest", "_size", "loose")

    def __init__(self, entries: Iterable[tuple[PathPattern, Payload]], *, loose: bool) -> None:
        self.loose = loose
        self._by_part: dict[str, list[tuple[int, PathPattern, Payload]]] = {}
        self._rest: list[tuple[int, PathPattern, Payload]] = []
        number = -1
        for number, (pattern, payload) in enumerate(entries):
            key = pattern.key
            if key is None:
                self._rest.append((number, pattern, payload))
            else:
                self._by_part.setdefault(key if not loose else fold(key), []).append((number, pattern, payload))
        self._keys = frozenset(self._by_part)
        self._size = number + 1

    def __len__(self) -> int:
        return self._size

    @property
    def calm(self) -> "Calm | None":
        """What every covered path has, so that most paths are told at once; None where some pattern needs none of it."""
        ends = [pattern.suffix for _, pattern, _ in self._rest]
        starts = [pattern.stem for _, pattern, _ in self._rest]
        if any(end is None and start is None for end, start in zip(ends, starts, strict=True)):
            return None
        parts = frozenset(fold(key) for key in self._keys)
        return Calm(parts, tuple(filter(None, starts)), tuple(filter(None, ends)))

    def find(self, views: "Views") -> list[Payload]:
        """The payloads of all patterns that cover the path, in the order given."""
        if not self._size:
            return []
        found: list[tuple[int, Payload]] = []
        parts = views.folded_set if self.loose else views.absolute_set
        if not self._keys.isdisjoint(parts):
            for part in self._keys.intersection(parts):
                for number, pattern, payload in self._by_part[part]:
                    if views.covered_by(pattern, loose=self.loose):
                        found.append((number, payload))
        for number, pattern, payload in self._rest:
            if views.covered_by(pattern, loose=self.loose):
                found.append((number, payload))
        if len(found) > 1:
            found.sort(key=lambda pair: pair[0])
        return [payload for _, payload in found]

    def below(self, views: "Views") -> list[Payload]:
        """The payloads of patterns that name something below this folder."""
        entries = [*self._rest, *(entry for entries in self._by_part.values() for entry in entries)]
        entries.sort(key=lambda entry: entry[0])
        return [payload for _, pattern, payload in entries if views.above(pattern)]


class Views:
    """One path as the patterns see it: from ``/``, from the roots that hold it, from the home."""

    __slots__ = ("absolute", "absolute_set", "folded_set", "home", "inside")

    def __init__(self, path: str, *, roots: Sequence[tuple[str, ...]], home: tuple[str, ...]) -> None:
        absolute = split(path)
        self.absolute = absolute
        self.absolute_set = frozenset(absolute)
        plain = is_plain(path) and path.islower()
        self.folded_set = self.absolute_set if plain else frozenset([fold(part) for part in absolute])
        self.inside = tuple([absolute[len(root) :] for root in roots if absolute[: len(root)] == root])
        self.home = absolute[len(home) :] if home and absolute[: len(home)] == home else None

    def covered_by(self, pattern: PathPattern, *, loose: bool) -> bool:
        """Whether the pattern covers this path."""
        if pattern.home:
            return self.home is not None and pattern.matches(self.home, loose=loose)
        if pattern.absolute:
            return pattern.matches(self.absolute, loose=loose)
        if self.inside:
            return any(pattern.matches(path, loose=loose) for path in self.inside)
        # Outside every root only a loose pattern of any depth speaks: an allow never reaches out of the roots.
        return loose and pattern.anywhere and pattern.matches(self.absolute, loose=True)

    def above(self, pattern: PathPattern) -> bool:
        """Whether something that the pattern names lies below this path."""
        if pattern.home:
            return self.home is not None and pattern.reaches_below(self.home)
        if pattern.absolute:
            return pattern.reaches_below(self.absolute)
        return any(pattern.reaches_below(path) for path in self.inside)
