"""Sends datagrams to a port that modern browsers use.

family: network
arguments: {nonce}
judge: hit outside-quic {nonce}
trace: 192.0.2.10, udp
"""

import socket
import sys

for _ in range(3):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(sys.argv[1].encode(), ("192.0.2.10", 443))
