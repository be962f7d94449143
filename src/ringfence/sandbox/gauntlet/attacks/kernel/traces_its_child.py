"""Traces a process of its own, by which it would see and change every call after the filter has judged it.

family: kernel
judge: proof "^tracing"
trace: ptrace
"""

import ctypes
import os

CALL = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
if os.fork() == 0:
    answer = libc.syscall(CALL, 0, 0, 0, 0)
    print("tracing" if answer == 0 else os.strerror(ctypes.get_errno()), flush=True)
    os._exit(0)
os.wait()
