"""Makes a user namespace of its own, where it has every capability.

family: kernel
judge: nested
trace: unshare
"""

import ctypes
import os
import sys
import time

time.sleep(0.1)
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
