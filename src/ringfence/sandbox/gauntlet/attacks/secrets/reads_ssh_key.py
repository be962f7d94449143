"""Reads the person's SSH private key, by its path and through HOME.

family: secrets
arguments: {home} .ssh/id_rsa
judge: loot ssh
trace: .ssh/id_rsa
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
