"""A real OpenSSH server for tests, in the test internet, with one user who may log in by one key and run git.

``python sshd.py FOLDER PORT SSHD`` becomes an ordinary user of a user namespace of its own, with a passwd file of its own,
and then the server. ``Sshd`` is the test's side of it. Standard library only, for root and for ordinary users.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, MS_BIND, MS_REC_PRIVATE = 0x00020000, 0x10000000, 0x1000, 0x44000
UID, USER, PORT = 1000, "coder", 2022
CONFIG = """\
ListenAddress 0.0.0.0
HostKey {folder}/host
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
AuthorizedKeysFile {folder}/client.pub
"""


class Sshd:
    """Started in the test internet; ``ready`` once it listens."""

    def __init__(self, folder: Path, enter: tuple[str, ...], program: str) -> None:
        """``enter``: words before a command that make it run in the namespace of the servers."""
        self.folder = folder
        for name in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        (folder / "sshd_config").write_text(CONFIG.format(folder=folder), encoding="ascii")
        (folder / "passwd").write_text(f"{USER}:x:{UID}:{UID}::{folder}:/bin/sh\n", encoding="ascii")
        key = (folder / "host.pub").read_text(encoding="ascii").split()[:2]
        (folder / "known_hosts").write_text(f"* {' '.join(key)}\n", encoding="ascii")
        own = [sys.executable, "-I", "-S", os.path.abspath(__file__), str(folder), str(PORT), program]
        self.process = subprocess.Popen([*enter, *own], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "Server listening" in line:
                return
        raise RuntimeError("the ssh server did not start")

    @property
    def command(self) -> str:
        """The client's command line, as for ``GIT_SSH_COMMAND``."""
        options = {
            "IdentityFile": self.folder / "client",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "BatchMode": "yes",
            "Port": PORT,
        }
        return " ".join(["ssh", "-F", "/dev/null", *(f"-o {name}={value}" for name, value in options.items())])

    def close(self) -> None:
        """End the server."""
        self.process.terminate()
        with contextlib.suppress(ValueError):
            self.process.stderr.close()
        self.process.wait(timeout=60)


def become(folder: str, port: str, program: str) -> None:
    """The program's side."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{UID} {uid} 1"), ("gid_map", f"{UID} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)
    if libc.mount(f"{folder}/passwd".encode(), b"/etc/passwd", None, MS_BIND, None):
        raise OSError(ctypes.get_errno(), "bind /etc/passwd")
    os.execv(program, [program, "-D", "-e", "-f", f"{folder}/sshd_config", "-p", port])


if __name__ == "__main__":
    become(*sys.argv[1:])
