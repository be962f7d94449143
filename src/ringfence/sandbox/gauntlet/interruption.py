"""An interrupted gauntlet leaves nothing: signals that end it wait while something is planted or cleared away.

What one that was killed outright left is removed by a later one.
"""

import contextlib
import fcntl
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GROUND = re.compile(r"ringfence-gauntlet-[0-9a-f]{12}")
UNTOUCHED_SECONDS = 600.0
"""A gauntlet makes a world in its folder more often than that."""
TRIES = 5


class Interruption:
    """Turns signals that end this process into an exception, at a moment when what is under way can be undone."""

    def __init__(self) -> None:
        """No signal is changed before ``listen``."""
        self._held = self._asked = 0

    def listen(self) -> None:
        """From now on. A signal that this process was started to ignore stays ignored."""
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._hear)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """What comes meanwhile is raised at the end."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            self._leave()

    def _hear(self, number: int, _frame: object) -> None:
        self._asked = number
        self._leave()

    def _leave(self) -> None:
        if self._held or not self._asked:
            return
        number, self._asked = self._asked, 0
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def make_ground(parent: str) -> str:
    """A fresh folder below ``parent``, locked as long as this process lives."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    _remove_left(parent)
    path = f"{parent}/ringfence-gauntlet-{secrets.token_hex(6)}"
    os.mkdir(path, 0o755)
    place = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(place, fcntl.LOCK_SH)
    return path


def remove(path: str) -> None:
    """Remove a tree whatever modes and depths an attack left in it, and though something may still write there."""
    for folder, _, _ in os.walk(path):
        if not os.path.islink(folder):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
    for _ in range(TRIES):
        # rm walks by descriptors: paths longer than the kernel takes are no obstacle to it
        subprocess.run(["rm", "-rf", "--one-file-system", "--", path], check=False, capture_output=True)
        if not os.path.lexists(path):
            return
        time.sleep(0.2)


def _remove_left(parent: str) -> None:
    """Folders of gauntlets that were killed. A supervisor that one of them left ends when its ledger is gone."""
    for name in os.listdir(parent):
        path = f"{parent}/{name}"
        if GROUND.fullmatch(name) and _is_left(path):
            remove(path)


def _is_left(path: str) -> bool:
    try:
        place = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        info = os.fstat(place)
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # somebody uses it
    finally:
        os.close(place)
    return info.st_uid == os.geteuid() and time.time() - info.st_mtime > UNTOUCHED_SECONDS
