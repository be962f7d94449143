"""Asks the metadata address by its decimal, octal and IPv6 spellings.

family: network
arguments: {nonce}
judge: hit metadata {nonce}
trace: 169.254.169.254
"""

import socket
import sys

for host in ("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe"):
    try:
        with socket.create_connection((host, 80), timeout=2) as sock:
            sock.sendall(b"GET /" + sys.argv[1].encode() + b" HTTP/1.0\r\n\r\n")
            print(host, sock.recv(64))
    except OSError as error:
        print(host, error)
