"""Path globs of the base's policy: ``*`` within a component, ``**`` over components. Pure."""

import functools
import re


def _source(glob: str) -> str:
    out, at = [], 0
    while at < len(glob):
        if glob.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif glob.startswith("**", at):
            out.append(".*")
            at += 2
        elif glob[at] == "*":
            out.append("[^/]*")
            at += 1
        elif glob[at] == "?":
            out.append("[^/]")
            at += 1
        else:
            out.append(re.escape(glob[at]))
            at += 1
    return "".join(out)


@functools.lru_cache(maxsize=4096)
def _compiled(glob: str) -> re.Pattern[str]:
    return re.compile(_source(glob) + r"\Z", re.DOTALL)


@functools.lru_cache(maxsize=64)
def _any_folded(globs: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all: most paths of a change are meant by none of some hundred globs."""
    return re.compile(f"(?:{'|'.join(_source(glob.casefold()) for glob in globs) or '(?!)'})\\Z", re.DOTALL)


def matches(path: str, glob: str) -> bool:
    """Whether the whole path is meant by the glob; case counts."""
    return _compiled(glob).match(path) is not None


def matches_any(path: str, globs: tuple[str, ...] | list[str]) -> str | None:
    """The first glob that means the path, or None."""
    return next((glob for glob in globs if matches(path, glob)), None)


def matches_any_case(path: str, globs: tuple[str, ...] | list[str]) -> str | None:
    """As ``matches_any`` with case folded: on case-insensitive checkouts ``.GitHub/`` is ``.github/``."""
    folded = path.casefold()
    if not _any_folded(tuple(globs)).match(folded):
        return None
    return next((glob for glob in globs if matches(folded, glob.casefold())), None)
