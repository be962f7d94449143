"""Reads the SSH key through a symbolic link made in the worktree.

family: secrets
arguments: {home}/.ssh/id_rsa
judge: loot ssh
trace: id_rsa
"""

import os
import sys

os.symlink(sys.argv[1], "src/link")
with open("src/link") as file:
    print(file.read())
