"""An anchor in a git ref: one commit a head, each on top of the one before, pushed without force.

git runs with neutral configuration and a repository of its own; what it fetches is read as blobs, never checked out.
"""

import io
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringfence.ledger import note
from ringfence.ledger.anchors import RootAt, is_log, refuse_rewind, unreadable
from ringfence.ledger.files import read_small
from ringfence.ledger.segment import replace
from ringfence.model.errors import LedgerError

SECONDS = 20
_NEUTRAL = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_AUTHOR_NAME": "ringfence",
    "GIT_AUTHOR_EMAIL": "ledger@ringfence.invalid",
    "GIT_COMMITTER_NAME": "ringfence",
    "GIT_COMMITTER_EMAIL": "ledger@ringfence.invalid",
    "LC_ALL": "C",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
    "init.defaultBranch": "main",
}
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
"""Of our own repository, whatever lies there: in a folder that came from elsewhere it could name programs to run."""
_TRUSTING = "trusting.gitconfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitAnchor:
    """A ref in a local bare repository or on a remote."""

    location: str
    ref: str
    scratch: str
    """Folder for our own repository, which also remembers the tip that was seen last."""

    @property
    def name(self) -> str:
        """How it is written in configuration."""
        return f"git:{self.location}#{self.ref}"

    def heads(self) -> Mapping[str, note.Checkpoint]:
        """What the tip of the ref remembers. Raises ``anchor-unreadable``, and ``ledger-altered`` where it was rewound."""
        tip = self._fetch()
        return {} if tip is None else self._read(tip)

    def past(self, log: str) -> Sequence[note.Checkpoint]:
        """Every head of the log in the history of the ref. Raises as ``heads`` does."""
        tip = self._fetch()
        if tip is None:
            return ()
        asked = "".join(f"{commit}:logs/{log}\n" for commit in self._git("rev-list", tip).splitlines())
        told = io.BytesIO(self._run("cat-file", "--batch", stdin=asked.encode()).stdout)
        found = {}
        while row := told.readline():
            if row.endswith(b" missing\n"):  # a commit before the log was first told
                continue
            head = note.parse(told.read(int(row.split()[2])))
            told.readline()
            if head is not None and head.origin == note.origin(log):
                found[head.size, head.root] = head
        return tuple(found.values())

    def push(self, log: str, head: note.Checkpoint, root_at: RootAt) -> str:
        """Add a commit that remembers the head; returns its id. A ref that moved meanwhile is refused, not overwritten."""
        tip = self._fetch()
        known = {} if tip is None else self._read(tip)
        refuse_rewind(self.name, known, log, head, root_at)
        if tip is not None and known.get(log) == head:
            return tip
        rows = {**{name: found.text() for name, found in known.items()}, log: head.text()}
        blobs = {name: self._git("hash-object", "-w", "--stdin", stdin=text) for name, text in rows.items()}
        tree = "".join(f"100644 blob {blob}\t{name}\n" for name, blob in sorted(blobs.items()))
        logs = self._git("mktree", stdin=tree.encode())
        top = self._git("mktree", stdin=f"040000 tree {logs}\tlogs\n".encode())
        parents = ("-p", tip) if tip is not None else ()
        message = f"ringfence ledger {log}: {head.size} records\n".encode()
        commit = self._git("commit-tree", top, *parents, stdin=message)
        self._git("push", "--quiet", "--", self.location, f"{commit}:{self.ref}")
        self._git("update-ref", self._seen, commit)
        return commit

    @property
    def _repository(self) -> str:
        import hashlib

        return f"{self.scratch}/{hashlib.sha256(self.name.encode()).hexdigest()[:16]}.git"

    @property
    def _seen(self) -> str:
        return "refs/ringfence/seen"

    def _fetch(self) -> str | None:
        """The ref's tip, fetched; None where the ref does not exist and never did."""
        if not os.path.isdir(self._repository):
            os.makedirs(self.scratch, mode=0o700, exist_ok=True)
            self._git("init", "--quiet", "--bare", self._repository, inside=False)
        self._keep_neutral()
        listed = self._git("ls-remote", "--", self.location, self.ref).splitlines()
        # git lists every ref whose name ends so, also a branch `refs/heads/refs/…`, which anybody may be free to push.
        tip = next((row.partition("\t")[0] for row in listed if row.partition("\t")[2] == self.ref), None)
        seen = self._git("for-each-ref", "--format=%(objectname)", self._seen)
        if tip is None:
            if seen:
                raise self._rewound("the ref that held our heads is gone")
            return None
        self._git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self.location, tip)
        if seen and seen != tip and self._run("merge-base", "--is-ancestor", seen, tip).returncode != 0:
            raise self._rewound("its history was rewritten")
        self._git("update-ref", self._seen, tip)
        return tip

    def _keep_neutral(self) -> None:
        for name, text in (("config", _CONFIG), (_TRUSTING, self._trusting())):
            path = f"{self._repository}/{name}"
            try:
                same = read_small(path) == text
            except OSError:
                same = False
            if not same:
                replace(path, text)

    def _trusting(self) -> bytes:
        """Settings by which git on the other end takes a repository on this machine that belongs to somebody else.

        Such an owner is what makes it an anchor, and a person named it. Settings in the environment do not reach that end.
        """
        if not self.location.startswith("/"):
            return b""
        quoted = os.fsencode(self.location)
        for char, spelled in ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\t", b"\\t")):
            quoted = quoted.replace(char, spelled)
        rows = [b'\tdirectory = "%b%b"\n' % (quoted, suffix) for suffix in (b"", b".git", b"/.git")]
        return b"[safe]\n" + b"".join(rows)

    def _rewound(self, what: str) -> LedgerError:
        return LedgerError(
            "ledger-altered",
            f"TRUNCATED: the anchor was changed behind us: {what}",
            where=self.name,
            remedy=f"look at the anchor; the last tip we saw is kept in {self._repository}",
        )

    def _read(self, tip: str) -> dict[str, note.Checkpoint]:
        found = {}
        for row in self._git("ls-tree", "-z", f"{tip}:logs").split("\0"):
            meta, _, name = row.partition("\t")
            if not row or not is_log(name):
                continue
            head = note.parse(self._run("cat-file", "blob", meta.split()[2]).stdout)
            if head is None or head.origin != note.origin(name):
                raise unreadable(self.name, f"logs/{name} at {tip} is not a checkpoint")
            found[name] = head
        return found

    def _git(self, *arguments: str, stdin: bytes = b"", inside: bool = True) -> str:
        done = self._run(*arguments, stdin=stdin, inside=inside)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            told = next((line for line in said if line.startswith(("fatal:", "ssh:"))), said[-1] if said else "")
            raise unreadable(self.name, f"git {arguments[0]} ended with {done.returncode}: {told!a}")
        return done.stdout.decode().strip("\n")

    def _run(self, *arguments: str, stdin: bytes = b"", inside: bool = True) -> "subprocess.CompletedProcess[bytes]":
        settings = {"GIT_CONFIG_COUNT": str(len(_SETTINGS))}
        for number, (key, value) in enumerate(_SETTINGS.items()):
            settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        where = ("--git-dir", self._repository) if inside else ()
        if inside:
            settings["GIT_COMMON_DIR"] = self._repository  # a file in it could name another folder
            settings["GIT_CONFIG_GLOBAL"] = f"{self._repository}/{_TRUSTING}"
        home = {"HOME": os.path.expanduser("~"), "SSH_AUTH_SOCK": os.environ.get("SSH_AUTH_SOCK", "")}
        try:
            return subprocess.run(
                ["git", *where, *arguments],
                input=stdin,
                capture_output=True,
                timeout=SECONDS,
                env={**_NEUTRAL, **settings, **home},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise unreadable(self.name, f"git {arguments[0]}: {type(error).__name__}") from error
