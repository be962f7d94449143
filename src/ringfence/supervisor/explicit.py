"""Which ignored paths a policy wants in the tree all the same: those that ``files.write.allow`` names, not those it covers. Pure."""

from collections.abc import Iterable


class Explicit:
    """Answers the gate for one commit.

    ``build/**`` names the ignored folder ``build``; ``src/**`` does not name ``src/cache``, which merely lies below it.
    Folders are asked with a trailing slash, before what is in them.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        """``patterns`` are those of ``files.write.allow``, relative to the root."""
        self._named = tuple(dict.fromkeys(prefix for prefix in map(_literal, patterns) if prefix))
        self._opened: set[str] = set()

    def __call__(self, path: str) -> bool:
        """Whether this ignored path, or for a folder anything below it, is named."""
        if path.endswith("/"):
            folder = path.rstrip("/")
            named = any(prefix == folder or prefix.startswith(folder + "/") for prefix in self._named)
            inside = self._within(folder)
            if named or inside:
                self._opened.add(folder)
            return named or inside
        return path in self._named or self._within(path)

    def _within(self, path: str) -> bool:
        """Below a folder that was opened, and below the very prefix that opened it."""
        below_opened = any(path.startswith(folder + "/") for folder in self._opened)
        return below_opened and any(path == prefix or path.startswith(prefix + "/") for prefix in self._named)


def _literal(pattern: str) -> str:
    """The components of a pattern before its first wildcard."""
    parts = []
    for part in pattern.rstrip("/").split("/"):
        if any(mark in part for mark in "*?["):
            break
        parts.append(part)
    return "/".join(part for part in parts if part not in {"", "."})
