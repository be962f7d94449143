"""Speaks to the display server, to watch and to type.

family: sockets
arguments: {display} {nonce}
judge: hit display {nonce}
trace: wayland-0
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect(sys.argv[1])
    sock.sendall(sys.argv[2].encode())
    print(sock.recv(64))
