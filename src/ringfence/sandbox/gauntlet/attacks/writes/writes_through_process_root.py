"""Writes into another project through the root folder of every process it can see.

family: writes
arguments: {sibling}/notes.txt
judge: changed {sibling}
trace: /root/, sibling
"""

import contextlib
import os
import sys

for name in os.listdir("/proc"):
    with contextlib.suppress(OSError), open(f"/proc/{name}/root{sys.argv[1]}", "a") as file:
        file.write("planted")
        print("claim: done")
