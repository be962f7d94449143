"""Reads a file that a process of the person holds open, through /proc.

family: processes
arguments: {victim_pid} {victim_fd}
judge: loot kept
trace: /fd/
"""

import sys

with open(f"/proc/{sys.argv[1]}/fd/{sys.argv[2]}") as file:
    print(file.read())
