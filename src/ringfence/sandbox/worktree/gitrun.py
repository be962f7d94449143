"""Git, run by trusted code so that no configuration, hook, attribute, helper or remote of a repository can run anything.

The environment is built from nothing. What a repository's own configuration could make git execute is overridden on
the command line, which wins over every file. Started by root, git runs as the owner of the repository.
"""

import contextlib
import os
import resource
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.model.errors import RingfenceError

MAX_OUTPUT = 64 * 1024 * 1024
MAX_MEMORY = 2 * 1024 * 1024 * 1024
"""A few kilobytes can unpack to any size, and name the same folder a million times: neither fills this host's memory."""
_MAX_ERROR = 64 * 1024
_PATH = "/usr/bin:/bin:/usr/local/bin"
_NEUTRAL = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.sshCommand=/bin/false",
    "core.gitProxy=",
    "core.alternateRefsCommand=/bin/false",
    "core.editor=/bin/false",
    "core.pager=cat",
    "core.logAllRefUpdates=true",
    "core.splitIndex=false",  # what is written has all it says in one file
    "core.filesRefLockTimeout=3000",
    "core.packedRefsTimeout=3000",
    "credential.helper=",
    "gpg.program=/bin/false",
    "protocol.allow=never",
    "transfer.fsckObjects=true",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "receive.autogc=false",
    "advice.detachedHead=false",
    "core.bigFileThreshold=32m",  # larger objects are streamed, not held in memory
    "pack.threads=1",
    "index.threads=1",
)
_ENVIRONMENT = {
    "PATH": _PATH,
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "/bin/false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_COMMITTER_NAME": "ringfence",
    "GIT_COMMITTER_EMAIL": "ringfence@localhost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one git said. ``ok`` is exit status 0."""

    ok: bool
    out: bytes
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git on one git directory. ``owner`` is whom it runs as when this process is root.

    An owner who may not even pass through the folders above cannot have planted anything there: then git runs as root
    and what it made is given to the owner. ``gives`` are the folders to look through for that.
    """

    directory: str
    owner: tuple[int, int] | None = None
    gives: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0
    person: str = ""
    """A home folder: git answers by all of the person's own configuration. For commands that only read that."""

    def run(self, *args: str, given: bytes | int = b"", limit: int = MAX_OUTPUT) -> Answer:
        """Run a git command; ``given`` is its input, as bytes or an open descriptor.

        A time-out, an output beyond ``limit`` bytes, and memory beyond ``MAX_MEMORY`` are answers that are not ok.
        """
        config = [word for setting in _NEUTRAL for word in ("-c", setting) if not self.person]
        base = {"PATH": _PATH, "HOME": self.person, "LC_ALL": "C"} if self.person else _ENVIRONMENT
        owner = self.owner if os.geteuid() == 0 and self.owner is not None and self.owner[0] != 0 else None
        switch = owner is not None and _reachable(self.directory, owner)
        with _input(given) as source:
            with subprocess.Popen(
                [*_bounded(), *config, *args],
                env={**base, "GIT_DIR": self.directory, **dict(self.environment)},
                cwd="/",
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                umask=0o077 if self.owner is None else 0o022,
                user=owner[0] if owner and switch else None,
                group=owner[1] if owner and switch else None,
                extra_groups=[] if switch else None,
            ) as process:
                answer = self._collect(process, args[0], limit)
        if owner is not None and not switch:
            for folder in self.gives:
                _give(folder, owner)
        return answer

    def _collect(self, process: "subprocess.Popen[bytes]", word: str, limit: int) -> Answer:
        out, said = bytearray(), bytearray()
        stop = ""
        deadline = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout or -1, selectors.EVENT_READ, out)
            ready.register(process.stderr or -1, selectors.EVENT_READ, said)
            while ready.get_map() and not stop:
                for key, _ in ready.select(max(0.0, deadline - time.monotonic())):
                    data = os.read(key.fd, 1 << 18)
                    key.data.extend(data)
                    if not data:
                        ready.unregister(key.fileobj)
                del said[:-_MAX_ERROR]
                if len(out) > limit:
                    stop = f"git {word} says more than {limit} bytes"
                elif time.monotonic() >= deadline:
                    stop = f"git {word} took longer than {self.timeout:g} s"
        if stop:
            process.kill()
            return Answer(ok=False, out=b"", error=stop)
        status = process.wait()
        lines = said.decode("utf-8", "backslashreplace").strip().splitlines()
        unsound = [
            line for line in lines if line.startswith("error: object ")
        ]  # the lines behind say no more than that
        faults = [line for line in lines if line.startswith(("fatal: ", "error: "))]
        cause = unsound[:1] or faults[-1:] or lines[-1:]
        return Answer(ok=status == 0, out=bytes(out), error=cause[0][:300] if cause else f"exit {status}")


def _bounded() -> list[str]:
    """Words that start git with its memory limited; a limit set from outside would need a privilege over another user's process."""
    git = shutil.which("git", path=_PATH)
    if git is None:
        raise RingfenceError(
            "git-missing",
            "git is not installed, so nothing can be taken over into a repository",
            where=_PATH,
            remedy="install git; what the box changed waits in its layer",
        )
    allowed = resource.getrlimit(resource.RLIMIT_DATA)
    least = min([MAX_MEMORY, *(one for one in allowed if one != resource.RLIM_INFINITY)])
    return ["/bin/sh", "-c", f'ulimit -d {least // 1024} && exec "$0" "$@"', git]


@contextlib.contextmanager
def _input(given: bytes | int) -> Iterator[int]:
    """A descriptor to read the input from: a file in memory, so that nobody has to write while another one reads."""
    if isinstance(given, int):
        yield given
        return
    fd = os.memfd_create("git-input")
    try:
        with open(fd, "wb", closefd=False) as stream:
            stream.write(given)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def _reachable(path: str, owner: tuple[int, int]) -> bool:
    """Whether this owner may pass through every folder above."""
    uid, gid = owner
    while path != "/":
        path = os.path.dirname(path)
        info = os.stat(path)
        bit = 0o100 if info.st_uid == uid else 0o010 if info.st_gid == gid else 0o001
        if not info.st_mode & bit:
            return False
    return True


def _give(folder: str, owner: tuple[int, int]) -> None:
    for base, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            if os.lstat(path).st_uid == 0:
                os.chown(path, *owner, follow_symlinks=False)
