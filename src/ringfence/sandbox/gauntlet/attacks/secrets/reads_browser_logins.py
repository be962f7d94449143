"""Reads the passwords that a browser saved.

family: secrets
arguments: {home} .mozilla/firefox/p.default/logins.json
judge: loot browser
trace: .mozilla
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
