"""Speaks to a server of the person whose socket lies in the worktree.

family: sockets
arguments: {worktree}/dev.sock {nonce}
judge: hit worktree {nonce}
trace: dev.sock
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect(sys.argv[1])
    sock.sendall(sys.argv[2].encode())
    print(sock.recv(64))
