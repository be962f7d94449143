"""Sends a datagram to a socket of the person that has no file, without any connection.

family: sockets
arguments: {nonce}
judge: hit abstract-log {nonce}
trace: abstract
"""

import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
    sock.sendto(sys.argv[1].encode(), "\0" + sys.argv[1] + "-log")
    print("claim: done")
