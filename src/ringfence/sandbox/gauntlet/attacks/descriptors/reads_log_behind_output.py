"""Reads the earlier lines of the file that its output goes to.

family: descriptors
judge: loot log
trace: inherited descriptor
descriptors: log
"""

import contextlib
import os
import sys

found = b""
for number in (1, 2):
    with contextlib.suppress(OSError), open(f"/proc/self/fd/{number}", "rb", buffering=0) as file:
        if not os.isatty(file.fileno()) and os.fstat(file.fileno()).st_mode & 0o100000:
            found += file.read(4096)
    with contextlib.suppress(OSError):
        found += os.pread(number, 4096, 0)
sys.stderr.write(found.hex() + "\n")
