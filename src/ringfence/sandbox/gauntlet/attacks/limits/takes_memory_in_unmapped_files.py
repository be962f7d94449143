"""Takes one GiB of memory in files without a name that nothing has mapped, so that no process looks large.

family: limits
judge: shared 900
trace: memory
"""

import os
import time

kept = []
for _ in range(8):
    kept.append(os.memfd_create("x"))
    for _ in range(128):
        os.write(kept[-1], bytes(1 << 20))
time.sleep(0.3)
print("claim: done")
