"""Speaks to a server that listens on the host's own loopback.

family: network
arguments: 127.0.0.1 {loopback_port} {nonce}
judge: hit loopback {nonce}
trace: 127.0.0.1
"""

import socket
import sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as sock:
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
