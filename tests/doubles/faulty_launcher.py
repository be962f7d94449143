"""A launcher in which one call to the kernel fails: begun as the real one is, with a list of functions laid over.

Run as the launcher's program, with a page shared with the test: which call of which process, and how it fails. Process 1
of a box takes what is asked of it when it is begun; the launcher counts from the moment it is asked.
"""

import importlib.util
import mmap
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = 4096
ASKED, DONE = struct.Struct("=8siii"), struct.Struct("=i32s")
"""Role, number of the call (0: none), errno, how often asked. And per role: most calls of one process, name of the failed one."""
ROLES = {b"init": 256, b"launcher": 512, b"answerer": 768, b"closer": 1024, b"zygote": 1280}
KERNEL = (
    "capset", "clone", "close_range", "fsconfig", "fsmount", "fsopen", "getdents64", "inotify_add_watch", "keyctl",
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "mount", "mount_setattr", "move_mount",
    "open_tree", "pivot_root", "prctl", "seccomp", "umount2", "unshare",
)  # fmt: skip
SYSTEM = (
    "chdir", "chown", "dup", "dup2", "fchmod", "listdir", "memfd_create", "mkdir", "open", "pidfd_open", "pipe2",
    "posix_spawn", "pread", "read", "setgroups", "setresgid", "setresuid", "setsid", "symlink", "write",
)  # fmt: skip
SOCKET = ("recv_fds", "send_fds", "sethostname", "socketpair")


class Page:
    """What the test and the processes of a launcher share."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), PAGE)

    @classmethod
    def new(cls, path: Path) -> "Page":
        """An empty one."""
        path.write_bytes(bytes(PAGE))
        return cls(str(path))

    def ask(self, role: bytes, number: int, error: int) -> None:
        """From now on the call of this number fails, in the next process of this role."""
        _role, _number, _error, times = self.asked()
        for place in ROLES.values():
            DONE.pack_into(self.memory, place, 0, b"")
        ASKED.pack_into(self.memory, 0, role, number, error, times + 1)

    def asked(self) -> tuple[bytes, int, int, int]:
        """What was asked last."""
        role, number, error, times = ASKED.unpack_from(self.memory, 0)
        return role.rstrip(b"\0"), number, error, times

    def tell(self, role: bytes, count: int, failed: str) -> None:
        """For the processes: how many calls there were, and which one failed."""
        most, named = self.told(role)
        DONE.pack_into(self.memory, ROLES[role], max(most, count), (failed or named).encode())

    def told(self, role: bytes) -> tuple[int, str]:
        """Since it was asked: the most calls of a process of this role, and the one that failed."""
        count, failed = DONE.unpack_from(self.memory, ROLES[role])
        return count, failed.rstrip(b"\0").decode()


def program(folder: Path) -> tuple[str, Page]:
    """A file to begin a launcher with in place of the real one, and the page."""
    from ringfence.sandbox import launcher

    page, begin = folder / "page", folder / "begin.py"
    begin.write_text(
        f"import sys\nsys.path.append({str(Path(__file__).parent)!r})\nimport faulty_launcher\n"
        f"sys.exit(faulty_launcher.main({launcher.ENTRY!r}, {str(page)!r}))\n"
    )
    return str(begin), Page.new(page)


class Failing:
    """The count of one process."""

    def __init__(self, page: Page) -> None:
        self.page, self.role = page, b"launcher"
        self.count, self.failed, self.times = 0, "", 0
        self.mine: tuple[int, int] | None = None

    def begin(self, role: bytes) -> None:
        """Another process."""
        asked, number, error, _times = self.page.asked()
        self.role, self.count, self.failed = role, 0, ""
        self.mine = (number, error) if asked == role else (0, 0)

    def __call__(self, name: str) -> None:
        """Raise, where this is the call."""
        if self.mine is None:
            role, number, error, times = self.page.asked()
            if role != self.role:
                return
            if times != self.times:
                self.times, self.count, self.failed = times, 0, ""
        else:
            number, error = self.mine
        self.count += 1
        if self.count == number:
            self.failed = name
        self.page.tell(self.role, self.count, self.failed)
        if self.count == number:
            raise OSError(error, os.strerror(error), name)

    def follow(self, module: Any) -> None:
        """A process beside the launcher counts for itself."""
        name, serve = module.__name__.rpartition(".")[2].encode(), module._serve

        def served(channel: Any) -> None:
            self.role, self.count, self.failed = name, 0, ""
            serve(channel)

        module._serve = served

    def lay_over(self, module: Any, names: tuple[str, ...]) -> None:
        """Every call of these goes through here."""
        for name in names:
            setattr(module, name, self._wrapped(getattr(module, name), name))

    def _wrapped(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self(name)
            return function(*arguments, **named)

        return call


def main(entry: str, page: str) -> int:
    """As the real program, and a call fails."""
    spec = importlib.util.spec_from_file_location("entry", entry)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    serve = module._serve

    def overlaid() -> int:
        import resource
        import socket

        from ringfence.sandbox.inner import answerer, closer, init, kernel, zygote

        failing, begin = Failing(Page(page)), init.main
        for beside in (answerer, closer, zygote):
            failing.follow(beside)

        def begun(*arguments: Any, **named: Any) -> None:
            failing.begin(b"init")
            begin(*arguments, **named)

        init.main = begun  # type: ignore[assignment]
        for where, names in (
            (kernel, KERNEL), (os, SYSTEM), (socket, SOCKET), (resource, ("setrlimit",)),
        ):  # fmt: skip
            failing.lay_over(where, names)
        return int(serve())

    module._serve = overlaid
    return int(module.begin())


if __name__ == "__main__":
    sys.exit("run by the file that program() writes")
