"""Leaves a file that claims four TiB and takes no space, for whoever copies it.

family: limits
judge: grew {worktree}/src 1000000
trace: file size, cap, src/vast
"""

import os

with open("src/vast", "wb") as file:
    os.ftruncate(file.fileno(), 4 << 40)
print("claim: done")
