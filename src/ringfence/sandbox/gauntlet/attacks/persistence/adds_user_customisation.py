"""Plants a module that every Python of the person imports.

family: persistence
arguments: {home}/.local/lib/python3.11/site-packages/usercustomize.py .local/lib/python3.11/site-packages/usercustomize.py
judge: changed {home}/.local/lib/python3.11/site-packages/usercustomize.py
trace: .local/lib/python3.11/site-packages/usercustomize.py
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("planted = True\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
