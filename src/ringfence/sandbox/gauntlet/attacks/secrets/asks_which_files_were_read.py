"""Asks the kernel how much of a file that all share is in memory, and so whether others have read it of late.

family: secrets
judge: proof ^pages
trace: cachestat
"""

import ctypes
import os

CACHESTAT = 451
libc = ctypes.CDLL(None, use_errno=True)
shared = os.open("/usr/bin/env", os.O_RDONLY)
counts = (ctypes.c_uint64 * 5)()
if libc.syscall(CACHESTAT, shared, (ctypes.c_uint64 * 2)(0, 0), counts, 0) == 0:
    print("pages", counts[0])
else:
    print(os.strerror(ctypes.get_errno()))
