"""Opens a performance counter, a large part of the kernel with a long record of faults.

family: kernel
judge: holds "anon_inode:[perf_event]"
trace: perf_event_open
"""

import ctypes
import os
import struct
import sys
import time

CALL = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 120, 1) + bytes(24) + struct.pack("Q", 0x61), 120)
if ctypes.CDLL(None, use_errno=True).syscall(CALL, attributes, 0, -1, -1, 0) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
