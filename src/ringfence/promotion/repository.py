"""The one file that starts git: a reader of objects that believes nothing but bytes and their hashes.

git runs in an empty git directory of our own that only borrows the repository's objects, so the repository's
configuration, hooks, attributes, replace refs, grafts, commit-graph and promisor remotes are never seen. Every object
read is hashed again: an index that lies about an object is found.
"""

import contextlib
import hashlib
import os
import select
import shutil
import subprocess
import tempfile
import time
from types import TracebackType
from typing import IO, Self

from ringfence.promotion.objects import OID, BadObject, Commit, Node, parse_commit, parse_tree

_PATH = "/usr/bin:/bin:/usr/local/bin"
MAX_BLOB = 8 * 1024 * 1024
"""Bytes of one blob that are read; a larger one is counted and called opaque."""
MAX_TREE = 16 * 1024 * 1024
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
        self._sizes: _Batch | None = None
        self._contents: _Batch | None = None
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
        return self._read(oid, b"blob", MAX_BLOB)

    def size(self, oid: str) -> int:
        """Size in bytes of a blob, which is not read."""
        if self._sizes is None:
            self._sizes = _Batch(self._command("cat-file", "--batch-check"), self._env(), self._own, self._until)
        kind, size = self._sizes.header(oid)
        if kind != b"blob":
            raise BadObject(f"{oid} is a {kind.decode('ascii', 'replace')}, not a blob")
        return size

    def merge_bases(self, one: str, two: str) -> list[str]:
        """Best common ancestors; empty where histories are unrelated."""
        return self._run("merge-base", "--all", one, two, allow=(0, 1)).split()

    def commits_between(self, base: str, head: str, limit: int) -> list[str]:
        """Ids of the commits reachable from head and not from base, newest first, at most ``limit + 1``."""
        return self._run("rev-list", f"--max-count={limit + 1}", head, f"^{base}").split()

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether ``old`` is reachable from ``new``."""
        return old == new or old in self.merge_bases(old, new)

    def _read(self, oid: str, kind: bytes, limit: int) -> bytes:
        if self._contents is None:
            self._contents = _Batch(self._command("cat-file", "--batch"), self._env(), self._own, self._until)
        if kind == b"blob" and self.size(oid) > limit:
            raise BadObject(f"blob {oid} is larger than {limit} bytes")
        found, size = self._contents.header(oid)
        if found != kind or size > limit:
            raise BadObject(f"{oid} is a {found.decode('ascii', 'replace')} of {size} bytes, not a {kind.decode()}")
        raw = self._contents.body(size)
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
        for ref in (name, f"refs/{name}", f"refs/tags/{name}", f"refs/heads/{name}", f"refs/remotes/{name}"):
            oid = self._ref(ref)
            if oid is not None:
                return self._peel(oid)
        raise BadObject(f"no ref {name!a} in the repository")

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


class _Batch:
    """One ``git cat-file`` that answers many requests, with a deadline on every read."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: str, until: float) -> None:
        self._process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._until = until
        self._buffer = b""
        self._in = _pipe(self._process.stdin)
        self._out = _pipe(self._process.stdout)
        self._pending = False

    def header(self, oid: str) -> tuple[bytes, int]:
        try:
            self._in.write(oid.encode("ascii") + b"\n")
            self._in.flush()
        except OSError:
            raise BadObject("git cat-file ended early") from None
        while b"\n" not in self._buffer:
            self._fill()
        line, _, self._buffer = self._buffer.partition(b"\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].isdigit():
            raise BadObject(f"object {oid} is missing")
        return words[1], int(words[2])

    def body(self, size: int) -> bytes:
        while len(self._buffer) < size + 1:
            self._fill()
        raw, self._buffer = self._buffer[:size], self._buffer[size + 1 :]
        return raw

    def close(self) -> None:
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        self._process.kill()
        self._process.wait()

    def _fill(self) -> None:
        left = self._until - time.monotonic()
        ready, _, _ = select.select([self._out], [], [], max(0.0, left))
        if not ready:
            raise BadObject("reading the repository took too long")
        chunk = os.read(self._out.fileno(), 1 << 20)
        if not chunk:
            raise BadObject("git cat-file ended early: the repository has broken objects")
        self._buffer += chunk


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise BadObject("git could not be started")
    return pipe


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
