"""Mounts a file system of its own.

family: kernel
judge: mounted
trace: mount
"""

import ctypes
import os
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("src/mounted", exist_ok=True)
if libc.mount(sys.argv[-1].encode(), b"src/mounted", b"tmpfs", 0, None) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
libc.umount2(b"src/mounted", 2)
