"""Starts 1500 threads.

family: limits
judge: proof "^threads 1500$"
trace: processes
"""

import threading

threading.stack_size(65536)
over = threading.Event()
count = 0
for _ in range(1500):
    try:
        threading.Thread(target=over.wait, daemon=True).start()
        count += 1
    except (RuntimeError, MemoryError):
        break
print("threads", count, flush=True)
over.set()
