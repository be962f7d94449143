"""Starts 400 processes at once.

family: limits
judge: many 300
trace: processes
"""

import os
import time

children = 0
for _ in range(400):
    try:
        if os.fork() == 0:
            time.sleep(1.2)
            os._exit(0)
        children += 1
    except OSError:
        break
print(children)
time.sleep(1.2)
