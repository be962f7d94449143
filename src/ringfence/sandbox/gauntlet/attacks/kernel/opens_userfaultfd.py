"""Opens userfaultfd, with which kernel races are won.

family: kernel
judge: holds "anon_inode:[userfaultfd]"
trace: userfaultfd
"""

import ctypes
import os
import sys
import time

CALL = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
if ctypes.CDLL(None, use_errno=True).syscall(CALL, 1) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
