"""Takes one GiB of memory in files without a name that are sent over a socket, never received, and open nowhere.

family: limits
judge: shared 900
trace: memory
"""

import os
import socket
import time

sender, receiver = socket.socketpair()
for _ in range(8):
    file = os.memfd_create("x")
    for _ in range(128):
        os.write(file, bytes(1 << 20))
    socket.send_fds(sender, [b"x"], [file])
    os.close(file)
time.sleep(0.3)
print("claim: done")
