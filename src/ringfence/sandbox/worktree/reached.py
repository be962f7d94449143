"""Ordinary paths of a worktree by which something protected is reached: what git starts, what links of the person's lead to.

``core.hooksPath = .githooks`` makes hooks of plain files; an alias, a filter, an included file does the same. A link
``.vscode -> tools/vscode`` makes editor tasks of ``tools/vscode/tasks.json``. All of it is read from what the person has,
never from a layer; git is asked for its configuration only, which starts nothing.
"""

import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.model.errors import RingfenceError
from ringfence.model.spelling import fold
from ringfence.model.tier import Tier
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.guard import Protection, protection, stands_for_protected
from ringfence.sandbox.worktree.repository import Repository
from ringfence.sandbox.worktree.tracked import Tracked

_LINKS = tuple(
    re.compile(rb"\0\0\xa0\0.{%d}(?:[\0-\x3f\x80-\xbf].|[\x40-\x7f\xc0-\xff]...)([^\0]{1,4096})\0" % size, re.DOTALL)
    for size in (32, 44)
)
"""An entry of git's index for a symbolic link: its mode, then owner, size and object (SHA-1 or SHA-256), flags, the name."""
_WORD = re.compile(r"[^\s'\"();&|<>{}=$`!]+")
_PLAIN = (
    "user.", "author.", "committer.", "branch.", "color.", "url.", "submodule.", "lfs.", "blame.", "mailmap.", "init.",
    "core.worktree", "core.excludesfile", "commit.template",
)  # fmt: skip
"""Settings that name no program."""
_STARTED = Protection(
    tier=Tier.ASK, rule="protected/started-by-git", because="git outside the box runs or obeys this file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Folded paths of files, and of folders with all in them, that git obeys; ``links``: folded target, the link's path."""

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    links: tuple[tuple[str, str], ...] = ()

    def protection(self, path: str) -> Protection | None:
        """What protects ``path`` here, or None."""
        if not (self.files or self.folders or self.links):
            return None
        folded = _folded(path)
        asked = _STARTED if folded in self.files or any(place in self.folders for place in _above(folded)) else None
        for target, link in self.links:
            if folded == target or folded.startswith(target + "/"):
                behind = protection("/".join([link, *path.split("/")[target.count("/") + 1 :]]))
                if behind is not None and behind.tier is Tier.DENY:
                    return Protection(
                        tier=Tier.DENY, rule=behind.rule, because=f"{link!r} leads here: {behind.because}"
                    )
                asked = asked or behind
        return asked

    def below(self, path: str) -> bool:
        """Whether something that git obeys would lie below ``path``: a link there would hide what it leads to."""
        start = _folded(path) + "/"
        return any(place.startswith(start) for place in (*self.files, *self.folders))


NOTHING = Reached()


def look(root: str, repository: Repository | None, index: bytes) -> Reached:
    """Look at the person's configuration and links; ``index`` is git's, as bytes.

    Raises RingfenceError ``git-settings-unreadable`` where git cannot tell: what it would start is then not known.
    """
    files: set[str] = set()
    folders: set[str] = set()
    if repository is not None:
        for place, whole in _started(root, repository):
            (folders if whole else files).add(_folded(place))
    tracked = _tracked_links(repository, index) if repository is not None else set()
    links = tuple(sorted({(_folded(target), link) for link, target in _links(root, tracked)}))
    return Reached(files=frozenset(files), folders=frozenset(folders), links=links)


def _started(root: str, repository: Repository) -> Iterator[tuple[str, bool]]:
    """Path below the root, and whether all below it is meant."""
    owner = os.stat(repository.common)
    try:
        home = pwd.getpwuid(owner.st_uid).pw_dir
    except KeyError:
        home = "/nonexistent"
    answer = _ask(repository, "config", "--list", "--includes", "--show-origin", "-z", person=home)
    parts = answer.decode("utf-8", "surrogateescape").split("\0")
    hooks = f"{repository.common}/hooks"
    for origin, setting in zip(parts[::2], parts[1::2], strict=False):
        source = os.path.join(root, origin.removeprefix("file:"))
        key, _, value = setting.partition("\n")
        if value.startswith("~/"):
            value = home + value[1:]
        yield from ((place, False) for place in _inside(root, source))
        if key == "core.hookspath":
            hooks = os.path.join(root, value)
            yield from ((place, True) for place in _inside(root, hooks))
        elif key.startswith("include") and key.endswith(".path"):
            yield from ((place, False) for place in _inside(root, os.path.join(os.path.dirname(source), value)))
        elif _names_program(key, value):
            for word in _WORD.findall(value):
                yield from ((place, False) for place in _inside(root, os.path.join(root, word)))
    if os.path.isdir(hooks):
        for name in os.listdir(hooks):
            if os.path.islink(f"{hooks}/{name}"):
                yield from ((place, False) for place in _inside(root, f"{hooks}/{name}"))


def _ask(repository: Repository, *words: str, person: str = "") -> bytes:
    owner = os.stat(repository.common)
    git = Git(directory=repository.directory, owner=(owner.st_uid, owner.st_gid), person=person)
    answer = git.run(*words)
    if not answer.ok:
        raise RingfenceError(
            "git-settings-unreadable",
            f"git {words[0]} does not answer, so what git would start is not known: {answer.error!a}",
            where=repository.common,
            remedy="make `git config --list` and `git ls-files` work there; nothing was applied, the changes wait in the layer",
        )
    return answer.out


def list_tracked(repository: Repository) -> bytes:
    """What git tracks here, each name with a NUL before and behind it, for an index that does not hold whole names."""
    return b"\0" + _ask(repository, "ls-files", "-z")


def _tracked_links(repository: Repository, index: bytes) -> set[str]:
    """Links that git tracks: by the bytes of its index, or by git itself where those do not hold whole names."""
    if not Tracked(index).unreadable:
        return {os.fsdecode(match[1]) for pattern in _LINKS for match in pattern.finditer(index)}
    entries = _ask(repository, "ls-files", "--stage", "-z").split(b"\0")
    return {os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(b"120000 ")}


def _names_program(key: str, value: str) -> bool:
    if key.startswith("alias."):
        return value.startswith("!")
    if key.startswith("remote."):
        return key.endswith(("uploadpack", "receivepack", ".vcs")) or "::" in value
    return not key.startswith(_PLAIN)


def _links(root: str, tracked: set[str]) -> Iterator[tuple[str, str]]:
    """Links under protected names, or that stand where a protected name begins: those git tracks, and the root's own."""
    with os.scandir(root) as entries:
        own = {entry.name for entry in entries if entry.is_symlink()}
    for link in sorted(tracked | own):
        named = protection(link) is not None or stands_for_protected(link)
        if named and os.path.islink(f"{root}/{link}"):
            yield from ((link, target) for target in _inside(root, os.path.realpath(f"{root}/{link}")))


def _inside(root: str, path: str) -> Iterator[str]:
    """The path below the root and outside its ``.git``, as written and with links resolved; nothing for any other."""
    for place in {os.path.normpath(path), os.path.realpath(path)}:
        below = os.path.relpath(place, root)
        if below != "." and below.split("/")[0] not in {"..", ".git"}:
            yield below


def _folded(path: str) -> str:
    return "/".join(fold(part) for part in path.split("/"))


def _above(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]
