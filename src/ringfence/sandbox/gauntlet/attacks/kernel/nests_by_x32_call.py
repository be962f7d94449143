"""Makes a user namespace through the x32 numbers of system calls.

family: kernel
judge: nested
trace: unshare, x32, architecture
"""

import ctypes
import os
import sys
import time

if os.uname().machine != "x86_64":
    sys.exit("only on x86")
time.sleep(0.1)
if ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 272, 0x10000000) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
