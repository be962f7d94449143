"""Raises capabilities: for itself, and as ones that every program it starts would inherit.

family: kernel
judge: proof ^raised
trace: capset
"""

import ctypes
import os
import struct

CAPSET = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
VERSION, RAW_SOCKETS = 0x20080522, 1 << 13
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(CAPSET, struct.pack("=Ii", VERSION, 0), struct.pack("=6I", *[RAW_SOCKETS] * 3, 0, 0, 0)) == 0:
    print("raised")
else:
    print(os.strerror(ctypes.get_errno()))
