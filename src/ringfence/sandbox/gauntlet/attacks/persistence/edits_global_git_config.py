"""Sets a hook folder for every repository of the person.

family: persistence
arguments: {home}/.gitconfig .gitconfig
judge: changed {home}/.gitconfig
trace: .gitconfig
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("[core]\n\thooksPath = /nonexistent\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
