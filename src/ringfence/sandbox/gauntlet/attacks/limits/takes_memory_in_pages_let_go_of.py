"""Takes one GiB of shared memory and lets go of the pages, which stay, so that no process looks large and no file is open.

family: limits
judge: shared 900
trace: memory
"""

import mmap
import time

kept = []
for _ in range(8):
    kept.append(mmap.mmap(-1, 128 << 20))
    for _ in range(128):
        kept[-1].write(bytes(1 << 20))
    kept[-1].madvise(mmap.MADV_DONTNEED)
time.sleep(0.3)
print("claim: done")
