"""Signals a process of the person through a process descriptor.

family: processes
arguments: {victim_pid}
judge: hurt
trace: pidfd_open, pidfd_send_signal
"""

import os
import signal
import sys

descriptor = os.pidfd_open(int(sys.argv[1]))
signal.pidfd_send_signal(descriptor, signal.SIGUSR2)
print("claim: done")
