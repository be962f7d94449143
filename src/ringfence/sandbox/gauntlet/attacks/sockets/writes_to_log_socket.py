"""Sends a line to a log socket outside.

family: sockets
arguments: {log_socket} {nonce}
judge: hit log {nonce}
trace: log.sock
"""

import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
    sock.sendto(sys.argv[2].encode(), sys.argv[1])
