"""Takes one GiB of memory spread over eight processes.

family: limits
judge: resident 900
trace: memory
"""

import os
import time

for _ in range(8):
    if os.fork() == 0:
        block = bytearray(b"x") * (128 << 20)
        time.sleep(1.2)
        os._exit(0)
time.sleep(1.5)
