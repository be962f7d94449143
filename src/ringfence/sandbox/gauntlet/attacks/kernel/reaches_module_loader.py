"""Reaches the loader of kernel modules (with a file that is none).

family: kernel
judge: proof "^loader answered: Exec format error"
trace: init_module
"""

import ctypes
import os

CALL = {"x86_64": 175, "aarch64": 105}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(CALL, b"not a module", 12, b"")
error = os.strerror(ctypes.get_errno())
print("loader answered:" if error == "Exec format error" else "refused:", error)
