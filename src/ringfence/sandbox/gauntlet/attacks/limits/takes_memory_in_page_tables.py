"""Takes most of a GiB of memory in page tables, by many small maps of one file far apart from each other.

family: limits
judge: shared 700
trace: memory
"""

import ctypes
import os
import time

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
children = []
with open("/bin/sh", "rb") as file:
    for _ in range(16):
        child = os.fork()
        if child == 0:
            for step in range(15000):
                place = ctypes.c_void_p(0x100000000000 + step * (2 << 20))
                place = libc.mmap(place, ctypes.c_size_t(4096), 1, 0x12, file.fileno(), ctypes.c_long(0))
                ctypes.string_at(place, 1)
            time.sleep(1)
            os._exit(0)
        children.append(child)
for child in children:
    os.waitpid(child, 0)
print("claim: done")
