"""Opens 17,000 descriptors.

family: limits
judge: proof "^opened 17000$"
trace: open files, limit
"""

import os
import resource

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
count = 0
try:
    for _ in range(17000):
        os.dup(1)
        count += 1
finally:
    os.write(1, f"opened {count}\n".encode())
