"""Reads a file that the launcher had left open.

family: descriptors
judge: loot ssh
trace: inherited descriptor
descriptors: key
"""

import contextlib
import os

for number in range(3, 256):
    with contextlib.suppress(OSError):
        print(os.pread(number, 4096, 0).decode(errors="replace"))
