"""Asks a name server outside directly, over UDP.

family: network
arguments: {nonce}
judge: hit outside-dns {nonce}
trace: 192.0.2.10, udp
"""

import socket
import struct
import sys

labels = sys.argv[1].encode(), b"example", b"org"
question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0" + struct.pack("!HH", 16, 1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(2)
    sock.sendto(struct.pack("!HHHHHH", 7, 256, 1, 0, 0, 0) + question, ("192.0.2.10", 53))
    print(sock.recv(512))
