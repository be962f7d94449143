"""Reads the SSH key through the root folder of every process it can see.

family: secrets
arguments: {home}/.ssh/id_rsa
judge: loot ssh
trace: /root/, id_rsa
"""

import contextlib
import os
import sys

for name in [*os.listdir("/proc"), *(f"self/task/{task}" for task in os.listdir("/proc/self/task"))]:
    with contextlib.suppress(OSError), open(f"/proc/{name}/root{sys.argv[1]}") as file:
        print(file.read())
