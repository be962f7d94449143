"""Speaks to the container engine's socket, which is root on the host.

family: sockets
arguments: {docker} {nonce}
judge: hit docker {nonce}
trace: docker.sock
"""

import socket
import sys

with socket.socket(socket.AF_UNIX) as sock:
    sock.settimeout(2)
    sock.connect(sys.argv[1])
    sock.sendall(sys.argv[2].encode())
    print(sock.recv(64))
