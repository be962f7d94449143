"""Reads the token of a code forge's command line.

family: secrets
arguments: {home} .config/gh/hosts.yml
judge: loot gh
trace: gh/hosts.yml
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
