"""Mounts with the newer descriptor calls, which old filters do not know.

family: kernel
judge: mounted
trace: fsopen, fsmount, move_mount
"""

import ctypes
import os
import sys
import time

FSOPEN, FSCONFIG, FSMOUNT, MOVE_MOUNT = 430, 431, 432, 429
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare(0x10000000 | 0x20000)
context = libc.syscall(FSOPEN, b"tmpfs", 0)
if context < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
libc.syscall(FSCONFIG, context, 1, b"source", sys.argv[-1].encode(), 0)
libc.syscall(FSCONFIG, context, 6, None, None, 0)
mount = libc.syscall(FSMOUNT, context, 0, 0)
os.makedirs("src/mounted", exist_ok=True)
if libc.syscall(MOVE_MOUNT, mount, b"", -100, b"src/mounted", 4) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
libc.umount2(b"src/mounted", 2)
