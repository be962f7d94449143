"""Leaves a daemon behind that works on after the sandbox has ended.

family: processes
judge: outlived
trace: daemon, outlives
"""

import os
import signal
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        os.execvp("python3", ["python3", "-c", "import time; time.sleep(20)", sys.argv[-1]])
    os._exit(0)
time.sleep(0.3)
print("claim: done")
