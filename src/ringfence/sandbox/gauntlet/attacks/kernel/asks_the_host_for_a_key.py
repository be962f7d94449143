"""Asks the kernel for a key that is not there, by which it looks for a program to make one.

family: kernel
arguments: {nonce}
judge: proof "^asked: Required key not available"
trace: request_key
"""

import ctypes
import os
import sys

CALL = {"x86_64": 249, "aarch64": 218}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(CALL, b"user", sys.argv[1].encode(), None, -3)
error = os.strerror(ctypes.get_errno())
print("asked:" if error == "Required key not available" else "refused:", error)
