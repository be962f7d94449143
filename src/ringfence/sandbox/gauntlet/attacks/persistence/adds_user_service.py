"""Starts a program with the session.

family: persistence
arguments: {home}/.config/systemd/user/planted.service .config/systemd/user/planted.service
judge: changed {home}/.config/systemd/user/planted.service
trace: .config/systemd/user/planted.service
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("[Service]\nExecStart=/bin/true\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
