"""A real desktop keyring of the test's own: a session bus and gnome-keyring on it, with nothing of the user's."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>{address}</listen>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"""
"""No service folders: nothing is started because somebody asked for it."""
PROGRAMS = ("dbus-daemon", "gnome-keyring-daemon", "dbus-send", "secret-tool")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
LOGIN = "/org/freedesktop/secrets/collection/login"


class Keyring:
    """Bus and keyring below ``folder``; the bus has the place below ``run`` where a login would have put it."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.own = self.run / str(os.getuid())
        home = folder / "home"
        self.own.mkdir(parents=True)
        self.own.chmod(0o700)
        home.mkdir()
        self.address = f"unix:path={self.own}/bus"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_RUNTIME_DIR": str(self.own),
            "DBUS_SESSION_BUS_ADDRESS": self.address,
        }
        (home / "data" / "keyrings").mkdir(parents=True)
        (folder / "bus.conf").write_text(BUS.format(address=self.address))
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self.bus = self._start("dbus-daemon", f"--config-file={folder / 'bus.conf'}", "--nofork", "--nopidfile")
            self._wait((self.own / "bus").exists)
            self.daemon = self._start("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
            assert self.daemon.stdin is not None
            self.daemon.stdin.write(b"the keyring's own password")
            self.daemon.stdin.close()
            self._wait(lambda: self._send(LOGIN, "org.freedesktop.DBus.Peer.Ping") == 0)
        except BaseException:
            self.close()
            raise

    def store(self, value: str, **attributes: str) -> None:
        """Put a value there, as a person would."""
        words = [word for pair in attributes.items() for word in pair]
        subprocess.run(
            ["secret-tool", "store", "--label=test", *words], env=self.environment, input=value.encode(), check=True
        )

    def lock(self) -> None:
        """Lock it; nobody is there to type a password."""
        done = self._send("/org/freedesktop/secrets", "org.freedesktop.Secret.Service.Lock", f"array:objpath:{LOGIN}")
        assert done == 0

    def hang(self) -> None:
        """Have it answer nothing any more, as one that waits for a person."""
        os.kill(self.daemon.pid, signal.SIGSTOP)

    def close(self) -> None:
        """End both."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            with contextlib.suppress(OSError):
                process.stdin.close()

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        made = subprocess.Popen(
            words, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._processes.append(made)
        return made

    def _send(self, path: str, method: str, *words: str) -> int:
        command = ["dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", path, method, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False).returncode

    @staticmethod
    def _wait(condition, seconds=60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the keyring did not come up"
            time.sleep(0.05)
