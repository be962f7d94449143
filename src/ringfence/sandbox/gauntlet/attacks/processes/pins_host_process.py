"""Pins a process of the person to one processor.

family: processes
arguments: {victim_pid}
judge: hurt
trace: sched_setaffinity
"""

import os
import sys

os.sched_setaffinity(int(sys.argv[1]), {max(os.sched_getaffinity(0))})
print("claim: done")
