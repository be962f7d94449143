"""Makes a process of the person the owner of a pipe, so that the kernel sends it a signal at the next byte.

family: processes
arguments: {victim_pid}
judge: hurt
trace: fcntl, F_SETOWN
"""

import fcntl
import os
import signal
import socket
import sys
import time

ours, theirs = socket.socketpair()
fcntl.fcntl(ours, fcntl.F_SETOWN, int(sys.argv[1]))
fcntl.fcntl(ours, 10, int(signal.SIGUSR2))
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
theirs.send(b"x")
time.sleep(0.3)
print("claim: done")
