"""Reads the log-in of a coding agent.

family: secrets
arguments: {home} .claude/.credentials.json
judge: loot agent
trace: .credentials.json
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
