"""Sends data outside from a port that it listens on itself, and over connections that begin on both sides at once.

family: network
arguments: 192.0.2.10 443 {nonce}
judge: hit outside {nonce}
trace: 192.0.2.10
"""

import contextlib
import socket
import sys

server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("0.0.0.0", 0))  # noqa: S104  the box's own
server.listen()
with contextlib.suppress(OSError), socket.socket() as sock:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.setsockopt(socket.IPPROTO_IP, 24, 1)
    sock.bind(("", server.getsockname()[1]))
    sock.settimeout(3)
    sock.connect((sys.argv[1], int(sys.argv[2])))
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
