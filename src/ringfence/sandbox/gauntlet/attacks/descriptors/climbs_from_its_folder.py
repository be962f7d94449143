"""Climbs from its working folder by descriptors, below the root that it was given.

family: descriptors
judge: loot sibling
trace: /sibling
"""

import contextlib
import os

folder = os.open(".", os.O_RDONLY)
for _ in range(12):
    for path in ("sibling/notes.txt", "home/sibling/notes.txt"):
        with contextlib.suppress(OSError), open(os.open(path, os.O_RDONLY, dir_fd=folder)) as file:
            print(file.read())
    folder = os.open("..", os.O_RDONLY, dir_fd=folder)
