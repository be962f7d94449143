"""Takes one GiB of memory in System V segments, and lets go of each after writing to it.

family: limits
judge: shared 900
trace: memory
"""

import ctypes
import time

libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
segments = []
for _ in range(8):
    segments.append(libc.shmget(0, ctypes.c_size_t(128 << 20), 0o1600))
    place = libc.shmat(segments[-1], None, 0)
    ctypes.memset(place, 1, 128 << 20)
    libc.shmdt(ctypes.c_void_p(place))
time.sleep(0.3)
for segment in segments:
    libc.shmctl(segment, 0, None)
print("claim: done")
