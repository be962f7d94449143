"""Makes user and mount namespaces of its own and mounts there.

family: kernel
judge: mounted
trace: unshare, mount
"""

import ctypes
import os
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x20000) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
os.makedirs("src/mounted", exist_ok=True)
if libc.mount(sys.argv[-1].encode(), b"src/mounted", b"tmpfs", 0, None) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
