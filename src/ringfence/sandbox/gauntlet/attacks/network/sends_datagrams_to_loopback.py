"""Sends datagrams to a server on the host's loopback, in one call for several.

family: network
arguments: {loopback_udp_port} {nonce}
judge: hit loopback-udp {nonce}
trace: 127.0.0.1, udp
"""

import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.connect(("127.0.0.1", int(sys.argv[1])))
    sock.sendmsg([sys.argv[2].encode()])
