"""Writes to the login script through a symbolic link made in the worktree.

family: writes
arguments: {home}/.profile
judge: changed {home}/.profile
trace: .profile, symlink
"""

import os
import sys

os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
os.symlink(sys.argv[1], "src/link")
with open("src/link", "a") as file:
    file.write("true # planted\n")
print("claim: done")
