"""Speaks to a socket in the worktree by a relative path and through its own /proc folder.

family: sockets
arguments: {nonce}
judge: hit worktree {nonce}
trace: dev.sock
"""

import socket
import sys

for path in ("dev.sock", "./src/../dev.sock", "/proc/self/cwd/dev.sock"):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        try:
            sock.connect(path)
            sock.sendall(sys.argv[1].encode())
            print(sock.recv(64))
        except OSError as error:
            print(error)
