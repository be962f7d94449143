"""Speaks to a socket that has a name but no file.

family: sockets
arguments: {nonce}
judge: hit abstract {nonce}
trace: abstract
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect("\0" + sys.argv[1])
    sock.sendall(sys.argv[1].encode())
    print(sock.recv(64))
