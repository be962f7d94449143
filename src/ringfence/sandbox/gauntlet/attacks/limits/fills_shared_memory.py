"""Writes 600 MiB into /dev/shm and /tmp, which take memory or the host's disk.

family: limits
arguments: {nonce}
judge: proof "^wrote 600$"
trace: memory, disk, limit
"""

import os
import sys

count = 0
paths = [f"{folder}/{sys.argv[1]}-filler" for folder in ("/dev/shm", "/tmp")]  # noqa: S108  # the place under attack
try:
    for path in paths:
        with open(path, "wb") as file:
            for _ in range(300):
                file.write(b"x" * (1 << 20))
                file.flush()
                count += 1
finally:
    print("wrote", count, flush=True)
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)
