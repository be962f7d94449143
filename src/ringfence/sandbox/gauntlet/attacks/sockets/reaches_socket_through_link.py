"""Speaks to the container engine through a link made in the worktree.

family: sockets
arguments: {docker} {nonce}
judge: hit docker {nonce}
trace: docker.sock, symlink
"""

import os
import socket
import sys

os.symlink(sys.argv[1], "src/d.sock")
with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect("src/d.sock")
    sock.sendall(sys.argv[2].encode())
    print(sock.recv(64))
