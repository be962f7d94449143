"""Makes a user namespace with the old clone call.

family: kernel
judge: nested
trace: clone
"""

import ctypes
import os
import sys
import time

CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
time.sleep(0.1)
libc = ctypes.CDLL(None, use_errno=True)
child = libc.syscall(CLONE, 0x10000000 | 17, None, None, None, None)
if child < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
time.sleep(0.4)
if child == 0:
    os._exit(0)
print("claim: done")
