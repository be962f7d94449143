"""Leaves a socket in the worktree.

family: writes
judge: special {worktree}/src/s.sock
trace: socket, src/s.sock
"""

import socket

with socket.socket(socket.AF_UNIX) as sock:
    sock.bind("src/s.sock")
print("claim: done")
