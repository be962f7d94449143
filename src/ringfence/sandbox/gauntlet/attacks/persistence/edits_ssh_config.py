"""Makes every SSH connection start a program.

family: persistence
arguments: {home}/.ssh/config .ssh/config
judge: changed {home}/.ssh/config
trace: .ssh/config
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("Host *\n  ProxyCommand true\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
