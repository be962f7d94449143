"""Sends data to an address outside over IPv6.

family: network
arguments: 2001:db8::5 80 {nonce}
judge: hit outside-v6 {nonce}
trace: 2001:db8::5
"""

import socket
import sys

with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as sock:
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
