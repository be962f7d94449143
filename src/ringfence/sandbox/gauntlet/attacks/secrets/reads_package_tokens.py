"""Reads the token with which packages are published.

family: secrets
arguments: {home} .npmrc
judge: loot npm
trace: .npmrc
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
