"""Speaks to the host's loopback by its less common names.

family: network
arguments: {loopback_port} {nonce}
judge: hit loopback {nonce}
trace: 127.0.0.1, 0.0.0.0, ::ffff:127.0.0.1, localhost
"""

import socket
import sys

for host in ("localhost", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "127.8.9.10"):  # noqa: S104  # the attack
    try:
        with socket.create_connection((host, int(sys.argv[1])), timeout=2) as sock:
            sock.sendall(b"GET /" + sys.argv[2].encode() + b" HTTP/1.0\r\n\r\n")
            print(host, sock.recv(64))
    except OSError as error:
        print(host, error)
