"""PathFacts looked up by what was asked, and the one rule for what a word's path means before anything is resolved. Pure."""

from ringfence.model.facts import PathFact, PathFacts
from ringfence.policy.globs import split


class FactsIndex:
    """The facts of one decision by key, with the roots that relative patterns stand on."""

    __slots__ = ("_paths", "_programs", "facts")

    def __init__(self, facts: PathFacts) -> None:
        self.facts = facts
        self._paths = {fact.asked: fact for fact in facts.paths}
        self._programs = {fact.name: fact.real for fact in facts.programs}

    @property
    def home_parts(self) -> tuple[str, ...]:
        """The home's components."""
        return split(self.facts.home)

    def path(self, asked: str) -> PathFact | None:
        """Where a path leads, or None where nobody looked."""
        return self._paths.get(asked)

    def glob(self, asked: str) -> tuple[tuple[str, ...], bool] | None:
        """The names that a pattern stands for and whether that is all of them, or None where nobody looked."""
        for fact in self.facts.globs:
            if fact.asked == asked:
                return fact.matches, fact.complete
        return None

    def program(self, name: str) -> str | None:
        """Where a bare name leads on the box's PATH."""
        return self._programs.get(name)


def join(base: str, path: str) -> str:
    """A path as asked: absolute, nothing resolved."""
    if path.startswith("/"):
        return path
    if path in {"", "."}:
        return base
    return f"{base.rstrip('/')}/{path}"


def normal(path: str) -> str:
    """A path with ``.``, ``..`` and doubled slashes taken out by text alone."""
    parts: list[str] = []
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part == "..":
            if parts:
                parts.pop()
            continue
        parts.append(part)
    return "/" + "/".join(parts)


def within(path: str, folder: str) -> bool:
    """Whether a normal absolute path is a folder or lies below it, component by component."""
    if folder == "/":
        return True
    return path == folder or path.startswith(folder + "/")
