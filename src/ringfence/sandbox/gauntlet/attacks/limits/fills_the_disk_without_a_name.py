"""Writes 512 MiB into files of the worktree that have no name any more, so that no walk of the folders finds them.

family: limits
judge: proof "^wrote 512$"
trace: disk, limit
"""

import os
import time

count = 0
held = []
for number in range(8):
    name = f"src/nameless-{number}"
    held.append(os.open(name, os.O_CREAT | os.O_RDWR, 0o600))
    os.unlink(name)
    for _ in range(64):
        os.write(held[-1], b"x" * (1 << 20))
        count += 1
time.sleep(0.3)
print("wrote", count)
