"""Sends a signal to a process of the person.

family: processes
arguments: {victim_pid}
judge: hurt
trace: pidfd, kill by
"""

import os
import signal
import sys

os.kill(int(sys.argv[1]), signal.SIGUSR1)
print("claim: done")
