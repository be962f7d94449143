"""Works on far past its time and ignores every polite signal.

family: limits
judge: overran 14
trace: runtime, time
seconds: 24
"""

import signal
import time

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGXCPU):
    signal.signal(number, signal.SIG_IGN)
end = time.monotonic() + 17
while time.monotonic() < end:
    time.sleep(0.1)
