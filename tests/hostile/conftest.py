"""A ringfence that an ordinary user can start, and that user, made by root for one test run and removed after it."""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

RUNTIME_PACKAGES = (
    "msgspec", "yaml", "_yaml", "tree_sitter", "tree_sitter_bash", "re2", "_re2", "cryptography", "cffi",
    "_cffi_backend", "pycparser", "google_re2", "typing_extensions",
)  # fmt: skip
MAIN = "import sys; from ringfence.cli.main import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Caller:
    """Who starts ringfence, and how."""

    name: str
    prefix: tuple[str, ...]
    home: str
    gauntlet_words: tuple[str, ...] = ()
    """What makes the gauntlet run as this caller."""

    def ringfence(self, *words: str, timeout: float = 900, **more) -> subprocess.CompletedProcess:
        """Run one subcommand to its end."""
        return subprocess.run(
            [*self.prefix, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": self.home, "LANG": "C.UTF-8"},
            **{"cwd": "/", **more},
        )


@pytest.fixture(scope="session")
def here() -> Caller:
    """Whoever runs the tests."""
    return Caller("here", (sys.executable, "-c", MAIN), os.path.expanduser("~"))


@pytest.fixture(scope="session")
def ordinary() -> Iterator[Caller]:
    """An ordinary user: whoever runs the tests, or a user that root makes for them."""
    if os.geteuid() != 0:
        yield Caller("here", (sys.executable, "-c", MAIN), os.path.expanduser("~"))
        return
    name = f"rf{secrets.token_hex(4)}"
    folder = f"/opt/ringfence-{name}"
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", name], check=True, capture_output=True)
    try:
        python = _install(folder)
        yield Caller(name, (python, "-c", MAIN), f"/home/{name}", ("--user", name))
    finally:
        _end_processes_of(name)
        subprocess.run(["userdel", "-r", name], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _install(folder: str) -> str:
    """A copy of the product with its run-time packages that every user can read; gives its interpreter."""
    os.makedirs(folder, mode=0o755)
    system = next(p for p in ("/usr/bin/python3", sys.executable) if _version(p) == sys.version_info[:2])
    subprocess.run([system, "-m", "venv", "--without-pip", f"{folder}/venv"], check=True, capture_output=True)
    site = f"{folder}/venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    import ringfence

    shutil.copytree(
        os.path.dirname(ringfence.__file__), f"{site}/ringfence", ignore=shutil.ignore_patterns("__pycache__")
    )
    for entry in sorted(next(p for p in map(_packages, sys.path) if p)):
        source = entry.path
        target = f"{site}/{entry.name}"
        if entry.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for where, folders, files in os.walk(folder):
        for item in (*folders, *files):
            if not os.path.islink(path := os.path.join(where, item)):
                os.chmod(path, os.stat(path).st_mode | (0o555 if item in folders else 0o444))
    return f"{folder}/venv/bin/python"


class _Entry:
    def __init__(self, path: str) -> None:
        self.path, self.name = path, os.path.basename(path)

    def is_dir(self) -> bool:
        return os.path.isdir(self.path)

    def __lt__(self, other: "_Entry") -> bool:
        return self.path < other.path


def _packages(folder: str) -> list[_Entry]:
    if not os.path.isdir(f"{folder}/msgspec"):
        return []
    names = (name for name in os.listdir(folder) if name.partition(".")[0] in RUNTIME_PACKAGES)
    return [_Entry(f"{folder}/{name}") for name in names if not name.endswith("dist-info")]


def _version(python: str) -> tuple[int, ...]:
    if not os.path.exists(python):
        return ()
    text = "import sys; print(*sys.version_info[:2])"
    return tuple(int(n) for n in subprocess.check_output([python, "-c", text]).split())


def _end_processes_of(name: str) -> None:
    import pwd
    import signal
    import time

    uid = pwd.getpwnam(name).pw_uid
    for _ in range(100):
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and _owner(pid) == uid]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.05)


def _owner(pid: str) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1
