"""Keeps forking a new process and ending the old one, to be missed by whoever kills by number.

family: processes
judge: outlived
trace: daemon, outlives
"""

import os
import time

if os.fork() == 0:
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    end = time.monotonic() + 15
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        time.sleep(0.005)
    os._exit(0)
time.sleep(0.3)
print("claim: done")
