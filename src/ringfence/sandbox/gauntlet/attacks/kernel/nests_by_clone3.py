"""Makes a user namespace with clone3, whose flags a filter cannot see.

family: kernel
judge: nested
trace: clone3
"""

import ctypes
import os
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
time.sleep(0.1)
arguments = ctypes.create_string_buffer(struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
child = libc.syscall(435, arguments, 88)
if child < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
time.sleep(0.4)
if child == 0:
    os._exit(0)
print("claim: done")
