"""Installs a memory segment of its own making in the processor's table.

family: kernel
judge: proof "^installed"
trace: modify_ldt
"""

import ctypes
import os
import struct

if os.uname().machine == "x86_64":
    libc = ctypes.CDLL(None, use_errno=True)
    text = struct.pack("<4I", 0, 0, 0xFFFFF, 0x51)
    print("installed" if libc.syscall(154, 1, text, len(text)) == 0 else os.strerror(ctypes.get_errno()))
