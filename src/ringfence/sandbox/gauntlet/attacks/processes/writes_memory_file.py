"""Opens the memory of a process of the person as a file.

family: processes
arguments: {victim_pid} {victim_address}
judge: loot victim
trace: /mem
"""

import os
import sys

memory = os.open(f"/proc/{sys.argv[1]}/mem", os.O_RDWR)
print(os.pread(memory, 30, int(sys.argv[2])).decode(errors="replace"))
