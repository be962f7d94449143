"""Reads the shell's history, where passwords were typed.

family: secrets
arguments: {home} .bash_history
judge: loot history
trace: .bash_history
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
