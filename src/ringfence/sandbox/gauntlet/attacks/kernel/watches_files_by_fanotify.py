"""Opens the kernel's watch over file systems, by which virus scanners hold up every open.

family: kernel
judge: proof "^watching"
trace: fanotify_init
"""

import ctypes
import os

CALL = {"x86_64": 300, "aarch64": 262}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x0, 0x200):
    watch = libc.syscall(CALL, flags, 0)
    print("watching" if watch >= 0 else os.strerror(ctypes.get_errno()), flags)
