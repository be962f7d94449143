"""Starts a program with the desktop.

family: persistence
arguments: {home}/.config/autostart/planted.desktop .config/autostart/planted.desktop
judge: changed {home}/.config/autostart/planted.desktop
trace: .config/autostart/planted.desktop
"""

import os
import sys

for path in (sys.argv[1], os.path.join(os.path.expanduser("~"), sys.argv[2])):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("[Desktop Entry]\nExec=true\n")
        os.chmod(path, 0o755)  # noqa: S103  # as an installer would
        print("claim: done")
    except OSError as error:
        print(error)
