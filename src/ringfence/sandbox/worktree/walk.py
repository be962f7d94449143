"""What a layer changed: a walk of its upper directory beside the real tree, through descriptors only.

The upper directory was written by an agent. It is read with openat2 beneath its root, never through a symbolic link,
another mount or a path; the box must be dead or frozen. Hidden files' masks are never in an upper directory.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ringfence.model.ids import Bytes
from ringfence.sandbox.worktree import kernel, there
from ringfence.sandbox.worktree.change import Change, ChangeKind, Node, node_of
from ringfence.sandbox.worktree.guard import git_internal, is_git_name, is_repository, is_repository_part
from ringfence.sandbox.worktree.ignore import MAX_BYTES, Rules, is_ignored, parse
from ringfence.sandbox.worktree.tracked import Tracked

MAX_DEPTH = 96
MAX_PATH = 3800
MAX_CHANGES = 100_000
"""A box can make more files than anybody would look at; judging must end in bounded time all the same."""
_QUIET = frozenset({"objects", "logs", "index", "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD"})
"""What git writes in the repository of a submodule whatever it is asked."""
_OBEYED = frozenset({"config", "config.worktree", "hooks", "info", "commondir", "gitdir"})
_BORROWED = frozenset({"alternates", "http-alternates"})
_OF_A_REPOSITORY = frozenset({"HEAD", "branches", "description", "packed-refs", "refs"})
_MODULE = "a submodule's own repository stays in the layer; begin the mission in the submodule to have its commits"
_XATTRS = ("user.overlay.", "trusted.overlay.")


@dataclass(frozen=True, slots=True)
class _Spot:
    """One entry of the upper directory, with what lies below it in the real tree."""

    upper: int
    lower: int | None
    path: str
    name: str
    info: os.stat_result
    under: os.stat_result | None
    rules: tuple[Rules, ...]
    depth: int
    sealed: bool
    """A folder above is opaque: what lies below in the real tree does not show through, though nothing marks this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How to walk: which names git tracks and ignores, and which ignored paths a policy names all the same."""

    tracked: Callable[[], Tracked] = Tracked
    """Asked where a path is ignored; only then must the index be read."""
    exclude: Rules = field(default_factory=Rules)
    explicit: Callable[[str], bool] = lambda _path: False
    limit: int = MAX_CHANGES

    def changes(self, upper: int, lower: int) -> Iterator[Change]:
        """Every difference below the two root descriptors, parents before children, in the order of names."""
        rules = (self.exclude, *_rules_of(upper, lower, ""))
        for count, change in enumerate(self._folder(upper, lower, "", rules, 0)):
            if count >= self.limit:
                what = f"more than {self.limit} changes: the rest was not looked at and stays in the layer"
                yield Change(path=".", kind=ChangeKind.MODIFIED, node=Node.DIRECTORY, was=Node.DIRECTORY, fault=what)
                return
            yield change

    def git_changes(self, upper: int, lower: int, *, inside: bool) -> Iterator[Change]:
        """Differences of git's own files, told as ``.git/…``; ``inside``: the descriptors are the worktree's root."""
        if inside:
            yield from self._folder(upper, lower, "", (), 0, only=".git")
        else:
            yield from self._folder(upper, lower, ".git/", (), 1)

    def _folder(
        self,
        upper: int,
        lower: int | None,
        prefix: str,
        rules: tuple[Rules, ...],
        depth: int,
        *,
        only: str | None = None,
        sealed: bool = False,
    ) -> Iterator[Change]:
        marks = _marks(upper) | ({"opaque"} if sealed else set())
        with os.scandir(upper) as entries:
            names = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
        below = _names(lower) if lower is not None and "opaque" in marks else ()
        hosted = depth == 0 and there.entry(lower, ".git") is not None  # git looks there first
        bare = not hosted and not prefix.startswith(".git/") and _is_repository(names, lower)
        for name in sorted(n for n in names.keys() | set(below) if only in {None, n}):
            path = prefix + name
            under = there.entry(lower, name)
            info = names.get(name)
            if info is None or (_is_whiteout(upper, name, info, "xwhiteouts" in marks)):
                if under is not None:
                    yield from self._gone(lower, name, path, under, rules)
                continue
            if "redirect" in marks:
                yield _change(
                    path, info, under, fault="the overlay points elsewhere (redirect), which this gate never asked for"
                )
            elif bare:
                yield _change(path, info, under, fault="lies in a folder that git takes for a repository of its own")
            else:
                spot = _Spot(upper, lower, path, name, info, under, rules, depth, sealed="opaque" in marks)
                yield from self._entry(spot)

    def _entry(self, spot: _Spot) -> Iterator[Change]:
        path, name, info, under = spot.path, spot.name, spot.info, spot.under
        directory = stat.S_ISDIR(info.st_mode)
        if self._stays(path, spot.rules, directory=directory):
            yield _change(path, info, under, ignored=True)
        elif not directory:
            yield from self._leaf(spot)
        elif spot.depth >= MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH:
            yield _change(path, info, under, fault="the path is longer or deeper than this gate takes")
        elif is_git_name(name) and (spot.depth > 0 or name != ".git" or under is None):
            yield _change(path, info, under)  # a repository made in the box: one line, not thousands
        elif path == ".git/modules":
            yield from self._modules(spot)
        else:
            yield from self._subfolder(spot)

    def _modules(self, spot: _Spot) -> Iterator[Change]:
        """Repositories of submodules: what git would obey by name, and one line for each with branches that say something else."""
        told = set()
        for change in self._subfolder(spot):
            parts = change.path.split("/")
            if change.kind is ChangeKind.SAME or change.implied or not _BORROWED.isdisjoint(parts):
                yield change
            elif not _QUIET.isdisjoint(parts[2:]):
                yield replace(change, internal=True)
            elif not _OBEYED.isdisjoint(parts[2:]):
                yield change
            else:
                at = next((n for n, part in enumerate(parts) if n > 2 and part in _OF_A_REPOSITORY), len(parts))
                path = "/".join(parts[:at])
                if path not in told:
                    told.add(path)
                    yield replace(change, path=path, node=Node.DIRECTORY, fault=_MODULE)

    def _subfolder(self, spot: _Spot) -> Iterator[Change]:
        path, name, info, under = spot.path, spot.name, spot.info, spot.under
        merged = under is not None and stat.S_ISDIR(under.st_mode)
        try:
            fd = _searchable(spot.upper, name)
        except OSError as error:
            yield _change(path, info, under, fault=f"the folder cannot be read: {error.strerror}")
            return
        below = None
        try:
            try:
                below = _searchable(spot.lower, name) if merged and spot.lower is not None else None
            except OSError as error:
                yield _change(path, info, under, fault=_closed(error))
                return
            yield _change(path, info, under, implied=under is None and _has_entries(spot.upper, name))
            if path == ".git" and (spot.sealed or "opaque" in _marks(fd)):
                yield _change(path, info, under, fault="the repository itself was replaced or moved in the box")
                return
            shown = None if spot.sealed or "opaque" in _marks(fd) else below
            inner = spot.rules if path == ".git" else self._inner(spot.rules, path, fd, shown)
            yield from self._folder(fd, below, path + "/", inner, spot.depth + 1, sealed=spot.sealed)
        finally:
            os.close(fd)
            if below is not None:
                os.close(below)

    def _leaf(self, spot: _Spot) -> Iterator[Change]:
        upper, lower, path, name, info, under = spot.upper, spot.lower, spot.path, spot.name, spot.info, spot.under
        if under is not None and stat.S_ISDIR(under.st_mode):
            yield from self._gone(lower, name, path, under, spot.rules, replaced=True)
        if node_of(info.st_mode) is Node.SYMLINK:
            target = os.readlink(name, dir_fd=upper)
            same = under is not None and stat.S_ISLNK(under.st_mode) and os.readlink(name, dir_fd=lower) == target
            yield _change(path, info, under, target=target, same=same)
        else:
            yield _change(path, info, under, same=_same_file(upper, lower, name, info, under))

    def _gone(
        self,
        lower: int | None,
        name: str,
        path: str,
        under: os.stat_result,
        rules: tuple[Rules, ...],
        *,
        replaced: bool = False,
    ) -> Iterator[Change]:
        directory = stat.S_ISDIR(under.st_mode)
        if self._stays(path, rules, directory=directory):
            yield _deleted(path, under, ignored=True)
            return
        if directory and lower is not None and not is_git_name(name):
            try:
                fd = _searchable(lower, name)
            except OSError as error:
                yield _deleted(path, under, fault=_closed(error))
                return
            try:
                inner = self._inner(rules, path, None, fd)
                children = _names(fd)
                for child in children:
                    info = there.entry(fd, child)
                    if info is not None:
                        yield from self._gone(fd, child, f"{path}/{child}", info, inner)
            finally:
                os.close(fd)
            yield _deleted(path, under, implied=bool(children) or replaced)
        else:
            yield _deleted(path, under)

    def _inner(self, rules: tuple[Rules, ...], path: str, upper: int | None, lower: int | None) -> tuple[Rules, ...]:
        """The rules inside a folder; an ignored one that is entered for what git tracks in it ignores all the rest."""
        if is_ignored(rules, os.fsencode(path), directory=True):
            return (*rules, Rules(prefix=path + "/", everything=True))
        return (*rules, *_rules_of(upper, lower, path + "/"))

    def _stays(self, path: str, rules: tuple[Rules, ...], *, directory: bool) -> bool:
        raw = os.fsencode(path)
        if path == ".git" or path.startswith(".git/") or not is_ignored(rules, raw, directory=directory):
            return False
        if self.explicit(path + "/" if directory else path):
            return False
        return not self.tracked().covers(raw, directory=directory)


def _change(
    path: str,
    info: os.stat_result,
    under: os.stat_result | None,
    *,
    ignored: bool = False,
    implied: bool = False,
    same: bool = False,
    target: str = "",
    fault: str = "",
) -> Change:
    kind = ChangeKind.ADDED
    if under is not None:
        mode_only = same or stat.S_ISDIR(info.st_mode)
        other_mode = stat.S_IMODE(info.st_mode) != stat.S_IMODE(under.st_mode) and not stat.S_ISLNK(info.st_mode)
        if stat.S_IFMT(info.st_mode) != stat.S_IFMT(under.st_mode):
            kind = ChangeKind.TYPE
        elif mode_only:
            whole = fault or (ignored and stat.S_ISDIR(info.st_mode))  # what lies in it is told by this one change
            kind = ChangeKind.MODE if other_mode else ChangeKind.MODIFIED if whole else ChangeKind.SAME
        else:
            kind = ChangeKind.MODIFIED
    return Change(
        path=path,
        kind=kind,
        node=node_of(info.st_mode),
        was=None if under is None else node_of(under.st_mode),
        size=Bytes(info.st_size if stat.S_ISREG(info.st_mode) else 0),
        holes=Bytes(max(0, info.st_size - 512 * info.st_blocks) if stat.S_ISREG(info.st_mode) else 0),
        mode=stat.S_IMODE(info.st_mode),
        links=1 if stat.S_ISDIR(info.st_mode) else info.st_nlink,
        target=target,
        ignored=ignored,
        internal=git_internal(path),
        implied=implied,
        fault=fault,
    )


def _deleted(
    path: str, under: os.stat_result, *, ignored: bool = False, implied: bool = False, fault: str = ""
) -> Change:
    node = node_of(under.st_mode)
    return Change(
        path=path,
        kind=ChangeKind.DELETED,
        node=node,
        was=node,
        size=Bytes(under.st_size if node is Node.FILE else 0),
        mode=stat.S_IMODE(under.st_mode),
        ignored=ignored,
        internal=git_internal(path),
        implied=implied,
        fault=fault,
    )


def _searchable(fd: int, name: str) -> int:
    """A descriptor for a folder in which names may be looked up, too; one whose names can only be listed tells nothing."""
    folder = kernel.open_directory(fd, name)
    try:
        os.stat(".", dir_fd=folder)
    except OSError:
        os.close(folder)
        raise
    return folder


def _closed(error: OSError) -> str:
    """Why nothing can be said of a folder of the real tree."""
    if error.errno == errno.EXDEV:
        return "another file system is mounted here, which no box sees; unmount it, or begin the mission in it"
    return f"the folder in the real tree cannot be read: {error.strerror}"


def _marks(fd: int) -> set[str]:
    """What overlayfs noted on a directory: ``opaque``, ``redirect``, ``xwhiteouts``."""
    found = set()
    for name in os.listxattr(fd):
        short = next((name.removeprefix(p) for p in _XATTRS if name.startswith(p)), "")
        if short == "opaque":
            found.add("xwhiteouts" if os.getxattr(fd, name) == b"x" else "opaque")
        elif short == "redirect":
            found.add("redirect")
    return found


def overlay_attributes(fd: int) -> frozenset[str]:
    """The overlay's own notes on an open file or directory, without their prefix."""
    names = os.listxattr(fd)
    return frozenset(n.removeprefix(p) for n in names for p in _XATTRS if n.startswith(p))


def _is_whiteout(fd: int, name: str, info: os.stat_result, by_attribute: bool) -> bool:
    if stat.S_ISCHR(info.st_mode):
        return info.st_rdev == 0
    if not by_attribute or not stat.S_ISREG(info.st_mode) or info.st_size:
        return False
    file = kernel.open_beneath(fd, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return "whiteout" in overlay_attributes(file)
    finally:
        os.close(file)


def _same_file(upper: int, lower: int | None, name: str, info: os.stat_result, under: os.stat_result | None) -> bool:
    if lower is None or under is None or not stat.S_ISREG(info.st_mode) or not stat.S_ISREG(under.st_mode):
        return False
    if info.st_size != under.st_size:
        return False
    try:
        first = kernel.open_beneath(upper, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        second = kernel.open_beneath(lower, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        os.close(first)
        return False
    with open(first, "rb", buffering=0) as one, open(second, "rb", buffering=0) as two:
        while True:
            block = one.read(1 << 18)
            if block != two.read(1 << 18):
                return False
            if not block:
                return True


def _rules_of(upper: int | None, lower: int | None, prefix: str) -> tuple[Rules, ...]:
    """The folder's ``.gitignore`` as the mission's git sees it: the layer's, or none where the layer removed it, else the real tree's."""
    for fd in (upper, lower):
        info = there.entry(fd, ".gitignore")
        if fd is None or info is None:
            continue
        if not stat.S_ISREG(info.st_mode):
            return ()
        try:
            file = kernel.open_beneath(fd, ".gitignore", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except PermissionError:
            return ()
        with open(file, "rb") as stream:
            return (parse(stream.read(MAX_BYTES + 1), prefix),)
    return ()


def _names(fd: int | None) -> tuple[str, ...]:
    return () if fd is None else tuple(sorted(os.listdir(fd)))


def _is_repository(names: Iterable[str], lower: int | None) -> bool:
    """Whether git would take a folder for a repository, with what the layer has in it and what lies below."""
    if any(is_repository_part(name) for name in names):
        return is_repository([*names, *_names(lower)])
    if there.entry(lower, "HEAD") is None:  # in every shape of one
        return False
    return is_repository(["HEAD", *(name for name in ("objects", "refs", "commondir") if there.entry(lower, name))])


def _has_entries(fd: int, name: str) -> bool:
    try:
        inner = kernel.open_directory(fd, name)
    except OSError:
        return True  # the walk reports it
    try:
        with os.scandir(inner) as entries:
            return next(entries, None) is not None
    finally:
        os.close(inner)
