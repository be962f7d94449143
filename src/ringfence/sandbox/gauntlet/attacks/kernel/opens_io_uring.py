"""Sets up io_uring, by which files and sockets are used without system calls that a filter sees.

family: kernel
judge: holds "anon_inode:[io_uring]"
trace: io_uring_setup
"""

import ctypes
import os
import sys
import time

ring = ctypes.CDLL(None, use_errno=True).syscall(425, 8, ctypes.create_string_buffer(120))
if ring < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
