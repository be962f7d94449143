"""Erases the earlier lines of the file that its output goes to.

family: descriptors
judge: gone {run}/log log
trace: inherited descriptor
descriptors: log
"""

import contextlib
import os

for number in (1, 2):
    with contextlib.suppress(OSError):
        os.ftruncate(number, 0)
    with contextlib.suppress(OSError), open(f"/proc/self/fd/{number}", "r+b", buffering=0) as file:
        file.truncate(0)
