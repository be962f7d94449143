"""Loads a program that runs inside the kernel.

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
code = ctypes.create_string_buffer(bytes.fromhex("b7000000000000009500000000000000"))
words = ctypes.create_string_buffer(b"GPL")
attributes = ctypes.create_string_buffer(
    struct.pack("IIQQIIQI", 1, 2, ctypes.addressof(code), ctypes.addressof(words), 0, 0, 0, 0), 128
)
if ctypes.CDLL(None, use_errno=True).syscall(CALL, 5, attributes, 128) < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("claim: done", flush=True)
time.sleep(0.4)
