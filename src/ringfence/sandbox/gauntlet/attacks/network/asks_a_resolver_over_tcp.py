"""Asks a name server outside over TCP.

family: network
arguments: 192.0.2.10 53 {nonce}
judge: hit outside-dns-tcp {nonce}
trace: 192.0.2.10
"""

import socket
import sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as sock:
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
