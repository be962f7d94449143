"""A repository of our own, in which a bundle from a box is indexed strictly before the real one hears of it.

Its configuration is written here and nowhere else; it borrows the real repository's objects for reading. A bundle is
one regular file with a header that this module reads itself; git only ever sees the pack behind it.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringfence.sandbox.worktree import kernel
from ringfence.sandbox.worktree.gitrun import Git
from ringfence.sandbox.worktree.removal import remove_tree

MAX_BUNDLE = 512 * 1024 * 1024
MAX_PATHS = 50_000
MAX_TAGS = 8
_TREE = 0o040000
_MAX_HEADER = 4 * 1024 * 1024
_RAW = re.compile(rb":(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*\Z")
_HEX = re.compile(r"[0-9a-f]{4,64}")
_HALF = ".ringfence"
"""Ends the name of a file that is being copied into the real object store."""


class Rejected(Exception):
    """The history cannot be taken; the reason is for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One path that new commits write or delete, with the blob and mode they leave."""

    path: str
    mode: int
    blob: str
    deleted: bool
    added: bool = False
    """It was not there before the commit, or before it on one of the sides that a merge brings together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What new commits change: files and links; folders, each as every commit leaves it: the path and what names its tree."""

    files: tuple[Touched, ...] = ()
    folders: tuple[tuple[str, str], ...] = ()
    added: frozenset[str] = frozenset()
    """Paths of files, links and folders that were not there before."""


class Quarantine:
    """A throw-away bare repository in ``folder``, beside the real objects in ``objects``."""

    def __init__(self, folder: str, objects: str, *, sha256: bool) -> None:
        self.folder = folder
        self._objects = objects
        self._format = "sha256" if sha256 else "sha1"
        self.git = Git(directory=folder)

    def make(self) -> None:
        """Make it, empty. What an earlier one left is removed."""
        remove_tree(self.folder)
        for name in ("objects/info", "objects/pack", "refs/heads"):
            os.makedirs(f"{self.folder}/{name}", mode=0o700)
        version = 1 if self._format == "sha256" else 0
        extension = "[extensions]\n\tobjectFormat = sha256\n" if version else ""
        _write(
            f"{self.folder}/config",
            f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}".encode(),
        )
        _write(f"{self.folder}/HEAD", b"ref: refs/heads/none\n")
        _write(f"{self.folder}/objects/info/alternates", os.fsencode(self._objects) + b"\n")

    def index_bundle(self, fd: int, path: str) -> bool:
        """Take the bundle at ``path`` below ``fd``; False where there is none. Raises Rejected for anything odd."""
        try:
            file = kernel.open_beneath(fd, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Rejected(f"the bundle cannot be opened: {error.strerror}") from error
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
                raise Rejected("the bundle is not one regular file")
            if info.st_size > MAX_BUNDLE:
                raise Rejected(f"the bundle is larger than {MAX_BUNDLE} bytes")
            os.lseek(file, _pack_start(os.pread(file, _MAX_HEADER, 0)), os.SEEK_SET)
            answer = self.git.run(
                "index-pack", "--strict", "--fix-thin", "--stdin", f"--max-input-size={MAX_BUNDLE}", given=file
            )
        finally:
            os.close(file)
        if not answer.ok:
            raise Rejected(f"the bundle's objects are not sound: {answer.error}")
        return True

    def check_tips(self, tips: Iterable[tuple[str, str]], known: Iterable[str]) -> dict[str, str]:
        """By name, tips of a type that their ref may not have. The others lead only to what is there, or Rejected is raised."""
        wanted = list(tips)
        kinds = self._kinds(oid for _, oid in wanted)
        behind = self._kinds(f"{oid}^{{}}" for _, oid in wanted)
        odd = {}
        for (name, oid), kind, end in zip(wanted, kinds, behind, strict=True):
            if "missing" in {kind, end}:
                raise Rejected(f"{name} points to {oid[:12]}, which is missing")
            if kind == "tag" and not name.startswith("refs/tags/"):
                odd[name] = kind
            elif end != "commit":
                odd[name] = end
        walk = self.git.run(
            "rev-list",
            "--ignore-missing",
            "--objects",
            "--quiet",
            "--stdin",
            given=_revisions([oid for name, oid in wanted if name not in odd], known),
        )
        if not walk.ok:
            raise Rejected(f"the history is not complete: {walk.error}")
        return odd

    def _kinds(self, names: Iterable[str]) -> list[str]:
        """What kind of object each name is, or "missing"."""
        wanted = list(names)
        answer = self.git.run("cat-file", "--batch-check", given=_lines(wanted))
        found = [line.split()[1] for line in answer.out.decode().splitlines()]
        if not answer.ok or len(found) != len(wanted):
            raise Rejected(f"the new tips cannot be read: {answer.error}")
        return found

    def descends(self, new: str, old: str) -> bool:
        """Whether a commit has another one among its ancestors."""
        return self.git.run("merge-base", "--is-ancestor", old, new).ok

    def abbreviated(self, word: str) -> str:
        """The object that git would take this word for when it is no name; empty where none is."""
        if not _HEX.fullmatch(word):
            return ""
        answer = self.git.run("cat-file", "--batch-check=%(objectname)", given=_lines([word]))
        said = answer.out.decode("ascii", "replace").strip()
        return "" if said.endswith("missing") and len(word) not in {40, 64} else said

    def left(self, tip: str, known: Iterable[str]) -> Left:
        """Everything that commits reachable from ``tip`` but not from ``known`` change, as each of them leaves it."""
        commits = self.git.run(
            "rev-list", "--ignore-missing", "--topo-order", "--reverse", "--stdin", given=_revisions([tip], known)
        )
        if not commits.ok:
            raise Rejected(f"the new commits cannot be listed: {commits.error}")
        if not commits.out.strip():
            return Left()
        answer = self.git.run(
            "diff-tree", "--stdin", "-r", "-t", "-m", "--root", "--raw", "-z", "--no-renames", "--no-abbrev",
            "--no-commit-id", "--no-ext-diff", "--no-textconv", given=commits.out,
        )  # fmt: skip
        if not answer.ok:
            raise Rejected(f"the new commits cannot be read: {answer.error}")
        found = list(dict.fromkeys(_parse_raw(answer.out)))
        roots = [("", f"{commit}^{{tree}}") for commit in commits.out.decode().split()]
        return Left(
            files=tuple(one for one in found if one.mode != _TREE),
            folders=(*roots, *((one.path, one.blob) for one in found if one.mode == _TREE and not one.deleted)),
            added=frozenset(one.path for one in found if one.added),
        )

    def names(self, trees: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """By tree, the names of everything directly in it."""
        size = 32 if self._format == "sha256" else 20
        found = {}
        for tree, raw in self._contents(trees, "tree").items():
            names, at = [], 0
            while at < len(raw):
                end = raw.index(b"\0", at)
                names.append(os.fsdecode(raw[at:end].partition(b" ")[2]))
                at = end + 1 + size
            found[tree] = tuple(names)
        return found

    def texts(self, tip: str, known: Iterable[str]) -> str:
        """Everything that new commits, and tags on the way to them, say beside their trees: names, messages, headers."""
        commits = self.git.run("rev-list", "--ignore-missing", "--header", "--stdin", given=_revisions([tip], known))
        if not commits.ok:
            raise Rejected(f"the new commits cannot be listed: {commits.error}")
        found, tag = [commits.out], tip
        for _ in range(MAX_TAGS):
            answer = self.git.run("cat-file", "tag", tag)
            if not answer.ok:
                break
            found.append(answer.out)
            tag = answer.out.partition(b"\n")[0].removeprefix(b"object ").decode("ascii", "replace")
        else:
            raise Rejected(f"a tag of a tag, more than {MAX_TAGS} deep")
        return b"".join(found).replace(b"\0", b"").decode("utf-8", "replace")

    def blobs(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs, up to the bundle's cap in all. Raises Rejected where one is missing or they are too much."""
        return self._contents(oids, "blob")

    def _contents(self, oids: Iterable[str], kind: str) -> dict[str, bytes]:
        wanted = sorted(set(oids))
        sizes = self.git.run(
            "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", given=_lines(wanted)
        )
        total = 0
        for line in sizes.out.decode().splitlines():
            parts = line.split()
            if len(parts) != 3 or parts[1] != kind:
                raise Rejected(f"object {parts[0][:12]} is no {kind}")
            total += int(parts[2])
        if not sizes.ok or total > MAX_BUNDLE:
            raise Rejected(f"the new commits hold more than {MAX_BUNDLE} bytes of content")
        answer = self.git.run("cat-file", "--batch", given=_lines(wanted), limit=total + 256 * len(wanted))
        if not answer.ok:
            raise Rejected(f"the new commits cannot be read: {answer.error}")
        found, at = {}, 0
        for oid in wanted:
            end = answer.out.index(b"\n", at)
            size = int(answer.out[at:end].split()[2])
            found[oid] = answer.out[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def packs(self) -> list[str]:
        """Base names (without ending) of the packs that were indexed."""
        names = os.listdir(f"{self.folder}/objects/pack")
        return sorted(n.removesuffix(".pack") for n in names if n.endswith(".pack"))

    def hand_over(self, owner: tuple[int, int]) -> None:
        """Copy the packs into the real object store, index last, each on disk before it has its name.

        What a crash left half copied there is removed first; the repository's lock is held.
        """
        for name in os.listdir(f"{self._objects}/pack"):
            if name.startswith("pack-") and name.endswith(_HALF):
                os.unlink(f"{self._objects}/pack/{name}")
        for base in self.packs():
            for ending in (".pack", ".idx"):
                source, target = f"{self.folder}/objects/pack/{base}{ending}", f"{self._objects}/pack/{base}{ending}"
                if not os.path.exists(target):
                    _place(source, target, owner)
        folder = os.open(f"{self._objects}/pack", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self) -> None:
        """Remove the repository."""
        remove_tree(self.folder)


def _pack_start(header: bytes) -> int:
    lines = header.split(b"\n", 1)
    if lines[0] not in {b"# v2 git bundle", b"# v3 git bundle"}:
        raise Rejected("the file is no bundle")
    end = header.find(b"\n\n")
    if end < 0:
        raise Rejected("the bundle's header does not end")
    for line in header[: end + 1].splitlines()[1:]:
        if line.startswith(b"@") and not line.startswith(b"@object-format="):
            raise Rejected("the bundle uses a capability that this gate does not take")
    if header[end + 2 : end + 6] != b"PACK":
        raise Rejected("the bundle holds no pack")
    return end + 2


def _parse_raw(raw: bytes) -> Iterator[Touched]:
    parts = raw.split(b"\0")
    count = 0
    for head, name in zip(parts[::2], parts[1::2], strict=False):
        match = _RAW.match(head)
        if match is None:
            raise Rejected("the new commits cannot be explained")
        count += match[1] != b"040000" and match[2] != b"040000"
        if count > MAX_PATHS:
            raise Rejected(f"the new commits touch more than {MAX_PATHS} paths")
        deleted = match[5] == b"D"
        yield Touched(
            path=os.fsdecode(name),
            mode=int(match[1 if deleted else 2], 8),
            blob=match[4].decode(),
            deleted=deleted,
            added=match[5] == b"A",
        )


def _place(source: str, target: str, owner: tuple[int, int]) -> None:
    fresh = f"{target}{_HALF}"
    with open(source, "rb") as reader, open(fresh, "xb") as writer:
        shutil.copyfileobj(reader, writer, 1 << 20)
        os.fchmod(writer.fileno(), 0o444)
        if os.geteuid() == 0:
            os.fchown(writer.fileno(), *owner)
        os.fsync(writer.fileno())
    os.rename(fresh, target)


def _revisions(tips: Iterable[str], known: Iterable[str]) -> bytes:
    return _lines([*tips, *(f"^{oid}" for oid in sorted(set(known)))])


def _lines(items: Iterable[str]) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


def _write(path: str, data: bytes) -> None:
    with open(path, "xb") as stream:
        stream.write(data)
