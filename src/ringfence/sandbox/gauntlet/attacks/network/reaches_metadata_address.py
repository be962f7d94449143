"""Asks the cloud's metadata address for credentials.

family: network
arguments: 169.254.169.254 80 {nonce}
judge: hit metadata {nonce}
trace: 169.254.169.254
"""

import socket
import sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as sock:
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
