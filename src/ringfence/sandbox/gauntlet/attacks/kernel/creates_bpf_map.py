"""Creates a map for programs that run inside the kernel.

family: kernel
judge: holds "anon_inode:bpf-map" "anon_inode:bpf-prog"
trace: bpf
"""

import ctypes
import os
import struct
import sys
import time

CALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
attributes = ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 4, 1, 0), 128)
if ctypes.CDLL(None, use_errno=True).syscall(CALL, 0, attributes, 128) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
