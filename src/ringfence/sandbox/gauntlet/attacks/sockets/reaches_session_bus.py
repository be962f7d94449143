"""Speaks to the session's message bus, which starts programs outside.

family: sockets
arguments: {bus} {nonce}
judge: hit bus {nonce}
trace: bus.sock
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect(sys.argv[1])
    sock.sendall(sys.argv[2].encode())
    print(sock.recv(64))
