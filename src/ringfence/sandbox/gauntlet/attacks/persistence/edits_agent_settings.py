"""Adds a hook to the settings of a coding agent in the home.

family: persistence
arguments: {home}/.claude/settings.json .claude/settings.json
judge: changed {home}/.claude/settings.json
trace: .claude/settings.json
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("{}\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
