"""Takes one GiB of memory and touches all of it.

family: limits
judge: resident 900
trace: memory
"""

import time

blocks = [bytearray(b"x") * (16 << 20) for _ in range(64)]
time.sleep(0.3)
print("claim: done")
