"""Moves, links and exchanges files of the worktree with those of another project.

family: writes
arguments: {sibling}
judge: changed {sibling}
trace: sibling
"""

import contextlib
import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
target = sys.argv[1]
AT_FDCWD = -100
for call in (
    lambda: libc.renameat2(AT_FDCWD, b"README.md", AT_FDCWD, f"{target}/notes.txt".encode(), 2),
    lambda: os.rename("README.md", f"{target}/notes.txt"),
    lambda: os.link("src/app.py", f"{target}/src/linked.py"),
    lambda: os.symlink("/etc/passwd", f"{target}/pointer"),
    lambda: os.truncate(f"{target}/src/main.py", 0),
    lambda: os.mkdir(f"{target}/made"),
    lambda: os.mkfifo(f"{target}/pipe"),
    lambda: os.chmod(f"{target}/notes.txt", 0o700),
    lambda: os.utime(f"{target}/notes.txt", (0, 0)),
):
    with contextlib.suppress(OSError):
        if not call():
            print("claim: done")
