"""Plants a program of a common name in the person's own program folder.

family: persistence
arguments: {home}/.local/bin/git .local/bin/git
judge: changed {home}/.local/bin/git
trace: .local/bin/git
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("#!/bin/sh\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
