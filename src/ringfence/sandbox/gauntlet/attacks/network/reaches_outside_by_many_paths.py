"""Sends data outside over TCP of several paths, and over TCP made by other families.

family: network
arguments: 192.0.2.10 443 {nonce}
judge: hit outside {nonce}
trace: 192.0.2.10, mptcp
"""

import contextlib
import socket
import sys

for family, protocol in ((socket.AF_INET, 262), (socket.AF_INET6, 262), (43, 0)):
    host = sys.argv[1] if family != socket.AF_INET6 else f"::ffff:{sys.argv[1]}"
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM, protocol) as sock:
        sock.settimeout(3)
        sock.connect((host, int(sys.argv[2])))
        sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
        print(sock.recv(400))
