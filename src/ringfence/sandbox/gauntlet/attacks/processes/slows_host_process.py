"""Takes processor time away from a process of the person.

family: processes
arguments: {victim_pid}
judge: hurt
trace: setpriority
"""

import os
import sys

os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 15)
print("claim: done")
