"""The one file that starts git: a reader of objects that believes nothing but bytes and their hashes.

git runs in an empty git directory of our own that only borrows the repository's objects, so the repository's
configuration, hooks, attributes, replace refs, grafts, commit-graph and promisor remotes are never seen. Every object
read is hashed again: an index that lies about an object is found.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import Self

from ringfence.promotion.catfile import Batch
from ringfence.promotion.change import Reader
from ringfence.promotion.objects import MAX_BLOB, OID, BadObject, Commit, Node, parse_commit, parse_tree

_PATH = "/usr/bin:/bin:/usr/local/bin"
MAX_TREE = 16 * 1024 * 1024
_CACHE = 64 * 1024 * 1024
_AHEAD = 256 * 1024
_TURN = 400
"""Requests sent to git at once: 400 of 65 bytes stay well below a pipe's 64 KiB."""
_DEADLINE = 60.0
"""Seconds a check may spend reading one repository."""


class Repository:
    """Reads one repository's objects. A context manager; every method raises BadObject when it cannot tell."""

    def __init__(self, path: str, *, objects: tuple[str, ...] = ()) -> None:
        """``objects`` are further object folders, as a receiving server's quarantine has; nothing runs yet."""
        self._git_dir, self._common = _locate(path)
        self._refuse_surprises()
        self._own = tempfile.mkdtemp(prefix="ringfence-git-")
        stores = [os.path.join(self._common, "objects"), *objects]
        self._stores = [os.path.realpath(store) for store in stores]
        self._trees: dict[str, dict[str, Node]] = {}
        self._known_sizes: dict[str, int] = {}
        self._known_blobs: dict[str, bytes] = {}
        self._room = _CACHE
        self._sizes: Batch | None = None
        self._contents: Batch | None = None
        self._until = time.monotonic() + _DEADLINE
        self._width = 40

    def __enter__(self) -> Self:
        """The reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the git processes and remove the borrowed directory."""
        for batch in (self._sizes, self._contents):
            if batch is not None:
                batch.close()
        shutil.rmtree(self._own, ignore_errors=True)

    def resolve(self, name: str) -> str:
        """The full id of a ref or a full id; names are looked up in files, as git does, without starting it."""
        oid = name if OID.match(name) else self._look_up(name)
        self._width = len(oid)
        self._prepare()
        return oid

    def reader(self) -> Reader:
        """How the pure files read this repository's objects."""
        return Reader(
            commit=self.commit,
            tree=self.tree,
            blob=self.blob,
            size=self.size,
            prefetch=self.prefetch,
            merge_bases=self.merge_bases,
        )

    def commit(self, oid: str) -> Commit:
        """The commit, its bytes checked against its id."""
        return parse_commit(oid, self._read(oid, b"commit", MAX_BLOB))

    def tree(self, oid: str) -> dict[str, Node]:
        """The tree's entries."""
        if oid not in self._trees:
            self._trees[oid] = parse_tree(oid, self._read(oid, b"tree", MAX_TREE))
        return self._trees[oid]

    def blob(self, oid: str) -> bytes:
        """The blob's bytes; BadObject if larger than MAX_BLOB."""
        if oid in self._known_blobs:
            return self._known_blobs[oid]
        raw = self._read(oid, b"blob", MAX_BLOB)
        if len(raw) <= self._room:
            self._room -= len(raw)
            self._known_blobs[oid] = raw
        return raw

    def size(self, oid: str) -> int:
        """Size in bytes of a blob, which is not read."""
        if oid not in self._known_sizes:
            self.prefetch([oid])
        return self._known_sizes[oid]

    def prefetch(self, oids: list[str]) -> None:
        """Learn the sizes of many blobs, and read the smaller ones, in few turns with git; BadObject for what is no blob."""
        if self._sizes is None:
            self._sizes = Batch(self._command("cat-file", "--batch-check"), self._env(), self._own, self._until)
        wanted = [oid for oid in dict.fromkeys(oids) if oid not in self._known_sizes]
        for at in range(0, len(wanted), _TURN):
            turn = wanted[at : at + _TURN]
            self._sizes.ask(turn)
            for oid in turn:
                kind, size = self._sizes.header(oid)
                if kind != b"blob":
                    raise BadObject(f"{oid} is a {kind.decode('ascii', 'replace')}, not a blob")
                self._known_sizes[oid] = size
        self._keep(wanted)

    def merge_bases(self, one: str, two: str) -> list[str]:
        """Best common ancestors; empty where histories are unrelated."""
        return self._run("merge-base", "--all", one, two, allow=(0, 1)).split()

    def commits_between(self, base: str, head: str, limit: int) -> list[str]:
        """Ids of the commits reachable from head and not from base, newest first, at most ``limit + 1``."""
        return self._run("rev-list", f"--max-count={limit + 1}", head, f"^{base}").split()

    def _keep(self, oids: list[str]) -> None:
        """Read the smaller of these blobs ahead, many in one turn, as long as there is room."""
        wanted = []
        for oid in oids:
            size = self._known_sizes[oid]
            if size <= _AHEAD and size <= self._room and oid not in self._known_blobs:
                self._room -= size
                wanted.append(oid)
        for at in range(0, len(wanted), _TURN):
            turn = wanted[at : at + _TURN]
            contents = self._open_contents()
            contents.ask(turn)
            for oid in turn:
                self._known_blobs[oid] = self._answer(contents, oid, b"blob", _AHEAD)

    def _read(self, oid: str, kind: bytes, limit: int) -> bytes:
        if kind == b"blob" and self.size(oid) > limit:
            raise BadObject(f"blob {oid} is larger than {limit} bytes")
        contents = self._open_contents()
        contents.ask([oid])
        return self._answer(contents, oid, kind, limit)

    def _open_contents(self) -> Batch:
        if self._contents is None:
            self._contents = Batch(self._command("cat-file", "--batch"), self._env(), self._own, self._until)
        return self._contents

    @staticmethod
    def _answer(contents: Batch, oid: str, kind: bytes, limit: int) -> bytes:
        """One answer of git, whose bytes must have the id that was asked for."""
        found, size = contents.header(oid)
        if found != kind or size > limit:
            contents.skip(size)  # or the next answer would be read out of this one
            raise BadObject(f"{oid} is a {found.decode('ascii', 'replace')} of {size} bytes, not a {kind.decode()}")
        raw = contents.body(size)
        algorithm = "sha1" if len(oid) == 40 else "sha256"
        actual = hashlib.new(algorithm, b"%s %d\0" % (kind, size) + raw, usedforsecurity=False)
        if actual.hexdigest() != oid:
            raise BadObject(f"object {oid} is not what its id says")
        return raw

    def _refuse_surprises(self) -> None:
        shallow = os.path.join(self._common, "shallow")
        if os.path.exists(shallow) and os.path.getsize(shallow):
            raise BadObject("the clone is shallow: fetch the full history (fetch-depth: 0, or git fetch --unshallow)")
        if os.path.exists(os.path.join(self._common, "objects", "info", "alternates")):
            raise BadObject(
                "the clone borrows objects of another repository (objects/info/alternates): make a full clone"
            )

    def _look_up(self, name: str) -> str:
        bad = not name or name.startswith(("-", "/")) or ".." in name or "\0" in name or len(name) > 255
        if bad or any(c in name for c in " ~^:?*[\\"):
            raise BadObject(f"{name!a} is not the name of a ref nor a full id")
        places = (name, f"refs/{name}", f"refs/tags/{name}", f"refs/heads/{name}", f"refs/remotes/{name}")
        found = {ref: oid for ref in places if (oid := self._ref(ref)) is not None}
        if not found:
            raise BadObject(f"no ref {name!a} in the repository")
        meant = {self._peel(oid) for oid in found.values()}
        if len(meant) > 1:
            # Whoever may push a tag could choose the base, and with it the policy.
            raise BadObject(f"{name!a} means several commits ({', '.join(found)}): give one of these names")
        return meant.pop()

    def _ref(self, ref: str, depth: int = 0) -> str | None:
        if depth > 5 or not (ref == "HEAD" or ref.startswith("refs/")):
            return None
        for folder in (self._git_dir, self._common):
            text = _small_text(os.path.join(folder, ref))
            if text is not None and text.startswith("ref: "):
                return self._ref(text[5:].strip(), depth + 1)
            if text is not None and OID.match(text.strip()):
                return text.strip()
        for line in (_small_text(os.path.join(self._common, "packed-refs"), 64 * 1024 * 1024) or "").splitlines():
            oid, _, packed = line.partition(" ")
            if packed == ref and OID.match(oid):
                return oid
        return None

    def _peel(self, oid: str) -> str:
        """An annotated tag means the commit that it names."""
        self._width = len(oid)
        self._prepare()
        return self._run("rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}").strip()

    def _prepare(self) -> None:
        for folder in ("objects", "refs"):
            os.makedirs(os.path.join(self._own, folder), exist_ok=True)
        version = "0" if self._width == 40 else "1\n[extensions]\n\tobjectformat = sha256"
        with open(os.path.join(self._own, "config"), "w", encoding="ascii") as config:
            config.write(f"[core]\n\tbare = true\n\trepositoryformatversion = {version}\n")
        with open(os.path.join(self._own, "HEAD"), "w", encoding="ascii") as head:
            head.write("ref: refs/heads/none\n")

    def _env(self) -> dict[str, str]:
        return {
            "PATH": _PATH,
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": self._own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(_quoted(store) for store in self._stores),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_PAGER": "cat",
        }

    def _command(self, *words: str) -> list[str]:
        git = shutil.which("git", path=_PATH)
        if git is None:
            raise BadObject("git is not installed")
        # A commit-graph or multi-pack index is a cache that could lie about history: only packs and objects count.
        neutral = ("core.commitGraph=false", "core.multiPackIndex=false", "core.hooksPath=/dev/null")
        return [git, *(word for item in neutral for word in ("-c", item)), "--no-pager", "--no-replace-objects", *words]

    def _run(self, *words: str, allow: tuple[int, ...] = (0,)) -> str:
        try:
            done = subprocess.run(
                self._command(*words),
                env=self._env(),
                cwd=self._own,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=max(1.0, self._until - time.monotonic()),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BadObject(f"git {words[0]} took too long") from None
        if done.returncode not in allow:
            raise BadObject(f"git {words[0]} cannot read the history (missing or broken objects)")
        return done.stdout.decode("ascii", "replace")


def _quoted(path: str) -> str:
    if any(c in path for c in ':"\\\n'):
        return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return path


def _locate(path: str) -> tuple[str, str]:
    """The git directory and the common one: of a work tree, a linked work tree, or a bare repository."""
    full = os.path.realpath(path)
    dot = os.path.join(full, ".git")
    git_dir = full
    if os.path.isdir(dot):
        git_dir = dot
    elif os.path.isfile(dot):
        text = _small_text(dot) or ""
        if not text.startswith("gitdir: "):
            raise BadObject(f"{dot} does not name a git directory")
        git_dir = os.path.realpath(os.path.join(full, text[8:].strip()))
    common = _small_text(os.path.join(git_dir, "commondir"))
    shared = os.path.realpath(os.path.join(git_dir, common.strip())) if common else git_dir
    if not os.path.isdir(os.path.join(shared, "objects")):
        raise BadObject(f"{path} is not a git repository")
    return git_dir, shared


def _small_text(path: str, limit: int = 4096) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            raw = file.read(limit + 1)
        except OSError:
            return None
    return raw.decode("utf-8", "replace") if len(raw) <= limit else None
