"""Reads the person's signing keys.

family: secrets
arguments: {home} .gnupg/private-keys-v1.d/k.key
judge: loot gnupg
trace: .gnupg
"""

import contextlib
import os
import sys

for home in (sys.argv[1], os.path.expanduser("~")):
    for name in sys.argv[2:-1]:
        with contextlib.suppress(OSError), open(os.path.join(home, name)) as file:
            print(file.read())
